//! The facts about a cluster from which a verdict is made. An optional field is `None` where no server told the fact.

/// The facts about a whole cluster at the time of a verdict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Metadata servers that were asked and gave no answer. A server that tells of itself has asked none.
    pub unanswered: Vec<Unanswered>,
    /// The groups that are known.
    pub groups: Vec<Group>,
}

/// A metadata server that gave no answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unanswered {
    /// `host:port`.
    pub address: String,
    pub reason: String,
}

/// A group of metadata servers, and what its active knows of the data servers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    pub number: u32,
    pub leader: Leader,
    /// The coordinator's view; `None` while no server that answers has seen it.
    pub view: Option<View>,
    /// In the order of their numbers.
    pub members: Vec<Member>,
    /// Whether enough members are in sync for changes.
    pub is_writable: Option<bool>,
    /// Why changes are refused as long as the group is in safe mode; `None` where it is not.
    pub safe_mode: Option<String>,
    /// Why the group cannot follow the changes of directories.
    pub directory_log_trouble: Option<String>,
    /// `None`: no server that answers tells of the data servers.
    pub data: Option<Data>,
}

/// The member that serves a group, as far as the servers that answered know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leader {
    /// This member, by its own word.
    Serves(u32),
    /// A member that does not answer here; another one hears it.
    IsHeard,
    #[default]
    Nobody,
}

/// The coordinator's view of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    pub epoch: u64,
    /// The members that a change waits for.
    pub in_sync: Vec<u32>,
    pub in_sync_min: u32,
}

/// A metadata server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    pub number: u32,
    /// `host:port` for clients; `None`: it has never run.
    pub address: Option<String>,
    /// `host:port` of its pages.
    pub http_address: Option<String>,
    pub presence: Presence,
    pub role: Role,
    pub is_in_sync: bool,
    /// Committed entries that it lacks.
    pub lag: Option<u64>,
    /// Why it has stopped, or what it waits for.
    pub reason: Option<String>,
    /// How much of an image it has fetched, in bytes, and the image's size.
    pub image: Option<(u64, u64)>,
    pub has_disk_failed: bool,
    /// Free bytes of the disk of its store.
    pub disk_free_bytes: Option<u64>,
    pub is_disk_low: bool,
    /// Changes are refused because that disk is full.
    pub is_disk_full: bool,
    /// For how long it has not reached the coordinator; `None` while it does.
    pub coordinator_away_ms: Option<u64>,
    /// The release that it runs.
    pub release: Option<String>,
    /// Damaged files of its store that no other member could replace.
    pub damaged_files: u64,
    /// The thread that hangs, in words.
    pub hanging_thread: Option<String>,
    /// Requests that are refused because one like them has ended a server.
    pub fatal_requests: u64,
    /// How long the flushes of its journal took lately, in the mean.
    pub flush_ms: Option<u64>,
    pub clock: Option<Clock>,
}

/// Whether a member answers the one who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// It was not asked.
    #[default]
    Unknown,
    Answers,
    /// It was asked and gave no answer, or the member that tells this has no connection to it. The text is the reason, if one is known.
    Silent(Option<String>),
}

/// The part that a member takes in its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Unknown,
    /// It leads, and answers clients.
    Active,
    /// It has the epoch, and answers only what is certain.
    Reading,
    /// On the way to lead, or away from it.
    Between,
    Standby,
    /// It is not complete.
    Junior,
    /// It will do nothing more until a person has done something.
    Stopped,
}

/// A clock, as it was read from another machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// How far it is ahead of the clock of the one who read it, in milliseconds; negative: behind it.
    pub ahead_ms: i64,
    /// The true value lies at most so far from that.
    pub uncertain_ms: u64,
}

impl Clock {
    /// A clock that showed `theirs_ms` at some time during a call. The call took `call_ms` and ended when the own clock showed `ours_ms`.
    pub fn read_during(call_ms: u64, theirs_ms: u64, ours_ms: u64) -> Self {
        let half_ms = call_ms / 2;
        let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let ours_ms = signed(ours_ms).saturating_sub(signed(half_ms));
        Self { ahead_ms: signed(theirs_ms).saturating_sub(ours_ms), uncertain_ms: half_ms + 1 }
    }
}

/// The blocks and the data servers, as a metadata server knows them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Data {
    pub blocks: Blocks,
    /// In the order of their addresses.
    pub servers: Vec<DataServer>,
    pub contested: Vec<Contest>,
    /// After so much silence a data server is stale.
    pub stale_after_ms: Option<u64>,
}

/// Counts of blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks {
    /// Without a good replica on a live data server.
    pub missing: u64,
    /// With a damaged replica.
    pub corrupt: u64,
    /// With fewer replicas than wanted, the missing ones included.
    pub under_replicated: u64,
    /// Replicas that no file has and that are kept until a person allows their deletion.
    pub unknown_held: u64,
    /// An unclean election holds all deletions of unknown replicas back.
    pub are_deletions_held: bool,
    /// Data servers with more unknown replicas than may be deleted before a person has looked.
    pub servers_over_share: u64,
}

/// A data server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataServer {
    /// `ip:port` for data.
    pub address: String,
    pub host_name: String,
    /// `ip:port` of its pages.
    pub http_address: Option<String>,
    pub is_alive: bool,
    /// It is decommissioned or in maintenance.
    pub may_be_off: bool,
    /// New replicas may go there.
    pub is_in_service: bool,
    /// Since it was last heard.
    pub silent_ms: Option<u64>,
    pub capacity: u64,
    pub remaining: u64,
    pub failed_volumes: u32,
    /// The volume with the least room for its size.
    pub fullest: Option<Disk>,
    /// The release that it runs; `None` for a DataNode of Hadoop.
    pub release: Option<String>,
    pub slow: Option<SlowServer>,
    pub slow_disks: Vec<SlowDisk>,
}

/// A volume of a data server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disk {
    /// Its id, as `DS-…`.
    pub id: String,
    pub capacity: u64,
    pub remaining: u64,
}

/// The word of others that a data server is slow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlowServer {
    /// The data servers that say so.
    pub reporters: u32,
    /// The mean time of a packet to the server, and the median of those to all servers.
    pub latency_ms: f64,
    pub median_ms: f64,
}

/// A data server's own word that a disk of it is slow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlowDisk {
    pub path: String,
    /// The worst of its kinds of operations, in the mean.
    pub latency_ms: f64,
}

/// Data servers that replace each other, since they speak from one address and port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contest {
    pub address: String,
    pub uuids: Vec<String>,
}
