//! Faults that strike all members at once: their disks fail, or all are put back to copies of one moment.

use super::{
    happening::{Arrival, Happening},
    server::Server,
    world::{World, member},
};
use crate::truth::Broken;
use base::MemberStore;
use group::{Input, Order, Role};
use journal::Word;

impl Server {
    pub(super) fn copy_disk(&mut self) {
        let mut disk = self.host.disk.clone();
        disk.entries.truncate(disk.durable);
        self.copy = Some((self.host.store, disk, self.image.clone()));
    }
}

impl World {
    pub(super) fn syncs_fail(&mut self) {
        for server in &mut self.servers {
            (server.disk.fails, server.disk.fails_with_a_note) = (true, true);
        }
    }

    /// Ends the process with a note of the failed disk. Some of the bytes that were written and not synced are there
    /// afterwards.
    pub(super) fn disk_fails_with_a_note(&mut self, seat: usize) -> Result<(), Broken> {
        self.servers[seat].disk.fails_with_a_note = false;
        if self.plays_journals {
            return self.journal_fails(seat);
        }
        let durable = self.servers[seat].host.disk.durable;
        let written = self.servers[seat].host.unsynced() as u64;
        let kept = self.dice.below(written + 1) as usize;
        self.servers[seat].has_failed_disk = true;
        self.step(seat, Input::DiskFailed)?;
        self.end(seat, 100);
        let disk = &mut self.servers[seat].host.disk;
        disk.entries.truncate(durable + kept);
        disk.durable = disk.entries.len();
        self.start(seat);
        Ok(())
    }

    /// The journal has noted the failure itself when the process ends of it.
    fn journal_fails(&mut self, seat: usize) -> Result<(), Broken> {
        if !self.servers[seat].host.fail_disk() {
            return self.step(seat, Input::Tick);
        }
        self.servers[seat].has_failed_disk = true;
        self.process_is_gone(seat);
        self.start(seat);
        Ok(())
    }

    /// A store whose disk has failed is opened again when another member leads in an epoch that is not older than its promise, and
    /// the coordinator knows that epoch. The end of its log is not trusted then. True: not yet.
    pub(super) fn waits_with_a_failed_disk(&mut self, seat: usize) -> bool {
        let server = &self.servers[seat];
        if !server.has_failed_disk {
            return false;
        }
        let (promised, current) = (server.host.disk.promised, self.keeper.view.epoch);
        let leads = |other: &Server| matches!(other.role(), Some(Role::Serving { epoch }) if *epoch == current && *epoch >= promised);
        if self.keeper.is_reachable(member(seat)) && self.servers.iter().any(leads) {
            let server = &mut self.servers[seat];
            server.has_failed_disk = false;
            server.host.take_back(Word::Member);
            return false;
        }
        if !std::mem::replace(&mut self.servers[seat].looks_again, true) {
            let again_ms = 100 + self.dice.below(400);
            self.after_ms(again_ms, Happening::Start { seat });
        }
        true
    }

    /// The member may claim at once: nothing is missing, by the operator's word.
    pub(super) fn accept_disk(&mut self) {
        if self.servers.iter().any(Server::is_serving) {
            return;
        }
        let failed = (0..self.servers.len()).filter(|seat| self.servers[*seat].has_failed_disk);
        if let Some(seat) = failed.max_by_key(|seat| self.servers[*seat].host.disk.durable_end().id) {
            self.servers[seat].has_failed_disk = false;
            self.servers[seat].host.take_back(Word::Operator);
            self.note(format!("the disk of member {} is accepted", member(seat)));
            self.start(seat);
        }
    }

    /// A member with a torn log waits for a store that no member has any more: an operator lets the member lead whose log goes furthest.
    pub(super) fn do_without_the_lost(&mut self) {
        let view = &self.keeper.view;
        let is_lost = |store: &MemberStore| self.servers.iter().all(|server| server.host.store != *store);
        if !view.in_sync.iter().chain(&view.exiles).any(is_lost)
            || self.servers.iter().any(Server::is_serving)
        {
            return;
        }
        let now_ns = self.now_ns;
        let waits = |server: &Server| {
            let status = server.host.member().status(server.clock.moment(now_ns));
            status.trouble.is_some_and(|text| text.contains("gone for good"))
        };
        let running = || self.servers.iter().enumerate().filter(|(_, server)| server.host.is_up());
        if running().any(|(_, server)| waits(server)) {
            let furthest = running().max_by_key(|(_, server)| server.host.disk.durable_end().id);
            let seat = furthest.expect("one runs and waits").0;
            let life = self.servers[seat].life;
            self.note(format!("member {} is told to lead without the store that was lost", member(seat)));
            self.soon(Happening::Arrival { seat, life, what: Arrival::Order(Order::UncleanElect) });
        }
    }

    pub(super) fn copy_all(&mut self) {
        self.servers.iter_mut().for_each(Server::copy_disk);
        self.keeper.backup = Some((self.keeper.view.clone(), self.keeper.version));
        self.copied_up_to = Some(self.observer.truth.last());
    }

    /// Puts all disks and the coordinator back to the copy. The entries that have committed since then are lost, and
    /// nothing else.
    pub(super) fn restore_all(&mut self) {
        let (Some(left), Some((view, version))) = (self.copied_up_to, self.keeper.backup.clone()) else {
            return;
        };
        for seat in 0..self.servers.len() {
            self.end(seat, 0);
        }
        // No change that was on its way outlives the coordinator.
        self.agenda.retain(|_, happening| !matches!(happening, Happening::Change { .. }));
        self.observer.all_restored(left, &view);
        self.forget_needed();
        for client in &mut self.clients {
            if let Some(current) = &mut client.current {
                current.floor = current.floor.min(left);
            }
        }
        for server in &mut self.servers {
            let (store, disk, image) = server.copy.clone().expect("all were copied");
            self.observer.truth.promises.insert(store.member, disk.promised);
            (server.host.store, server.host.disk, server.image) = (store, disk, image);
        }
        (self.keeper.view, self.keeper.version, self.keeper.is_older) = (view, version, false);
        for seat in 0..self.servers.len() {
            let after_ms = 10 + self.dice.below(800);
            self.after_ms(after_ms, Happening::Start { seat });
        }
    }
}
