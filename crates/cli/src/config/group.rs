//! The keys that make a metadata server a member of a group, and what must hold between them.

use super::{
    key::{HadoopUnit::Same, Key, Kind::*},
    place::Place,
    settings::Settings,
};
use crate::last_words;
use anyhow::{Context, bail};
use base::MemberId;
use metad::{Advertised, CoordinatorConfig, GroupConfig};
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Members are numbered by people; nobody counts further.
const MEMBER_MAX: u64 = 10_000;
/// Members of one group: each takes part in every commit.
const MEMBERS_MAX: usize = 16;

/// After so many heartbeat intervals an active gives way that no data server reaches while some reach another member: more than
/// lie between the last heartbeats that two members hear of data servers that end.
const DEAF_HEARTBEATS: u64 = 5;

#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    Key { name: "member", hadoop: None, kind: Integer { min: 1, max: MEMBER_MAX }, default: "1",
        help: "This server's number in its group. Every server has its own, for ever." },
    Key { name: "members", hadoop: None, kind: Integers { min: 1, max: MEMBER_MAX }, default: "",
        help: "The numbers of all servers of the group that `clover meta format` makes; empty for this one alone. Later `clover admin group add` and `remove` change them." },
    Key { name: "in_sync_min", hadoop: None, kind: Integer { min: 0, max: MEMBERS_MAX as u64 }, default: "0",
        help: "How many servers must hold a change before it is acknowledged, when the group is made; with fewer in sync, changes are refused. 0 for two, or one where there is one server." },
    Key { name: "peer_address", hadoop: None, kind: Address, default: "",
        help: "Where the other servers of the group connect; empty for a group of one." },
    Key { name: "advertised_peer_address", hadoop: None, kind: HostPort, default: "",
        help: "The same as the others reach it; empty for peer_address." },
    Key { name: "advertised_rpc_address", hadoop: None, kind: HostPort, default: "",
        help: "rpc_address as clients and the other servers reach it; empty for rpc_address." },
    Key { name: "advertised_http_address", hadoop: None, kind: HostPort, default: "",
        help: "http_address as others reach it; empty for http_address." },
    Key { name: "coordinator", hadoop: None, kind: Coordinator, default: "embedded",
        help: "Where the group's view is kept. Several servers need a ZooKeeper, with a path for this cluster alone." },
    Key { name: "coordinator_session_ms", hadoop: None, kind: Milliseconds { min: 1_000, max: 60_000 }, default: "4s",
        help: "The ZooKeeper session: a server that has been silent for so long loses its lock. The lock is a hint for people and for speed; no safety depends on it." },
    Key { name: "coordinator_auth_file", hadoop: None, kind: Text, default: "",
        help: "A file with user:password for ZooKeeper, readable by its owner only; records are then closed to everybody else. Empty for none." },
    Key { name: "insecure_coordinator", hadoop: None, kind: Bool, default: "false",
        help: "Everybody who reaches the ZooKeeper servers can depose the active, and worse. Without this, a coordinator_auth_file is needed." },
    Key { name: "secret_file", hadoop: None, kind: Text, default: "",
        help: "A file with the secret by which the servers of a group know each other: the same on all, readable by its owner only. Empty: `clover meta format` draws a secret, and the coordinator keeps it. With a file, the coordinator keeps none." },
    Key { name: "hold_ms", hadoop: None, kind: Milliseconds { min: 0, max: 60_000 }, default: "1200",
        help: "How long a call waits while no server is active, before the client is told to ask again. Shorter than the clients' own timeout." },
    Key { name: "confirm_reads", hadoop: None, kind: Bool, default: "false",
        help: "Asks the coordinator about each read before it is answered, once for all that wait. Without this, a read rests on a lease of group_lease_ms, which a clock measures: a server whose clock stood still while it ran could answer a read from before a switch." },
    Key { name: "standby_reads", hadoop: None, kind: Bool, default: "true",
        help: "A server that is not active answers reads itself, once the active has told how far everything is acknowledged and this server has come as far. false: it hands them to the active, as it does anyway with confirm_reads, and where several groups hold the namespace." },
    Key { name: "trust_refused_connections", hadoop: None, kind: Bool, default: "true",
        help: "Replaces an active whose process has ended after two beacons, instead of after group_lease_ms: its host has closed its connections and refuses new ones at both of its addresses. false: where something between the servers answers for a host that is cut off, as a firewall that rejects connections or an address that moves to another host." },
    Key { name: "group_beacon_ms", hadoop: None, kind: Milliseconds { min: 5, max: 10_000 }, default: "50",
        help: "How often the active says that it lives." },
    Key { name: "group_lease_ms", hadoop: None, kind: Milliseconds { min: 50, max: 60_000 }, default: "400",
        help: "How long the others wait for an active that they do not hear before they replace it. Several beacons must fit." },
    Key { name: "group_silence_ms", hadoop: None, kind: Milliseconds { min: 25, max: 60_000 }, default: "250",
        help: "A server that has been silent for so long leaves the in-sync set. Less than group_lease_ms." },
    Key { name: "group_ack_silence_ms", hadoop: None, kind: Milliseconds { min: 50, max: 60_000 }, default: "500",
        help: "A server that lives but acknowledges nothing for so long leaves the in-sync set, too." },
    Key { name: "group_rank_backoff_ms", hadoop: None, kind: Milliseconds { min: 1, max: 1_000 }, default: "20",
        help: "How much later the second-best successor stands for active than the best." },
    Key { name: "group_stall_ms", hadoop: None, kind: Milliseconds { min: 100, max: 60_000 }, default: "1s",
        help: "An active that can commit nothing for so long, and cannot say why, steps down." },
    Key { name: "group_hang_ms", hadoop: None, kind: Milliseconds { min: 500, max: 600_000 }, default: "1s",
        help: "A server ends with code 71 if one of its threads completes nothing for so long, and waits for no disk and no other machine. Threads on which the group does not depend may take thirty times as long; `/health` names those that hang." },
    Key { name: "fetch_bytes_per_second", hadoop: Some(("dfs.image.transfer.bandwidthPerSec", Same)), kind: Bytes { min: 0, max: i64::MAX as u64 }, default: "128m",
        help: "How fast an image is fetched from another server of the group; 0 for as fast as it goes." },
    Key { name: "scrub_bytes_per_second", hadoop: None, kind: Bytes { min: 0, max: i64::MAX as u64 }, default: "8m",
        help: "How fast the images and the finished files of the journal are read again, to find what the disk has lost while others still have it; 0 for never." },
    Key { name: "scrub_period_ms", hadoop: None, kind: Milliseconds { min: 100, max: i64::MAX as u64 }, default: "24h",
        help: "How long after a start, and after the end of one pass, the next one begins." },
    Key { name: "journal_segment_bytes", hadoop: None, kind: Bytes { min: 64 << 10, max: 1 << 30 }, default: "64m",
        help: "The length of a file of the journal, a multiple of 4096: one is kept ready, and what an image has made superfluous is removed by whole files." },
];

