//! The faults that strike data servers.

use super::words::Event;
use crate::cluster::{happening::DataFault, world::World};

impl World {
    pub(in crate::cluster) fn data_fault(&mut self, fault: &DataFault) {
        let count = self.room().servers.len();
        match *fault {
            DataFault::Kill(server) => self.room().servers[server % count].is_running = false,
            DataFault::Start(server) => self.later(0, Event::Start { server: server % count }),
            DataFault::Pause(server) => self.room().servers[server % count].is_paused = true,
            DataFault::Cut(server, seat) => {
                let seat = seat % self.servers.len();
                self.room().paths.cut.insert((server % count, seat));
            }
            DataFault::Poor { loss_percent, late_percent, late_ms_max } => {
                let paths = &mut self.room().paths;
                (paths.loss_percent, paths.late_percent, paths.late_ms_max) =
                    (loss_percent, late_percent, late_ms_max);
            }
            DataFault::Heal => self.heal_data(),
        }
    }

    /// All data servers run and go on, and all hear each other.
    pub(in crate::cluster) fn heal_data(&mut self) {
        if self.data.is_none() {
            return;
        }
        let room = self.room();
        room.paths.heal();
        room.servers.iter_mut().for_each(|server| server.is_paused = false);
        let waiting = std::mem::take(&mut room.inbox);
        let count = room.servers.len();
        for event in waiting {
            self.later(0, event);
        }
        for server in 0..count {
            self.later(1_000, Event::Start { server });
        }
    }
}
