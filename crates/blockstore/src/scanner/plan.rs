//! What the block scanner of a volume does next, and when: values in, values out.
//!
//! A volume has a round for each pool. Of those that are under way the one that began first goes on; a round that is
//! complete begins again one period after it began. Replicas that somebody suspects come before the rounds. What is read
//! costs time at the volume's rate, whatever it is read for.

use super::cursor::{Cursor, Position};
use base::{BlockId, Moment};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// Hadoop's: a suspect is not scanned again for ten minutes, of the last thousand.
const SUSPECT_REST_MS: u64 = 10 * 60 * 1_000;
pub const SUSPECT_COUNT_MAX: usize = 1_000;

/// A damaged replica that is still there is scanned again, so that a metadata server that has forgotten hears of it.
const DAMAGED_AGAIN_MS: u64 = 60 * 60 * 1_000;
const DAMAGED_COUNT_MAX: usize = 1_000;

/// The longest wait at a time. New pools are noticed after it.
const WAIT_MS_MAX: u64 = 1_000;

/// A replica of a pool.
pub type Name = (Arc<str>, BlockId);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Scan this replica, then say [`Plan::checked`].
    Check {
        replica: Name,
        is_suspect: bool,
    },
    /// Look up the next replicas of a pool, in the order of ids, behind this one; then say [`Plan::chosen`].
    Choose {
        pool: Arc<str>,
        after: Option<BlockId>,
    },
    Wait {
        ms: u64,
    },
}

/// The end of a round over a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundEnd {
    pub ms: u64,
}

#[derive(Debug)]
pub struct Plan {
    period_ms: u64,
    bytes_per_second: u64,
    rounds: BTreeMap<Arc<str>, Round>,
    suspects: VecDeque<Name>,
    /// Suspects that were scanned a short while ago, with the time.
    rested: VecDeque<(Name, Moment)>,
    /// Damaged replicas, and those that could not be scanned, with the time at which they are scanned again.
    damaged: BTreeMap<Name, Moment>,
    /// What was read until now is paid for then.
    free_at: Moment,
}

#[derive(Debug)]
struct Round {
    cursor: Cursor,
    /// The replicas that come next, looked up beforehand.
    next: VecDeque<BlockId>,
}

impl Plan {
    /// One round in `period_ms`, at no more than `bytes_per_second`; neither is 0.
    pub fn new(period_ms: u64, bytes_per_second: u64) -> Self {
        Self {
            period_ms,
            bytes_per_second,
            rounds: BTreeMap::new(),
            suspects: VecDeque::new(),
            rested: VecDeque::new(),
            damaged: BTreeMap::new(),
            free_at: Moment::from_ms(0),
        }
    }

    pub fn has(&self, pool: &str) -> bool {
        self.rounds.contains_key(pool)
    }

    /// A pool is served. Its round goes on at the cursor, or begins at `now_ms`, wall-clock time.
    pub fn add(&mut self, pool: Arc<str>, cursor: Option<Cursor>, now_ms: u64) {
        let fresh = Cursor { begun_ms: now_ms, at: Position::Start };
        // A clock that was set back must not put a round off for years.
        let cursor = cursor.map_or(fresh, |found| Cursor { begun_ms: found.begun_ms.min(now_ms), ..found });
        self.rounds.insert(pool, Round { cursor, next: VecDeque::new() });
    }

    /// Somebody could not read the replica. `false` if it waits already, was scanned a short while ago, or there are too many.
    pub fn suspect(&mut self, replica: Name, now: Moment) -> bool {
        while self.rested.front().is_some_and(|(_, at)| now.ms_since(*at) >= SUSPECT_REST_MS) {
            self.rested.pop_front();
        }
        if self.suspects.len() >= SUSPECT_COUNT_MAX
            || self.suspects.contains(&replica)
            || self.rested.iter().any(|(known, _)| *known == replica)
        {
            return false;
        }
        self.suspects.push_back(replica);
        true
    }

