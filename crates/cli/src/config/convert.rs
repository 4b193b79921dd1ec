//! `config convert`: the servers' files from Hadoop's, and what became of each of Hadoop's keys.

use super::{
    Role,
    hadoop::{self, Advice},
    in_order,
    key::{HadoopUnit, Key, Kind},
    place::is_host_port,
    scans::{self, SCANS},
};
use client::Config;
use serde_json::json;
use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

/// The port at which members of a group speak to each other unless their configuration names another: the one after the
/// clients' port.
const PEER_PORT: u16 = 8021;

/// The keys that stand for a name service of Hadoop's.
const GROUP_KEYS: &str =
    "member, members, the addresses and coordinator of clover meta, metadata_servers of clover data";

#[derive(Debug, clap::Args)]
pub struct Convert {
    /// Hadoop's files, or a directory with core-site.xml and hdfs-site.xml. Later ones count more.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print only the file of this server. Without it both are printed, one after the other.
    #[arg(long)]
    role: Option<Role>,
    /// One JSON object: the files, and what became of each key.
    #[arg(long)]
    json: bool,
}

/// The fate of a key.
#[derive(Debug)]
enum Fate {
    Taken {
        role: Role,
        key: &'static str,
        note: Option<String>,
    },
    /// This key is one of those that together say who the metadata servers are.
    Group,
    Dropped(String),
}

#[derive(Debug, Default)]
struct Converted {
    /// Lines by key, as they stand in the file.
    meta: BTreeMap<&'static str, String>,
    data: BTreeMap<&'static str, String>,
    fates: Vec<(String, String, Fate)>,
    /// Hints about settings that only the operator can know.
    hints: Vec<(Role, String)>,
}

