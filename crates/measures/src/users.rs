//! Which user loads a server with which calls, in a bounded window of time.

use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The windows that are asked for, in seconds: 1, 5 and 25 minutes, as HDFS's nntop has them.
pub const WINDOWS: [u64; 3] = [60, 300, 1_500];

/// The time that one count covers, in seconds.
const SLOT_S: u64 = 15;

/// The longest window, and the slot that is being filled.
const SLOTS: usize = (WINDOWS[2] / SLOT_S) as usize + 1;

/// How many pairs of a user and a method are kept; a connection that brings more is counted for [`OTHERS`]. A pair takes
/// about a kilobyte.
const PAIRS_MAX: usize = 4_096;

/// Longer names are cut, in characters: a client chooses its name.
const NAME_CHARS_MAX: usize = 128;

/// The name under which users are counted that there was no room for.
const OTHERS: &str = "(others)";

/// The calls of one method by one user, by the time at which they came.
#[derive(Debug)]
pub(crate) struct UserCalls {
    /// In the upper half the number of the slot, counted from the start of the process, and in the lower half the calls in it. A slot with
    /// an old number counts as empty.
    slots: [AtomicU64; SLOTS],
}

impl UserCalls {
    fn new() -> Self {
        Self { slots: [const { AtomicU64::new(0) }; SLOTS] }
    }

    /// Counts a call that came `now_s` seconds after the start of the process.
    pub(crate) fn count(&self, now_s: u64) {
        let number = slot_at(now_s);
        let slot = &self.slots[number as usize % SLOTS];
        let now = slot.load(Ordering::Relaxed);
        let result = match now >> 32 == number {
            true => {
                slot.fetch_add(1, Ordering::Relaxed);
                return;
            }
            false => slot.compare_exchange(now, number << 32 | 1, Ordering::Relaxed, Ordering::Relaxed),
        };
        if result.is_err() {
            // Another thread has begun the slot just now.
            slot.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The calls of the last `window_s` seconds before `now_s`.
    fn within(&self, window_s: u64, now_s: u64) -> u64 {
        let newest = slot_at(now_s);
        let oldest = newest.saturating_sub(window_s / SLOT_S);
        let counts = self.slots.iter().map(|slot| slot.load(Ordering::Relaxed));
        counts.filter(|slot| (oldest..=newest).contains(&(slot >> 32))).map(|slot| slot & 0xffff_ffff).sum()
    }
}

/// Slots are counted from 1: an unused one has 0.
fn slot_at(now_s: u64) -> u64 {
    now_s / SLOT_S + 1
}

/// A user, and how often that user called a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopUser {
    pub user: String,
    pub method: &'static str,
    pub calls: u64,
}

type Pair = (Arc<str>, &'static str);

#[derive(Debug, Default)]
pub(crate) struct Users {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    pairs: HashMap<Pair, Arc<UserCalls>>,
    /// The slot in which room was last looked for. A client that names a new user each time must not have all pairs looked at each time.
    swept: u64,
}

impl Users {
    /// The counts of a user's calls of a method. Pairs that have not been heard of within the longest window make room for new ones.
    pub(crate) fn of(&self, user: &str, method: &'static str, now_s: u64) -> Arc<UserCalls> {
        let Kept { pairs, swept } = &mut *self.kept.lock();
        let name: String = user.chars().take(NAME_CHARS_MAX).collect();
        let mut pair: Pair = (name.into(), method);
        if !pairs.contains_key(&pair) && pairs.len() >= PAIRS_MAX {
            if *swept != slot_at(now_s) {
                *swept = slot_at(now_s);
                // A pair that a connection still holds is counted there, so it has to stay.
                pairs.retain(|_, calls| Arc::strong_count(calls) > 1 || calls.within(WINDOWS[2], now_s) > 0);
            }
            if pairs.len() >= PAIRS_MAX {
                pair.0 = OTHERS.into();
            }
        }
        Arc::clone(pairs.entry(pair).or_insert_with(|| Arc::new(UserCalls::new())))
    }

    /// The `most` pairs with the most calls in the last `window_s` seconds, the busiest first.
    pub(crate) fn top(&self, window_s: u64, now_s: u64, most: usize) -> Vec<TopUser> {
        let pairs: Vec<_> =
            self.kept.lock().pairs.iter().map(|(pair, calls)| (pair.clone(), Arc::clone(calls))).collect();
        let mut top: Vec<_> = pairs
            .into_iter()
            .map(|((user, method), calls)| TopUser {
                user: user.to_string(),
                method,
                calls: calls.within(window_s, now_s),
            })
            .filter(|top| top.calls > 0)
            .collect();
        top.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| (&a.user, a.method).cmp(&(&b.user, b.method))));
        top.truncate(most);
        top
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_leave_the_windows_one_after_the_other() {
        let users = Users::default();
        let calls = users.of("anna", "mkdirs", 0);
        for now_s in 0..60 {
            calls.count(now_s);
        }
        let seen = |now_s| WINDOWS.map(|window_s| calls.within(window_s, now_s));
        assert_eq!(seen(59), [60, 60, 60]);
        assert_eq!(seen(100), [30, 60, 60]);
        assert_eq!(seen(130), [0, 60, 60]);
        assert_eq!(seen(500), [0, 0, 60]);
        assert_eq!(seen(2_000), [0, 0, 0]);
        // The slots are used again.
        calls.count(2_000);
        assert_eq!(seen(2_000), [1, 1, 1]);
    }

    #[test]
    fn the_busiest_come_first() {
        let users = Users::default();
        for (user, method, calls) in
            [("anna", "mkdirs", 3), ("bert", "create", 5), ("anna", "create", 3), ("carl", "delete", 0)]
        {
            let counted = users.of(user, method, 7);
            (0..calls).for_each(|_| counted.count(7));
        }
        let top = users.top(60, 8, 10);
        let top: Vec<_> = top.iter().map(|top| (&*top.user, top.method, top.calls)).collect();
        assert_eq!(top, [("bert", "create", 5), ("anna", "create", 3), ("anna", "mkdirs", 3)]);
        assert_eq!(users.top(60, 8, 1).len(), 1);
    }

    #[test]
    fn users_without_number_take_bounded_memory() {
        let users = Users::default();
        for number in 0..3 * PAIRS_MAX {
            users.of(&format!("user-{number}"), "mkdirs", 0).count(0);
        }
        assert!(users.kept.lock().pairs.len() <= PAIRS_MAX + 1);
        let all: u64 = users.top(60, 1, usize::MAX).iter().map(|top| top.calls).sum();
        assert_eq!(all, 3 * PAIRS_MAX as u64, "all of them are counted");
        // Once they are silent for long, others have their places.
        users.of("late", "mkdirs", 10_000).count(10_000);
        assert_eq!(users.top(60, 10_000, 10).len(), 1);
        assert_eq!(users.top(60, 10_000, 10)[0].user, "late");
    }
}
