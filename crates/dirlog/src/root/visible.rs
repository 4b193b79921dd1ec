//! Which entries are visible: those that are committed in the root group, and received by every group that holds a directory lease.

use super::Root;
use crate::{Dix, broken::Broken};
use base::Moment;

impl Root {
    pub(super) fn advance(&mut self, now: Moment) {
        for follower in self.groups.values_mut() {
            follower.is_lapsed = follower.lease_end.is_some() && !follower.is_leased(now);
        }
        // An older active's leases count until they have been replaced, or are over for certain.
        let has_replaced = self.groups.values().all(|follower| follower.was_leased);
        let has_waited = now >= self.claimed_at.plus_ms(self.settings.lease_ms);
        self.is_open |= has_replaced || has_waited || self.settings.breaks(Broken::NewRootWaitsForNobody);
        if !self.is_open {
            return;
        }
        let at_commit = self.settings.breaks(Broken::VisibleAtCommit);
        let leased = self.groups.values().filter(|follower| follower.is_leased(now) && !at_commit);
        let received = leased.map(|follower| follower.received).min();
        let to = received.map_or(self.committed, |received| received.min(self.committed));
        if to <= self.visible {
            return;
        }
        self.make_visible(now, to);
    }

    fn make_visible(&mut self, now: Moment, to: Dix) {
        self.visible = to;
        while self.doubt.take_visible(to).is_some() {
            self.since.pop_front();
        }
        // Without these something has become visible: they serve again only after a Hello.
        let keeps = self.settings.breaks(Broken::AbsentKeepTheirSession)
            || self.settings.breaks(Broken::VisibleAtCommit);
        for follower in self.groups.values_mut().filter(|_| !keeps) {
            let was_leased = follower.lease_end.is_some();
            if was_leased && !follower.is_leased(now) && follower.received < to {
                follower.session = None;
                follower.lease_end = None;
                follower.wanted.clear();
            }
        }
        for id in self.ops.on_visible(to) {
            self.end_op(id);
        }
        self.tail.shrink(self.visible, self.settings.window_bytes);
    }

    /// When the next lease ends for which an entry waits. A lease that was over at the last step keeps nothing back.
    pub(super) fn next_lapse(&self) -> Option<Moment> {
        if self.doubt.is_clear() {
            return None;
        }
        let committed = self.committed;
        let waited_for =
            self.groups.values().filter(|follower| follower.received < committed && !follower.is_lapsed);
        waited_for.filter_map(|follower| follower.lease_end).min()
    }
}
