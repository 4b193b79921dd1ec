//! Synced bytes of a member's log rot, and its store is repaired before the member takes part.
//!
//! The decisions and the files are those that ship: `group::repair` and `journal::repair`. What lies between them is played here in the
//! place of `metad::repair`, which is bound to threads and sockets: the questions to the others one after the other, the view the
//! same before the first and after the last.

use super::{
    happening::Happening,
    server::Round,
    world::{World, member, seat_of},
};
use crate::host::Rot;
use base::Sn;
use group::{
    Role,
    repair::{Damaged, Verdict, judge},
};
use journal::Hole;
use std::collections::BTreeMap;

/// Between two rounds of questions.
const PAUSE_MS: u64 = 300;

impl World {
    /// A store is damaged, or the end of a log is not certain. Then nothing else strikes that would leave no certain copy.
    pub(super) fn is_a_log_in_doubt(&self) -> bool {
        self.servers.iter().any(|server| server.host.is_damaged() || server.host.disk.is_suspect)
    }

    pub(super) fn is_a_store_damaged(&self) -> bool {
        self.servers.iter().any(|server| server.host.is_damaged())
    }

    /// Rot of a member's log, as much as the others make good: then the group has to come through it without a person.
    pub(super) fn rot(&mut self, seat: usize) {
        let is_changing = self.agenda.values().any(|happening| matches!(happening, Happening::Change { .. }));
        let has_failed_disk = self.servers.iter().any(|server| server.has_failed_disk);
        // A change on its way may take the sound one out of the view. Of two that fail in different ways a person chooses.
        if is_changing || has_failed_disk || self.servers[seat].host.is_damaged() {
            return;
        }
        let others =
            || (0..self.servers.len()).filter(|other| *other != seat).map(|it| &self.servers[it].host);
        let is_sound = others().any(|host| {
            self.keeper.view.is_eligible(host.store) && !host.is_damaged() && !host.disk.is_suspect
        });
        let are_damaged = others().any(|host| host.is_damaged());
        let own = self.servers[seat].host.disk.clone();
        // The entries that another store has: as a sound one, or between its holes.
        let elsewhere: Vec<bool> = (1..=own.durable_end().id.sn.0)
            .map(|sn| {
                let has = |host: &crate::host::Host| {
                    let missing = host.with_repair(|repair| repair.point_of(Sn(sn)).is_none());
                    !missing.unwrap_or(host.is_damaged())
                        && own.point(Sn(sn)).is_some_and(|point| host.disk.holds_durably(point))
                };
                others().any(has)
            })
            .collect();
        let is_bearable = |rot: &Rot| match are_damaged {
            false => is_sound,
            true => {
                let is_held = |sn: u64| elsewhere.get(sn as usize - 1).is_some_and(|is_held| *is_held);
                !rot.loses_end && rot.holes.iter().all(|(first, last)| (first.0..=last.0).all(is_held))
            }
        };
        let Some(rot) = self.servers[seat].host.rot(is_bearable) else {
            if self.servers[seat].is_running {
                self.process_is_gone(seat);
                self.after_ms(100, Happening::Start { seat });
            }
            return;
        };
        // Copies are fewer than the rules demand until the store is whole.
        self.observer.disks_lost = true;
        self.servers.iter_mut().for_each(|server| server.disk.fails = false);
        let end = if rot.loses_end { ", and the end" } else { "" };
        self.note(format!("rot: {} of member {}: holes {:?}{end}", rot.what, member(seat), rot.holes));
        if self.servers[seat].is_running {
            self.process_is_gone(seat);
        }
        let after_ms = 10 + self.dice.below(1_500);
        self.after_ms(after_ms, Happening::Start { seat });
    }

    /// A member with a damaged store asks the next of the others, or decides when all were asked.
    pub(super) fn mend(&mut self, seat: usize, life: u64, asked: usize) {
        let server = &mut self.servers[seat];
        if server.life != life || !server.is_running || !server.host.is_damaged() {
            return;
        }
        if !self.keeper.is_reachable(member(seat)) {
            return self.after_ms(PAUSE_MS, Happening::Mend { seat, life, asked: 0 });
        }
        let count = self.servers.len();
        match asked {
            0 => {
                let (view, version) = (self.keeper.view.clone(), self.keeper.version);
                let server = &mut self.servers[seat];
                server.host.begin_repair();
                server.round = Some(Round { view, version, answers: BTreeMap::new() });
                if self.cuts_silently {
                    self.at_repair(seat, |repair| {
                        let hole = repair.holes().into_iter().find(|hole| hole.is_needed);
                        hole.is_some_and(|hole| repair.continue_with(&hole, &[], false))
                    });
                }
            }
            asked if asked > count => {
                let round = self.servers[seat].round.take().expect("it begins with the first question");
                return self.decide(seat, &round);
            }
            asked if asked - 1 != seat => self.ask(seat, asked - 1),
            _ => {}
        }
        if self.at_repair(seat, |repair| repair.is_whole()) {
            return self.make_whole(seat, false);
        }
        self.soon(Happening::Mend { seat, life, asked: asked + 1 });
    }

