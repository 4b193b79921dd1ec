//! Replicas that are moved for a balancer: how many at once, how fast, and what came of them.

use base::Moment;
use env::Env;
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Where more has been sent than the rate allows, it is looked at again after this time at the latest: the rate may have
/// been changed.
const LOOK: Duration = Duration::from_millis(100);

/// One for a server. Sending a replica away and receiving one count alike, as in Hadoop.
pub struct Moves {
    under_way: AtomicUsize,
    count_max: AtomicUsize,
    bytes_per_second: AtomicU64,
    pace: Mutex<Pace>,
    /// The counters for `/metrics`.
    pub received: AtomicU64,
    pub received_bytes: AtomicU64,
    pub sent: AtomicU64,
    pub shifted: AtomicU64,
    pub failed: AtomicU64,
}

impl Moves {
    /// At most `count_max` moves at once, at `bytes_per_second` together.
    pub fn new(count_max: usize, bytes_per_second: u64) -> Arc<Self> {
        Arc::new(Self {
            under_way: AtomicUsize::new(0),
            count_max: AtomicUsize::new(count_max),
            bytes_per_second: AtomicU64::new(bytes_per_second),
            pace: Mutex::default(),
            received: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            shifted: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        })
    }

    /// Counts one move in, until the guard is dropped; `None` if there are as many as may be.
    pub fn begin(self: &Arc<Self>) -> Option<MoveGuard> {
        let count_max = self.count_max();
        let more = |count: usize| (count < count_max).then_some(count + 1);
        let begun = self.under_way.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        begun.ok().map(|_| MoveGuard { moves: self.clone() })
    }

    pub fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Acquire)
    }

    pub fn count_max(&self) -> usize {
        self.count_max.load(Ordering::Relaxed)
    }

    /// Moves that are under way go on, should they be too many now.
    pub fn set_count_max(&self, count_max: usize) {
        self.count_max.store(count_max, Ordering::Relaxed);
    }

    pub fn rate(&self) -> u64 {
        self.bytes_per_second.load(Ordering::Relaxed)
    }

    /// 0 changes nothing, as in HDFS.
    pub fn set_rate(&self, bytes_per_second: u64) {
        if bytes_per_second > 0 {
            self.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
        }
    }

    /// Waits until so many bytes may be moved.
    pub async fn pace(&self, env: &Env, bytes: usize) {
        loop {
            let waits = self.pace.lock().take(bytes as u64, self.rate(), env.clock.moment());
            match waits {
                None => return,
                Some(wait) => tokio::time::sleep(wait).await,
            }
        }
    }
}

/// See [`Moves::begin`].
pub struct MoveGuard {
    moves: Arc<Moves>,
}

impl Drop for MoveGuard {
    fn drop(&mut self) {
        self.moves.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What may be moved at this moment. It runs into debt by the bytes that are taken last, and half a second's bytes
/// are saved up at most, which is the period that Hadoop's throttle has.
#[derive(Default)]
struct Pace {
    /// Bytes that may be moved; below 0 after more was moved.
    saved: i128,
    /// `None` before the first move.
    as_of: Option<Moment>,
}

impl Pace {
    /// Takes the bytes, or says how long to wait before asking again.
    fn take(&mut self, bytes: u64, bytes_per_second: u64, now: Moment) -> Option<Duration> {
        let rate = i128::from(bytes_per_second.max(1));
        let elapsed = self.as_of.map_or(u64::MAX, |then| now.ns.saturating_sub(then.ns));
        let earned = i128::from(elapsed).saturating_mul(rate) / 1_000_000_000;
        if earned > 0 {
            self.saved = (self.saved + earned).min(rate / 2 + 1);
            self.as_of = Some(now);
        }
        if self.saved > 0 {
            self.saved -= i128::from(bytes);
            return None;
        }
        let wait_ms = (1 - self.saved).saturating_mul(1_000) / rate + 1;
        Some(LOOK.min(Duration::from_millis(u64::try_from(wait_ms).unwrap_or(u64::MAX))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// The milliseconds that a mover needs who takes packets as soon as the pace allows.
    fn time_for(pace: &mut Pace, packets: u64, bytes: u64, rate: u64, start: Moment) -> u64 {
        let mut now = start;
        for _ in 0..packets {
            while let Some(wait) = pace.take(bytes, rate, now) {
                now.ns += wait.as_nanos() as u64;
            }
        }
        now.ms_since(start)
    }

    #[test]
    fn bytes_go_at_the_rate_but_for_the_first_half_second() {
        let mut pace = Pace::default();
        let took_ms = time_for(&mut pace, 1_000, MIB / 16, 10 * MIB, Moment::from_ms(5));
        // 62.5 MiB at 10 MiB/s, of which 5 MiB were saved up.
        assert!((5_700..=5_850).contains(&took_ms), "{took_ms}");
    }

    #[test]
    fn a_long_rest_saves_up_half_a_second_and_no_more() {
        let mut pace = Pace::default();
        let first_ms = time_for(&mut pace, 100, MIB, MIB, Moment::from_ms(0));
        let later_ms = time_for(&mut pace, 100, MIB, MIB, Moment::from_ms(100_000_000));
        assert!(later_ms.abs_diff(first_ms) < 200, "{first_ms}, then {later_ms}");
    }

    #[test]
    fn a_higher_rate_counts_within_a_moment_after_a_low_one() {
        let mut pace = Pace::default();
        let now = Moment::from_ms(1);
        assert_eq!(pace.take(MIB, 1, now), None, "what is saved up may be overdrawn");
        let wait = pace.take(MIB, 1, now).unwrap();
        assert!(wait <= LOOK, "{wait:?}");
        assert_eq!(pace.take(MIB, 1 << 40, now.plus_ms(100)), None);
    }

    #[test]
    fn numbers_at_the_limits_do_no_harm() {
        let mut pace = Pace::default();
        for (bytes, rate, ns) in [(u64::MAX, u64::MAX, 0), (u64::MAX, 1, u64::MAX), (0, 0, 5), (1, 0, 6)] {
            pace.take(bytes, rate, Moment { ns });
        }
    }

    #[test]
    fn no_more_moves_than_allowed_are_under_way() {
        let moves = Moves::new(2, MIB);
        let (one, other) = (moves.begin().unwrap(), moves.begin().unwrap());
        assert!(moves.begin().is_none());
        drop(one);
        assert!(moves.begin().is_some());
        drop(other);
        assert_eq!(moves.under_way(), 0);
    }
}
