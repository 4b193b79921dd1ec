//! The signatures of [`BlockMap`]; bodies are on their way.
#![allow(unused_variables)]

use crate::*;
use base::{Block, BlockId, GenerationStamp, InodeId, Moment};
use std::sync::Arc;

pub struct BlockMap;

/// What a new replica's place must satisfy.
#[derive(Clone, Debug, Default)]
pub struct Placement<'a> {
    pub writer: Reader<'a>,
    pub replication: usize,
    pub block_size: u64,
    /// `uuid`s not to be used.
    pub excluded: &'a [&'a str],
    /// `host:port` or `ip:port` of servers to prefer.
    pub favoured: &'a [&'a str],
    /// Replicas that the block has already (getAdditionalDatanode).
    pub existing: &'a [Location],
    /// CreateFlag NO_LOCAL_WRITE
    pub avoid_writer: bool,
}

impl BlockMap {
    pub fn new(config: Config, seed: u64, now: Moment) -> Self {
        todo!()
    }
    // ---- told by the namespace
    pub fn reserve(&mut self, blocks: usize) {
        todo!()
    }
    /// The newest id and stamp that the namespace has given out: reports about later ones wait.
    pub fn set_last_allocated(&mut self, id: BlockId, stamp: GenerationStamp) {
        todo!()
    }
    pub fn add_block(
        &mut self,
        block: Block,
        inode: InodeId,
        replication: u16,
        state: BlockState,
        targets: &[Location],
        now: Moment,
    ) {
        todo!()
    }
    pub fn commit(&mut self, block: Block, now: Moment) {
        todo!()
    }
    pub fn complete(&mut self, id: BlockId, now: Moment) {
        todo!()
    }
    /// A complete block is written again (append, recovery), under a new generation stamp.
    pub fn reopen(&mut self, block: Block, targets: &[Location]) {
        todo!()
    }
    /// updatePipeline
    pub fn set_pipeline(&mut self, block: Block, targets: &[Location]) {
        todo!()
    }
    pub fn set_replication(&mut self, id: BlockId, replication: u16, now: Moment) {
        todo!()
    }
    pub fn remove(&mut self, ids: &[BlockId]) {
        todo!()
    }
    /// Image and journal are loaded: start-up safe mode begins to count (or ends at once for an empty namespace).
    pub fn activate(&mut self, now: Moment) {
        todo!()
    }
    /// This server now commands (true) or only listens.
    pub fn set_commanding(&mut self, commanding: bool, now: Moment) {
        todo!()
    }
    pub fn take_events(&mut self) -> Events {
        todo!()
    }
    // ---- told by data servers
    pub fn register(
        &mut self,
        registration: Registration,
        now: Moment,
    ) -> Result<Arc<DataServer>, RegisterError> {
        todo!()
    }
    pub fn heartbeat(
        &mut self,
        server: ServerId,
        heartbeat: &Heartbeat,
        now: Moment,
    ) -> Result<Vec<Command>, ServerError> {
        todo!()
    }
    /// A non-zero lease id if a full report may be sent now.
    pub fn grant_report_lease(&mut self, server: ServerId, now: Moment) -> u64 {
        todo!()
    }
    pub fn begin_report(
        &mut self,
        server: ServerId,
        storage: &str,
        now: Moment,
    ) -> Result<ReportId, ServerError> {
        todo!()
    }
    pub fn report_slice(
        &mut self,
        report: ReportId,
        replicas: &[ReportedReplica],
        now: Moment,
    ) -> Result<(), ServerError> {
        todo!()
    }
    pub fn finish_report(&mut self, report: ReportId, now: Moment) -> Result<ReportDone, ServerError> {
        todo!()
    }
    pub fn incremental_report(
        &mut self,
        server: ServerId,
        storage: &str,
        increments: &[Increment],
        now: Moment,
    ) -> Result<(), ServerError> {
        todo!()
    }
    /// reportBadBlocks: `None` for a storage id means whichever of the server's storages holds it.
    pub fn report_bad(&mut self, block: Block, server_uuid: &str, storage: Option<&str>, now: Moment) {
        todo!()
    }
    // ---- questions
    pub fn facts(&self, id: BlockId) -> Option<Facts> {
        todo!()
    }
    /// `chance` shuffles replicas that are equally near.
    pub fn locations(&self, id: BlockId, reader: Reader, chance: u64, now: Moment) -> Option<Located> {
        todo!()
    }
    /// Up to `replication` places, fewer if there are not enough; never an error.
    pub fn choose_targets(&mut self, placement: &Placement, now: Moment) -> Vec<Location> {
        todo!()
    }
    /// A storage by its wire names (updatePipeline, getAdditionalDatanode).
    pub fn location(&self, uuid: &str, storage: &str) -> Option<Location> {
        todo!()
    }
    pub fn server(&self, uuid: &str) -> Option<Arc<DataServer>> {
        todo!()
    }
    pub fn servers(&self, filter: ServerFilter) -> Vec<Arc<DataServer>> {
        todo!()
    }
    pub fn storages(&self, uuid: &str) -> Vec<StorageStats> {
        todo!()
    }
    pub fn is_registered_address(&self, ip: &str, transfer_port: u16) -> bool {
        todo!()
    }
    pub fn stats(&self) -> Stats {
        todo!()
    }
    pub fn bytes_allocated(&self) -> usize {
        todo!()
    }
    // ---- safe mode
    pub fn in_safe_mode(&self) -> bool {
        todo!()
    }
    /// What getSafeModeTip says: "The reported blocks 3 has reached ...".
    pub fn safe_mode_message(&self, now: Moment) -> String {
        todo!()
    }
    pub fn enter_safe_mode(&mut self) {
        todo!()
    }
    /// False when it must be forced.
    pub fn leave_safe_mode(&mut self, force: bool, now: Moment) -> bool {
        todo!()
    }
    // ---- time
    /// Every second or so: dead servers, safe mode's extension, overdue copies, work to hand out.
    pub fn tick(&mut self, now: Moment) {
        todo!()
    }
    /// Looks at up to `budget` blocks (100,000 take about a millisecond); true while more are waiting.
    pub fn sweep(&mut self, budget: usize, now: Moment) -> bool {
        todo!()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFilter {
    All,
    Live,
    Dead,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageStats {
    pub report: StorageReport,
    pub blocks: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub capacity: u64,
    pub dfs_used: u64,
    pub non_dfs_used: u64,
    pub remaining: u64,
    pub block_pool_used: u64,
    pub blocks: u64,
    pub under_replicated: u64,
    pub corrupt: u64,
    pub missing: u64,
    pub missing_with_replication_one: u64,
    pub pending_transfers: u64,
    pub pending_deletions: u64,
    pub excess: u64,
    pub postponed: u64,
    pub live_servers: u64,
    pub dead_servers: u64,
    pub stale_servers: u64,
    pub xceivers: u64,
    /// Rows of reports dropped since the start: duplicates, unknown and impossible ones.
    pub dropped_rows: u64,
}
