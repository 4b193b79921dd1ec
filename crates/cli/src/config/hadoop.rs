//! Advice about those keys of Hadoop's that no key here is named after.

/// The advice about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Hadoop's older name of another key.
    Renamed(&'static str),
    /// Read by clients, from their own files.
    OfClients,
    /// Something else does it here, or nothing has to.
    Instead(&'static str),
    /// The feature that it configures is not there yet.
    NotYet(&'static str),
    /// A key of Hadoop's of which nothing more is known.
    Unknown,
}

use Advice::*;

/// Older names that Hadoop still takes.
const RENAMED: &[(&str, &str)] = &[
    ("dfs.name.dir", "dfs.namenode.name.dir"),
    ("dfs.data.dir", "dfs.datanode.data.dir"),
    ("dfs.block.size", "dfs.blocksize"),
    ("dfs.http.address", "dfs.namenode.http-address"),
    ("dfs.permissions", "dfs.permissions.enabled"),
    ("dfs.permissions.supergroup", "dfs.permissions.superusergroup"),
    ("dfs.safemode.threshold.pct", "dfs.namenode.safemode.threshold-pct"),
    ("dfs.safemode.extension", "dfs.namenode.safemode.extension"),
    ("dfs.safemode.min.datanodes", "dfs.namenode.safemode.min.datanodes"),
    ("dfs.access.time.precision", "dfs.namenode.accesstime.precision"),
    ("heartbeat.recheck.interval", "dfs.namenode.heartbeat.recheck-interval"),
    ("dfs.replication.min", "dfs.namenode.replication.min"),
    ("dfs.max.objects", "dfs.namenode.max.objects"),
    ("dfs.max-repl-streams", "dfs.namenode.replication.max-streams"),
    ("dfs.replication.pending.timeout.sec", "dfs.namenode.reconstruction.pending.timeout-sec"),
    ("dfs.namenode.replication.pending.timeout-sec", "dfs.namenode.reconstruction.pending.timeout-sec"),
    ("fs.checkpoint.period", "dfs.namenode.checkpoint.period"),
    ("dfs.datanode.max.xcievers", "dfs.datanode.max.transfer.threads"),
    ("slave.host.name", "dfs.datanode.hostname"),
    ("fs.default.name", "fs.defaultFS"),
    ("topology.script.file.name", "net.topology.script.file.name"),
];

const NO_THREADS: &str = "calls do not occupy threads here; leave it out";
const NO_JVM: &str = "there is no JVM to set up; leave it out";
const NO_JOURNAL_NODES: &str = "the members of a group keep the journal on their own disks; leave it out";
const NO_FENCING: &str = "members and data servers refuse what an old active says; leave it out";
const NAME_SERVICE: &str =
    "a group has `member`, `members` and `coordinator`, and data servers `metadata_servers`";
const OWN_IMAGES: &str = "each metadata server writes its own images; leave it out";
const NO_AUTHENTICATION: &str = "clients are not authenticated: see `insecure_simple_auth`";

/// The advice by the whole key, or by its beginning if the entry ends in a dot. The first entry that fits counts.
const KNOWN: &[(&str, Advice)] = &[
    ("dfs.namenode.handler.count", Instead(NO_THREADS)),
    ("dfs.datanode.handler.count", Instead(NO_THREADS)),
    ("dfs.namenode.service.handler.", Instead(NO_THREADS)),
    ("dfs.namenode.lifeline.", Instead(NO_THREADS)),
    (
        "dfs.namenode.servicerpc-address",
        Instead("data servers and clients call the same `rpc_address`; leave it out"),
    ),
    (
        "dfs.namenode.servicerpc-bind-host",
        Instead("data servers and clients call the same `rpc_address`; leave it out"),
    ),
    (
        "dfs.namenode.rpc-bind-host",
        Instead("the server listens on `rpc_address`, and tells others `advertised_rpc_address`"),
    ),
    (
        "dfs.namenode.http-bind-host",
        Instead("the server listens on `http_address`, and tells others `advertised_http_address`"),
    ),
    ("dfs.namenode.edits.", Instead("the journal lies in `name_dir`; leave it out")),
    ("dfs.namenode.shared.edits.", Instead(NO_JOURNAL_NODES)),
    ("dfs.journalnode.", Instead(NO_JOURNAL_NODES)),
    ("dfs.qjournal.", Instead(NO_JOURNAL_NODES)),
    ("dfs.nameservices", Instead(NAME_SERVICE)),
    ("dfs.nameservice.id", Instead(NAME_SERVICE)),
    ("dfs.internal.nameservices", Instead(NAME_SERVICE)),
    ("dfs.ha.namenode.id", Instead("a metadata server has its number in `member`")),
    ("dfs.ha.namenodes.", Instead(NAME_SERVICE)),
    ("dfs.ha.fencing.", Instead(NO_FENCING)),
    ("dfs.ha.automatic-failover.", Instead("a group elects by itself; leave it out")),
    ("dfs.ha.", Instead("a group elects by itself; leave it out")),
    ("ha.zookeeper.quorum", Instead("`coordinator = \"zookeeper://zk-1:2181,zk-2:2181/clover/my-cluster\"`")),
    ("ha.zookeeper.session-timeout.ms", Instead("`coordinator_session_ms`")),
    ("ha.zookeeper.parent-znode", Instead("the path in `coordinator`")),
    ("ha.zookeeper.auth", Instead("`coordinator_auth_file`")),
    ("ha.", Instead("a group elects by itself; leave it out")),
    ("dfs.namenode.secondary.", Instead(OWN_IMAGES)),
    ("dfs.namenode.checkpoint.", Instead(OWN_IMAGES)),
    ("dfs.namenode.backup.", Instead(OWN_IMAGES)),
    ("dfs.namenode.num.checkpoints.retained", Instead(OWN_IMAGES)),
    ("dfs.namenode.audit.", Instead("`audit_log` names the file")),
    (
        "dfs.namenode.hosts.provider.classname",
        Instead("a list of data servers in JSON is known by its first character"),
    ),
    ("net.topology.", Instead("the table `[racks]`, from host to rack, or `rack_script`")),
    (
        "dfs.namenode.slowpeer.collect.interval",
        Instead("reports of slow data servers count as soon as they come; leave it out"),
    ),
    (
        "dfs.datanode.max.slowdisks.to.exclude",
        NotYet("new replicas go to slow disks as well, which `clover admin report` names"),
    ),
    ("dfs.namenode.gc.", Instead(NO_JVM)),
    ("dfs.webhdfs.user.provider.user.pattern", NotYet("names of users are Hadoop's default pattern")),
    ("dfs.webhdfs.rest-csrf.", Instead("`cors_origins`: pages of other origins may change nothing")),
    ("dfs.webhdfs.acl.provider.permission.pattern", NotYet("names in access control lists are not checked")),
    ("dfs.webhdfs.ugi.expire.after.access", Instead("the connections of 64 users are kept; leave it out")),
    ("dfs.webhdfs.netty.", Instead(NO_JVM)),
    ("dfs.webhdfs.socket.", OfClients),
    ("dfs.webhdfs.oauth2.", OfClients),
    ("dfs.http.policy", NotYet("there is no HTTPS")),
    ("dfs.https.", NotYet("there is no HTTPS")),
    ("dfs.namenode.https-", NotYet("there is no HTTPS")),
    ("dfs.datanode.https.", NotYet("there is no HTTPS")),
    ("dfs.block.scanner.skip.recent.accessed", NotYet("the block scanner reads every replica in its turn")),
    (
        "dfs.block.scanner.cursor.save.interval.ms",
        Instead("its place is kept every ten minutes; leave it out"),
    ),
    ("dfs.datanode.replica.cache.", Instead("directories are read at each start; leave it out")),
    ("dfs.datanode.cached-dfsused.", Instead("directories are read at each start; leave it out")),
    ("dfs.datanode.directoryscan.threads", Instead("each disk has a thread of its own; leave it out")),
    (
        "dfs.datanode.sync.behind.writes",
        Instead("`disk_turns`: where streams take turns, what they write goes out in order; leave it out"),
    ),
    ("dfs.datanode.drop.cache.behind.reads", NotYet("what is read stays in the system's memory")),
    ("dfs.datanode.readahead.bytes", NotYet("the system reads ahead by itself")),
    ("dfs.balancer.", OfClients),
    ("dfs.datanode.balance.", Instead("`max_moves` and `move_bytes_per_second`")),
    ("dfs.mover.", OfClients),
    ("dfs.federation.", NotYet("there is no router")),
    ("dfs.namenode.ec.", NotYet("there is no erasure coding")),
    ("dfs.datanode.ec.", NotYet("there is no erasure coding")),
    ("dfs.datanode.max.locked.memory", NotYet("there is no caching in memory")),
    ("dfs.namenode.kerberos.", NotYet(NO_AUTHENTICATION)),
    ("dfs.datanode.kerberos.", NotYet(NO_AUTHENTICATION)),
    ("dfs.web.authentication.", NotYet(NO_AUTHENTICATION)),
    ("dfs.block.access.", NotYet(NO_AUTHENTICATION)),
    ("dfs.encrypt.", NotYet("what goes over the network is not encrypted")),
    ("dfs.data.transfer.protection", NotYet("what goes over the network is not encrypted")),
    ("hadoop.rpc.protection", NotYet("what goes over the network is not encrypted")),
    ("hadoop.security.", NotYet(NO_AUTHENTICATION)),
    ("hadoop.proxyuser.", Instead("the table `[proxy_users]`, with rows such as \"knox.hosts\"")),
    ("hadoop.http.authentication.", NotYet(NO_AUTHENTICATION)),
    ("hadoop.tmp.dir", Instead("`name_dir` and `data_dirs` name the directories; leave it out")),
    ("dfs.client.", OfClients),
    ("dfs.user.home.dir.prefix", OfClients),
    (
        "fs.defaultFS",
        Instead(
            "a metadata server has its own address in `rpc_address`, data servers have `metadata_servers`",
        ),
    ),
    ("fs.permissions.umask-mode", OfClients),
    ("fs.trash.checkpoint.interval", OfClients),
    ("fs.client.", OfClients),
    ("ipc.client.", OfClients),
    ("io.compression.", OfClients),
    ("io.serializations", OfClients),
    ("io.file.buffer.size", Instead(NO_JVM)),
    ("ipc.server.", Instead(NO_THREADS)),
    (
        "dfs.datanode.shared.file.descriptor.paths",
        Instead("what clients share with a data server lies in memory only; leave it out"),
    ),
    ("dfs.short.circuit.shared.memory.watcher.interrupt.check.ms", Instead(NO_THREADS)),
    ("dfs.domain.socket.disable.interval.seconds", OfClients),
    ("yarn.", Unknown),
    ("mapreduce.", Unknown),
    ("mapred.", Unknown),
];

/// The beginnings of the names of Hadoop's keys.
const BEGINNINGS: &[&str] = &[
    "dfs.", "fs.", "hadoop.", "ha.", "ipc.", "io.", "net.", "nfs.", "httpfs.", "file.", "ftp.", "s3a.",
    "rpc.",
];

/// The advice about a key that has no counterpart of its name; `None` if it is no key of Hadoop's.
pub fn advice(key: &str) -> Option<Advice> {
    if let Some((_, new)) = RENAMED.iter().find(|(old, _)| *old == key) {
        return Some(Renamed(new));
    }
    let fits = |known: &str| match known.ends_with(['.', '-']) {
        true => key.starts_with(known),
        // A key of one name service or one of its members has their names behind it.
        false => key == known || key.strip_prefix(known).is_some_and(|rest| rest.starts_with('.')),
    };
    let known = KNOWN.iter().find(|(known, _)| fits(known)).map(|(_, advice)| *advice);
    known.or_else(|| BEGINNINGS.iter().any(|beginning| key.starts_with(beginning)).then_some(Unknown))
}

impl Advice {
    /// A sentence that follows the key.
    pub fn words(self) -> String {
        match self {
            Renamed(new) => format!("is Hadoop's older name of `{new}`"),
            OfClients => {
                "is read by clients, from their own core-site.xml and hdfs-site.xml; leave it out".to_owned()
            }
            Instead(words) => format!("has no counterpart of this name: {words}"),
            NotYet(words) => format!("asks for what is not built yet: {words}; leave it out"),
            Unknown => "is a key of Hadoop's that means nothing to these servers; leave it out".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DATA, META, in_order};

    #[test]
    fn older_names_lead_to_keys_that_are_known() {
        for (old, new) in RENAMED {
            let is_ours =
                in_order(&[META, DATA].concat()).any(|key| key.hadoop.is_some_and(|(name, _)| name == *new));
            assert!(
                is_ours || advice(new).is_some_and(|advice| !matches!(advice, Renamed(_) | Unknown)),
                "{old}"
            );
        }
    }

    #[test]
    fn no_advice_is_given_against_a_key_that_is_taken() {
        let taken: Vec<_> = in_order(&[META, DATA].concat()).filter_map(|key| key.hadoop).collect();
        assert!(taken.iter().all(|(name, _)| !KNOWN.iter().any(|(known, _)| known == name)));
    }

    #[test]
    fn keys_of_a_name_service_are_known_by_their_beginning() {
        assert_eq!(advice("dfs.ha.namenodes.prod"), Some(Instead(NAME_SERVICE)));
        assert_eq!(advice("dfs.namenode.shared.edits.dir.prod"), Some(Instead(NO_JOURNAL_NODES)));
        assert_eq!(advice("dfs.block.size"), Some(Renamed("dfs.blocksize")));
        assert_eq!(advice("dfs.something.new"), Some(Unknown));
        assert_eq!(advice("name_dir"), None);
    }
}
