//! Answers that wait for a commit: those of edits, and those of reads that saw an edit in flight.
//!
//! They are released in the order of the entries that they wait for, all those of one commit at once.

use base::{Epoch, Sn};
use std::collections::VecDeque;

/// Answers of the type `T`, each with the entry that it waits for.
#[derive(Debug)]
pub struct CommitQueue<T> {
    committed: Sn,
    /// Ordered by entry. Edits arrive in order; a read that waits may come in between, seldom, and is sorted in.
    waiting: VecDeque<(Sn, T)>,
    /// The epoch in which this member has led last.
    epoch: Epoch,
    /// Why nothing commits here for now: another member leads.
    suspended: Option<String>,
    /// Why nothing will ever commit again.
    failed: Option<String>,
}

/// The fate of an answer that is given to a [`CommitQueue`].
#[derive(Debug, PartialEq, Eq)]
pub enum Waits<T> {
    /// It is kept until its entry has committed.
    Kept,
    /// Its entry has committed: it may go on.
    Committed(T),
    /// Its entry will not commit here, for this reason. Another member will know its fate.
    Failed(T, String),
}

impl<T> CommitQueue<T> {
    /// An empty queue. Everything up to `committed` has committed.
    pub fn new(committed: Sn) -> Self {
        Self { committed, waiting: VecDeque::new(), epoch: Epoch(0), suspended: None, failed: None }
    }

    pub fn committed(&self) -> Sn {
        self.committed
    }

    /// The reason why nothing will ever commit here again.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Takes an answer that may go on once `sn` has committed.
    pub fn wait(&mut self, sn: Sn, answer: T) -> Waits<T> {
        if sn <= self.committed {
            return Waits::Committed(answer);
        }
        if let Some(reason) = self.failed.as_ref().or(self.suspended.as_ref()) {
            return Waits::Failed(answer, reason.clone());
        }
        let place = self.waiting.partition_point(|(other, _)| *other <= sn);
        self.waiting.insert(place, (sn, answer));
        Waits::Kept
    }

    /// Everything up to `sn` has committed: returns what waited for it. Two batches may say so in any order, and the
    /// watermark only rises.
    pub fn advance(&mut self, sn: Sn) -> Vec<T> {
        self.committed = self.committed.max(sn);
        let committed = self.committed;
        let count = self.waiting.partition_point(|(waiting, _)| *waiting <= committed);
        self.waiting.drain(..count).map(|(_, answer)| answer).collect()
    }

    /// This member leads no more in `epoch`: returns all that waits. Those entries may commit or not, and another member
    /// will know. Until [`CommitQueue::resume`] nothing waits here. The word may come late: if this member leads in a
    /// later epoch by now, nothing is suspended.
    pub fn suspend(&mut self, epoch: Epoch, reason: &str) -> Vec<T> {
        if epoch < self.epoch {
            return Vec::new();
        }
        self.suspended = Some(reason.to_owned());
        self.take_all()
    }

    /// This member leads (again), in `epoch`.
    pub fn resume(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        self.suspended = None;
    }

    /// Nothing will ever commit here again: returns all that waits. The first reason is kept.
    pub fn fail(&mut self, reason: &str) -> Vec<T> {
        self.failed.get_or_insert_with(|| reason.to_owned());
        self.take_all()
    }

    fn take_all(&mut self) -> Vec<T> {
        std::mem::take(&mut self.waiting).into_iter().map(|(_, answer)| answer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> CommitQueue<u64> {
        CommitQueue::new(Sn(5))
    }

    #[test]
    fn answers_go_on_in_order_and_only_when_committed() {
        let mut queue = queue();
        for sn in [7, 9, 6] {
            assert_eq!(queue.wait(Sn(sn), sn), Waits::Kept);
        }
        assert_eq!(queue.wait(Sn(5), 5), Waits::Committed(5));
        assert_eq!(queue.advance(Sn(7)), [6, 7]);
        // An older word changes nothing.
        assert!(queue.advance(Sn(6)).is_empty());
        assert_eq!(queue.committed(), Sn(7));
        assert_eq!(queue.fail("the disk is gone"), [9]);
        assert_eq!(queue.wait(Sn(10), 10), Waits::Failed(10, "the disk is gone".into()));
        assert_eq!(queue.wait(Sn(7), 7), Waits::Committed(7));
    }

    #[test]
    fn a_member_that_leads_again_has_waiters_again() {
        let mut queue = queue();
        assert_eq!(queue.wait(Sn(6), 6), Waits::Kept);
        assert_eq!(queue.suspend(Epoch(3), "another leads"), [6]);
        assert_eq!(queue.wait(Sn(7), 7), Waits::Failed(7, "another leads".into()));
        assert!(queue.advance(Sn(8)).is_empty());
        assert_eq!(queue.wait(Sn(8), 8), Waits::Committed(8));
        queue.resume(Epoch(5));
        // The end of the earlier reign is told late.
        assert!(queue.suspend(Epoch(3), "another leads").is_empty());
        assert_eq!(queue.wait(Sn(9), 9), Waits::Kept);
        assert_eq!(queue.advance(Sn(9)), [9]);
        assert_eq!(queue.failure(), None);
    }
}
