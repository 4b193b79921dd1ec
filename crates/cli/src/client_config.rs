//! Writes what a stock Hadoop client needs to find a cluster.

use crate::{admin::secret, config::place::is_host_port};
use anyhow::{Context, bail};
use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory to write core-site.xml and hdfs-site.xml into; it is made if missing.
    dir: PathBuf,
    /// The file system that `fs.defaultFS` will name.
    #[arg(long, value_name = "URI", default_value = "hdfs://127.0.0.1:8020", conflicts_with = "members")]
    target: String,
    /// All metadata servers of a group, as host:port,host:port: clients find the active by themselves.
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    members: Vec<String>,
    /// The group's name for clients: hdfs://NAME.
    #[arg(long, value_name = "NAME", default_value = "clover", requires = "members")]
    nameservice: String,
    /// Where the metadata servers answer HTTP, in their order; the same hosts at port 9870 if not given.
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    http: Vec<String>,
    /// Copies of each block that clients ask for; Hadoop's default (3) if not given.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=512))]
    replication: Option<u16>,
    /// Overwrite files that are already there.
    #[arg(long)]
    force: bool,
}

/// Names and values, with what they are for.
type Properties = Vec<(String, String, &'static str)>;

/// The properties that a client of a group needs beyond the addresses. A member that does not lead hands a call on or
/// holds it, so the pauses of the client are for the case that a whole machine is silent.
const PATIENCE: [(&str, &str, &str); 10] = [
    ("ipc.client.connect.timeout", "1000", "A machine that is off does not answer at all."),
    (
        "ipc.ping.interval",
        "1500",
        "How long a client waits for a silent server before it asks another one. It means this only without pings.",
    ),
    (
        "ipc.client.ping",
        "false",
        "A ping has no answer, and would only prolong the wait for a silent server.",
    ),
    (
        "ipc.client.rpc-timeout.ms",
        "0",
        "This would also end a close that waits for a data server; the two properties above do not.",
    ),
    (
        "dfs.client.failover.sleep.base.millis",
        "20",
        "The pause before the client asks another server again; it doubles each time.",
    ),
    ("dfs.client.failover.sleep.max.millis", "500", "And ends here."),
    (
        "dfs.client.failover.random.order",
        "false",
        "The client asks the first server first. If that one leads, no call has to be handed on.",
    ),
    ("dfs.client.failover.max.attempts", "400", "Two to five minutes of such pauses, and then an error."),
    (
        "dfs.client.retry.max.attempts",
        "400",
        "The same for answers that ask the client to come again. Hadoop's default of ten is used up in three seconds.",
    ),
    (
        "dfs.client.block.write.locateFollowingBlock.retries",
        "8",
        "A close waits for a data server's report for 100 seconds and more; Hadoop's five tries are over in 12.",
    ),
];

/// The port at which a metadata server answers HTTP unless its configuration names another.
pub const HTTP_PORT: u16 = 9870;

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Addresses that make no sense are better refused now than by every client.
    let (core, hdfs) = match &*args.members {
        [] => {
            let location = client::Location::resolve(&args.target, &client::Config::new())?;
            let http = http_addresses(&location.servers, &args.http)?;
            let named = |address: String| ("dfs.namenode.http-address".to_owned(), address, HTTP_USE);
            (core_site(&location.uri()), http.into_iter().map(named).collect())
        }
        members => group(&args.nameservice, members, &args.http)?,
    };
    let hdfs = hdfs.into_iter().chain(replication(args.replication)).collect();
    write_both(&args.dir, &core, &hdfs, args.force)?;
    println!("Wrote core-site.xml and hdfs-site.xml to {}. To use them:", args.dir.display());
    let dir = std::path::absolute(&args.dir).unwrap_or_else(|_| args.dir.clone());
    println!("  export HADOOP_CONF_DIR={}", dir.display());
    Ok(ExitCode::SUCCESS)
}

