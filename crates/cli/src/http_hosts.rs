//! The names by which browsers may call a server, as its configuration and its machine tell them.

use crate::config::settings::Settings;
use std::{fs, path::Path};
use web::{hosts::Hosts, origin::host_of};

/// The names of a machine, in the kernel and in its files.
const OWN_NAME: &str = "/proc/sys/kernel/hostname";
const NAMES: &str = "/etc/hosts";
const RESOLVER: &str = "/etc/resolv.conf";
/// Such files are small; of a larger one only the beginning counts.
const LINES_MAX: usize = 10_000;

/// The names of a metadata server.
///
/// # Errors
/// A text of `http_hosts` is no name.
pub fn of_metadata(settings: &Settings) -> anyhow::Result<Hosts> {
    let keys = ["advertised_rpc_address", "advertised_http_address", "advertised_peer_address"];
    of(settings, keys.iter().map(|key| settings.text(key)))
}

/// The names of a data server. Those of its metadata servers are of the cluster as well.
///
/// # Errors
/// A text of `http_hosts` is no name.
pub fn of_data(settings: &Settings) -> anyhow::Result<Hosts> {
    let servers = settings.texts("metadata_servers").iter().map(String::as_str);
    of(settings, servers.chain([settings.text("hostname")]))
}

/// `told`: names in the configuration, as `host` or `host:port`.
fn of<'a>(settings: &Settings, told: impl Iterator<Item = &'a str>) -> anyhow::Result<Hosts> {
    let mut known = of_this_machine();
    known.extend(told.map(|name| host_of(name).to_owned()));
    Ok(Hosts::new(settings.texts("http_hosts"), known)?)
}

fn of_this_machine() -> Vec<String> {
    // Without such a file nothing more is known.
    let read = |path: &str| fs::read_to_string(Path::new(path)).unwrap_or_default();
    names(&read(OWN_NAME), &read(NAMES), &read(RESOLVER))
}

/// The name of a machine, and its other names: those beside it in `/etc/hosts`, and the name with an ending that the resolver tries. `own` in its short
/// form is one as well: a name without a dot is none of DNS, where strangers have theirs.
fn names(own: &str, hosts: &str, resolver: &str) -> Vec<String> {
    let own = own.trim().trim_end_matches('.');
    if own.is_empty() {
        return Vec::new();
    }
    let mut names = vec![own.to_owned()];
    names.extend(own.split_once('.').map(|(short, _)| short.to_owned()));
    for line in hosts.lines().take(LINES_MAX) {
        let line = line.split('#').next().unwrap_or_default();
        let of_line: Vec<&str> = line.split_whitespace().skip(1).collect();
        if of_line.iter().any(|name| name.eq_ignore_ascii_case(own)) {
            names.extend(of_line.into_iter().map(str::to_owned));
        }
    }
    if !own.contains('.') {
        for line in resolver.lines().take(LINES_MAX) {
            let mut words = line.split_whitespace();
            if matches!(words.next(), Some("search" | "domain")) {
                names.extend(words.map(|end| format!("{own}.{end}")));
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DATA, META, key::Key};

    #[test]
    fn a_machine_has_the_names_that_its_files_tell() {
        let hosts = "127.0.0.1 localhost\n10.0.0.7 Meta-1.corp.example meta-1 hdfs # old-name\n10.0.0.8 meta-2.corp.example meta-2\n";
        let resolver = "# search nowhere.example\nnameserver 10.0.0.1\nsearch corp.example lab.example\n";
        let expected =
            ["meta-1", "Meta-1.corp.example", "meta-1", "hdfs", "meta-1.corp.example", "meta-1.lab.example"];
        assert_eq!(names("meta-1\n", hosts, resolver), expected);
        assert_eq!(names("data-1.corp.example", "", resolver), ["data-1.corp.example", "data-1"]);
        assert!(names("", hosts, resolver).is_empty());
    }

    #[test]
    fn a_configuration_tells_names() {
        let with = |tables: &[&'static [Key]], lines: &[&str]| {
            let mut settings = Settings::defaults(tables);
            lines.iter().for_each(|line| settings.set(line).unwrap());
            settings
        };
        let meta = with(META, &["advertised_rpc_address=m1.example:8020", "http_hosts=*.console.example"]);
        let meta = of_metadata(&meta).unwrap();
        let data =
            of_data(&with(DATA, &["hostname=d1.example", "metadata_servers=m1.example:8020"])).unwrap();
        for (hosts, name, is_known) in [
            (&meta, "m1.example:9870", true),
            (&meta, "a.console.example", true),
            (&meta, "d1.example:9864", false),
            (&data, "d1.example:9864", true),
            (&data, "m1.example:9864", true),
            (&data, "a.console.example", false),
        ] {
            assert_eq!(hosts.has(name), is_known, "{name}");
        }
        let own = of_this_machine();
        assert!(data.has(&own[0]), "{own:?}");
    }
}
