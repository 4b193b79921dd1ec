//! The broom: goes round and round over all records, a slice at a time, when there is something to clean.
//!
//! Records name storages; storages do not list their blocks. So when a storage is lost, or a full report lacked
//! replicas that were known, or every block's redundancy must be looked at anew, one more lap over the records is
//! asked for. A request that is made during a lap is served when the broom is back at the place where it was made;
//! several requests share a lap.

use crate::{lap::Lap, map::BlockMap};
use base::Moment;

#[derive(Default)]
pub struct Sweeper {
    at: Lap,
    /// Sweeping goes on until here.
    until: Lap,
    /// Up to this lap, each block's redundancy is looked at too.
    redundancy_until: Lap,
}

impl Sweeper {
    /// Asks for one whole lap from here; returns where it ends.
    pub fn request(&mut self) -> Lap {
        self.until = self.until.max(self.one_lap_on());
        self.one_lap_on()
    }

    /// Asks for one whole lap in which each block's redundancy is looked at too; returns where it ends.
    pub fn request_redundancy(&mut self) -> Lap {
        self.redundancy_until = self.request();
        self.redundancy_until
    }

    fn one_lap_on(&self) -> Lap {
        Lap { lap: self.at.lap + 1, ..self.at }
    }

    pub fn has_come_to(&self, lap: Lap) -> bool {
        self.at >= lap
    }

    pub fn is_idle(&self) -> bool {
        self.at >= self.until
    }
}

impl BlockMap {
    /// Looks at up to `budget` blocks; true while more are waiting to be looked at. Nothing else depends on
    /// when it is called, so a driver calls it between its other work.
    pub fn sweep(&mut self, budget: usize, now: Moment) -> bool {
        self.latest = now;
        for _ in 0..budget {
            if self.sweeper.is_idle() {
                break;
            }
            if self.sweeper.at.position >= self.arena.slots() {
                self.sweeper.at = Lap { lap: self.sweeper.at.lap + 1, position: 0 };
                continue;
            }
            self.sweep_slot(self.sweeper.at.position);
            self.sweeper.at.position += 1;
        }
        self.end_what_was_swept();
        !self.sweeper.is_idle()
    }

    fn sweep_slot(&mut self, slot: u32) {
        if self.arena.record(slot).is_free() {
            return;
        }
        let gone = |place: &u32| !self.storages.get(*place).is_known_to_hold(slot);
        let gone: Vec<u32> = self.arena.places(slot).iter().filter(gone).collect();
        for place in &gone {
            self.remove_place(slot, *place);
        }
        if !gone.is_empty() || self.sweeper.at < self.sweeper.redundancy_until {
            self.evaluate(slot);
        }
    }

    fn end_what_was_swept(&mut self) {
        let at = self.sweeper.at;
        if !self.sweep_is_awaited {
            return;
        }
        self.storages.reclaim(at);
        let swept: Vec<_> = self
            .storages
            .iter_mut()
            .filter_map(|(place, storage)| Some((place, storage.full_report.take_if(|it| it.swept_by(at))?)))
            .collect();
        self.storages.iter_mut().for_each(|(_, storage)| _ = storage.lacking.take_if(|it| it.swept_by(at)));
        for (place, report) in swept {
            self.note_reported(place, &report);
        }
        self.sweep_is_awaited = !self.sweeper.is_idle();
    }

    /// Asks for a lap of the broom on behalf of a storage.
    pub(crate) fn request_sweep(&mut self) -> Lap {
        self.sweep_is_awaited = true;
        self.sweeper.request()
    }
}