pub fn run(args: Convert) -> anyhow::Result<ExitCode> {
    let mut config = Config::new();
    for file in &args.files {
        match file.is_dir() {
            true => config.read_directory(file)?,
            false => config.read_file(file)?,
        }
    }
    let converted = Converted::of(&config);
    let roles = match &args.role {
        Some(role) => vec![*role],
        None => vec![Role::Meta, Role::Data],
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&converted.as_json(&roles))?);
        return Ok(ExitCode::SUCCESS);
    }
    for role in &roles {
        print!("{}", converted.file(*role));
    }
    for line in converted.report(&roles) {
        eprintln!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

impl Converted {
    fn of(config: &Config) -> Self {
        let mut converted = Self::default();
        let group = Group::of(config);
        for key in config.keys() {
            let value = config.get(&key).unwrap_or_default();
            if group.as_ref().is_some_and(|group| group.has(&key)) {
                converted.fates.push((key, value, Fate::Group));
                continue;
            }
            converted.take(&key, &key, &value, None);
        }
        match group {
            Some(group) => converted.take_group(&group),
            None => converted.take_lone(config),
        }
        for role in [Role::Meta, Role::Data] {
            let hint = "# insecure_simple_auth = true   # clients are not authenticated; without this, servers listen on loopback addresses only";
            converted.hints.push((role, hint.to_owned()));
        }
        converted
    }

    /// Takes a key over to each role that has it, under the name by which Hadoop knows it today.
    fn take(&mut self, written: &str, name: &str, value: &str, note: Option<String>) {
        let mut is_taken = false;
        for role in [Role::Meta, Role::Data] {
            let known =
                in_order(role.tables()).find(|key| key.hadoop.is_some_and(|(hadoop, _)| hadoop == name));
            let Some(key) = known else { continue };
            is_taken = true;
            let fate = match self.put(role, key, value) {
                Ok(changed) => Fate::Taken { role, key: key.name, note: changed.or_else(|| note.clone()) },
                Err(reason) => Fate::Dropped(format!("{}: {reason}", key.name)),
            };
            self.fates.push((written.to_owned(), value.to_owned(), fate));
        }
        if is_taken {
            return;
        }
        match hadoop::advice(name) {
            Some(Advice::Renamed(new)) => {
                self.take(written, new, value, Some(format!("an older name of {new}")))
            }
            advice => {
                let words = advice.unwrap_or(Advice::Unknown).words();
                self.fates.push((written.to_owned(), value.to_owned(), Fate::Dropped(words)));
            }
        }
    }

    /// Writes a key down; says what was changed of its value.
    fn put(&mut self, role: Role, key: &'static Key, value: &str) -> Result<Option<String>, String> {
        let unit = key.hadoop.map_or(HadoopUnit::Same, |(_, unit)| unit);
        let (value, note) = match (key.name, key.kind) {
            ("name_dir", _) => first_directory(value),
            (_, Kind::Address) => return self.put_address(role, key, value),
            (name, _) if SCANS.contains(&name) => scans::in_our_words(name, value),
            _ => (value.to_owned(), None),
        };
        let parsed = key.kind.parse(&value, unit)?;
        self.write(role, key.name, super::shown(&parsed));
        Ok(note)
    }

    /// Servers bind addresses; a host's name becomes what they tell others.
    fn put_address(&mut self, role: Role, key: &'static Key, value: &str) -> Result<Option<String>, String> {
        let value = value.trim();
        if key.kind.parse(value, HadoopUnit::Same).is_ok() {
            self.write(role, key.name, format!("{value:?}"));
            return Ok(None);
        }
        let Some((host, port)) = value.rsplit_once(':').filter(|_| is_host_port(value)) else {
            return Err(format!("`{value}` is no address"));
        };
        let bound = if host == "localhost" { "127.0.0.1" } else { "0.0.0.0" };
        self.write(role, key.name, format!("\"{bound}:{port}\""));
        let told = match (role, key.name) {
            _ if host == "localhost" => return Ok(Some("a name becomes its address".to_owned())),
            (Role::Meta, "rpc_address") => ("advertised_rpc_address", value),
            (Role::Meta, "http_address") => ("advertised_http_address", value),
            _ => ("hostname", host),
        };
        self.write(role, told.0, format!("{:?}", told.1));
        Ok(Some(format!("bound on all addresses of the machine, with its name in {}", told.0)))
    }

    fn write(&mut self, role: Role, key: &'static str, value: String) {
        match role {
            Role::Meta => self.meta.insert(key, value),
            Role::Data => self.data.insert(key, value),
        };
    }

    /// Data servers of a lone metadata server find it where clients do.
    fn take_lone(&mut self, config: &Config) {
        let given = config.get("dfs.namenode.rpc-address").or_else(|| {
            let uri = config.get("fs.defaultFS").or_else(|| config.get("fs.default.name"))?;
            let authority = uri.strip_prefix("hdfs://")?.trim_end_matches('/').to_owned();
            Some(if authority.contains(':') { authority } else { authority + ":8020" })
        });
        let Some(address) = given.filter(|address| is_host_port(address)) else { return };
        self.write(Role::Data, "metadata_servers", format!("[{address:?}]"));
        if !self.meta.contains_key("rpc_address")
            && let Some(key) = in_order(Role::Meta.tables()).find(|key| key.name == "rpc_address")
        {
            // It was checked to be a host and a port.
            let _ = self.put_address(Role::Meta, key, &address);
        }
    }

    fn take_group(&mut self, group: &Group) {
        let addresses: Vec<_> = group.members.iter().map(|member| &*member.rpc).collect();
        self.write(Role::Data, "metadata_servers", format!("{addresses:?}"));
        let Some(first) = group.members.first() else { return };
        self.write(Role::Meta, "member", "1".to_owned());
        let numbers: Vec<_> = (1..=group.members.len()).collect();
        self.write(Role::Meta, "members", format!("{numbers:?}"));
        let keys = || in_order(Role::Meta.tables());
        for (name, address) in [("rpc_address", Some(&first.rpc)), ("http_address", first.http.as_ref())] {
            if let (Some(key), Some(address)) = (keys().find(|key| key.name == name), address) {
                let _ = self.put_address(Role::Meta, key, address);
            }
        }
        let host = first.rpc.rsplit_once(':').map_or(&*first.rpc, |(host, _)| host);
        self.write(Role::Meta, "peer_address", format!("\"0.0.0.0:{PEER_PORT}\""));
        self.write(Role::Meta, "advertised_peer_address", format!("\"{host}:{PEER_PORT}\""));
        match &group.zookeeper {
            Some(servers) => {
                let place = format!("zookeeper://{servers}/clover/{}", group.name);
                match Kind::Coordinator.parse(&place, HadoopUnit::Same) {
                    Ok(_) => self.write(Role::Meta, "coordinator", format!("{place:?}")),
                    Err(reason) => self.hints.push((Role::Meta, format!("# coordinator: {reason}"))),
                }
            }
            None => self.hints.push((
                Role::Meta,
                format!(
                    "# coordinator = \"zookeeper://zk-1:2181/clover/{}\"   # a group needs one",
                    group.name
                ),
            )),
        }
        let hint = "# coordinator_auth_file = \"/etc/clover/zookeeper\"   # one line user:password, mode 600; groups.md says why";
        self.hints.push((Role::Meta, hint.to_owned()));
        for (index, member) in group.members.iter().enumerate().skip(1) {
            let hint = format!(
                "# On {}: member = {}, and its own name in the advertised addresses.",
                member.rpc,
                index + 1
            );
            self.hints.push((Role::Meta, hint));
        }
    }

    /// The file of a role, in the order of the manual.
    fn file(&self, role: Role) -> String {
        let lines = self.lines(role);
        let name = role.name();
        let mut text = format!(
            "# For clover {name} --config FILE, from Hadoop's files. `clover config check FILE` says what is amiss.\n"
        );
        for key in in_order(role.tables()) {
            if let Some(value) = lines.get(key.name) {
                text += &format!("{} = {value}\n", key.name);
            }
        }
        for (_, hint) in self.hints.iter().filter(|(of, _)| *of == role) {
            text += &format!("{hint}\n");
        }
        text + "\n"
    }

    fn lines(&self, role: Role) -> &BTreeMap<&'static str, String> {
        match role {
            Role::Meta => &self.meta,
            Role::Data => &self.data,
        }
    }

    fn report(&self, roles: &[Role]) -> Vec<String> {
        let mut taken = Vec::new();
        let mut dropped = Vec::new();
        for (written, value, fate) in &self.fates {
            match fate {
                Fate::Taken { role, key, note } if roles.contains(role) => {
                    let note = note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
                    taken.push(format!("  {written} -> {key} of clover {}{note}", role.name()));
                }
                Fate::Taken { .. } => {}
                Fate::Group => taken.push(format!("  {written} -> {GROUP_KEYS}")),
                Fate::Dropped(reason) => {
                    dropped.push(format!("  {written} = {}: {reason}", open(written, value)))
                }
            }
        }
        let mut lines = vec![format!("taken: {}", taken.len())];
        lines.extend(taken);
        lines.push(format!("dropped: {}", dropped.len()));
        lines.extend(dropped);
        lines
    }

    fn as_json(&self, roles: &[Role]) -> serde_json::Value {
        let mut taken = Vec::new();
        let mut dropped = Vec::new();
        for (written, value, fate) in &self.fates {
            match fate {
                Fate::Taken { role, key, note } if roles.contains(role) => taken.push(
                    json!({ "hadoop": written, "value": value, "role": role.name(), "key": key, "note": note }),
                ),
                Fate::Taken { .. } => {}
                Fate::Group => taken.push(json!({ "hadoop": written, "value": value, "key": GROUP_KEYS })),
                Fate::Dropped(reason) => {
                    let value = open(written, value);
                    dropped.push(json!({ "hadoop": written, "value": value, "reason": reason }));
                }
            }
        }
        let files: serde_json::Map<_, _> =
            roles.iter().map(|role| (role.name().to_owned(), self.file(*role).into())).collect();
        json!({ "files": files, "taken": taken, "dropped": dropped })
    }
}

