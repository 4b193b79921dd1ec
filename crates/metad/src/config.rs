//! The numbers and places that a metadata server is started with. Collaborators (clock, disk) come apart.

use crate::{racks::RackScript, user_groups::UserGroupsConfig, watch::LastResort};
use base::{GroupId, Level, MemberId, Proxies};
use coord::Coordinator;
use namespace::Limits;
use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};
use web::Pages;

#[derive(Clone, Debug)]
pub struct MetaConfig {
    /// The directory of the journal, the images and the member's own state; made by [`crate::format`].
    pub name_directory: PathBuf,
    pub rpc_address: SocketAddr,
    /// None: no HTTP port.
    pub http_address: Option<SocketAddr>,
    /// Further pages on the HTTP port, and the threads that serve them.
    pub pages: Pages,
    pub limits: Limits,
    pub defaults: FileDefaults,
    pub blocks: blocks::Config,
    /// Whether replicas are moved to the media of their policies where a client asks for it (`satisfyStoragePolicy`). If not, such calls
    /// are refused.
    pub satisfies_policies: bool,
    /// How long a `complete` waits for the report of the last block before it answers "not yet". A stock
    /// client then sleeps 400 ms and more, so a moment spent here is well spent; longer than this, a data
    /// server is in trouble and the client had better know.
    pub complete_wait_ms: u64,
    /// After so many edits the next image is written.
    pub edits_per_image: u64,
    /// And after so long, if there was any edit.
    pub image_period_ms: u64,
    /// And after so many bytes of journal, or some times the size of an image if that is more.
    pub journal_bytes_per_image: u64,
    pub call_queue: CallLimits,
    /// A file with the data servers that may take part. None: all may.
    pub data_servers_file: Option<PathBuf>,
    /// A file with the data servers that are to be decommissioned. None: no server is.
    pub excluded_data_servers_file: Option<PathBuf>,
    /// Hosts and their racks; a host that is not named is in `/default-rack`.
    pub racks: Vec<(String, String)>,
    /// The script that tells the racks of the others.
    pub rack_script: Option<RackScript>,
    /// Users who may act in the place of others.
    pub proxies: Proxies,
    /// The source of users' groups.
    pub user_groups: UserGroupsConfig,
    /// The file of the audit log; `None` if none is written.
    pub audit_log: Option<PathBuf>,
    pub group: GroupConfig,
}

impl MetaConfig {
    /// The configuration of a server that runs alone, on a free port of this machine, and answers no HTTP.
    pub fn new(name_directory: PathBuf) -> Self {
        Self {
            name_directory,
            rpc_address: (Ipv4Addr::LOCALHOST, 0).into(),
            http_address: None,
            pages: Pages::default(),
            limits: Limits::default(),
            defaults: FileDefaults::default(),
            blocks: blocks::Config::default(),
            satisfies_policies: true,
            complete_wait_ms: 200,
            edits_per_image: 1_000_000,
            image_period_ms: 3_600_000,
            journal_bytes_per_image: 64 << 20,
            call_queue: CallLimits::default(),
            data_servers_file: None,
            excluded_data_servers_file: None,
            racks: Vec::new(),
            rack_script: None,
            proxies: Proxies::default(),
            user_groups: UserGroupsConfig::default(),
            audit_log: None,
            group: GroupConfig::default(),
        }
    }

    /// How texts for people call this server.
    pub fn host_name(&self) -> String {
        let advertised = self.group.advertised.rpc.as_deref().and_then(|address| address.rsplit_once(':'));
        match advertised {
            Some((host, _)) => host.to_owned(),
            None if self.rpc_address.ip().is_loopback() => "localhost".to_owned(),
            None => self.rpc_address.ip().to_string(),
        }
    }
}

