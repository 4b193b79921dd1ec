//! Whether the threads that a member's word rests on make progress.
//!
//! Beacons and grants say that a member lives, and its lease lets it answer: none of that is true of a member whose
//! log nobody writes. The driver of the member looks at its threads again and again, and hands its observations in
//! here.

use base::Moment;
use std::collections::BTreeMap;

/// An observation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Tells it from all other threads.
    pub number: u64,
    /// Steps that it has completed so far. A thread that waits for work counts a step every 200 ms, too.
    pub steps: u64,
    /// The thread waits for a disk or another machine: the silences and the stall of [`crate::Settings`] judge that.
    pub rests: bool,
}

/// The thread that has stood for the longest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stands {
    pub number: u64,
    pub ms: u64,
    /// The part of `ms` in which threads of this process waited for a processor.
    pub starved_ms: u64,
    /// The thread has stood for so long that it is dead or hangs.
    pub hangs: bool,
}

/// Looks at threads.
///
/// Only time in which it has looked itself counts: a process that was stopped as a whole, or a machine that slept, has
/// no thread that hangs when it goes on.
///
/// A machine that has too much to do is not taken for a hang: a thread that waits for a processor stands, and with it all that
/// wait for what it holds. So time in which any thread of this process waited for a processor, or this very look was late,
/// is *starved* and counts little: with it a thread may stand ten times as long, and no longer.
#[derive(Clone, Debug)]
pub struct Watch {
    hang_ns: u64,
    look_ns: u64,
    looked: Option<Moment>,
    threads: BTreeMap<u64, Thread>,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    steps: u64,
    stood_ns: u64,
    /// The part of `stood_ns` that is starved.
    starved_ns: u64,
}

impl Watch {
    /// How much longer a thread may stand where processors are wanting.
    const STARVED: u64 = 10;

    /// The number of looks that must find a thread standing before it is said to hang.
    const LOOKS: u64 = 10;

    /// `hang_ms`: for how long a thread that does not rest may complete nothing.
    pub fn new(hang_ms: u64) -> Self {
        let hang_ns = hang_ms * 1_000_000;
        Self { hang_ns, look_ns: hang_ns / Self::LOOKS, looked: None, threads: BTreeMap::new() }
    }

    /// How often to look.
    pub fn look_ms(&self) -> u64 {
        (self.look_ns / 1_000_000).max(1)
    }

    /// Whether a thread has stood so long, by the last look, that the next one wants to know of starvation.
    pub fn asks_for_starvation(&self) -> bool {
        let suspicious_ns = self.hang_ns / 4;
        self.threads.values().any(|thread| thread.stood_ns >= suspicious_ns)
    }