/// The value of a key that is dropped, unless it may be a secret: what is told here ends in logs and tickets.
fn open<'a>(key: &str, value: &'a str) -> &'a str {
    let key = key.to_ascii_lowercase();
    match ["password", "secret", "credential", "auth", "token"].iter().any(|word| key.contains(word)) {
        true => "(not shown)",
        false => value,
    }
}

/// Only one directory is used: the copies are further members.
fn first_directory(value: &str) -> (String, Option<String>) {
    let mut all = value.split(',').map(|one| one.trim()).filter(|one| !one.is_empty());
    let plain = |one: &str| {
        one.strip_prefix("file:").map_or(one, |one| one.strip_prefix("//").unwrap_or(one)).to_owned()
    };
    let first = all.next().map(plain).unwrap_or_default();
    let more = all.count();
    (first, (more > 0).then(|| "the first directory; the copies are further members of a group".to_owned()))
}

/// A name service of several metadata servers.
#[derive(Debug)]
struct Group {
    name: String,
    members: Vec<Member>,
    zookeeper: Option<String>,
}

#[derive(Debug)]
struct Member {
    rpc: String,
    http: Option<String>,
}

impl Group {
    fn of(config: &Config) -> Option<Self> {
        let name = config.list("dfs.nameservices").into_iter().next()?;
        let ids = config.list(&format!("dfs.ha.namenodes.{name}"));
        let members = ids.iter().filter_map(|id| {
            let of = |key: &str| config.get(&format!("dfs.namenode.{key}.{name}.{id}"));
            let rpc = of("rpc-address").filter(|rpc| is_host_port(rpc))?;
            Some(Member { rpc, http: of("http-address").filter(|http| is_host_port(http)) })
        });
        let members: Vec<_> = members.collect();
        let zookeeper = config.get("ha.zookeeper.quorum").filter(|servers| !servers.is_empty());
        (!members.is_empty()).then_some(Self { name, members, zookeeper })
    }

