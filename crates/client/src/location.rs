//! The location of a file system: the metadata servers behind an `hdfs://` name.

use crate::config::{Config, ConfigError};

/// The port of a metadata server where a URI names none.
pub const PORT: u16 = 8020;

/// A file system's name and the servers that serve it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The part of the URI between `hdfs://` and the path: a host with a port, or a name service.
    pub authority: String,
    /// `host:port` of each metadata server, in the order in which they are tried.
    pub servers: Vec<String>,
}

impl Location {
    /// Finds the servers of `uri`: `hdfs://host`, `hdfs://host:port` or a name of `dfs.nameservices`; anything
    /// after the authority is left to the caller.
    ///
    /// # Errors
    /// The error names the text and says why: it is no URI of the scheme `hdfs`, names no host, has a port that is
    /// none, or names a service whose servers are not configured.
    pub fn resolve(uri: &str, config: &Config) -> Result<Self, ConfigError> {
        let refuse = |reason: String| ConfigError { place: format!("`{uri}`"), reason };
        let Some((scheme, rest)) = uri.split_once("://") else {
            return Err(refuse("is not a file system; it is written as hdfs://host:port".into()));
        };
        if scheme != "hdfs" {
            return Err(refuse(format!("has the scheme {scheme}; only hdfs is served here")));
        }
        let authority = rest.split('/').next().unwrap_or_default();
        // A user before the host is legal in a URI and means nothing here.
        let authority = authority.rsplit('@').next().unwrap_or_default();
        if authority.is_empty() {
            return Err(refuse("names no host; it is written as hdfs://host:port".into()));
        }
        let servers = match config.list(&format!("dfs.ha.namenodes.{authority}")) {
            names if !names.is_empty() => Self::servers_of_service(authority, &names, config)?,
            _ if config.list("dfs.nameservices").iter().any(|service| service == authority) => {
                let key = format!("dfs.namenode.rpc-address.{authority}");
                vec![with_port(&required(config, &key)?).map_err(|reason| config.refuse(&key, &reason))?]
            }
            _ => vec![with_port(authority).map_err(refuse)?],
        };
        Ok(Self { authority: authority.to_owned(), servers })
    }

    fn servers_of_service(
        service: &str,
        names: &[String],
        config: &Config,
    ) -> Result<Vec<String>, ConfigError> {
        let address = |name: &String| {
            let key = format!("dfs.namenode.rpc-address.{service}.{name}");
            with_port(&required(config, &key)?).map_err(|reason| config.refuse(&key, &reason))
        };
        names.iter().map(address).collect()
    }

    /// `hdfs://` and the authority.
    pub fn uri(&self) -> String {
        format!("hdfs://{}", self.authority)
    }
}

fn required(config: &Config, key: &str) -> Result<String, ConfigError> {
    config.get(key).filter(|value| !value.is_empty()).ok_or_else(|| config.refuse(key, "is not set"))
}

/// Completes an address with the usual port; `[::1]:8020` has its host in brackets.
fn with_port(address: &str) -> Result<String, String> {
    let bare_host = match address.rfind(']') {
        Some(end) => end + 1 == address.len(),
        None => !address.contains(':'),
    };
    if bare_host {
        return Ok(format!("{address}:{PORT}"));
    }
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    match port.parse::<u16>() {
        Ok(1..) if !host.is_empty() => Ok(address.to_owned()),
        _ => Err("is not host:port with a port between 1 and 65535".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Config {
        let mut config = Config::new();
        config.set("dfs.nameservices", "prod, lone");
        config.set("dfs.ha.namenodes.prod", "a,b");
        config.set("dfs.namenode.rpc-address.prod.a", "one.example:8020");
        config.set("dfs.namenode.rpc-address.prod.b", "two.example");
        config.set("dfs.namenode.rpc-address.lone", "three.example:9000");
        config
    }

    fn servers(uri: &str) -> Result<Vec<String>, String> {
        Location::resolve(uri, &service()).map(|location| location.servers).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_service_has_all_of_its_servers() {
        assert_eq!(servers("hdfs://prod/x").unwrap(), ["one.example:8020", "two.example:8020"]);
        assert_eq!(servers("hdfs://lone").unwrap(), ["three.example:9000"]);
    }

    #[test]
    fn a_host_is_its_own_server() {
        assert_eq!(servers("hdfs://h").unwrap(), ["h:8020"]);
        assert_eq!(servers("hdfs://h:1/a/b").unwrap(), ["h:1"]);
        assert_eq!(servers("hdfs://me@[::1]:9/").unwrap(), ["[::1]:9"]);
        assert_eq!(servers("hdfs://[::1]/").unwrap(), ["[::1]:8020"]);
    }

    #[test]
    fn what_names_no_server_is_refused_by_name() {
        for uri in ["/a", "file:///a", "hdfs://", "hdfs:///a", "hdfs://h:0", "hdfs://h:99999", "hdfs://h:x"] {
            let message = servers(uri).unwrap_err();
            assert!(message.contains(uri), "{uri}: {message}");
        }
        let mut config = service();
        config.set("dfs.ha.namenodes.prod", "a,c");
        let message = Location::resolve("hdfs://prod", &config).unwrap_err().to_string();
        assert!(message.contains("dfs.namenode.rpc-address.prod.c"), "{message}");
    }
}
