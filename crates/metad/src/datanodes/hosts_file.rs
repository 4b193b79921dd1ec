//! The two forms of a file that lists data servers: plain words, and JSON.
//!
//! In the plain form (Hadoop's `HostFileManager`) a line names hosts or addresses, each alone or with the port of its
//! data transfer; what follows a `#` is a remark. In the JSON form (Hadoop's `CombinedHostFileManager`) each server is an
//! object, in one array or one behind the other:
//!
//! ```json
//! [{"hostName": "dn1", "port": 9866, "adminState": "DECOMMISSIONED"},
//!  {"hostName": "dn2", "adminState": "IN_MAINTENANCE", "maintenanceExpireTimeInMS": 1796000000000}]
//! ```
//!
//! A file whose first character is a bracket or a brace is JSON.

use serde::Deserialize;
use std::{io, net::IpAddr};

/// A server that a file lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// A name or an address.
    pub host: String,
    /// The port of its data transfer; `None`: whatever port it has.
    pub port: Option<u32>,
    pub wish: Wish,
}

/// The admin state that the list gives a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    #[default]
    InService,
    Decommissioned,
    InMaintenance {
        /// The wall-clock time at which the maintenance ends, in milliseconds since 1970; `None`: never.
        until_ms: Option<u64>,
    },
}

/// # Errors
/// The file is in JSON, and an entry cannot be understood. The text says where it stands.
pub fn parse(text: &str) -> io::Result<Vec<Listed>> {
    match text.trim_start().chars().next() {
        Some('[' | '{') => parse_json(text),
        _ => Ok(parse_words(text)),
    }
}

fn parse_words(text: &str) -> Vec<Listed> {
    let without_remark = |line| str::split(line, '#').next().unwrap_or_default();
    let words = text.lines().map(without_remark).flat_map(str::split_whitespace);
    words
        .map(|word| {
            let (host, port) = split(word);
            Listed { host: host.to_owned(), port, wish: Wish::InService }
        })
        .collect()
}

/// The host and the port of a word. An IPv6 address with a port stands in brackets.
fn split(word: &str) -> (&str, Option<u32>) {
    if word.parse::<IpAddr>().is_ok() {
        return (word, None);
    }
    match word.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host, Some(port)),
        _ => (word, None),
    }
}

/// Hadoop's `DatanodeAdminProperties`. Upgrade domains are passed over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    host_name: String,
    /// 0: any.
    #[serde(default)]
    port: u32,
    #[serde(default)]
    admin_state: Option<String>,
    #[serde(default, rename = "maintenanceExpireTimeInMS")]
    maintenance_expire_time_in_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    One(Properties),
    Several(Vec<Properties>),
}

fn parse_json(text: &str) -> io::Result<Vec<Listed>> {
    let mut listed = Vec::new();
    for piece in serde_json::Deserializer::from_str(text).into_iter::<Piece>() {
        match piece.map_err(|error| io::Error::other(format!("its JSON is not understood: {error}")))? {
            Piece::One(server) => listed.push(to_listed(server)?),
            Piece::Several(servers) => {
                for server in servers {
                    listed.push(to_listed(server)?);
                }
            }
        }
    }
    Ok(listed)
}

fn to_listed(properties: Properties) -> io::Result<Listed> {
    let Properties { host_name, port, admin_state, maintenance_expire_time_in_ms: until_ms } = properties;
    let wish = match admin_state.as_deref() {
        None | Some("NORMAL") => Wish::InService,
        Some("DECOMMISSIONED" | "DECOMMISSION_INPROGRESS") => Wish::Decommissioned,
        Some("IN_MAINTENANCE" | "ENTERING_MAINTENANCE") => Wish::InMaintenance { until_ms },
        Some(other) => {
            return Err(io::Error::other(format!(
                "{host_name} has the adminState {other:?}, which is none of NORMAL, DECOMMISSIONED, IN_MAINTENANCE"
            )));
        }
    };
    Ok(Listed { host: host_name, port: (port != 0).then_some(port), wish })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(host: &str, port: Option<u32>, wish: Wish) -> Listed {
        Listed { host: host.into(), port, wish }
    }

    #[test]
    fn words_name_hosts_with_and_without_ports() {
        let found = parse("one 10.0.0.2 # the new ones\n\n[2001:db8::7]:50 ::1\n").unwrap();
        let expected = [("one", None), ("10.0.0.2", None), ("[2001:db8::7]", Some(50)), ("::1", None)];
        assert_eq!(found, expected.map(|(host, port)| listed(host, port, Wish::InService)));
        assert_eq!(parse("# nobody\n").unwrap(), []);
    }

    #[test]
    fn objects_have_states_in_an_array_or_one_behind_the_other() {
        let objects = [
            r#"{"hostName": "a", "port": 9866, "upgradeDomain": "u", "adminState": "DECOMMISSIONED"}"#,
            r#"{"hostName": "b", "adminState": "IN_MAINTENANCE", "maintenanceExpireTimeInMS": 7}"#,
            r#"{"hostName": "c", "port": 0, "adminState": "IN_MAINTENANCE"}"#,
            r#"{"hostName": "d"}"#,
        ];
        let expected = [
            listed("a", Some(9866), Wish::Decommissioned),
            listed("b", None, Wish::InMaintenance { until_ms: Some(7) }),
            listed("c", None, Wish::InMaintenance { until_ms: None }),
            listed("d", None, Wish::InService),
        ];
        assert_eq!(parse(&format!(" [{}]", objects.join(","))).unwrap(), expected);
        assert_eq!(parse(&objects.join("\n")).unwrap(), expected);
        assert_eq!(parse("[]").unwrap(), []);
    }

    #[test]
    fn json_that_is_not_understood_is_refused_with_its_place() {
        let text = parse("[{\"hostName\": \"a\",}]").unwrap_err().to_string();
        assert!(text.starts_with("its JSON is not understood"), "{text}");
        let text = parse(r#"[{"hostName": "a", "adminState": "GONE"}]"#).unwrap_err().to_string();
        assert!(text.contains("\"GONE\"") && text.contains("IN_MAINTENANCE"), "{text}");
        assert!(parse(r#"[{"port": 1}]"#).is_err());
    }
}