    /// `signs` are those of all threads that count: one that is not among them any more has ended as it should. `starved_ns`: the
    /// longest time since the last look that a thread of this process waited for a processor; 0 where that is not known.
    /// The answer is the thread that stands for the longest time, if one does: one that hangs before others.
    pub fn look(
        &mut self,
        now: Moment,
        starved_ns: u64,
        signs: impl IntoIterator<Item = Sign>,
    ) -> Option<Stands> {
        let since = self.looked.replace(now).map_or(0, |looked| now.ns.saturating_sub(looked.ns));
        let passed = since.min(2 * self.look_ns);
        // A look that comes so late was itself kept waiting.
        let starved_ns = if since > passed { starved_ns.max(passed) } else { starved_ns };
        let mut threads = BTreeMap::new();
        for Sign { number, steps, rests } in signs {
            let before = self.threads.get(&number).filter(|before| before.steps == steps && !rests);
            let thread = before.map_or(Thread { steps, stood_ns: 0, starved_ns: 0 }, |before| {
                let stood_ns = before.stood_ns + passed;
                // A wait is told when it is over, and may have begun before the last look.
                Thread { steps, stood_ns, starved_ns: (before.starved_ns + starved_ns).min(stood_ns) }
            });
            threads.insert(number, thread);
        }
        self.threads = threads;
        let hangs = |thread: &Thread| {
            thread.stood_ns - thread.starved_ns >= self.hang_ns
                || thread.stood_ns >= Self::STARVED * self.hang_ns
        };
        let (number, thread) =
            self.threads.iter().max_by_key(|(_, thread)| (hangs(thread), thread.stood_ns))?;
        let stands = Stands {
            number: *number,
            ms: thread.stood_ns / 1_000_000,
            starved_ms: thread.starved_ns / 1_000_000,
            hangs: hangs(thread),
        };
        (thread.stood_ns > 0).then_some(stands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANG_MS: u64 = 1_000;

    fn at(ms: u64) -> Moment {
        Moment { ns: 1 + ms * 1_000_000 }
    }

    fn sign(number: u64, steps: u64) -> Sign {
        Sign { number, steps, rests: false }
    }

    /// Looks as often as is wanted from `from` to `to`; when the first thread was found to hang.
    fn hangs_at(watch: &mut Watch, from: u64, to: u64, sign: impl Fn(u64) -> Sign) -> Option<u64> {
        let looks = (from..=to).step_by(watch.look_ms() as usize);
        looks.into_iter().find(|ms| watch.look(at(*ms), 0, [sign(*ms)]).is_some_and(|stands| stands.hangs))
    }

    #[test]
    fn a_thread_that_completes_nothing_hangs_after_its_time_and_not_earlier() {
        let mut watch = Watch::new(HANG_MS);
        assert_eq!(hangs_at(&mut watch, 0, 5_000, |ms| sign(1, ms.min(700))), Some(1_700));
    }

    #[test]
    fn a_thread_that_completes_something_now_and_then_is_sound() {
        let mut watch = Watch::new(HANG_MS);
        assert_eq!(hangs_at(&mut watch, 0, 60_000, |ms| sign(1, ms / 900)), None);
    }

    #[test]
    fn whoever_waits_for_a_disk_is_not_judged_here_and_afterwards_has_all_of_its_time() {
        let mut watch = Watch::new(HANG_MS);
        let slow = |ms| Sign { number: 1, steps: 7, rests: (300..9_300).contains(&ms) };
        assert_eq!(hangs_at(&mut watch, 0, 30_000, slow), Some(10_200));
    }

    #[test]
    fn a_process_that_was_stopped_as_a_whole_has_no_thread_that_hangs() {
        let mut watch = Watch::new(HANG_MS);
        assert_eq!(hangs_at(&mut watch, 0, 500, |_| sign(1, 7)), None);
        // Frozen for a minute, with a thread that had stood for half a second.
        let stands = watch.look(at(60_500), 0, [sign(1, 7)]).unwrap();
        assert_eq!((stands.ms, stands.hangs), (700, false));
        assert_eq!(hangs_at(&mut watch, 60_600, 62_000, |_| sign(1, 7)), Some(61_000));
    }

    #[test]
    fn of_several_the_one_that_stands_longest_is_told_and_one_that_has_ended_is_forgotten() {
        let mut watch = Watch::new(HANG_MS);
        for ms in [0, 100, 200] {
            watch.look(at(ms), 0, [sign(1, ms), sign(2, 5), sign(3, 9)]);
        }
        let stands = watch.look(at(300), 0, [sign(1, 300), sign(2, 5), sign(3, 10)]).unwrap();
        assert_eq!(stands, Stands { number: 2, ms: 300, starved_ms: 0, hangs: false });
        assert_eq!(watch.look(at(400), 0, [sign(1, 400), sign(3, 11)]), None);
        // A number that comes again begins anew.
        assert_eq!(watch.look(at(500), 0, [sign(2, 5)]), None);
    }

    /// A thread that does nothing any more, on a machine where in each 100 ms some thread waits so long for a processor: when it is
    /// found to hang.
    fn hangs_when_starved(waits_ms: impl Fn(u64) -> u64) -> Option<u64> {
        let mut watch = Watch::new(HANG_MS);
        let looks = (0..60_000).step_by(watch.look_ms() as usize);
        let mut hangs = |ms: &u64| {
            let starved_ns = if watch.asks_for_starvation() { waits_ms(*ms) * 1_000_000 } else { 0 };
            watch.look(at(*ms), starved_ns, [sign(1, 7)]).is_some_and(|stands| stands.hangs)
        };
        looks.into_iter().find(|ms| hangs(ms))
    }

    #[test]
    fn a_machine_with_too_much_to_do_has_no_thread_that_hangs_and_ten_times_as_long_is_enough() {
        assert_eq!(hangs_when_starved(|_| 0), Some(1_000), "a machine that is idle");
        assert_eq!(hangs_when_starved(|_| 10), Some(1_100), "a machine that is busy");
        // Overloaded for two seconds, and for good.
        assert_eq!(hangs_when_starved(|ms| if ms <= 2_000 { 100 } else { 0 }), Some(2_700));
        assert_eq!(hangs_when_starved(|_| 100), Some(10_000));
        // A long wait is told once it is over.
        assert_eq!(hangs_when_starved(|ms| if ms == 900 { 600 } else { 0 }), Some(1_600));
    }

    #[test]
    fn a_watcher_that_is_late_itself_ends_nobody_for_it() {
        let mut watch = Watch::new(HANG_MS);
        let late = (0..40)
            .find(|look| watch.look(at(look * 300), 0, [sign(1, 7)]).is_some_and(|stands| stands.hangs));
        assert_eq!(late, None, "12 s, in which it has looked every 300 ms");
        // It is in time again.
        assert_eq!(hangs_at(&mut watch, 11_800, 15_000, |_| sign(1, 7)), Some(12_700));
    }

    #[test]
    fn a_clock_that_stands_makes_nobody_hang() {
        let mut watch = Watch::new(HANG_MS);
        assert!((0..100).all(|_| watch.look(at(7), 0, [sign(1, 1)]).is_none()));
    }
}
