//! Clocks that stand still while their members go on working, as under a hypervisor that stops its guest's clock.

use super::world::World;
use crate::truth::Broken;

/// The holder of a lease counts on this much of it.
const LEASE_HELD_PERCENT: u64 = 85;

impl World {
    pub(super) fn stop_clock(&mut self, seat: usize) {
        let server = &mut self.servers[seat];
        server.clock.stop(self.now_ns);
        // No timer runs out.
        server.tick_at = None;
    }

    pub(super) fn clocks_go(&mut self, jumps: bool) -> Result<(), Broken> {
        for seat in 0..self.servers.len() {
            let server = &mut self.servers[seat];
            if !server.clock.stands() {
                continue;
            }
            server.clock.go(self.now_ns, jumps);
            if jumps {
                // By its clock the others were silent: that changes the view, and so does each that is heard again.
                server.news += 1;
                self.hearing.forget(seat);
            }
            let server = &self.servers[seat];
            if server.host.is_up() {
                self.after_step(seat)?;
            }
        }
        Ok(())
    }

    /// This member takes its lease to hold, and it may not: its own clock has stood, or that of another member has, which has granted
    /// the lease at the time where the clock stood, and by the jump takes the grant to have ended early.
    pub(super) fn lease_is_doubtful(&self, seat: usize) -> bool {
        let lease_ms = self.settings.lease_ms;
        let held_ms = lease_ms * LEASE_HELD_PERCENT / 100;
        let since_ns = self.now_ns.saturating_sub(lease_ms * 11 / 10 * 1_000_000);
        let mut others = (0..self.servers.len()).filter(|other| *other != seat);
        self.servers[seat].lease_is_over_unseen(self.now_ns, held_ms)
            || others.any(|other| self.servers[other].clock.jumped_since(since_ns))
    }
}
