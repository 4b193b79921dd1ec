//! One metadata server of a group commands at a time. The others listen, and are ready to take over.
//!
//! A listening map takes everything that the commanding one takes: registrations, heartbeats, reports, and what
//! the namespace tells. It gives no orders, but for the call to register, which asks for everything anew.
//!
//! A server that takes over cannot know the last orders of the one before it. Deletions that were given out and not
//! yet reported would make it choose another replica to delete, and with two such choices a block is gone. So every
//! storage counts as *stale* until it has reported in full to the new one, and the report must have begun after its
//! server was answered by the new one: from then on it obeys no older active. A data server may speak in two voices at
//! once, and so the permission with which it sends the report must have come in such an answer itself. While one of a block's replicas is on a
//! stale storage, none of the block's is deleted as superfluous or damaged. Copies need no such care; they wait for a
//! while, so that a server that is late is not taken for lost.

use crate::{broken::Broken, full_report::Report, map::BlockMap};
use base::{BlockId, Epoch, Moment};

/// When and how this server began to command in place of another.
#[derive(Clone, Copy, Debug)]
pub struct Takeover {
    /// No copy is ordered before this moment.
    grace_until: Moment,
}

impl BlockMap {
    /// The epoch in which this server commands, if it does not only listen.
    pub fn set_commanding(&mut self, reign: Option<Epoch>, now: Moment) {
        match reign {
            Some(reign) => self.become_commanding(reign, now),
            None => self.become_listening(now),
        }
    }

    /// This server is the active one of this epoch from here on. It serves at once if enough had been reported while it
    /// listened: no safe mode is begun or prolonged. Every storage is stale, and every block looked at.
    pub fn become_commanding(&mut self, reign: Epoch, now: Moment) {
        self.latest = now;
        if self.commanding && self.reign == reign {
            return;
        }
        (self.commanding, self.reign) = (true, reign);
        self.forget_orders();
        self.takeover = Some(Takeover { grace_until: now.plus_ms(self.config.takeover_grace_ms) });
        if !self.config.rules.break_rule(Broken::TakeoverTrustsReports) {
            self.storages.iter_mut().for_each(|(_, storage)| storage.become_stale());
        }
        for place in self.storages.iter().map(|(place, _)| place).collect::<Vec<_>>() {
            self.distrust_report(place);
        }
        for server in self.servers.iter_mut() {
            server.heard_on = None;
            (server.lease, server.fenced_lease) = (None, 0);
        }
        self.doubt_admin_states();
        if self.is_starting() && self.last_allocated.is_exact {
            let last = &self.last_allocated;
            self.counts.future_bytes = self.postponed.bytes_beyond(last.id, last.stamp);
        }
        if self.safe_mode.end_if_reached(self.reported()) {
            self.events.left_safe_mode = true;
        }
        self.on_safe_mode_ended();
    }

    /// Stops commanding, because another server is, or will be, the active one. Orders that were not fetched are
    /// forgotten.
    pub fn become_listening(&mut self, now: Moment) {
        self.latest = now;
        if self.commanding {
            self.commanding = false;
            self.takeover = None;
            self.forget_orders();
        }
    }

    pub fn is_commanding(&self) -> bool {
        self.commanding
    }

    /// Storages whose contents are not surely known to this server.
    pub fn stale_storage_count(&self) -> usize {
        self.storages.iter().filter(|(_, storage)| storage.is_present() && storage.stale).count()
    }

    pub(crate) fn is_in_grace(&self) -> bool {
        self.takeover.is_some_and(|takeover| self.latest < takeover.grace_until)
    }

    /// Whether a report that begins now on this connection, with this lease (0: none), shows what its storage holds under the
    /// orders of this server alone. Data servers report without a lease when an operator asks them to.
    pub(crate) fn is_unfenced(&self, server: u32, connection: u64, lease: u64) -> bool {
        if self.config.rules.break_rule(Broken::EarlyReportsTrusted) {
            return true;
        }
        let server = self.servers.get(server);
        if lease == 0 { server.heard_on == Some(connection) } else { lease == server.fenced_lease }
    }

    /// A report that is under way, or waits for the sweep, may show what an order of somebody else has deleted since it was
    /// made.
    pub(crate) fn distrust_report(&mut self, place: u32) {
        if let Some(report) = &mut self.storages.get_mut(place).full_report
            && !self.config.rules.break_rule(Broken::ReportsOutliveTakeovers)
        {
            report.is_unfenced = false;
        }
    }

    /// A report has come in whole, and what it did not name has been forgotten.
    pub(crate) fn note_reported(&mut self, place: u32, report: &Report) {
        let commanding = self.commanding;
        if report.is_unfenced || !commanding {
            self.storages.get_mut(place).note_reported();
        }
    }

    /// A storage of this server lost rows for want of room, and there is room again; or it contradicts itself.
    pub(crate) fn takes_new_reports(&mut self, server: u32) -> bool {
        if self.must_explain_itself(server) {
            return true;
        }
        let storages = &self.servers.get(server).storages;
        let is_incomplete = storages.iter().any(|place| self.storages.get(*place).is_incomplete);
        is_incomplete && self.postponed.has_room()
    }

    fn forget_orders(&mut self) {
        for server in self.servers.iter_mut() {
            server.deletions.clear();
            server.orders.clear();
            server.recoveries.clear();
        }
        let queued: Vec<BlockId> = self.redundancy.queue.drain();
        for id in queued {
            if let Some(slot) = self.arena.find(id) {
                self.arena.record_mut(slot).set_queued(false);
            }
        }
        for (id, sender) in self.redundancy.pending.clear() {
            self.note_late(id, sender);
        }
        self.give_up_samples();
        self.redundancy.excess.clear();
        self.mark_ordered();
        self.redundancy.undecided.clear();
        self.redundancy.hints.clear();
        self.satisfying.clear();
        self.constructions.forget_recoveries();
        self.forget_held();
    }
}
