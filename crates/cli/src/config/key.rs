//! One configuration key: its name here, its name in Hadoop, what it may hold, what it is for.

use super::place::{Place, is_host_port};
use std::fmt;
use web::hosts::Hosts;

/// A key of a role's configuration.
pub struct Key {
    pub name: &'static str,
    /// Hadoop's name of the setting, and the unit that a bare number has there.
    pub hadoop: Option<(&'static str, HadoopUnit)>,
    pub kind: Kind,
    /// The default as it would be written. An empty text, path or list stands for nothing.
    pub default: &'static str,
    pub help: &'static str,
}

/// Both roles have it: a data server reports by it, a metadata server forgets reports by it.
pub const SLOW_REPORT_INTERVAL_MS: Key = Key {
    name: "slow_report_interval_ms",
    hadoop: Some(("dfs.datanode.outliers.report.interval", HadoopUnit::Same)),
    kind: Kind::Milliseconds { min: 100, max: 31_536_000_000 },
    default: "30m",
    help: "How often data servers report which others, and which of their disks, are slow. A report counts for three times as long.",
};

/// Both roles have it: a data server beats by it, a metadata server counts silence by it.
pub const HEARTBEAT_INTERVAL_MS: Key = Key {
    name: "heartbeat_interval_ms",
    hadoop: Some(("dfs.heartbeat.interval", HadoopUnit::Seconds)),
    kind: Kind::Milliseconds { min: 10, max: 3_600_000 },
    default: "3s",
    help: "How often data servers say that they live.",
};

/// Both roles have it, for [`super::loopback`].
pub const INSECURE_SIMPLE_AUTH: Key = Key {
    name: "insecure_simple_auth",
    hadoop: None,
    kind: Kind::Bool,
    default: "false",
    help: "Anyone who reaches the server can act as any user, because clients are not authenticated. Without this, servers listen on loopback addresses only.",
};

/// Both roles have it.
pub const WEBHDFS: Key = Key {
    name: "webhdfs",
    hadoop: Some(("dfs.webhdfs.enabled", HadoopUnit::Same)),
    kind: Kind::Bool,
    default: "true",
    help: "Whether the HTTP port also serves WebHDFS, below /webhdfs/v1, and that of a metadata server /fsck for hdfs fsck.",
};

/// Both roles have it.
pub const WEBHDFS_TRANSFERS: Key = Key {
    name: "max_webhdfs_transfers",
    hadoop: None,
    kind: Kind::Integer { min: 1, max: 10_000 },
    default: "64",
    help: "Files that are read and written over WebHDFS at once by this server; further requests wait for 10 s, and are then told to try again.",
};

/// Both roles have it.
pub const CORS_ORIGINS: Key = Key {
    name: "cors_origins",
    hadoop: None,
    kind: Kind::Texts,
    default: "",
    help: "Origins, as https://console.example, whose pages may use WebHDFS of this server from a browser; `*` for all. Pages of this server may, and on a data server those at port 9870 of its metadata servers' hosts.",
};

/// Both roles have it.
pub const HTTP_HOSTS: Key = Key {
    name: "http_hosts",
    hadoop: None,
    kind: Kind::HostNames,
    default: "",
    help: "Further names by which browsers may call the HTTP port, as console.example, or *.example for all that end so; `*` for any name, which lets pages of other sites misuse a browser. Its addresses, localhost, this machine's own names and those in this configuration are known.",
};

/// Both roles have it.
pub const PROXY_USERS: Key = Key {
    name: "proxy_users",
    hadoop: None,
    kind: Kind::Table,
    default: "",
    help: "Users who may act in the place of others, as gateways do (Hadoop: hadoop.proxyuser.USER.hosts, .users, .groups): \"knox.hosts\" has addresses or networks with commas between, \"knox.users\" and \"knox.groups\" the users and groups for whom it may act; `*` for all.",
};

/// The unit of a bare number under Hadoop's name, if it differs from ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HadoopUnit {
    Same,
    Seconds,
    Hours,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Text,
    /// Several, in a TOML array or parted by commas.
    Texts,
    /// Several names of hosts, each of which may begin with `*.`, or be `*` alone.
    HostNames,
    /// `ip:port`.
    Address,
    /// `host:port`, where the host may be a name.
    HostPort,
    /// The place of the global view: `embedded`, or a ZooKeeper ensemble and a path in it.
    Coordinator,
    Bool,
    Integer {
        min: u64,
        max: u64,
    },
    /// Several, in a TOML array or parted by commas.
    Integers {
        min: u64,
        max: u64,
    },
    /// A number of bytes, which may be written as `64k`, `128m` or `2g`.
    Bytes {
        min: u64,
        max: u64,
    },
    /// Milliseconds; also as `500ms`, `3s`, `10m`, `6h`.
    Milliseconds {
        min: u64,
        max: u64,
    },
    /// A number from 0 to 1.
    Fraction,
    /// A fraction that may also be more than the whole, which then is never reached.
    Threshold,
    /// A TOML table of texts.
    Table,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Texts(Vec<String>),
    Bool(bool),
    Number(u64),
    Numbers(Vec<u64>),
    Fraction(f64),
    Table(Vec<(String, String)>),
}

