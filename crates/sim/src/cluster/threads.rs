//! A thread that completes nothing, in a process whose other threads go on.
//!
//! [`group::Watch`] says when it hangs. That the process ends then is played here as the driver of a server does it.

use super::{
    happening::{Arrival, Happening},
    request::Request,
    server::Server,
    world::{World, member},
};
use crate::truth::Broken;
use group::{Sign, Watch};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// It hears the other members.
    Reader,
    /// It writes and syncs the log.
    Journal,
    /// It tells the member that time has passed.
    Timer,
    /// It takes changes.
    Writer,
}

pub struct Hang {
    thread: Thread,
    watch: Watch,
    since_ns: u64,
    /// The arrivals that the thread would have dealt with.
    held: Vec<Arrival>,
}

impl Thread {
    const ALL: [Thread; 4] = [Thread::Reader, Thread::Journal, Thread::Timer, Thread::Writer];

    pub fn any(dice: &mut crate::dice::Dice) -> Self {
        *dice.pick(&Self::ALL)
    }

    fn does(self, what: &Arrival) -> bool {
        match what {
            Arrival::Packet { .. }
            | Arrival::PeerGone(_)
            | Arrival::PeerEnded(_)
            | Arrival::PeerConnected(_) => self == Self::Reader,
            Arrival::Synced { .. } | Arrival::LogRead(_) => self == Self::Journal,
            Arrival::Tick { .. } => self == Self::Timer,
            Arrival::Call { request, .. } | Arrival::Forwarded { request, .. } => {
                self == Self::Writer && !matches!(request, Request::Read(_))
            }
            _ => false,
        }
    }
}

impl Server {
    /// Returns an arrival, unless a thread that hangs would have to deal with it; then it is kept for later.
    pub(super) fn held_up(&mut self, what: Arrival) -> Option<Arrival> {
        match &mut self.hang {
            Some(hang) if hang.thread.does(&what) => {
                hang.held.push(what);
                None
            }
            _ => Some(what),
        }
    }
}

impl World {
    pub(super) fn hang(&mut self, seat: usize, thread: Thread) {
        let watch = Watch::new(self.settings.hang_ms);
        let server = &mut self.servers[seat];
        if !server.host.is_up() || server.hang.is_some() {
            return;
        }
        let life = server.life;
        server.hang = Some(Hang { thread, watch, since_ns: self.now_ns, held: Vec::new() });
        self.look_at_threads(seat, life);
    }

    pub(super) fn look_at_threads(&mut self, seat: usize, life: u64) {
        let server = &mut self.servers[seat];
        let now = server.clock.moment(self.now_ns);
        let Some(hang) = server.hang.as_mut().filter(|_| server.life == life) else { return };
        let sign = Sign { number: 1, steps: 0, rests: false };
        let look_ms = hang.watch.look_ms();
        let stands = hang.watch.look(now, 0, [sign]).filter(|stands| stands.hangs);
        if let Some(stands) = stands {
            let thread = hang.thread;
            self.note(format!(
                "member {}: its {thread:?} has completed nothing for {} ms",
                member(seat),
                stands.ms
            ));
            let keep = self.dice.below(101);
            self.end(seat, keep);
            let after_ms = 100 + self.dice.below(2_000);
            return self.after_ms(after_ms, Happening::Start { seat });
        }
        self.after_ms(look_ms, Happening::Look { seat, life });
    }

    /// A process with a thread that has hung for much longer than it may is not there any more.
    pub(super) fn threads_go_on(&mut self) -> Result<(), Broken> {
        for seat in 0..self.servers.len() {
            let Some(hang) = self.servers[seat].hang.take() else { continue };
            let hung_ms = (self.now_ns - hang.since_ns) / 1_000_000;
            // Clocks drift by 5 % at most, and the watch looks ten times in that time.
            if hung_ms > self.settings.hang_ms * 13 / 10 {
                return Err(format!(
                    "a process ends whose thread hangs: the {:?} of member {} has completed nothing for {hung_ms} ms",
                    hang.thread,
                    member(seat)
                ));
            }
            let life = self.servers[seat].life;
            for what in hang.held {
                if self.servers[seat].life == life && self.servers[seat].is_running {
                    self.arrive(seat, what)?;
                }
            }
        }
        Ok(())
    }
}