/// The two files of a group's clients. Operators who use them find the cluster's secret in `secret`.
///
/// # Errors
/// The addresses make no sense, or the directory or a file cannot be written.
pub fn write_for_group(
    dir: &Path,
    nameservice: &str,
    members: &[String],
    http: &[String],
    secret: Option<&Path>,
) -> anyhow::Result<()> {
    let (core, mut hdfs) = group(nameservice, members, http)?;
    if let Some(file) = secret {
        let what = "`clover admin group` proves its orders with the secret in this file.";
        hdfs.push((secret::PROPERTY.into(), file.display().to_string(), what));
    }
    write_both(dir, &core, &hdfs, true)
}

fn write_both(dir: &Path, core: &Properties, hdfs: &Properties, force: bool) -> anyhow::Result<()> {
    let files = [("core-site.xml", document(core)), ("hdfs-site.xml", document(hdfs))];
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    // Nothing is written unless everything can be.
    let in_the_way = files.iter().map(|(name, _)| dir.join(name)).find(|path| path.exists());
    if let Some(path) = in_the_way.filter(|_| !force) {
        bail!("{} is already there; --force overwrites it", path.display());
    }
    for (name, text) in &files {
        write(&dir.join(name), text, force)?;
    }
    Ok(())
}

const HTTP_USE: &str = "Where `hdfs fsck` and its like ask.";

/// The addresses that were given, or else the usual port on the servers' hosts.
fn http_addresses(servers: &[String], given: &[String]) -> anyhow::Result<Vec<String>> {
    if given.is_empty() {
        let host =
            |server: &String| server.rsplit_once(':').map_or(server.clone(), |(host, _)| host.to_owned());
        return Ok(servers.iter().map(|server| format!("{}:{HTTP_PORT}", host(server))).collect());
    }
    if let Some(address) = given.iter().find(|address| !is_host_port(address) || address.ends_with(":0")) {
        bail!("--http: `{address}` is not host:port, as meta-1.example:{HTTP_PORT}");
    }
    if given.len() != servers.len() {
        bail!(
            "--http names {} addresses for {} metadata servers: it wants one for each",
            given.len(),
            servers.len()
        );
    }
    Ok(given.to_vec())
}

fn group(name: &str, members: &[String], http: &[String]) -> anyhow::Result<(Properties, Properties)> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if name.is_empty() || !name.chars().all(is_name) {
        bail!("--nameservice {name}: a name has letters, digits, - and _; it is no host");
    }
    let mut hdfs: Properties = Vec::new();
    let mut put = |key: String, value: &str, what: &'static str| hdfs.push((key, value.to_owned(), what));
    let names: Vec<String> = (1..=members.len()).map(|number| format!("m{number}")).collect();
    put("dfs.nameservices".into(), name, "What this file system is called.");
    put(format!("dfs.ha.namenodes.{name}"), &names.join(","), "Its metadata servers.");
    for (number, (id, address)) in names.iter().zip(members).enumerate() {
        if !is_host_port(address) || address.ends_with(":0") {
            bail!("--members: `{address}` is not host:port, as meta-1.example:8020");
        }
        if members[..number].contains(address) {
            bail!("--members: {address} stands there twice");
        }
        put(format!("dfs.namenode.rpc-address.{name}.{id}"), address, "Where clients call it.");
    }
    for (id, address) in names.iter().zip(http_addresses(members, http)?) {
        put(format!("dfs.namenode.http-address.{name}.{id}"), &address, HTTP_USE);
    }
    let class = proto::protocol::CONFIGURED_FAILOVER;
    put(format!("dfs.client.failover.proxy.provider.{name}"), class, "How the active is looked for.");
    put(
        "dfs.ha.fencing.methods".into(),
        "shell(/bin/true)",
        "`hdfs haadmin -failover` wants one; members and data servers themselves refuse an old active.",
    );
    for (key, value, what) in PATIENCE {
        put(key.into(), value, what);
    }
    Ok((core_site(&format!("hdfs://{name}")), hdfs))
}

fn write(path: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    let file = match force {
        true => File::create(path),
        false => OpenOptions::new().write(true).create_new(true).open(path),
    };
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))
}

