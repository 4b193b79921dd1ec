//! The thread that beacons come from, and the one that reads the log for others.

use super::{
    inbox::{Event, Patience},
    shared::Shared,
};
use base::Moment;
use env::{Starvation, pulse};
use group::{Input, LogReadFailed, Watch};
use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

/// How often the coordinator is looked at, should a hint have got lost.
const LOOK_MS: u64 = 1_000;
/// An active looks less often, because a member that deposes it tells it so.
const SERVING_LOOK_MS: u64 = 5_000;

/// Calls the member when its deadline has come, and never waits for anything else. Runs until the timer is stopped or the member
/// is gone.
pub fn run_timer(shared: &Weak<Shared>) {
    let (mut looked, mut starvation) = (None::<Moment>, Starvation::default());
    let Some((_watched, mut watch)) = shared.upgrade().map(|shared| {
        let watched = &shared.watched;
        (watched.pulses.begin("group-timer"), Watch::new(watched.hang_ms()))
    }) else {
        return;
    };
    while let Some(shared) = shared.upgrade() {
        let now = shared.env.clock.moment();
        pulse::step();
        shared.watched.watch_the_watcher(&mut watch, &mut starvation, now);
        let longest = Duration::from_millis(watch.look_ms()).min(pulse::IDLE);
        let Some(deadline) = shared.timer.wait(now, longest) else { return };
        let woken = shared.env.clock.moment();
        if deadline.is_some_and(|deadline| deadline <= woken) {
            shared.push(Event::Input(Input::Tick), Patience::None);
        }
        let period = if shared.is_serving.load(Ordering::Acquire) { SERVING_LOOK_MS } else { LOOK_MS };
        let is_alone = shared.peers.get().is_none() && shared.is_serving.load(Ordering::Acquire);
        if !is_alone && looked.is_none_or(|looked| now.ms_since(looked) >= period) {
            looked = Some(now);
            shared.look_again();
        }
    }
}

impl Shared {
    /// Runs until [`Reader::stop`].
    pub fn run_reader(self: &Arc<Self>) {
        let _watched = self.watched.pulses.begin("group-reader");
        while let Some(asked) = self.reader.next() {
            let read = self.journal.read(asked.after, asked.up_to, asked.bytes_max as usize);
            let result = read.map_err(|error| match error {
                journal::ReadLogError::Gone { .. } => LogReadFailed::Gone,
                journal::ReadLogError::Failed { .. } => {
                    tracing::warn!(%error, "the log could not be read for another member");
                    LogReadFailed::Failed
                }
            });
            self.push(Event::Input(Input::LogRead { asked, result }), Patience::None);
        }
    }
}
