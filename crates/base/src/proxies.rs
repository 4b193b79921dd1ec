//! Users who may act in the place of others: Hadoop's proxy users.
//!
//! The rule is one for all doors: for RPC and for HTTP.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

/// Which users may act for which others, and from where. By default no user may act for another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    rules: BTreeMap<String, Rule>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    hosts: Hosts,
    users: Names,
    groups: Names,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Names {
    #[default]
    None,
    All,
    Some(Vec<String>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Hosts {
    #[default]
    None,
    All,
    /// Networks: an address and the number of its leading bits that count.
    Some(Vec<(IpAddr, u32)>),
}

impl Names {
    fn parse(text: &str) -> Self {
        let names: Vec<String> =
            text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        match &*names {
            [] => Self::None,
            names if names.iter().any(|name| name == "*") => Self::All,
            _ => Self::Some(names),
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(names) => names.iter().any(|known| known == name),
        }
    }
}

impl Hosts {
    fn parse(text: &str) -> Result<Self, String> {
        let networks = match Names::parse(text) {
            Names::None => return Ok(Self::None),
            Names::All => return Ok(Self::All),
            Names::Some(networks) => networks,
        };
        let network = |text: &String| {
            let (address, bits) = match text.split_once('/') {
                Some((address, bits)) => (address, Some(bits)),
                None => (&**text, None),
            };
            let refuse =
                || format!("`{text}` is neither an address, as 10.0.0.7, nor a network, as 10.0.0.0/8");
            let address: IpAddr = address.parse().map_err(|_| refuse())?;
            let whole = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Ok(whole), str::parse).map_err(|_| refuse())?;
            if bits > whole { Err(refuse()) } else { Ok((address, bits)) }
        };
        networks.iter().map(network).collect::<Result<_, _>>().map(Self::Some)
    }

    fn has(&self, address: IpAddr) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(networks) => {
                networks.iter().any(|(network, bits)| is_within(address.to_canonical(), *network, *bits))
            }
        }
    }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    let differs = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
        (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
        _ => return false,
    };
    differs.leading_zeros() >= bits
}

impl Proxies {
    /// Reads rows such as (`knox.hosts`, `10.0.0.7,10.1.0.0/16`), (`knox.users`, `ann,bob`) and (`knox.groups`, `*`).
    ///
    /// # Errors
    /// The text names the row that makes no sense.
    pub fn parse(rows: &[(String, String)]) -> Result<Self, String> {
        let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
        for (key, value) in rows {
            let known = key.rsplit_once('.').filter(|(user, _)| !user.is_empty());
            let Some((user, part)) = known else {
                return Err(format!("{key}: write the user and what is said of it, as knox.hosts"));
            };
            let rule = rules.entry(user.to_owned()).or_default();
            match part {
                "hosts" => rule.hosts = Hosts::parse(value).map_err(|reason| format!("{key}: {reason}"))?,
                "users" => rule.users = Names::parse(value),
                "groups" => rule.groups = Names::parse(value),
                _ => return Err(format!("{key}: `{part}` is none of hosts, users and groups")),
            }
        }
        Ok(Self { rules })
    }

    /// Whether `real` may act for `effective`, who is in `groups`, when it calls from `address`. `groups` is asked where the
    /// answer depends on it.
    pub fn allows(
        &self,
        real: &str,
        effective: &str,
        groups: impl FnOnce() -> Vec<Arc<str>>,
        address: IpAddr,
    ) -> bool {
        let Some(rule) = self.rules.get(real) else { return false };
        rule.hosts.has(address)
            && (rule.users.has(effective)
                || match &rule.groups {
                    Names::None => false,
                    Names::All => true,
                    some => groups().iter().any(|group| some.has(group)),
                })
    }

    /// Whether the rule for `real` names groups, so that those of a user have to be known.
    pub fn asks_for_groups(&self, real: &str) -> bool {
        self.rules.get(real).is_some_and(|rule| matches!(rule.groups, Names::Some(_)))
    }

    /// The words of Hadoop's refusal.
    pub fn refusal(real: &str, effective: &str) -> String {
        format!("User: {real} is not allowed to impersonate {effective}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(rows: &[(&str, &str)]) -> Result<Proxies, String> {
        let rows: Vec<_> = rows.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Proxies::parse(&rows)
    }

    fn allows(proxies: &Proxies, real: &str, effective: &str, group: &str, address: &str) -> bool {
        proxies.allows(real, effective, || vec![group.into()], address.parse().unwrap())
    }

    #[test]
    fn a_proxy_acts_for_those_whom_the_rule_names_and_from_its_hosts_only() {
        let some = proxies(&[
            ("knox.hosts", "10.0.0.7, 192.168.0.0/16,fd00::/8"),
            ("knox.users", "ann"),
            ("knox.groups", "staff"),
            ("a.b.hosts", "*"),
            ("a.b.users", "*"),
            ("idle.users", "*"),
            ("lame.hosts", "*"),
        ])
        .unwrap();
        for (real, effective, group, address, expected) in [
            ("knox", "ann", "x", "10.0.0.7", true),
            ("knox", "bob", "staff", "192.168.9.9", true),
            ("knox", "bob", "staff", "::ffff:192.168.9.9", true),
            ("knox", "bob", "staff", "fd12::1", true),
            ("knox", "bob", "x", "10.0.0.7", false),
            ("knox", "ann", "x", "10.0.0.8", false),
            ("knox", "ann", "x", "192.169.0.1", false),
            ("knox", "ann", "x", "fe80::1", false),
            ("ann", "knox", "staff", "10.0.0.7", false),
            ("a.b", "root", "x", "1.2.3.4", true),
            ("idle", "ann", "x", "1.2.3.4", false),
            ("lame", "ann", "x", "1.2.3.4", false),
        ] {
            assert_eq!(
                allows(&some, real, effective, group, address),
                expected,
                "{real} {effective} {group} {address}"
            );
        }
        assert!(!allows(&Proxies::default(), "root", "ann", "root", "127.0.0.1"));
    }

    #[test]
    fn rows_that_make_no_sense_are_refused_by_name() {
        for (key, value) in [
            ("knox", "*"),
            (".hosts", "*"),
            ("knox.hosts", "gateway.example"),
            ("knox.hosts", "10.0.0.0/33"),
            ("knox.hosts", "10.0.0.0/x"),
            ("knox.people", "ann"),
        ] {
            assert!(proxies(&[(key, value)]).unwrap_err().starts_with(key), "{key}");
        }
    }
}