fn core_site(target: &str) -> Properties {
    vec![("fs.defaultFS".into(), target.into(), "Where paths without a scheme are.")]
}

fn replication(count: Option<u16>) -> Properties {
    let property =
        |count: u16| ("dfs.replication".into(), count.to_string(), "Copies of each block of a new file.");
    count.map(property).into_iter().collect()
}

fn document(properties: &Properties) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration>\n");
    for (name, value, description) in properties {
        text += &format!(
            "  <property>\n    <name>{}</name>\n    <value>{}</value>\n    <description>{}</description>\n  \
             </property>\n",
            escape(name),
            escape(value),
            escape(description)
        );
    }
    text + "</configuration>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(dir: &Path, target: &str, force: bool) -> Args {
        Args {
            dir: dir.to_owned(),
            target: target.into(),
            members: Vec::new(),
            nameservice: "clover".into(),
            http: Vec::new(),
            replication: Some(2),
            force,
        }
    }

    #[test]
    fn stock_clients_are_as_patient_as_the_native_one() {
        use client::config::high_availability::{CONNECT_TIMEOUT_MS, RPC_TIMEOUT_MS};
        let value = |key: &str| PATIENCE.iter().find(|(name, ..)| *name == key).map(|(_, value, _)| *value);
        assert_eq!(value("ipc.ping.interval"), Some(&*RPC_TIMEOUT_MS.to_string()));
        // `Client.getTimeout`: the interval counts if these two say so.
        assert_eq!(
            (value("ipc.client.ping"), value("ipc.client.rpc-timeout.ms")),
            (Some("false"), Some("0"))
        );
        assert_eq!(value("ipc.client.connect.timeout"), Some(&*CONNECT_TIMEOUT_MS.to_string()));
    }

    /// Hadoop's `RetryPolicies.FailoverOnNetworkExceptionRetry`: the pause before attempt n is the first one times 2 to the power of n, at
    /// most the longest, times a number between 0.5 and 1.5. It counts those of failovers and those that a server
    /// asked for (`RetriableException`) apart.
    #[test]
    fn stock_clients_outlast_the_longest_takeover_whatever_they_are_told() {
        use client::config::high_availability::TAKEOVER_MAX_MS;
        let value = |key: &str, hadoops: u64| {
            let found = PATIENCE.iter().find(|(name, ..)| *name == key);
            found.map_or(hadoops, |(_, value, _)| value.parse().unwrap())
        };
        let first = value("dfs.client.failover.sleep.base.millis", 500);
        let longest = value("dfs.client.failover.sleep.max.millis", 15_000);
        let attempts = [
            ("dfs.client.failover.max.attempts", value("dfs.client.failover.max.attempts", 15)),
            ("dfs.client.retry.max.attempts", value("dfs.client.retry.max.attempts", 10)),
        ];
        for (key, attempts) in attempts {
            let pauses = (0..attempts).map(|n| first.saturating_mul(1 << n.min(40)).min(longest) / 2);
            let shortest: u64 = pauses.sum();
            assert!(
                shortest > TAKEOVER_MAX_MS * 3 / 2,
                "{key}: {shortest} ms, where every pause is the shortest"
            );
        }
    }

    /// Hadoop's `DFSOutputStream.completeFile`: 400 ms before the second try, and each time twice as long. It gives up earlier
    /// where `ipc.client.rpc-timeout.ms` is above 0 and over.
    #[test]
    fn a_stock_clients_close_outlasts_the_longest_takeover() {
        use client::config::high_availability::TAKEOVER_MAX_MS;
        let value =
            |key: &str| PATIENCE.iter().find(|(name, ..)| *name == key).unwrap().1.parse::<u32>().unwrap();
        let retries = value("dfs.client.block.write.locateFollowingBlock.retries");
        assert!(400 * ((1 << retries) - 1) > TAKEOVER_MAX_MS * 3 / 2);
        assert_eq!(value("ipc.client.rpc-timeout.ms"), 0);
    }

    #[test]
    fn stock_tools_find_the_web_pages() {
        let dir = std::env::temp_dir().join(format!("clover-client-config-http-{}", std::process::id()));
        let group: Vec<String> = ["h1:1", "[::1]:2"].map(str::to_owned).to_vec();
        let written = |members: &[String], http: &[&str]| {
            let http = http.iter().map(|address| (*address).to_owned()).collect();
            let args = Args { members: members.to_vec(), http, ..args(&dir, "hdfs://h:1", true) };
            run(args).map(|_| client::Config::from_dir(&dir).unwrap())
        };
        let found =
            |config: &client::Config, key: &str| config.get(&format!("dfs.namenode.http-address{key}"));
        let config = written(&group, &[]).unwrap();
        assert_eq!(found(&config, ".clover.m1").as_deref(), Some("h1:9870"));
        assert_eq!(found(&config, ".clover.m2").as_deref(), Some("[::1]:9870"));
        let config = written(&group, &["h1:81", "h2:82"]).unwrap();
        assert_eq!(found(&config, ".clover.m2").as_deref(), Some("h2:82"));
        assert_eq!(found(&written(&[], &[]).unwrap(), "").as_deref(), Some("h:9870"));
        assert_eq!(found(&written(&[], &["h:80"]).unwrap(), "").as_deref(), Some("h:80"));
        for (http, expected) in [(&["h:80"][..], "one for each"), (&["h", "i:1"], "host:port")] {
            let refusal = written(&group, http).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{refusal}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn clients_of_a_group_know_all_members() {
        let dir = std::env::temp_dir().join(format!("clover-client-config-group-{}", std::process::id()));
        let members: Vec<String> = ["h1:1", "h2:2", "[::1]:3"].map(str::to_owned).to_vec();
        let group = |members: &[String], name: &str| Args {
            members: members.to_vec(),
            nameservice: name.into(),
            ..args(&dir, "", true)
        };
        run(group(&members, "prod")).unwrap();
        let config = client::Config::from_dir(&dir).unwrap();
        assert_eq!(config.get("fs.defaultFS").as_deref(), Some("hdfs://prod"));
        assert_eq!(client::Location::resolve("hdfs://prod", &config).unwrap().servers, members);
        let provider = config.get("dfs.client.failover.proxy.provider.prod").unwrap();
        assert!(provider.ends_with("ConfiguredFailoverProxyProvider"), "{provider}");
        assert!(client::Settings::new(&config).is_ok());
        std::fs::remove_dir_all(&dir).unwrap();

        let twice = [members[0].clone(), members[0].clone()];
        for (members, name, expected) in [
            (&members[..], "a.b", "is no host"),
            (&twice, "a", "twice"),
            (&["h".to_owned()], "a", "host:port"),
        ] {
            let refusal = run(group(members, name)).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{refusal}");
        }
        assert!(!dir.exists());
    }

    #[test]
    fn what_is_written_is_read_back_and_not_overwritten() {
        let dir = std::env::temp_dir().join(format!("clover-client-config-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        run(args(&dir, "hdfs://h:1/ignored", false)).unwrap();
        let config = client::Config::from_dir(&dir).unwrap();
        assert_eq!(config.get("fs.defaultFS").as_deref(), Some("hdfs://h:1"));
        assert_eq!(config.get("dfs.replication").as_deref(), Some("2"));

        let message = run(args(&dir, "hdfs://h:2", false)).unwrap_err().to_string();
        assert!(message.contains("core-site.xml is already there; --force"), "{message}");
        run(args(&dir, "hdfs://h:2", true)).unwrap();
        assert_eq!(
            client::Config::from_dir(&dir).unwrap().get("fs.defaultFS").as_deref(),
            Some("hdfs://h:2")
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_target_that_names_no_server_is_refused_before_anything_is_written() {
        let dir = std::env::temp_dir().join(format!("clover-client-config-none-{}", std::process::id()));
        for target in ["127.0.0.1:8020", "file:///a", "hdfs://", "hdfs://h:0"] {
            assert!(run(args(&dir, target, false)).is_err(), "{target}");
        }
        assert!(!dir.exists());
    }
}
