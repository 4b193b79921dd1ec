//! What data servers have said of single replicas a short while ago.
//!
//! A call of a data server may be long under way. Its sender gives it up after a while, says more, and the old call
//! arrives behind the newer one. A full report that is older than a deletion would bring the deleted replica back, for
//! this server alone; and a good replica elsewhere would then be deleted as superfluous, the last one even. So the last
//! news about a replica is remembered for ten minutes, in the order of the permissions to report:
//!
//! - A full report shows what was there after its permission was given out. Its rows are dropped where a deletion has
//!   been told since, and what has come since is not missed in it. Of a report without a permission that this server
//!   has given, every deletion that is remembered counts as later.
//! - News that a deleted replica is there may be late, or true. It is taken, and nothing is deleted as superfluous beside
//!   it before its server has reported in full anew, for which it is asked.
//! - A full report is not taken behind one whose permission was given out later.
//!
//! HDFS believes whatever arrives.

use crate::{broken::Broken, map::BlockMap};
use base::{Block, Moment};

impl BlockMap {
    /// A server has deleted a replica of a block that there is.
    pub(crate) fn remember_deleted(&mut self, place: u32, block: Block, now: Moment) {
        let serial = self.next_serial();
        self.recent_news.deleted.note(block, place, serial, now);
    }

    /// A finished replica has come.
    pub(crate) fn remember_received(&mut self, place: u32, block: Block, now: Moment) {
        let server = self.storages.get(place).server;
        if self.servers.get(server).may_report_until.is_some_and(|until| now < until) {
            let serial = self.next_serial();
            self.recent_news.received.note(block, place, serial, now);
        }
    }

    /// The order of a report's permission among the news; 0 if this server has given out no such permission in the
    /// session.
    pub(crate) fn age_of(&self, server: u32, lease: u64) -> u64 {
        let (after, last) = self.servers.get(server).leases;
        if after < lease && lease <= last { lease } else { 0 }
    }

    /// Whether the server has deleted the replica since it was permitted to send the report that names it.
    pub(crate) fn is_outdated(&self, place: u32, block: &Block, permitted: u64) -> bool {
        self.recent_news.deleted.is_later(block.id, place, block.generation_stamp, permitted)
            && !self.config.rules.break_rule(Broken::LateWordsTrusted)
    }

    /// Whether the replica came after its server was permitted to send the report that lacks it.
    pub(crate) fn came_later(&self, place: u32, slot: u32, permitted: u64) -> bool {
        let record = self.arena.record(slot);
        self.recent_news.received.is_later(record.id(), place, record.stamp(), permitted)
    }

    /// The server says that a replica is there which it has said to have deleted: the news may be older than that. A server
    /// that does not command deletes nothing, and believes no storage when it begins to.
    pub(crate) fn doubt_late_news(&mut self, place: u32, block: &Block) {
        let is_known = self.arena.find(block.id).is_some_and(|slot| self.arena.holds(slot, place));
        if is_known || !self.may_command() || !self.is_outdated(place, block, 0) {
            return;
        }
        let doubted_at = self.next_serial();
        let storage = self.storages.get_mut(place);
        (storage.stale, storage.doubted_at) = (true, doubted_at);
        self.distrust_report(place);
        self.note_contradiction(place);
    }
}
