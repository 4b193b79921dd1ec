//! Which metadata server is obeyed: [`blocks::Leadership`], behind a lock, because each server has an actor of its own.

use blocks::{Claim, Leadership as Machine, Mandate, Obeyed};
use parking_lot::Mutex;

/// The highest claim to be the active server.
#[derive(Default)]
pub struct Leadership {
    machine: Mutex<Machine>,
}

impl Leadership {
    /// A server has said what it is. Answers with the mandate under which it is to be obeyed, if it is.
    pub fn observe(&self, server: usize, claim: Claim) -> Option<Obeyed> {
        self.machine.lock().observe(server, claim)
    }

    /// The server that is obeyed at the moment.
    pub fn active(&self) -> Option<usize> {
        self.machine.lock().active()
    }

    /// The server's mandate, if it is the one obeyed.
    pub fn mandate_of(&self, server: usize) -> Option<Mandate> {
        self.machine.lock().mandate_of(server)
    }

    /// Does `work`, which must be short, if the mandate still stands, and lets no newer claim in meanwhile.
    pub fn while_standing<T>(&self, mandate: Mandate, work: impl FnOnce() -> T) -> Option<T> {
        let machine = self.machine.lock();
        machine.stands(&mandate).then(work)
    }
}
