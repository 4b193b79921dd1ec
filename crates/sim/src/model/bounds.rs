//! How far a check goes.

use group::{Order, Settings};

/// How often each thing may happen; the check sees every order of what is allowed.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub members: u32,
    pub in_sync_min: u32,
    /// Everyone is in sync and the first member serves at the outset; otherwise all have just been started for
    /// the first time.
    pub starts_served: bool,
    /// Members left out of the in-sync set at the outset.
    pub juniors: u32,
    pub settings: Settings,
    /// Operations proposed.
    pub operations: u8,
    pub crashes: u8,
    /// Times that a member's clock jumps so far that everything that waits for time has waited long enough:
    /// drift without bound, so no rule that this check shows rests on clocks.
    pub wakes: u8,
    /// Times that a member's next timer alone runs out.
    pub beats: u8,
    /// Connections that break, with what was under way on them.
    pub resets: u8,
    /// Messages that overtake another or arrive twice.
    pub disorders: u8,
    /// Changes of the view whose answer gets lost, each of which may be carried out at any later time.
    pub unknowns: u8,
    /// Answers of the coordinator that are heard at any later time, in any order, and more than once.
    pub late_answers: u8,
    /// False alarms: a lock that is gone, a process that seems to be.
    pub alarms: u8,
    /// The disk is slow: entries become durable some time later, or never.
    pub slow_disk: bool,
    /// Members hear late of a changed view, or never; otherwise at once.
    pub late_views: bool,
    pub orders: Vec<Order>,
    pub epochs: u64,
    pub log: u64,
    pub depth: usize,
    pub states: usize,
    /// Plants a bug in the disks: promises are forgotten.
    pub forgets_promises: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            members: 3,
            in_sync_min: 2,
            starts_served: true,
            juniors: 0,
            settings: Self::small_settings(),
            operations: 1,
            crashes: 1,
            wakes: 2,
            beats: 0,
            resets: 0,
            disorders: 0,
            unknowns: 0,
            late_answers: 0,
            alarms: 0,
            slow_disk: false,
            late_views: false,
            orders: Vec::new(),
            epochs: 3,
            log: 5,
            depth: usize::MAX,
            states: 1_000_000,
            forgets_promises: false,
        }
    }
}

impl Bounds {
    /// Far more of everything than can be seen in every order: for random stories.
    pub fn wide() -> Self {
        Self {
            operations: 3,
            crashes: 3,
            wakes: 8,
            beats: 6,
            resets: 2,
            disorders: 2,
            unknowns: 2,
            late_answers: 3,
            alarms: 2,
            slow_disk: true,
            late_views: true,
            epochs: 8,
            log: 14,
            depth: 250,
            ..Self::default()
        }
    }

    /// The checks: for each a sentence about its subject, and its bounds, with at most `states` different worlds.
    pub fn profiles(states: usize) -> [(&'static str, Self); 6] {
        let plain = Self { states, ..Self::default() };
        let unknown = Self { crashes: 0, unknowns: 1, alarms: 1, beats: 1, wakes: 1, ..plain.clone() };
        let late = Self { late_answers: 2, late_views: true, crashes: 0, alarms: 1, ..plain.clone() };
        let slow = Self { slow_disk: true, late_views: true, ..plain.clone() };
        let first = Self { starts_served: false, wakes: 3, operations: 0, ..plain.clone() };
        let twice = Self { crashes: 2, wakes: 3, ..plain.clone() };
        [
            ("a crash", plain),
            ("lost answers", unknown),
            ("late answers", late),
            ("slow disks and late news", slow),
            ("a first start", first),
            ("two crashes", twice),
        ]
    }

    /// Times are small against the jump of a clock ([`super::WAKE_MS`]).
    pub fn small_settings() -> Settings {
        Settings {
            beacon_ms: 5,
            lease_ms: 20,
            silence_ms: 15,
            ack_silence_ms: 15,
            rank_backoff_ms: 0,
            idle_flush_ms: 1,
            // Giving up for want of an answer is a wish of availability; it would hide what follows.
            stall_ms: 1 << 40,
            change_retry_ms: 1,
            claim_answer_ms: 20,
            reread_ms: 1,
            // Hints are news of no consequence where nothing is restored from a copy.
            hint_ms: 1 << 40,
            ..Settings::default()
        }
    }
}
