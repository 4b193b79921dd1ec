//! How much is under way: the writer waits while it is too much.

use base::Sn;
use env::pulse;
use parking_lot::{Condvar, Mutex};
use std::{collections::VecDeque, time::Duration};

/// Bytes that have been proposed and not committed. Without a bound a member that hangs would let them pile up
/// until it is taken out of the in-sync set.
#[derive(Default)]
pub struct Room {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    under_way: VecDeque<(Sn, usize)>,
    bytes: usize,
}

impl Room {
    pub fn proposed(&self, end: Sn, bytes: usize) {
        let mut state = self.state.lock();
        state.under_way.push_back((end, bytes));
        state.bytes += bytes;
    }

    pub fn committed(&self, sn: Sn) {
        let mut state = self.state.lock();
        while let Some(&(end, bytes)) = state.under_way.front()
            && end <= sn
        {
            state.bytes -= bytes;
            state.under_way.pop_front();
        }
        drop(state);
        self.changed.notify_all();
    }

    pub fn wake(&self) {
        self.changed.notify_all();
    }

    /// Waits while there is too much and `is_serving` says that it may become less. Each look counts as a step of the thread
    /// that waits: it does not rest, for a thread that is frozen while it rests is not noticed.
    pub fn wait(&self, bytes_max: usize, is_serving: impl Fn() -> bool) {
        let mut state = self.state.lock();
        while state.bytes > bytes_max && is_serving() {
            self.changed.wait_for(&mut state, Duration::from_millis(50));
            pulse::step();
        }
        if !is_serving() {
            *state = State::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use env::pulse::Pulses;
    use std::{cell::RefCell, sync::Arc};

    #[test]
    fn a_writer_that_waits_for_room_shows_that_it_lives() {
        let (pulses, room) = (Pulses::default(), Room::default());
        let _watched = pulses.begin("writer");
        let pulse = pulses.all().remove(0);
        room.proposed(Sn(1), 101);
        let mut looks = Vec::new();
        let looked = RefCell::new(&mut looks);
        room.wait(100, || {
            let mut looked = looked.borrow_mut();
            looked.push((pulse.steps(), pulse.rests()));
            looked.len() < 4
        });
        // Each look finds another step. A thread that rested would be given all the time that a disk may take.
        assert!(looks.iter().is_sorted_by_key(|(steps, _)| steps) && looks[2].0 >= 2, "{looks:?}");
        assert!(looks.iter().all(|(_, rests)| !rests), "{looks:?}");
    }

    #[test]
    fn the_writer_waits_for_commits_and_not_for_ever() {
        let room = Arc::new(Room::default());
        room.proposed(Sn(1), 60);
        room.proposed(Sn(2), 60);
        let waiting = std::thread::spawn({
            let room = room.clone();
            move || room.wait(100, || true)
        });
        room.committed(Sn(1));
        waiting.join().unwrap();
        room.proposed(Sn(3), 60);
        room.wait(100, || false);
        assert_eq!(room.state.lock().bytes, 0);
    }
}
