//! Processes that begin, end, and go on after a pause.

use super::{
    happening::{Arrival, Happening},
    server::Image,
    world::{World, member},
};
use crate::{Loss, truth::Broken};

/// After so long the coordinator takes a session for over.
const SESSION_MS: u64 = 2_000;

impl World {
    /// A process begins; its member joins when it has read the view.
    pub(super) fn start(&mut self, seat: usize) {
        if self.servers[seat].is_running || self.waits_with_a_failed_disk(seat) {
            return;
        }
        let server = &mut self.servers[seat];
        server.life += 1;
        server.is_running = true;
        server.is_paused = false;
        server.is_downloading = false;
        server.is_syncing = false;
        server.tick_at = None;
        let life = server.life;
        let is_damaged = server.host.is_damaged();
        self.note(format!("member {} starts", member(seat)));
        self.soon(match is_damaged {
            true => Happening::Mend { seat, life, asked: 0 },
            false => Happening::ReadView { seat, life },
        });
    }

    pub(super) fn join(&mut self, seat: usize) -> Result<(), Broken> {
        let settings = self.settings;
        let seed = self.dice.roll();
        let server = &mut self.servers[seat];
        let now = server.clock.moment(self.now_ns);
        server.host.disk.is_suspect &= !self.cuts_silently;
        if let Some(journal) = server.host.stored() {
            server.image = journal.image().map(|(at, bytes)| Image { at, bytes });
            server.looked_through = server.host.disk.known_commit;
        }
        server.host.start(settings, now, seed);
        let mut dice = self.dice.split();
        server.recover(&mut dice)?;
        if let Some(room) = &mut self.data {
            server.begin_blocks(&room.config, room.dice.roll(), now);
            self.begin_ticks(seat);
        }
        let server = &self.servers[seat];
        let life = server.host.life();
        self.keeper.records.insert(life.store.member, life);
        for other in 0..self.servers.len() {
            if other != seat && self.servers[other].host.is_up() {
                self.connect(seat, other);
            }
        }
        Ok(())
    }

    pub(super) fn connect(&mut self, one: usize, other: usize) {
        let (a, b) = (member(one), member(other));
        if !self.network.is_cut(a, b) && !self.network.is_cut(b, a) {
            self.soon_for(one, Arrival::PeerConnected(b));
            self.soon_for(other, Arrival::PeerConnected(a));
        }
    }

    /// The process ends. `keep`: how much of what was not synced is there afterwards, in percent.
    pub(super) fn end(&mut self, seat: usize, keep_percent: u64) {
        if !self.servers[seat].is_running {
            return;
        }
        let unsynced = self.servers[seat].host.unsynced() as u64;
        let losses: &[Loss] = match keep_percent {
            100 => &[Loss::ProcessOnly],
            // Only an end that is certain tells a damaged store what is not needed.
            _ if self.plays_journals && self.is_a_store_damaged() => &[Loss::All, Loss::ProcessOnly],
            0 => &[Loss::All, Loss::Random],
            _ => &[Loss::Random, Loss::Nothing, Loss::ProcessOnly],
        };
        let keep = (unsynced * keep_percent / 100) as usize;
        // A tail that was torn cannot be told from one that rotted.
        let is_torn = (keep as u64) < unsynced && self.dice.chance(30);
        if self.plays_journals {
            let loss = *self.dice.pick(losses);
            let server = &mut self.servers[seat];
            server.host.lose(loss);
            if server.host.disk.is_suspect {
                self.note(format!("member {}'s log has a torn end", member(seat)));
            }
        } else {
            let server = &mut self.servers[seat];
            server.host.crash(keep);
            server.host.disk.is_suspect |= is_torn;
        }
        self.process_is_gone(seat);
    }

    /// The others hear that a process has ended; its disk is as it left it.
    pub(super) fn process_is_gone(&mut self, seat: usize) {
        let server = &mut self.servers[seat];
        server.is_running = false;
        server.kill_after_steps = None;
        server.hang = None;
        let (life, ended) = (server.life, server.host.life());
        self.inboxes[seat].clear();
        self.note(format!("member {} ends", member(seat)));
        self.after_ms(SESSION_MS, Happening::SessionEnds { seat, life, since_ns: 0 });
        for other in 0..self.servers.len() {
            if other != seat && !self.network.is_cut(member(seat), member(other)) {
                self.soon_for(other, Arrival::PeerGone(member(seat)));
                if self.ends_are_told_percent > 0 && self.dice.chance(self.ends_are_told_percent) {
                    self.soon_for(other, Arrival::PeerEnded(ended));
                }
            }
        }
    }

    pub(super) fn session_may_end(&mut self, seat: usize) {
        let (life, since_ns) = (self.servers[seat].life, self.now_ns);
        self.after_ms(SESSION_MS, Happening::SessionEnds { seat, life, since_ns });
    }

    pub(super) fn resume(&mut self, seat: usize) -> Result<(), Broken> {
        if !std::mem::replace(&mut self.servers[seat].is_paused, false) {
            return Ok(());
        }
        let mut arrivals = std::mem::take(&mut self.inboxes[seat]);
        // Sockets are drained before the process judges by its clock.
        arrivals.sort_by_key(|(_, what)| matches!(what, Arrival::Tick { .. }));
        for (life, what) in arrivals {
            if self.servers[seat].life == life && self.servers[seat].is_running {
                self.arrive(seat, what)?;
            }
        }
        Ok(())
    }
}
