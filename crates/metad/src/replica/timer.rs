//! Calls the member when its deadline has come, on a thread that never waits for anything else.

use super::{
    inbox::{Event, Patience},
    shared::Shared,
};
use base::Moment;
use env::{Starvation, pulse};
use group::{Input, Watch};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{Weak, atomic::Ordering},
    time::Duration,
};

#[derive(Default)]
pub struct Timer {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    deadline: Option<Moment>,
    is_stopped: bool,
}

/// How often the coordinator is looked at, should a hint have got lost.
const LOOK_MS: u64 = 1_000;
/// An active looks less often, because a member that deposes it tells it so.
const SERVING_LOOK_MS: u64 = 5_000;

impl Timer {
    pub fn set(&self, deadline: Option<Moment>) {
        let mut state = self.state.lock();
        let is_earlier = deadline.is_some_and(|new| state.deadline.is_none_or(|old| new < old));
        state.deadline = deadline;
        if is_earlier {
            self.wake.notify_one();
        }
    }

    pub fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.wake.notify_all();
    }
}

/// Runs until the timer is stopped or the replica is gone.
pub fn run(shared: &Weak<Shared>) {
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
        let is_due = {
            let mut state = shared.timer.state.lock();
            if state.is_stopped {
                return;
            }
            let sleep_ns = state.deadline.map_or(u64::MAX, |deadline| deadline.ns.saturating_sub(now.ns));
            if sleep_ns > 0 {
                let watch_ms = Duration::from_millis(watch.look_ms()).min(pulse::IDLE);
                let sleep = Duration::from_nanos(sleep_ns).min(watch_ms);
                shared.timer.wake.wait_for(&mut state, sleep);
            }
            let now = shared.env.clock.moment();
            state.deadline.is_some_and(|deadline| deadline <= now)
        };
        if is_due {
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
