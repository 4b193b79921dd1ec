//! Numbers for getFsStats, getDatanodeReport and metrics.

use crate::{
    efforts::Satisfied,
    held::Amount,
    map::BlockMap,
    newcomers::Trial,
    server::{DataServer, StorageReport},
};
use base::{AdminState, BlockId, InodeId};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFilter {
    All,
    Live,
    Dead,
    DecommissionInProgress,
    EnteringMaintenance,
    InMaintenance,
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
    pub under_construction: u64,
    /// Blocks that should have more replicas, the lost and the misplaced ones included.
    pub under_replicated: u64,
    /// The number of these blocks that have one replica left, of several wanted.
    pub most_endangered: u64,
    /// Blocks with as many replicas as are wanted, all of them on one rack though there are others.
    pub misplaced: u64,
    /// Blocks with a damaged replica.
    pub corrupt: u64,
    /// Blocks without any good replica on a live server.
    pub missing: u64,
    pub missing_with_replication_one: u64,
    /// Blocks with replicas on their way.
    pub pending_transfers: u64,
    pub pending_deletions: u64,
    pub excess: u64,
    /// Blocks that are to be moved to the media of their files' policies.
    pub unsatisfied: u64,
    /// The outcomes of such moves since the start.
    pub satisfied: Satisfied,
    /// Rows that wait for the namespace.
    pub postponed: u64,
    pub live_servers: u64,
    /// Decommissioned servers and servers in maintenance are left out: they may be off.
    pub dead_servers: u64,
    pub stale_servers: u64,
    /// Servers that others have reported as slow, and those of them that may be kept out of pipelines and read from last.
    pub slow_servers: u64,
    pub avoided_servers: u64,
    /// Disks that their servers have reported as slow.
    pub slow_disks: u64,
    pub decommission_in_progress: u64,
    /// Decommissioned servers that are alive, and that are dead.
    pub decommissioned_live: u64,
    pub decommissioned_dead: u64,
    pub entering_maintenance: u64,
    /// Servers in maintenance that are alive, and that are dead.
    pub in_maintenance_live: u64,
    pub in_maintenance_dead: u64,
    /// The sum over the servers that are to leave service of the blocks that need them.
    pub blocks_in_need: u64,
    pub xceivers: u64,
    /// Rows of reports dropped since the start: duplicates, unknown blocks, and what the decoder dropped.
    pub dropped_rows: u64,
    pub future_bytes: u64,
    /// Unknown replicas whose deletion is held back.
    pub held: Amount,
    /// Unknown replicas that are never deleted, because the namespace's counter has skipped their ids.
    pub skipped: Amount,
    /// The log holds deletions back, not only the share of them on a server.
    pub is_held_by_log: bool,
    /// Servers with more unknown replicas than may be deleted before an operator has looked.
    pub servers_over_share: u64,
    /// Storages that have not reported in full since this server began to command.
    pub stale_storages: u64,
}

impl BlockMap {
    /// In order of uuid.
    pub fn servers(&self, filter: ServerFilter) -> Vec<Arc<DataServer>> {
        let is_wanted = |face: &Arc<DataServer>| match filter {
            ServerFilter::All => true,
            ServerFilter::Live => face.alive,
            ServerFilter::Dead => !face.alive,
            ServerFilter::DecommissionInProgress => face.admin_state == AdminState::DecommissionInProgress,
            ServerFilter::EnteringMaintenance => face.admin_state == AdminState::EnteringMaintenance,
            ServerFilter::InMaintenance => face.admin_state == AdminState::InMaintenance,
        };
        self.servers.iter().map(|(_, server)| &server.face).filter(|face| is_wanted(face)).cloned().collect()
    }

    /// Live data servers that have not shown yet that they store anything. As long as there are some, damaged and superfluous replicas may
    /// stay (`docs/decisions/2026-11-22-newcomers.md`).
    pub fn newcomer_count(&self) -> usize {
        let live = self.servers.live().iter();
        live.filter(|server| self.servers.get(**server).trial != Trial::Passed).count()
    }

    /// The figures of the storages of one data server.
    pub fn storages(&self, uuid: &str) -> Vec<StorageStats> {
        let Some(index) = self.servers.find(uuid) else { return Vec::new() };
        let storages = self.servers.get(index).storages.iter().map(|place| self.storages.get(*place));
        storages.map(|it| StorageStats { report: it.report.clone(), blocks: u64::from(it.blocks) }).collect()
    }