    fn at_repair<T>(&self, seat: usize, work: impl FnOnce(&mut journal::Repair) -> T) -> T {
        self.servers[seat].host.with_repair(work).expect("its process is at it")
    }

    /// Asks a member about its store, and for all entries that are missing.
    fn ask(&mut self, seat: usize, other: usize) {
        let (a, b) = (member(seat), member(other));
        let server = &self.servers[other];
        if !server.is_running || server.is_paused || self.network.is_cut(a, b) || self.network.is_cut(b, a) {
            return;
        }
        let committed = self.at_repair(seat, |repair| repair.commit_point().0);
        let serves = match server.role() {
            Some(Role::Serving { epoch }) if server.holds_lease(self.now_ns) => Some(*epoch),
            _ => None,
        };
        let Some(standing) = server.host.standing(committed, serves) else { return };
        for hole in self.at_repair(seat, |repair| repair.holes()) {
            let Some((last, _)) = hole.last else { continue };
            let mut at = hole.after.max(standing.begins_after);
            while at < last {
                let Some((_, entries)) = server.host.entries_for(at, last) else { break };
                let Some(end) = entries.last().map(|entry| entry.id.sn).filter(|end| *end > at) else {
                    break;
                };
                self.at_repair(seat, |repair| repair.fill(&entries));
                at = end;
            }
        }
        let round = self.servers[seat].round.as_mut().expect("it begins with the first question");
        round.answers.insert(b, standing);
    }

    fn decide(&mut self, seat: usize, round: &Round) {
        let life = self.servers[seat].life;
        let again = Happening::Mend { seat, life, asked: 0 };
        if self.keeper.version != round.version {
            return self.after_ms(PAUSE_MS, again);
        }
        let me = member(seat);
        let (hole, own) = self.at_repair(seat, |repair| {
            let hole = repair.holes().into_iter().find(|hole| hole.is_needed).expect("it is not whole");
            let (committed, commit_point) = repair.commit_point();
            let own = Damaged {
                me,
                promised: repair.state().promised,
                committed,
                commit_point,
                hole_after: hole.after,
                is_bounded: hole.last.is_some(),
                written: repair.written(),
            };
            (hole, own)
        });
        match judge(&round.view, &own, &round.answers) {
            Verdict::Continue { with, may_lose } => {
                self.note(format!("member {me} lacks {hole}, and goes on with the log of member {with}"));
                if self.continue_with(seat, seat_of(with), &hole, may_lose) {
                    return self.make_whole(seat, true);
                }
                self.after_ms(PAUSE_MS, again);
            }
            Verdict::GiveUp { to, .. } => {
                self.note(format!("member {me} lacks {hole}, and gives its store up to member {to}"));
                self.servers[seat].host.give_up();
                let after_ms = 10 + self.dice.below(200);
                self.restart(seat, after_ms);
            }
            Verdict::Wait { silent, why } => {
                self.note(format!("member {me} lacks {hole}; {why}; silent: {silent:?}"));
                self.after_ms(PAUSE_MS, again);
            }
        }
    }

    /// Takes what a member has behind the last good record, if its log leads on from there.
    fn continue_with(&mut self, seat: usize, with: usize, hole: &Hole, may_lose: bool) -> bool {
        let source = &self.servers[with];
        if !source.is_running || source.host.standing(Sn(0), None).is_none() {
            return false;
        }
        let mut at = self.at_repair(seat, |repair| repair.before(hole));
        let mut entries = Vec::new();
        while let Some((previous, more)) = source.host.entries_for(at.id.sn, Sn(u64::MAX)) {
            // Elsewhere already: what it has is for the active to bring.
            if previous.chain != at.chain || more.is_empty() {
                break;
            }
            at = more.last().map_or(at, base::Entry::point);
            entries.extend(more);
        }
        self.at_repair(seat, |repair| repair.continue_with(hole, &entries, may_lose) && repair.is_whole())
    }

    /// All holes are closed: the store is written anew, and the start goes on.
    fn make_whole(&mut self, seat: usize, is_continued: bool) {
        let me = member(seat);
        self.servers[seat].round = None;
        if self.servers[seat].host.mend(is_continued) {
            self.note(format!("the store of member {me} is whole again"));
            let life = self.servers[seat].life;
            return self.soon(Happening::ReadView { seat, life });
        }
        self.note(format!("the repair of member {me}'s store is cut off"));
        let after_ms = 10 + self.dice.below(1_000);
        self.restart(seat, after_ms);
    }

    fn restart(&mut self, seat: usize, after_ms: u64) {
        self.process_is_gone(seat);
        self.after_ms(after_ms, Happening::Start { seat });
    }
}