    /// The next thing to do at `now`, which is `now_ms` by the wall clock.
    pub fn next(&mut self, now: Moment, now_ms: u64) -> Step {
        if now < self.free_at {
            let ms = self.free_at.ms_since(now).clamp(1, WAIT_MS_MAX);
            return Step::Wait { ms };
        }
        if let Some(replica) = self.suspects.pop_front() {
            if self.rested.len() >= SUSPECT_COUNT_MAX {
                self.rested.pop_front();
            }
            self.rested.push_back((replica.clone(), now));
            return Step::Check { replica, is_suspect: true };
        }
        if let Some((replica, _)) = self.damaged.iter().find(|(_, at)| **at <= now) {
            return Step::Check { replica: replica.clone(), is_suspect: true };
        }
        let period_ms = self.period_ms;
        for round in self.rounds.values_mut() {
            let due_ms = round.cursor.begun_ms.saturating_add(period_ms);
            if round.cursor.at == Position::End && due_ms <= now_ms {
                round.cursor = Cursor { begun_ms: now_ms, at: Position::Start };
            }
        }
        let under_way = self.rounds.iter().filter(|(_, round)| round.cursor.at != Position::End);
        let Some((pool, round)) = under_way.min_by_key(|(_, round)| round.cursor.begun_ms) else {
            let due = |round: &Round| round.cursor.begun_ms.saturating_add(period_ms).saturating_sub(now_ms);
            let ms = self.rounds.values().map(due).min().unwrap_or(WAIT_MS_MAX);
            return Step::Wait { ms: ms.clamp(1, WAIT_MS_MAX) };
        };
        match (round.next.front(), round.cursor.at) {
            (Some(id), _) => Step::Check { replica: (pool.clone(), *id), is_suspect: false },
            (None, Position::After(id)) => Step::Choose { pool: pool.clone(), after: Some(id) },
            (None, _) => Step::Choose { pool: pool.clone(), after: None },
        }
    }

    /// The replicas that come next in a pool: none if there are no more, which ends the round.
    pub fn chosen(&mut self, pool: &str, next: Vec<BlockId>, now_ms: u64) -> Option<RoundEnd> {
        let round = self.rounds.get_mut(pool)?;
        if !next.is_empty() {
            round.next = next.into();
            return None;
        }
        round.cursor.at = Position::End;
        Some(RoundEnd { ms: now_ms.saturating_sub(round.cursor.begun_ms) })
    }

    /// A replica has been looked at; `again` if it is damaged, or could not be looked at. Only one that is the next of its round moves the cursor.
    pub fn checked(&mut self, replica: &Name, again: bool, now: Moment) {
        if let Some(round) = self.rounds.get_mut(&replica.0)
            && round.next.front() == Some(&replica.1)
        {
            round.next.pop_front();
            round.cursor.at = Position::After(replica.1);
        }
        self.damaged.remove(replica);
        if again && self.damaged.len() < DAMAGED_COUNT_MAX {
            self.damaged.insert(replica.clone(), now.plus_ms(DAMAGED_AGAIN_MS));
        }
    }

