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

/// More than the largest cluster has.
const LISTED_MAX: usize = 100_000;

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
/// The file is in JSON, and an entry cannot be understood; a port is above 65535; or there are too many servers. The text says which.
pub fn parse(text: &str) -> io::Result<Vec<Listed>> {
    // Some editors put a byte order mark in front.
    let text = text.trim_start_matches('\u{feff}');
    let listed = match text.trim_start().chars().next() {
        Some('[' | '{') => parse_json(text),
        _ => parse_words(text),
    }?;
    match listed.len() {
        ..=LISTED_MAX => Ok(listed),
        count => Err(io::Error::other(format!("it lists {count} servers; at most {LISTED_MAX} are taken"))),
    }
}

fn parse_words(text: &str) -> io::Result<Vec<Listed>> {
    let without_remark = |line| str::split(line, '#').next().unwrap_or_default();
    let words = text.lines().map(without_remark).flat_map(str::split_whitespace);
    words
        .map(|word| {
            let (host, port) = split(word);
            Ok(Listed {
                host: host.to_owned(),
                port: any_or(host, port.unwrap_or(0))?,
                wish: Wish::InService,
            })
        })
        .take(LISTED_MAX + 1)
        .collect()
}

/// The host and the port of a word. An IPv6 address with a port stands in brackets.
pub fn split(word: &str) -> (&str, Option<u32>) {
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

/// Port 0 stands for any, as in HDFS.
fn any_or(host: &str, port: u32) -> io::Result<Option<u32>> {
    match port {
        0 => Ok(None),
        1..=65_535 => Ok(Some(port)),
        _ => Err(io::Error::other(format!("{host} has the port {port}, and there is none above 65535"))),
    }
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
    Ok(Listed { port: any_or(&host_name, port)?, host: host_name, wish })
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

    /// Editors on Windows put this mark in front. As words, the text names hosts that do not exist: no data server is admitted any more.
    #[test]
    fn json_behind_a_byte_order_mark_is_not_taken_for_words() {
        let one = Listed { host: "a".into(), port: None, wish: Wish::Decommissioned };
        let parsed = parse("\u{feff}[{\"hostName\": \"a\", \"adminState\": \"DECOMMISSIONED\"}]");
        assert!(parsed.is_err() || parsed.as_ref().is_ok_and(|listed| *listed == [one]), "{parsed:?}");
    }

    /// Nobody has such a port: the operator is told, instead of waiting for a decommission that never begins.
    #[test]
    fn a_port_that_cannot_be_is_refused() {
        assert!(parse(r#"{"hostName": "a", "port": 70000}"#).is_err());
    }

    #[test]
    fn a_word_with_a_port_that_cannot_be_is_refused() {
        assert!(parse("10.0.0.1:98666").is_err());
    }

    #[test]
    fn json_that_is_nested_deep_or_cut_off_is_refused() {
        let deep = "[".repeat(1_000_000);
        assert!(parse(&deep).is_err());
        let deep = format!(r#"{{"hostName": "a", "upgradeDomain": {}1"#, "[".repeat(1_000_000));
        assert!(parse(&deep).is_err());
        let deep = format!(r#"{{"hostName": "a", "x": {}{}}}"#, "{\"y\":".repeat(100_000), "1");
        assert!(parse(&deep).is_err());
        assert!(parse(r#"{"hostName": "a", "port": 4294967296}"#).is_err());
        assert!(parse(r#"{"hostName": "a", "port": -1}"#).is_err());
        assert!(parse(r#"{"hostName": "a"} and more"#).is_err());
    }
}