impl Kind {
    /// Reads a value as it stands in `--set KEY=VALUE`, in Hadoop's XML, or in quotes in TOML. The error says
    /// what would be right.
    pub fn parse(self, text: &str, unit: HadoopUnit) -> Result<Value, String> {
        let text = text.trim();
        match self {
            Self::Text => Ok(Value::Text(text.to_owned())),
            Self::Texts => Ok(Value::Texts(
                text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            )),
            Self::HostNames => match Self::Texts.parse(text, unit)? {
                Value::Texts(names) => host_names(names),
                other => unreachable!("a list of names is no {other:?}"),
            },
            Self::Address if text.is_empty() => Ok(Value::Text(String::new())),
            Self::Address => match text.parse::<std::net::SocketAddr>() {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                Err(_) => Err(not_an_address(text)),
            },
            Self::HostPort if text.is_empty() => Ok(Value::Text(String::new())),
            Self::HostPort => match is_host_port(text) {
                true => Ok(Value::Text(text.to_owned())),
                false if text.contains("://") => {
                    Err(format!("`{text}` is a URI; write its host and port alone, as meta-1.example:8020"))
                }
                false => Err(format!("`{text}` is not an address; write it as meta-1.example:8020")),
            },
            Self::Coordinator => {
                Place::parse(text)?;
                Ok(Value::Text(text.to_owned()))
            }
            Self::Bool => match text {
                "true" => Ok(Value::Bool(true)),
                "false" => Ok(Value::Bool(false)),
                _ => Err(format!("`{text}` is neither true nor false")),
            },
            Self::Integer { .. } => {
                let number = text.parse().map_err(|_| format!("`{text}` is not a whole number"))?;
                self.check(number)
            }
            Self::Integers { .. } => text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(|part| {
                    let number = part.parse().map_err(|_| format!("`{part}` is not a whole number"))?;
                    self.check(number).map(|_| number)
                })
                .collect::<Result<_, _>>()
                .map(Value::Numbers),
            Self::Bytes { .. } => self.check(parse_bytes(text)?),
            Self::Milliseconds { .. } => self.check(parse_milliseconds(text, unit)?),
            Self::Fraction => match parse_fraction(text) {
                Some(fraction) if fraction <= 1.0 => Ok(Value::Fraction(fraction)),
                _ => Err(format!("`{text}` is not a number from 0 to 1")),
            },
            Self::Threshold => match parse_fraction(text) {
                Some(share) => Ok(Value::Fraction(share)),
                None => Err(format!("`{text}` is not a number from 0 on")),
            },
            Self::Table => Ok(Value::Table(
                text.split(',')
                    .filter(|part| !part.trim().is_empty())
                    .map(|part| {
                        part.split_once('=')
                            .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
                            .ok_or_else(|| format!("`{part}` is not NAME=VALUE"))
                    })
                    .collect::<Result<_, _>>()?,
            )),
        }
    }

    /// A number against the range.
    pub fn check(self, number: u64) -> Result<Value, String> {
        match self {
            Self::Integer { min, max }
            | Self::Integers { min, max }
            | Self::Bytes { min, max }
            | Self::Milliseconds { min, max }
                if !(min..=max).contains(&number) =>
            {
                Err(format!("{number} is out of range: {min} to {max}"))
            }
            _ => Ok(Value::Number(number)),
        }
    }
}

/// Checks names of hosts.
pub fn host_names(names: Vec<String>) -> Result<Value, String> {
    Hosts::new(&names, [""; 0]).map_err(|error| error.to_string())?;
    Ok(Value::Texts(names))
}

/// Says why `text` is no address that a server can bind, and what to write instead.
fn not_an_address(text: &str) -> String {
    match text.rsplit_once(':') {
        _ if text.contains("://") => {
            format!("`{text}` is a URI; write the address and the port alone, as 10.0.0.1:8020")
        }
        _ if text.contains(',') => {
            format!("`{text}` is several addresses; a server binds one, or all as 0.0.0.0:8020")
        }
        Some(("localhost", port)) => {
            format!("`{text}` is a name, and an address is wanted: write 127.0.0.1:{port}")
        }
        Some((_, port)) if is_host_port(text) => format!(
            "`{text}` is a host's name, and an address of this machine is wanted: write it as 10.0.0.1:{port}, or 0.0.0.0:{port} \
             for all that it has. What others call it stands in a key of its own (`advertised_…`, `hostname`)"
        ),
        _ => format!("`{text}` is not an address; write it as 127.0.0.1:8020"),
    }
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let (digits, shift) = match lower.chars().last() {
        Some('k') => (&lower[..lower.len() - 1], 10),
        Some('m') => (&lower[..lower.len() - 1], 20),
        Some('g') => (&lower[..lower.len() - 1], 30),
        Some('t') => (&lower[..lower.len() - 1], 40),
        _ => (&*lower, 0),
    };
    digits
        .trim()
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| format!("`{text}` is not a size; write it as 1048576 or 128m"))
}