    /// So many bytes are about to be read. The answer is how long to wait first.
    pub fn pay(&mut self, bytes: u64, now: Moment) -> u64 {
        let wait = self.free_at.ms_since(now);
        let begins = self.free_at.max(now);
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        self.free_at = Moment { ns: begins.ns.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX)) };
        wait
    }

    /// The cursors, to be kept.
    pub fn cursors(&self) -> impl Iterator<Item = (&Arc<str>, Cursor)> {
        self.rounds.iter().map(|(pool, round)| (pool, round.cursor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    fn plan() -> Plan {
        Plan::new(10 * HOUR_MS, 1_000)
    }

    fn at(ms: u64) -> Moment {
        Moment::from_ms(ms)
    }

    fn name(pool: &str, id: u64) -> Name {
        (pool.into(), BlockId(id))
    }

    fn ids(ids: &[u64]) -> Vec<BlockId> {
        ids.iter().copied().map(BlockId).collect()
    }

    fn round(replica: Name) -> Step {
        Step::Check { replica, is_suspect: false }
    }

    fn suspect(replica: Name) -> Step {
        Step::Check { replica, is_suspect: true }
    }

    #[test]
    fn a_round_takes_replica_after_replica_and_rests_until_its_period_is_over() {
        let mut plan = plan();
        assert_eq!(plan.next(at(1), 1), Step::Wait { ms: WAIT_MS_MAX });
        plan.add("BP-a".into(), None, 1);
        assert_eq!(plan.next(at(1), 1), Step::Choose { pool: "BP-a".into(), after: None });
        assert_eq!(plan.chosen("BP-a", ids(&[3, 8]), 1), None);
        for id in [3, 8] {
            assert_eq!(plan.next(at(1), 1), round(name("BP-a", id)));
            plan.checked(&name("BP-a", id), false, at(1));
        }
        assert_eq!(plan.next(at(1), 1), Step::Choose { pool: "BP-a".into(), after: Some(BlockId(8)) });
        assert_eq!(plan.chosen("BP-a", Vec::new(), HOUR_MS), Some(RoundEnd { ms: HOUR_MS - 1 }));
        assert!(matches!(plan.next(at(1), 10 * HOUR_MS), Step::Wait { .. }));
        assert_eq!(plan.next(at(1), 10 * HOUR_MS + 1), Step::Choose { pool: "BP-a".into(), after: None });
        let cursors: Vec<_> = plan.cursors().map(|(_, cursor)| cursor).collect();
        assert_eq!(cursors, [Cursor { begun_ms: 10 * HOUR_MS + 1, at: Position::Start }]);
    }

    #[test]
    fn a_round_goes_on_at_its_cursor_even_if_another_pool_is_served_first() {
        let mut plan = plan();
        plan.add("BP-c".into(), None, 500);
        let cursor = Cursor { begun_ms: 100, at: Position::After(BlockId(7)) };
        plan.add("BP-b".into(), Some(cursor), 500);
        let step = Step::Choose { pool: "BP-b".into(), after: Some(BlockId(7)) };
        assert_eq!(plan.next(at(1), 500), step, "it began first");
        plan.chosen("BP-b", Vec::new(), 600);
        assert_eq!(plan.next(at(1), 600), Step::Choose { pool: "BP-c".into(), after: None });
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_put_a_round_off() {
        let mut plan = plan();
        let cursor = Cursor { begun_ms: 1_000 * HOUR_MS, at: Position::End };
        plan.add("BP-a".into(), Some(cursor), 5);
        assert!(matches!(plan.next(at(1), 5), Step::Wait { .. }));
        assert!(matches!(plan.next(at(1), 5 + 10 * HOUR_MS), Step::Choose { .. }));
    }

    #[test]
    fn what_was_read_is_paid_for_with_time() {
        let mut plan = plan();
        plan.add("BP-a".into(), None, 1);
        assert_eq!(plan.pay(500, at(10)), 0);
        assert_eq!(plan.pay(500, at(10)), 500, "the second half second begins after the first");
        assert_eq!(plan.next(at(510), 1), Step::Wait { ms: 500 });
        assert!(matches!(plan.next(at(1_010), 1), Step::Choose { .. }));
        assert_eq!(plan.pay(1, at(5_000)), 0, "time that was not used is not saved up");
        assert_eq!(plan.pay(1, at(5_000)), 1);
    }

    #[test]
    fn a_suspect_comes_first_and_then_rests() {
        let mut plan = plan();
        plan.add("BP-a".into(), None, 1);
        plan.chosen("BP-a", ids(&[3]), 1);
        assert!(plan.suspect(name("BP-a", 9), at(1)));
        assert!(!plan.suspect(name("BP-a", 9), at(1)), "it waits already");
        assert_eq!(plan.next(at(1), 1), suspect(name("BP-a", 9)));
        plan.checked(&name("BP-a", 9), false, at(2));
        assert_eq!(plan.next(at(2), 1), round(name("BP-a", 3)), "the round is where it was");
        assert!(!plan.suspect(name("BP-a", 9), at(SUSPECT_REST_MS)));
        assert!(plan.suspect(name("BP-a", 9), at(SUSPECT_REST_MS + 1)));
    }

    #[test]
    fn suspects_are_bounded() {
        let mut plan = plan();
        for id in 0..SUSPECT_COUNT_MAX as u64 {
            assert!(plan.suspect(name("BP-a", id), at(1)));
        }
        assert!(!plan.suspect(name("BP-a", u64::MAX), at(1)));
    }

    #[test]
    fn a_damaged_replica_is_scanned_again_until_it_is_gone() {
        let mut plan = plan();
        plan.checked(&name("BP-a", 4), true, at(0));
        assert!(matches!(plan.next(at(DAMAGED_AGAIN_MS - 1), 1), Step::Wait { .. }));
        assert_eq!(plan.next(at(DAMAGED_AGAIN_MS), 1), suspect(name("BP-a", 4)));
        plan.checked(&name("BP-a", 4), false, at(DAMAGED_AGAIN_MS));
        assert!(matches!(plan.next(at(3 * DAMAGED_AGAIN_MS), 1), Step::Wait { .. }));
    }
}