    /// Whether a key is answered by the group as a whole.
    fn has(&self, key: &str) -> bool {
        let of_members = ["dfs.namenode.rpc-address.", "dfs.namenode.http-address.", "dfs.ha.namenodes."];
        key == "dfs.nameservices"
            || key == "fs.defaultFS"
            || key == "ha.zookeeper.quorum"
            || of_members.iter().any(|beginning| {
                key.strip_prefix(beginning).is_some_and(|rest| rest.split('.').next() == Some(&*self.name))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::Settings;

    fn converted(properties: &[(&str, &str)]) -> Converted {
        let mut config = Config::new();
        properties.iter().for_each(|(key, value)| config.set(key, value));
        Converted::of(&config)
    }

    /// The file is one that a server reads.
    fn read(converted: &Converted, role: Role) -> Settings {
        let mut settings = Settings::defaults(role.tables());
        settings.read_toml(&converted.file(role), "converted").unwrap();
        settings
    }

    #[test]
    fn hadoops_words_for_never_and_for_no_limit_are_understood() {
        let scans = |values: [&str; 4]| {
            let keys = [
                "dfs.datanode.scan.period.hours",
                "dfs.block.scanner.volume.bytes.per.second",
                "dfs.datanode.directoryscan.interval",
                "dfs.datanode.directoryscan.throttle.limit.ms.per.sec",
            ];
            let properties: Vec<_> = keys.into_iter().zip(values).collect();
            let data = read(&converted(&properties), Role::Data);
            SCANS.iter().map(|key| data.number(key)).collect::<Vec<_>>()
        };
        let hour = 3_600_000;
        assert_eq!(scans(["12", "2097152", "60", "250"]), [12 * hour, 2 << 20, 60_000, 250]);
        assert_eq!(scans(["0", "0", "0", "0"]), [504 * hour, 0, 0, 1_000]);
        assert_eq!(scans(["-1", "-1", "-1", "-1"]), [0, 0, 0, 1_000]);
        assert_eq!(scans(["504", "1m", "6h", "1001"]), [504 * hour, 1 << 20, 6 * hour, 1_000]);
    }

    #[test]
    fn a_lone_name_node_becomes_two_files() {
        let converted = converted(&[
            ("fs.defaultFS", "hdfs://nn-1:9000"),
            ("dfs.name.dir", "file:///a,/b"),
            ("dfs.datanode.data.dir", "[SSD]file:///ssd,/disk1"),
            ("dfs.heartbeat.interval", "5"),
            ("dfs.block.size", "64m"),
            ("dfs.replication", "0"),
            ("dfs.namenode.handler.count", "64"),
            ("dfs.datanode.address", "dn-1:9866"),
            ("dfs.made.up", "1"),
            ("fs.s3a.secret.key", "hush"),
        ]);
        let meta = read(&converted, Role::Meta);
        assert_eq!((meta.text("name_dir"), meta.text("rpc_address")), ("/a", "0.0.0.0:9000"));
        assert_eq!(meta.text("advertised_rpc_address"), "nn-1:9000");
        assert_eq!(
            (meta.number("heartbeat_interval_ms"), meta.number("default_block_size")),
            (5_000, 64 << 20)
        );
        let data = read(&converted, Role::Data);
        assert_eq!(data.texts("data_dirs"), ["[SSD]file:///ssd", "/disk1"]);
        assert_eq!(
            (data.texts("metadata_servers"), data.text("hostname")),
            (&["nn-1:9000".to_owned()][..], "dn-1")
        );
        assert_eq!(data.number("heartbeat_interval_ms"), 5_000);
        let report = converted.report(&[Role::Meta, Role::Data]).join("\n");
        for part in [
            "dfs.block.size -> default_block_size of clover meta (an older name of dfs.blocksize)",
            "dfs.name.dir -> name_dir of clover meta (the first directory",
            "dfs.replication = 0: default_replication: 0 is out of range: 1 to 512",
            "dfs.namenode.handler.count = 64: has no counterpart of this name: calls do not",
            "dfs.made.up = 1: is a key of Hadoop's that means nothing",
        ] {
            assert!(report.contains(part), "{part}: {report}");
        }
        assert!(!report.contains("hush"), "{report}");
    }

    #[test]
    fn a_name_service_becomes_a_group() {
        let converted = converted(&[
            ("fs.defaultFS", "hdfs://prod"),
            ("dfs.nameservices", "prod"),
            ("dfs.ha.namenodes.prod", "nn1,nn2"),
            ("dfs.namenode.rpc-address.prod.nn1", "m1:8020"),
            ("dfs.namenode.rpc-address.prod.nn2", "m2:8020"),
            ("dfs.namenode.http-address.prod.nn1", "m1:9870"),
            ("ha.zookeeper.quorum", "z1:2181,z2:2181"),
            ("dfs.namenode.shared.edits.dir", "qjournal://j1:8485/prod"),
        ]);
        assert!(
            converted.report(&[Role::Meta])[0].ends_with("taken: 7"),
            "{:?}",
            converted.report(&[Role::Meta])
        );
        let meta = read(&converted, Role::Meta);
        assert_eq!((meta.numbers("members"), meta.text("advertised_peer_address")), (&[1, 2][..], "m1:8021"));
        assert_eq!(meta.text("coordinator"), "zookeeper://z1:2181,z2:2181/clover/prod");
        assert!(converted.file(Role::Meta).contains("# On m2:8020: member = 2"));
        assert_eq!(read(&converted, Role::Data).texts("metadata_servers"), ["m1:8020", "m2:8020"]);
    }
}