/// A number that is not negative. Java lets an `f` follow it, as in hdfs-default.xml's `0.999f`.
fn parse_fraction(text: &str) -> Option<f64> {
    let digits = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    digits.parse().ok().filter(|number: &f64| is_number && number.is_finite())
}

fn parse_milliseconds(text: &str, unit: HadoopUnit) -> Result<u64, String> {
    let bare = match unit {
        HadoopUnit::Same => 1,
        HadoopUnit::Seconds => 1_000,
        HadoopUnit::Hours => 3_600_000,
    };
    let suffixes = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let (digits, factor) = suffixes
        .iter()
        .find_map(|(suffix, factor)| text.strip_suffix(suffix).map(|digits| (digits, *factor)))
        .unwrap_or((text, bare));
    digits
        .trim()
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| format!("`{text}` is not a time; write it as 3000, 3s or 10m"))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Texts => f.write_str("list of texts"),
            Self::HostNames => f.write_str("list of hosts' names"),
            Self::Address => f.write_str("ip:port"),
            Self::HostPort => f.write_str("host:port"),
            Self::Coordinator => f.write_str("embedded, or zookeeper://host:port,host:port/path"),
            Self::Bool => f.write_str("true or false"),
            Self::Integer { min, max } => write!(f, "{min} to {}", Bound(*max)),
            Self::Integers { min, max } => write!(f, "list of numbers, {min} to {}", Bound(*max)),
            Self::Bytes { min, max } => write!(f, "bytes, {min} to {}", Bound(*max)),
            Self::Milliseconds { min, max } => write!(f, "milliseconds, {min} to {}", Bound(*max)),
            Self::Fraction => f.write_str("0 to 1"),
            Self::Threshold => f.write_str("0 to 1, or more for never"),
            Self::Table => f.write_str("table of texts"),
        }
    }
}

/// The largest number that TOML can hold stands for "no bound".
struct Bound(u64);

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= i64::MAX as u64 { f.write_str("any") } else { self.0.fmt(f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_the_usual_endings() {
        let bytes = Kind::Bytes { min: 0, max: u64::MAX };
        assert_eq!(bytes.parse("128m", HadoopUnit::Same), Ok(Value::Number(128 << 20)));
        assert!(bytes.parse("18446744073709551615g", HadoopUnit::Same).is_err());
        let time = Kind::Milliseconds { min: 1, max: 10_000 };
        assert_eq!(time.parse("3", HadoopUnit::Seconds), Ok(Value::Number(3_000)));
        assert_eq!(time.parse("250ms", HadoopUnit::Seconds), Ok(Value::Number(250)));
        assert_eq!(time.parse("11s", HadoopUnit::Same).unwrap_err(), "11000 is out of range: 1 to 10000");
    }

    #[test]
    fn names_of_hosts_are_checked() {
        let kind = Kind::HostNames;
        let names = vec!["console.example".to_owned(), "*.hdfs.example".to_owned()];
        assert_eq!(kind.parse("console.example, *.hdfs.example", HadoopUnit::Same), Ok(Value::Texts(names)));
        assert_eq!(kind.parse("", HadoopUnit::Same), Ok(Value::Texts(Vec::new())));
        let refused = kind.parse("console.example:9870", HadoopUnit::Same).unwrap_err();
        assert!(
            refused.starts_with("`console.example:9870` is no host's name; write the name alone"),
            "{refused}"
        );
    }

    #[test]
    fn a_fraction_may_be_written_as_in_java() {
        assert_eq!(Kind::Threshold.parse("0.999f", HadoopUnit::Same), Ok(Value::Fraction(0.999)));
        assert_eq!(Kind::Fraction.parse("1F", HadoopUnit::Same), Ok(Value::Fraction(1.0)));
        for wrong in ["f", "inf", "nan", "-0.1", "0.5g", "0.5ff", ""] {
            assert!(Kind::Fraction.parse(wrong, HadoopUnit::Same).is_err(), "{wrong}");
        }
    }

    /// hdfs-default.xml: "Values greater than 1 will make safe mode permanent."
    #[test]
    fn a_threshold_may_be_beyond_reach() {
        assert_eq!(Kind::Threshold.parse("1.5f", HadoopUnit::Same), Ok(Value::Fraction(1.5)));
        assert_eq!(
            Kind::Threshold.parse("-1", HadoopUnit::Same).unwrap_err(),
            "`-1` is not a number from 0 on"
        );
        assert!(Kind::Threshold.parse("inf", HadoopUnit::Same).is_err());
        assert!(Kind::Fraction.parse("1.5", HadoopUnit::Same).is_err());
    }
}
