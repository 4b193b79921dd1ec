//! A data server as it presents itself, and as readers and reports see it.

use base::AdminState;
use base::Moment;
pub use base::StorageType;
use std::sync::Arc;

/// The rack of a host that no table names.
pub const DEFAULT_RACK: &str = "/default-rack";

/// A data server's registration. Its addresses are those that clients will be given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    pub uuid: Arc<str>,
    pub ip: Arc<str>,
    pub host_name: Arc<str>,
    pub transfer_port: u16,
    pub info_port: u16,
    pub info_secure_port: u16,
    pub ipc_port: u16,
    pub software_version: Arc<str>,
}

impl Registration {
    /// `ip:port` of the data-transfer port: the name under which HDFS tells data servers apart.
    pub fn transfer_address(&self) -> String {
        format!("{}:{}", self.ip, self.transfer_port)
    }
}

/// A registered data server: cheap to hold on to through its `Arc`, and replaced, never changed, when a
/// heartbeat brings new numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataServer {
    pub registration: Arc<Registration>,
    pub rack: Arc<str>,
    pub alive: bool,
    pub admin_state: AdminState,
    /// Blocks that the server has to keep until others have them, as far as is known. 0 where it is not to leave service.
    pub blocks_in_need: u64,
    /// Since when it has been in its state, as far as this metadata server knows.
    pub admin_state_since: Moment,
    pub last_heartbeat: Moment,
    /// When a full report of one of its storages was last complete.
    pub last_report: Moment,
    pub capacity: u64,
    pub dfs_used: u64,
    pub non_dfs_used: u64,
    pub remaining: u64,
    pub block_pool_used: u64,
    pub cache_capacity: u64,
    pub cache_used: u64,
    pub blocks: u64,
    /// Blocks on their way to it when its last heartbeat came: a client writes them, or another server copies them.
    pub blocks_scheduled: u64,
    /// Open data-transfer connections.
    pub xceivers: u32,
    /// Copies that it is sending or receiving.
    pub transfers_in_progress: u32,
    pub failed_volumes: u32,
    /// What it tells of them. `None`: nothing.
    pub volume_failures: Option<Arc<VolumeFailures>>,
}

/// The failed volumes of a data server, in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeFailures {
    pub locations: Vec<String>,
    /// When the last one failed, in milliseconds since 1970; 0 if that is not known.
    pub last_ms: u64,
    /// The room that was lost, as far as it is known.
    pub capacity_lost: u64,
}

impl VolumeFailures {
    /// More locations of one server are not kept, and no longer ones: so many volumes it has at most.
    pub const LOCATIONS_MAX: usize = 256;
    pub const LOCATION_BYTES_MAX: usize = 1_024;
}

impl DataServer {
    pub fn uuid(&self) -> &Arc<str> {
        &self.registration.uuid
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StorageState {
    #[default]
    Normal,
    ReadOnlyShared,
    /// The volume is lost: its replicas no longer count.
    Failed,
}

/// One storage (a volume of a data server), as a heartbeat describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageReport {
    pub id: Arc<str>,
    pub storage_type: StorageType,
    pub state: StorageState,
    pub capacity: u64,
    pub dfs_used: u64,
    pub remaining: u64,
    pub block_pool_used: u64,
    pub non_dfs_used: u64,
}