/// Checks the rules for every start.
fn check(settings: &Settings) -> anyhow::Result<()> {
    let members = members(settings)?;
    let in_sync_min = settings.number("in_sync_min");
    if is_given(settings) && in_sync_min > members.len() as u64 {
        bail!(
            "in_sync_min = {in_sync_min} is more than the {} server(s) of members = {}: nothing could ever be \
             acknowledged. Take 1 to {}",
            members.len(),
            list(&members),
            members.len()
        );
    }
    let peer_address = settings.address("peer_address");
    match place(settings) {
        Place::Embedded if members.len() > 1 => bail!(
            "members = {} and coordinator = embedded: servers on several machines need a coordinator that all of \
             them reach, as coordinator = \"zookeeper://zk-1:2181,zk-2:2181,zk-3:2181/clover/my-cluster\"",
            list(&members)
        ),
        Place::Embedded => {}
        Place::ZooKeeper { .. } if peer_address.is_none() => bail!(
            "coordinator is a ZooKeeper, and peer_address is not set: name the address where the group's other \
             servers connect, as 10.0.0.1:8021"
        ),
        Place::ZooKeeper { .. } if is_open_to_all(settings) => bail!(
            "coordinator is a ZooKeeper whose records everybody who reaches it can change: a stranger could depose the \
             active, and lose what was acknowledged. Make a file with one line user:password (mode 600), the same on \
             all servers, and name it in coordinator_auth_file before the cluster is made. Where nobody else reaches \
             ZooKeeper, insecure_coordinator = true accepts that"
        ),
        Place::ZooKeeper { .. } => {}
    }
    for key in ["peer_address", "rpc_address", "http_address"] {
        check_reachable(settings, key, peer_address.is_some())?;
    }
    if !settings.text("secret_file").is_empty() {
        check_private("secret_file", Path::new(settings.text("secret_file")), 16)?;
    }
    Ok(())
}