    /// Whether a server is stale is told as of the latest call that brought the time.
    pub fn stats(&self) -> Stats {
        let (held, skipped) = self.unknown_amounts();
        let mut stats = Stats {
            blocks: self.arena.len() as u64,
            under_construction: self.constructions.len() as u64,
            under_replicated: self.redundancy.queue.len() as u64,
            most_endangered: self.redundancy.queue.most_endangered_count() as u64,
            misplaced: self.redundancy.queue.misplaced_count() as u64,
            corrupt: self.redundancy.corrupt.iter().count() as u64,
            missing: self.redundancy.queue.lost_count() as u64,
            missing_with_replication_one: self.lost_with_replication_one(),
            pending_transfers: self.redundancy.pending.len() as u64,
            excess: self.redundancy.excess.len() as u64,
            unsatisfied: self.unsatisfied() as u64,
            satisfied: self.satisfied(),
            postponed: self.postponed.len() as u64,
            dropped_rows: self.counts.dropped_rows,
            future_bytes: self.counts.future_bytes,
            held,
            skipped,
            stale_storages: self.stale_storage_count() as u64,
            is_held_by_log: self.are_deletions_held(),
            slow_servers: self.slow.server_count as u64,
            slow_disks: self.slow.disk_count() as u64,
            ..Stats::default()
        };
        for (_, server) in self.servers.iter() {
            stats.pending_deletions += server.deletions.len() as u64;
            stats.avoided_servers += u64::from(server.is_avoided);
            stats.servers_over_share += u64::from(server.share.is_exceeded);
            self.add_server(&mut stats, &server.face);
        }
        stats
    }

    fn add_server(&self, stats: &mut Stats, face: &DataServer) {
        stats.blocks_in_need += face.blocks_in_need;
        match (face.admin_state, face.alive) {
            (AdminState::InService, _) => {}
            (AdminState::DecommissionInProgress, _) => stats.decommission_in_progress += 1,
            (AdminState::Decommissioned, true) => stats.decommissioned_live += 1,
            (AdminState::Decommissioned, false) => stats.decommissioned_dead += 1,
            (AdminState::EnteringMaintenance, _) => stats.entering_maintenance += 1,
            (AdminState::InMaintenance, true) => stats.in_maintenance_live += 1,
            (AdminState::InMaintenance, false) => stats.in_maintenance_dead += 1,
        }
        if !face.alive {
            let may_be_off =
                matches!(face.admin_state, AdminState::Decommissioned | AdminState::InMaintenance);
            stats.dead_servers += u64::from(!may_be_off);
            return;
        }
        stats.live_servers += 1;
        stats.stale_servers += u64::from(self.is_stale(face, self.latest));
        stats.xceivers += u64::from(face.xceivers);
        if !face.admin_state.is_in_service() {
            // As in HDFS: nothing can be written there.
            return;
        }
        let sums = [
            (&mut stats.capacity, face.capacity),
            (&mut stats.dfs_used, face.dfs_used),
            (&mut stats.non_dfs_used, face.non_dfs_used),
            (&mut stats.remaining, face.remaining),
            (&mut stats.block_pool_used, face.block_pool_used),
        ];
        for (sum, value) in sums {
            *sum = sum.saturating_add(value);
        }
    }

    fn lost_with_replication_one(&self) -> u64 {
        let wants_one = |id: &BlockId| self.arena.find(*id).is_some_and(|slot| self.wanted(slot) == 1);
        self.redundancy.queue.lost().filter(wants_one).count() as u64
    }

    /// The blocks behind `after` without any good replica, in the order of their ids, and their files; `None` for
    /// a block that is about to be removed.
    pub fn files_of_lost_blocks(
        &self,
        after: BlockId,
    ) -> impl Iterator<Item = (BlockId, Option<InodeId>)> + '_ {
        self.redundancy.queue.lost_behind(after).map(|id| (id, self.inode_of(id)))
    }

    /// The files of blocks with too few replicas, or with all of them on one rack, the most endangered first; `None` for a block that is about to
    /// be removed. A file comes once for each of its blocks.
    pub fn files_of_endangered_blocks(&self) -> impl Iterator<Item = Option<InodeId>> + '_ {
        self.redundancy.queue.endangered().map(|id| self.inode_of(id))
    }

    /// Counts rows that the decoder of reports had to drop.
    pub fn note_dropped_rows(&mut self, rows: u64) {
        self.counts.dropped_rows += rows;
    }

    pub fn has_block(&self, id: BlockId) -> bool {
        self.arena.find(id).is_some()
    }

    /// Memory held for blocks and storages; small tables that do not grow with the number of blocks are
    /// left out.
    pub fn bytes_allocated(&self) -> usize {
        self.arena.bytes_allocated() + self.storages.bytes_allocated()
    }
}
