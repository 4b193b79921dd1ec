//! Answers that wait for a commit: those of edits, and those of reads that saw an edit in flight.
//!
//! They are released in the order of the entries that they wait for, all those of one commit at once.

use crate::until::{LOGS, Log, Until};
use base::{Epoch, Sn};
use std::collections::VecDeque;

/// Answers of the type `T`, each with the entries that it waits for, of `N` logs.
#[derive(Debug)]
pub struct CommitQueue<T, const N: usize = LOGS> {
    certain: Until<N>,
    /// The answers that wait for an entry of each log, ordered by that entry. Edits arrive in order; a read that waits may
    /// come in between, seldom, and is sorted in. An answer that waits for two logs stands with one of them at a time.
    waiting: [VecDeque<(Until<N>, T)>; N],
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
    /// It is kept until its entries are certain.
    Kept,
    /// Its entries are certain: it may go on.
    Committed(T),
    /// Its entries will not become certain here, for this reason. Another member will know their fate.
    Failed(T, String),
}

impl<T, const N: usize> CommitQueue<T, N> {
    /// An empty queue. Everything up to `committed` of the own log has committed.
    pub fn new(committed: Sn) -> Self {
        Self {
            certain: Until::own(committed),
            waiting: std::array::from_fn(|_| VecDeque::new()),
            epoch: Epoch(0),
            suspended: None,
            failed: None,
        }
    }

    pub fn committed(&self) -> Sn {
        self.certain.of(Log::OWN)
    }

    /// Everything that is certain.
    pub fn certain(&self) -> Until<N> {
        self.certain
    }

    /// The reason why nothing will ever commit here again.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Takes an answer that may go on once everything up to `until` is certain.
    pub fn wait(&mut self, until: Until<N>, answer: T) -> Waits<T> {
        let Some(log) = until.open(&self.certain) else { return Waits::Committed(answer) };
        if let Some(reason) = self.failed.as_ref().or(self.suspended.as_ref()) {
            return Waits::Failed(answer, reason.clone());
        }
        self.sort_in(log, until, answer);
        Waits::Kept
    }

    fn sort_in(&mut self, log: Log, until: Until<N>, answer: T) {
        let waiting = &mut self.waiting[log.place()];
        let place = waiting.partition_point(|(other, _)| other.of(log) <= until.of(log));
        waiting.insert(place, (until, answer));
    }

    /// Everything up to `sn` of a log is certain: returns the answers that have nothing else to wait for. Two batches may say
    /// so in any order, and the watermark only rises.
    pub fn advance(&mut self, log: Log, sn: Sn) -> Vec<T> {
        self.certain = self.certain.and(Until::entry(log, sn));
        let certain = self.certain.of(log);
        let mut waiting = std::mem::take(&mut self.waiting[log.place()]);
        let count = waiting.partition_point(|(until, _)| until.of(log) <= certain);
        let mut released = Vec::with_capacity(count);
        for (until, answer) in waiting.drain(..count) {
            match until.open(&self.certain) {
                Some(other) => self.sort_in(other, until, answer),
                None => released.push(answer),
            }
        }
        self.waiting[log.place()] = waiting;
        released
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
        self.waiting.iter_mut().flat_map(|waiting| waiting.drain(..)).map(|(_, answer)| answer).collect()
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
            assert_eq!(queue.wait(Until::own(Sn(sn)), sn), Waits::Kept);
        }
        assert_eq!(queue.wait(Until::own(Sn(5)), 5), Waits::Committed(5));
        assert_eq!(queue.advance(Log::OWN, Sn(7)), [6, 7]);
        // An older word changes nothing.
        assert!(queue.advance(Log::OWN, Sn(6)).is_empty());
        assert_eq!(queue.committed(), Sn(7));
        assert_eq!(queue.fail("the disk is gone"), [9]);
        assert_eq!(queue.wait(Until::own(Sn(10)), 10), Waits::Failed(10, "the disk is gone".into()));
        assert_eq!(queue.wait(Until::own(Sn(7)), 7), Waits::Committed(7));
    }

    #[test]
    fn a_member_that_leads_again_has_waiters_again() {
        let mut queue = queue();
        assert_eq!(queue.wait(Until::own(Sn(6)), 6), Waits::Kept);
        assert_eq!(queue.suspend(Epoch(3), "another leads"), [6]);
        assert_eq!(queue.wait(Until::own(Sn(7)), 7), Waits::Failed(7, "another leads".into()));
        assert!(queue.advance(Log::OWN, Sn(8)).is_empty());
        assert_eq!(queue.wait(Until::own(Sn(8)), 8), Waits::Committed(8));
        queue.resume(Epoch(5));
        // The end of the earlier reign is told late.
        assert!(queue.suspend(Epoch(3), "another leads").is_empty());
        assert_eq!(queue.wait(Until::own(Sn(9)), 9), Waits::Kept);
        assert_eq!(queue.advance(Log::OWN, Sn(9)), [9]);
        assert_eq!(queue.failure(), None);
    }

    #[test]
    fn an_answer_that_rests_on_two_logs_waits_for_both() {
        const OTHER: Log = Log::at(1);
        let mut queue = CommitQueue::<&str, 2>::new(Sn(5));
        let both = Until::own(Sn(6)).and(Until::entry(OTHER, Sn(2)));
        assert_eq!(queue.wait(both, "both"), Waits::Kept);
        assert_eq!(queue.wait(Until::entry(OTHER, Sn(1)), "other"), Waits::Kept);
        assert_eq!(queue.wait(Until::own(Sn(6)), "own"), Waits::Kept);
        assert_eq!(queue.advance(Log::OWN, Sn(6)), ["own"]);
        assert_eq!(queue.advance(OTHER, Sn(1)), ["other"]);
        assert_eq!(queue.advance(OTHER, Sn(2)), ["both"]);
        // The logs may as well become certain the other way round, and nothing is told twice.
        let later = Until::own(Sn(9)).and(Until::entry(OTHER, Sn(3)));
        assert_eq!(queue.wait(later, "later"), Waits::Kept);
        assert!(queue.advance(OTHER, Sn(8)).is_empty());
        assert_eq!(queue.advance(Log::OWN, Sn(9)), ["later"]);
        assert!(queue.fail("the disk is gone").is_empty());
    }

    #[test]
    fn all_that_waits_is_told_that_it_waits_in_vain() {
        let mut queue = CommitQueue::<&str, 2>::new(Sn(5));
        assert_eq!(queue.wait(Until::entry(Log::at(1), Sn(1)), "other"), Waits::Kept);
        assert_eq!(queue.wait(Until::own(Sn(6)), "own"), Waits::Kept);
        assert_eq!(queue.suspend(Epoch(3), "another leads"), ["own", "other"]);
    }
}
