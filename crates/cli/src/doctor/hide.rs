//! Takes names out of texts that leave the house: hosts, addresses, users and paths. One name has one substitute in a whole archive, so that a
//! reader can still follow it.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, Ipv6Addr},
};

/// The substitutes of one archive.
#[derive(Debug, Default)]
pub struct Hider {
    /// Known names of hosts and users, each with its substitute.
    known: BTreeMap<String, String>,
    addresses: BTreeMap<String, usize>,
    paths: BTreeMap<String, usize>,
}

/// Addresses that say nothing about a house.
const COMMON: [&str; 3] = ["127.0.0.1", "0.0.0.0", "255.255.255.255"];

impl Hider {
    /// Names of a kind, as `host`.
    pub fn know(&mut self, kind: &str, names: impl IntoIterator<Item = String>) {
        let mut count = self.known.values().filter(|known| known.starts_with(kind)).count();
        for name in names {
            let is_common = name.len() < 2 || ["localhost", "clover", "data", "meta"].contains(&&*name);
            if !is_common && name.parse::<Ipv4Addr>().is_err() && !self.known.contains_key(&name) {
                count += 1;
                self.known.insert(name, format!("{kind}-{count}"));
            }
        }
    }

    /// The text without names.
    pub fn hide(&mut self, text: &str) -> String {
        let mut hidden = String::with_capacity(text.len());
        let mut rest = text;
        let mut before = None;
        while let Some(letter) = rest.chars().next() {
            // A path begins with a slash that no word stands before: `and/or` and `text/plain` are none.
            let is_path =
                letter == '/' && before.is_none_or(|before: char| !is_of_word(before) && before != '/');
            let length = match (is_path, is_of_word(letter)) {
                (true, _) => rest.find(|letter| !is_of_path(letter)).unwrap_or(rest.len()),
                (false, true) => rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len()),
                (false, false) => letter.len_utf8(),
            };
            let (piece, behind) = rest.split_at(length);
            match (is_path, is_of_word(letter)) {
                (true, _) => hidden += &self.path(piece),
                (false, true) => hidden += &self.word(piece),
                (false, false) => hidden += piece,
            }
            before = piece.chars().next_back();
            rest = behind;
        }
        hidden
    }

    fn path(&mut self, path: &str) -> String {
        // The root is no name.
        if path.len() == 1 {
            return path.to_owned();
        }
        let next = self.paths.len() + 1;
        format!("/path-{}", self.paths.entry(path.to_owned()).or_insert(next))
    }

    /// A word may end with the full stop of a sentence.
    fn word(&mut self, word: &str) -> String {
        let core = word.trim_end_matches(['.', '-']);
        let end = &word[core.len()..];
        if let Some(substitute) = self.known.get(core) {
            return format!("{substitute}{end}");
        }
        let is_address = core.parse::<Ipv4Addr>().is_ok() && !COMMON.contains(&core);
        if is_address {
            let next = self.addresses.len() + 1;
            return format!("address-{}{end}", self.addresses.entry(core.to_owned()).or_insert(next));
        }
        // A name with its domain, or without it.
        let first = core.split('.').next().unwrap_or_default();
        match self.known.get(first).filter(|_| first.len() < core.len()) {
            Some(substitute) => format!("{substitute}{end}"),
            None => word.to_owned(),
        }
    }

    /// Addresses in a form that has colons are words of several pieces; they are replaced before the rest.
    pub fn hide_ipv6(&mut self, text: &str) -> String {
        let pieces = text.split_inclusive(|letter: char| !(letter.is_ascii_hexdigit() || letter == ':'));
        let hide = |piece: &str, hider: &mut Self| {
            let core = piece.trim_end_matches(|letter: char| !(letter.is_ascii_hexdigit() || letter == ':'));
            match core.parse::<Ipv6Addr>() {
                Ok(address) if !address.is_loopback() && !address.is_unspecified() => {
                    let next = hider.addresses.len() + 1;
                    let number = hider.addresses.entry(core.to_owned()).or_insert(next);
                    format!("address-{number}{}", &piece[core.len()..])
                }
                _ => piece.to_owned(),
            }
        };
        pieces.map(|piece| hide(piece, self)).collect()
    }
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || ['.', '-', '_'].contains(&letter)
}

fn is_of_path(letter: char) -> bool {
    !letter.is_whitespace() && !"\"'`,;:()[]{}<>=|\\".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hider() -> Hider {
        let mut hider = Hider::default();
        hider.know("host", ["meta-1".into(), "data-7.example.com".into(), "localhost".into()]);
        hider.know("user", ["alice".into()]);
        hider
    }

    #[test]
    fn hosts_users_addresses_and_paths_go_and_stay_apart_from_each_other() {
        let mut hider = hider();
        let text = "alice at 10.1.2.3:8020 (meta-1.example.com) wrote \"/secret plans\" to /data/x, then data-7.example.com.";
        let hidden = hider.hide(text);
        assert_eq!(
            hidden,
            "user-1 at address-1:8020 (host-1) wrote \"/path-1 plans\" to /path-2, then host-2."
        );
        assert_eq!(hider.hide("/data/x 10.1.2.3 10.1.2.4"), "/path-2 address-1 address-2");
    }

    #[test]
    fn what_is_no_name_stays() {
        let mut hider = hider();
        let text = "clover_blocks{method=\"create\"} 17.5\ntext/plain and/or 127.0.0.1:9870 localhost 1/2 /";
        assert_eq!(hider.hide(text), text);
    }

    #[test]
    fn addresses_with_colons_go_too() {
        let mut hider = hider();
        assert_eq!(
            hider.hide_ipv6("at 2001:db8::7, not 12:30:15 or ::1"),
            "at address-1, not 12:30:15 or ::1"
        );
    }
}
