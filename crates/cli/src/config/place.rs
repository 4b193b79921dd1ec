//! The place of a group's global view in the form that people write: `embedded`, or
//! `zookeeper://host:port,host:port/path`.

/// The value of the key `coordinator`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The view is in this server's own directory: for a group of one.
    Embedded,
    ZooKeeper {
        /// `host:port`, parted by commas.
        servers: String,
        /// The path below which this cluster's records are.
        root: String,
    },
}

const SCHEME: &str = "zookeeper://";
/// ZooKeeper's own port.
const PORT: u16 = 2181;
/// More servers than any ensemble has.
const SERVERS_MAX: usize = 32;

impl Place {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "embedded" {
            return Ok(Self::Embedded);
        }
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return Err(format!("`{text}` is neither `embedded` nor {SCHEME}host:port,host:port/path"));
        };
        let (hosts, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let servers: Vec<String> =
            hosts.split(',').map(|host| with_port(host.trim())).collect::<Result<_, _>>()?;
        if servers.len() > SERVERS_MAX {
            return Err(format!("names {} servers; {SERVERS_MAX} at most", servers.len()));
        }
        check_path(path)?;
        Ok(Self::ZooKeeper { servers: servers.join(","), root: path.to_owned() })
    }
}

fn with_port(host: &str) -> Result<String, String> {
    let complete = match host.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:{PORT}"),
    };
    match is_host_port(&complete) {
        true => Ok(complete),
        false => Err(format!("`{host}` is not a ZooKeeper server; write it as zk-1.example:{PORT}")),
    }
}

fn check_path(path: &str) -> Result<(), String> {
    let names = path.strip_prefix('/').unwrap_or_default();
    let is_name = |name: &str| {
        !name.is_empty()
            && name != "."
            && name != ".."
            && name.chars().all(|letter| letter.is_ascii_graphic())
    };
    match names.split('/').all(is_name) {
        true => Ok(()),
        false if path.is_empty() || path == "/" => Err(format!(
            "names no path; every cluster has one of its own, as in {SCHEME}host:{PORT}/clover/my-cluster"
        )),
        false => Err(format!("`{path}` is not a path in ZooKeeper; write it as /clover/my-cluster")),
    }
}

/// Whether this is a host, by name or address, with a port; an IPv6 address stands in brackets.
pub fn is_host_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.len() <= 253
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        }
    };
    is_host && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ensemble_has_servers_and_a_path() {
        assert_eq!(Place::parse("embedded"), Ok(Place::Embedded));
        let place = Place::parse("zookeeper://a:1,b.example,[::1]:9/clover/prod").unwrap();
        let Place::ZooKeeper { servers, root } = place else { panic!("{place:?}") };
        assert_eq!((&*servers, &*root), ("a:1,b.example:2181,[::1]:9", "/clover/prod"));
    }

    #[test]
    fn what_names_no_ensemble_says_what_would_be_right() {
        for (text, expected) in [
            ("", "neither `embedded`"),
            ("zk:2181/clover", "neither `embedded`"),
            ("zookeeper://zk", "names no path"),
            ("zookeeper://zk/", "names no path"),
            ("zookeeper:///clover", "is not a ZooKeeper server"),
            ("zookeeper://a,,b/clover", "is not a ZooKeeper server"),
            ("zookeeper://a:x/clover", "`a:x` is not a ZooKeeper server"),
            ("zookeeper://a/b//c", "is not a path"),
            ("zookeeper://a/b/../c", "is not a path"),
            ("zookeeper://a/b c", "is not a path"),
        ] {
            let error = Place::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn hosts_have_ports() {
        for text in ["a:1", "a-b.c_d:65535", "127.0.0.1:0", "[::1]:8020"] {
            assert!(is_host_port(text), "{text}");
        }
        for text in ["", "a", ":1", "a:", "a:65536", "a b:1", "::1:1", "[::1]", "[a]:1"] {
            assert!(!is_host_port(text), "{text}");
        }
    }
}
