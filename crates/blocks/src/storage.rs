//! The table of storages. A storage's index is what a block's record holds for each replica.
//!
//! When a storage is lost (its server died, its volume failed) it is *retired* at once: replicas there no
//! longer count. The records that still name it are cleaned by a sweep, and only then is the index given
//! to another storage.

use crate::{
    full_report::Report,
    held::Amount,
    lap::Lap,
    newcomers::Trial,
    server::{StorageReport, StorageState},
    servers::Server,
};
use base::AdminState;
use std::sync::Arc;

/// Blocks are promised to a storage when targets are chosen; what never arrives is forgotten after between
/// one and two of these. HDFS uses the same ten minutes.
pub const PROMISE_ROLL_MS: u64 = 600_000;

pub enum Life {
    Live,
    /// The storage is lost. Its index can be used again once the sweeper has come as far as this.
    Retired(Lap),
    Free,
}

pub struct Storage {
    /// Index of the server that it belongs to.
    pub server: u32,
    /// The number of its server's rack.
    pub rack: u32,
    /// The trial of its server, which the storage shares.
    pub trial: Trial,
    /// The admin state of its server, which the storage shares.
    pub admin_state: AdminState,
    /// Its server is dead, and is in maintenance or was on the way there: the replicas are remembered, and nobody can read them.
    pub is_away: bool,
    pub report: StorageReport,
    pub life: Life,
    /// Records that name this storage.
    pub blocks: u32,
    /// Its replicas are not surely known, because it has sent no full report since it appeared, or since this
    /// metadata server began to command. While one of a block's replicas is on such a storage, none is deleted as
    /// superfluous.
    pub stale: bool,
    /// Rows about it were dropped for want of room, so it is asked to report in full again.
    pub is_incomplete: bool,
    /// Replicas there whose ids the namespace's counter has skipped.
    pub skipped: Amount,
    /// A full report under way, or done and waiting for the sweep that forgets what it did not name.
    pub full_report: Option<Box<Report>>,
    /// The earlier reports that are done and wait for the sweep, merged into one: a further report was begun before the sweep had passed.
    pub lacking: Option<Box<Report>>,
    /// A heartbeat of this session has named the storage. A storage that only reports have named may have failed since they were made.
    pub is_named: bool,
    /// The number of heartbeats in a row that have not named the storage.
    pub unnamed: u8,
    /// A full report has shown what the storage holds. The storage stays stale until a heartbeat has named it as well.
    pub is_reported: bool,
    /// Its server has begun anew: what it held is looked at until the broom has come here.
    pub unsettled_until: Option<Lap>,
    /// Blocks promised to it and not yet reported, in the current period and the one before.
    promised: [u32; 2],
}

impl Storage {
    /// The storage is live and so is its server.
    pub fn is_present(&self) -> bool {
        self.is_live() && !self.is_away
    }

    /// Whether clients are told of replicas there.
    pub fn is_readable(&self) -> bool {
        self.is_present() && self.admin_state.is_shown_to_readers()
    }

    pub fn is_live(&self) -> bool {
        matches!(self.life, Life::Live)
    }

    /// Whether the storage still has a replica of the block in this slot, whose record names the storage. It has none if the storage is lost, or
    /// if a full report lacks the replica. The record names the storage until the sweep has passed, but the replica counts no longer.
    pub fn is_known_to_hold(&self, slot: u32) -> bool {
        let mut reports = self.full_report.iter().chain(&self.lacking);
        self.is_live() && !reports.any(|report| report.is_missing(slot))
    }

    pub fn reports_mut(&mut self) -> impl Iterator<Item = &mut Report> {
        self.full_report.iter_mut().chain(&mut self.lacking).map(|report| &mut **report)
    }

    /// Another full report begins. What a whole one lacked goes on to be missing until the sweep has passed.
    pub fn begin_report(&mut self, report: Report) {
        if let Some(before) = self.full_report.replace(Box::new(report)).filter(|before| before.is_whole()) {
            self.lacking = Some(match self.lacking.take() {
                Some(earlier) => Box::new(earlier.and(*before)),
                None => before,
            });
        }
    }

    /// The contents of the storage are not surely known until a full report has come.
    pub fn become_stale(&mut self) {
        (self.stale, self.is_reported) = (true, false);
    }

    /// A full report has come that shows what the storage holds.
    pub fn note_reported(&mut self) {
        self.is_reported = true;
        self.stale = !self.is_named;
    }

    /// A heartbeat names the storage.
    pub fn note_named(&mut self) {
        (self.is_named, self.unnamed) = (true, 0);
        self.stale &= !self.is_reported;
    }

    pub fn promise(&mut self) {
        self.promised[0] += 1;
    }

    pub fn promise_kept(&mut self) {
        let [now, before] = &mut self.promised;
        if *before > 0 {
            *before -= 1;
        } else {
            *now = now.saturating_sub(1);
        }
    }

    pub fn roll_promises(&mut self) {
        self.promised = [0, self.promised[0]];
    }

    /// Blocks that were promised to it lately and have not come yet.
    pub fn promised(&self) -> u64 {
        self.promised.iter().copied().map(u64::from).sum()
    }

    /// Room left after what was promised, if blocks have this size.
    pub fn room(&self, block_size: u64) -> u64 {
        self.report.remaining.saturating_sub(self.promised().saturating_mul(block_size))
    }

    pub fn can_take(&self, block_size: u64) -> bool {
        self.is_present() && self.report.state == StorageState::Normal && self.room(block_size) >= block_size
    }
}

#[derive(Default)]
pub struct Storages {
    slots: Vec<Storage>,
    free: Vec<u32>,
}

impl Storages {
    pub fn get(&self, index: u32) -> &Storage {
        &self.slots[index as usize]
    }

    pub fn get_mut(&mut self, index: u32) -> &mut Storage {
        &mut self.slots[index as usize]
    }

    pub fn is_live(&self, index: u32) -> bool {
        self.get(index).is_live()
    }

    /// A storage of the server with this index.
    pub fn add(&mut self, index: u32, server: &Server, report: StorageReport) -> u32 {
        let storage = Storage {
            server: index,
            rack: server.rack,
            trial: server.trial,
            admin_state: server.face.admin_state,
            is_away: false,
            report,
            life: Life::Live,
            blocks: 0,
            stale: true,
            is_incomplete: false,
            skipped: Amount::default(),
            full_report: None,
            lacking: None,
            is_named: false,
            unnamed: 0,
            is_reported: false,
            unsettled_until: None,
            promised: [0; 2],
        };
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = storage;
                index
            }
            None => {
                self.slots.push(storage);
                self.slots.len() as u32 - 1
            }
        }
    }

    pub fn retire(&mut self, index: u32, until: Lap) {
        let storage = self.get_mut(index);
        storage.life = Life::Retired(until);
        storage.full_report = None;
        storage.lacking = None;
    }

    /// Frees what the sweeper, now at `lap`, has cleaned of.
    pub fn reclaim(&mut self, lap: Lap) {
        for (index, storage) in self.slots.iter_mut().enumerate() {
            if let Life::Retired(until) = storage.life
                && until <= lap
            {
                assert_eq!(storage.blocks, 0, "a swept storage is named by no record");
                storage.life = Life::Free;
                storage.report.id = Arc::default();
                self.free.push(index as u32);
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Storage)> {
        (0..).zip(&self.slots)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Storage)> {
        (0..).zip(&mut self.slots)
    }

    pub fn bytes_allocated(&self) -> usize {
        self.slots.capacity() * size_of::<Storage>()
    }
}