/// This server's place in its group. The default is a group of one.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// The group that is made or joined. Used then; afterwards the name directory says of which group this server is.
    pub id: GroupId,
    pub member: MemberId,
    /// The size of the in-sync set below which nothing commits. None: two, or one in a group of one.
    pub in_sync_min: Option<u32>,
    /// All members of a new group. Used when it is made; afterwards the coordinator's view says who is in it.
    pub members: Vec<MemberId>,
    /// The address at which the other members reach this one. None: there are no others.
    pub peer_address: Option<SocketAddr>,
    pub advertised: Advertised,
    pub coordinator: CoordinatorConfig,
    pub timing: group::Settings,
    /// How long a call may wait here while no active is known. Shorter than the clients' own patience.
    pub hold_ms: u64,
    /// The coordinator is asked about each read before it is answered, so that no answer rests on a clock.
    pub confirm_reads: bool,
    /// This member answers reads while it does not lead, once it has everything that was acknowledged before. False: they are handed to the active.
    pub standby_reads: bool,
    /// A member whose host closes its connection and then refuses others at both of its addresses counts as ended. False: its lease is waited for.
    pub trusts_refused_connections: bool,
    /// A file with what proves to other members that a server belongs to the cluster. None: the secret that
    /// was drawn when the cluster was made, which the coordinator keeps for those who join.
    pub secret: Option<PathBuf>,
    /// How fast an image is fetched from another member, so that the fetching leaves the journals some of the
    /// disks and the network. 0: as fast as it goes.
    pub fetch_bytes_per_second: u64,
    /// How fast images and sealed segments are read again, to find what has rotted. 0: never.
    pub scrub_bytes_per_second: u64,
    /// How long after a start, and after the end of one pass, the next begins.
    pub scrub_period_ms: u64,
    /// The level that a new group begins at. Used when it is made; afterwards its journal says at which it is.
    pub first_level: Level,
    /// The numbers of the store.
    pub journal: journal::Settings,
    /// The reaction to a hanging thread that the group relies on.
    pub last_resort: LastResort,
}

impl Default for GroupConfig {
    fn default() -> Self {
        Self {
            id: GroupId::ROOT,
            member: MemberId(1),
            in_sync_min: None,
            members: vec![MemberId(1)],
            peer_address: None,
            advertised: Advertised::default(),
            coordinator: CoordinatorConfig::Embedded,
            timing: group::Settings::default(),
            hold_ms: 1_200,
            confirm_reads: false,
            standby_reads: true,
            trusts_refused_connections: true,
            secret: None,
            fetch_bytes_per_second: 128 << 20,
            scrub_bytes_per_second: 8 << 20,
            scrub_period_ms: 24 * 3_600_000,
            first_level: Level::NEWEST,
            journal: journal::Settings::default(),
            last_resort: LastResort::default(),
        }
    }
}

/// The `host:port` that others are told, where it is not the one listened on.
#[derive(Clone, Debug, Default)]
pub struct Advertised {
    pub peer: Option<String>,
    pub rpc: Option<String>,
    pub http: Option<String>,
}

/// The coordinator, which keeps the group's view.
#[derive(Clone)]
pub enum CoordinatorConfig {
    /// A file beside the journal; for a group of one.
    Embedded,
    /// A coordinator that is open already, for several members in one process.
    Shared(Arc<dyn Coordinator>),
    ZooKeeper(coord::ZooKeeperConfig),
}

impl fmt::Debug for CoordinatorConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("Embedded"),
            Self::Shared(_) => f.write_str("Shared"),
            Self::ZooKeeper(config) => write!(f, "ZooKeeper({})", config.servers),
        }
    }
}

/// The values for a client that names none. `getServerDefaults` tells them.
#[derive(Clone, Debug)]
pub struct FileDefaults {
    pub block_size: u64,
    pub replication: u16,
    pub bytes_per_checksum: u32,
    pub write_packet_size: u32,
    pub file_buffer_size: u32,
    pub trash_interval_minutes: u64,
}

impl Default for FileDefaults {
    fn default() -> Self {
        Self {
            block_size: 128 << 20,
            replication: 3,
            bytes_per_checksum: 512,
            write_packet_size: 64 << 10,
            file_buffer_size: 4096,
            trash_interval_minutes: 0,
        }
    }
}

/// The limits of calls that may wait at once.
#[derive(Clone, Copy, Debug)]
pub struct CallLimits {
    /// Writes waiting for the writer; more are refused with a retriable error.
    pub write_count_max: usize,
    /// Largest request frame (`ipc.maximum.data.length`).
    pub frame_bytes_max: usize,
    /// Requests of all connections together.
    pub request_bytes_max: usize,
    /// Events of one answer to a client that watches the namespace; the last entry's are told whole.
    pub events_max: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            write_count_max: 100_000,
            frame_bytes_max: 128 << 20,
            request_bytes_max: 512 << 20,
            events_max: 1_000,
        }
    }
}