/// This server's part in its group.
pub fn config(settings: &Settings) -> anyhow::Result<GroupConfig> {
    check(settings)?;
    let defaults = GroupConfig::default();
    let mut timing = defaults.timing;
    timing.beacon_ms = settings.number("group_beacon_ms");
    timing.lease_ms = settings.number("group_lease_ms");
    timing.silence_ms = settings.number("group_silence_ms");
    timing.ack_silence_ms = settings.number("group_ack_silence_ms");
    timing.rank_backoff_ms = settings.number("group_rank_backoff_ms");
    timing.stall_ms = settings.number("group_stall_ms");
    timing.hang_ms = settings.number("group_hang_ms");
    timing.deaf_ms = DEAF_HEARTBEATS * settings.number("heartbeat_interval_ms");
    // Its sentence names the numbers without what all of these keys begin with.
    timing
        .check()
        .map_err(|sentence| anyhow::anyhow!("the keys group_*_ms do not fit together: {sentence}"))?;
    let text = |key: &str| Some(settings.text(key).to_owned()).filter(|text| !text.is_empty());
    Ok(GroupConfig {
        // Further groups take no part in the namespace yet, so nobody is offered to make one.
        id: defaults.id,
        member: member(settings),
        in_sync_min: Some(settings.number("in_sync_min") as u32).filter(|count| *count > 0),
        members: members(settings)?,
        peer_address: settings.address("peer_address"),
        advertised: Advertised {
            peer: text("advertised_peer_address"),
            rpc: text("advertised_rpc_address"),
            http: text("advertised_http_address"),
        },
        coordinator: match place(settings) {
            Place::Embedded => CoordinatorConfig::Embedded,
            Place::ZooKeeper { servers, root } => CoordinatorConfig::ZooKeeper(coord::ZooKeeperConfig {
                servers,
                root,
                session_ms: settings.number("coordinator_session_ms"),
                auth: authentication(settings)?,
            }),
        },
        timing,
        hold_ms: settings.number("hold_ms"),
        confirm_reads: settings.flag("confirm_reads"),
        standby_reads: settings.flag("standby_reads"),
        trusts_refused_connections: settings.flag("trust_refused_connections"),
        secret: text("secret_file").map(PathBuf::from),
        fetch_bytes_per_second: settings.number("fetch_bytes_per_second"),
        scrub_bytes_per_second: settings.number("scrub_bytes_per_second"),
        scrub_period_ms: settings.number("scrub_period_ms"),
        first_level: defaults.first_level,
        journal: journal::Settings {
            segment_bytes: settings.number("journal_segment_bytes"),
            ..defaults.journal
        },
        last_resort: last_words::last_resort(),
    })
}

/// Checks the rules for making the group.
pub fn check_for_format(settings: &Settings) -> anyhow::Result<()> {
    let (members, me) = (members(settings)?, member(settings));
    if !members.contains(&me) {
        bail!(
            "member = {me}, and members = {}: this server is not among them. Add it, or make the cluster on one of \
             those and join this one later",
            list(&members)
        );
    }
    Ok(())
}

fn member(settings: &Settings) -> MemberId {
    MemberId(settings.number("member") as u32)
}

/// The members of a group to be made, in order.
fn members(settings: &Settings) -> anyhow::Result<Vec<MemberId>> {
    let mut members: Vec<_> =
        settings.numbers("members").iter().map(|number| MemberId(*number as u32)).collect();
    if members.is_empty() {
        return Ok(vec![member(settings)]);
    }
    if members.len() > MEMBERS_MAX {
        bail!("members names {} servers; a group has {MEMBERS_MAX} at most", members.len());
    }
    members.sort();
    if let Some(pair) = members.windows(2).find(|pair| pair[0] == pair[1]) {
        bail!("members names {} twice: every server of a group has a number of its own", pair[0]);
    }
    Ok(members)
}

fn is_given(settings: &Settings) -> bool {
    !settings.numbers("members").is_empty()
}

fn place(settings: &Settings) -> Place {
    Place::parse(settings.text("coordinator")).expect("a place was checked when it was set")
}

/// Whether the settings neither name a user nor say that none is needed.
fn is_open_to_all(settings: &Settings) -> bool {
    settings.text("coordinator_auth_file").is_empty() && !settings.flag("insecure_coordinator")
}

/// An address that is bound everywhere is no address to give to others.
fn check_reachable(settings: &Settings, key: &str, is_group: bool) -> anyhow::Result<()> {
    let Some(bound) = settings.address(key).filter(|_| is_group) else { return Ok(()) };
    let advertised = settings.text(&format!("advertised_{key}"));
    if advertised.is_empty() && bound.ip().is_unspecified() {
        bail!(
            "{key} = {bound} is every address of this machine: say with advertised_{key} which one the others \
             are to use, as meta-1.example:{}",
            bound.port()
        );
    }
    if advertised.rsplit_once(':').is_some_and(|(_, port)| port == "0") {
        bail!("advertised_{key} = {advertised}: nobody can connect to port 0");
    }
    Ok(())
}

/// A file that nobody else can read, with something in it.
fn check_private(key: &str, file: &Path, bytes_min: u64) -> anyhow::Result<()> {
    let about = fs::metadata(file).with_context(|| format!("{key}: {}", file.display()))?;
    let mode = about.permissions().mode() & 0o777;
    if !is_private(mode, about.uid(), env::users::own_id()) {
        bail!("{key}: {} can be read by others (mode {mode:03o}); `chmod 600` it", file.display());
    }
    if about.len() < bytes_min {
        bail!("{key}: {} has {} bytes; at least {bytes_min} are needed", file.display(), about.len());
    }
    Ok(())
}

/// Whether its owner alone can read a file of this mode. What root lends to another user's group counts as that user's: so containers are
/// given their secrets.
fn is_private(mode: u32, owner: u32, me: u32) -> bool {
    const ROOT: u32 = 0;
    let is_lent = owner == ROOT && me != ROOT;
    mode & if is_lent { 0o037 } else { 0o077 } == 0
}

/// ZooKeeper's user and password.
fn authentication(settings: &Settings) -> anyhow::Result<Option<(String, String)>> {
    let file = Path::new(settings.text("coordinator_auth_file"));
    if file.as_os_str().is_empty() {
        return Ok(None);
    }
    check_private("coordinator_auth_file", file, 3)?;
    let text =
        fs::read_to_string(file).with_context(|| format!("coordinator_auth_file: {}", file.display()))?;
    match text.trim_end().split_once(':') {
        Some((user, password)) if !user.is_empty() && !password.is_empty() => {
            Ok(Some((user.to_owned(), password.to_owned())))
        }
        _ => bail!("coordinator_auth_file: {} is not one line of user:password", file.display()),
    }
}

fn list(members: &[MemberId]) -> String {
    let numbers: Vec<_> = members.iter().map(|member| member.0.to_string()).collect();
    format!("[{}]", numbers.join(", "))
}

#[cfg(test)]
mod tests;
