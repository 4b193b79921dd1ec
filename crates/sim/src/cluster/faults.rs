//! Carries out the faults of a scenario.

use super::{
    happening::{Arrival, Fault, Happening, Whom},
    server::DiskMood,
    world::{World, member},
};
use crate::truth::Broken;
use group::Order;

impl World {
    pub(super) fn fault(&mut self, fault: Fault) -> Result<(), Broken> {
        let count = self.servers.len();
        match fault {
            Fault::Kill(whom) => self.on(whom, |world, seat| {
                let keep = world.dice.below(101);
                world.end(seat, keep);
            }),
            Fault::KillAtStep(whom, steps) => {
                self.on(whom, |world, seat| world.servers[seat].kill_after_steps = Some(steps));
            }
            Fault::StartAll => {
                for seat in 0..count {
                    self.start(seat);
                }
            }
            Fault::Start(seat) => self.start(seat % count),
            Fault::PowerLoss => {
                for seat in 0..count {
                    self.end(seat, 0);
                }
                for seat in 0..count {
                    let after_ms = self.dice.below(3_000);
                    self.after_ms(after_ms, Happening::Start { seat });
                }
            }
            Fault::RotAfterPowerLoss { entries_max } => self.rot_after_power_loss(entries_max),
            Fault::Rot(whom) => self.on(whom, World::rot),
            Fault::Isolate(whom) => self.on(whom, |world, seat| {
                for other in (0..count).filter(|other| *other != seat) {
                    world.network.cut(member(seat), member(other));
                    world.network.cut(member(other), member(seat));
                }
            }),
            Fault::CutOneWay(from, to) => {
                if from % count != to % count {
                    self.network.cut(member(from % count), member(to % count));
                }
            }
            Fault::CutLink(one, other) => {
                if one % count != other % count {
                    self.network.cut(member(one % count), member(other % count));
                    self.network.cut(member(other % count), member(one % count));
                }
            }
            Fault::CutFromCoordinator(whom) => self.on(whom, |world, seat| {
                let now_ns = world.now_ns;
                world.keeper.unreachable.insert(member(seat), now_ns);
                world.session_may_end(seat);
            }),
            Fault::CoordinatorDown => self.keeper.is_down = true,
            Fault::Data(fault) => self.data_fault(&fault),
            Fault::AllowDeletions => self.allow_deletions()?,
            Fault::Order(order) => self.order_data_server(&order)?,
            Fault::Heal => {
                self.network.heal();
                self.heal_data();
                self.keeper.unreachable.clear();
                self.keeper.is_down = false;
                for one in 0..count {
                    for other in one + 1..count {
                        if self.servers[one].host.is_up() && self.servers[other].host.is_up() {
                            self.connect(one, other);
                        }
                    }
                }
                for seat in 0..count {
                    let life = self.servers[seat].life;
                    self.soon(Happening::ReadView { seat, life });
                }
            }
            Fault::Lossy { loss_percent, copy_percent, delay_us_max } => {
                self.network.loss_percent = loss_percent;
                self.network.copy_percent = copy_percent;
                self.network.delay_us_max = delay_us_max;
            }
            Fault::Pause(whom) => self.on(whom, |world, seat| world.servers[seat].is_paused = true),
            Fault::ResumeAll => {
                for seat in 0..count {
                    self.resume(seat)?;
                }
            }
            Fault::SyncFails(whom) => self.on(whom, |world, seat| {
                let disk = &mut world.servers[seat].disk;
                (disk.fails, disk.fails_with_a_note) = (true, world.plays_journals);
            }),
            Fault::SlowDisk(whom, us) => self.on(whom, |world, seat| {
                world.servers[seat].disk =
                    DiskMood { sync_us_min: us / 2, sync_us_max: us, ..DiskMood::default() };
            }),
            Fault::QuickDisks => {
                for server in &mut self.servers {
                    let DiskMood { fails, fails_with_a_note, .. } = server.disk;
                    server.disk = DiskMood { fails, fails_with_a_note, ..DiskMood::default() };
                }
            }
            Fault::JumpWall(whom, by_ms) => {
                self.on(whom, |world, seat| world.servers[seat].clock.jump_wall(by_ms));
            }
            Fault::HandOver(whom) => self.on(whom, |world, seat| {
                let life = world.servers[seat].life;
                let what = Arrival::Order(Order::HandOver { to: None });
                world.soon(Happening::Arrival { seat, life, what });
            }),
            Fault::UncleanElect(seat) => {
                let seat = seat % count;
                let view = &self.keeper.view;
                let is_on = |server: &&super::server::Server| {
                    server.is_running && view.is_eligible(server.host.store)
                };
                if !self.servers.iter().any(|server| is_on(&server)) {
                    let life = self.servers[seat].life;
                    let what = Arrival::Order(Order::UncleanElect);
                    self.soon(Happening::Arrival { seat, life, what });
                }
            }
            Fault::Reconfigure { without, in_sync_min } => self.on(Whom::Active, |world, seat| {
                let life = world.servers[seat].life;
                let members = (0..count).filter(|seat| Some(*seat) != without).map(member).collect();
                let what = Arrival::Order(Order::Reconfigure { members, in_sync_min });
                world.soon(Happening::Arrival { seat, life, what });
            }),
            Fault::Purge(whom) if self.plays_journals => {
                if let Some(seat) = self.whom(whom) {
                    self.write_image(seat)?;
                }
            }
            Fault::Purge(whom) => self.on(whom, |world, seat| {
                if world.servers[seat].host.is_up() {
                    let keep = world.dice.below(8);
                    world.servers[seat].take_image(keep);
                }
            }),
            Fault::Wipe(whom) => self.on(whom, |world, seat| {
                if world.servers[seat].is_running || world.servers[seat].has_failed_disk {
                    return;
                }
                world.observer.disks_lost = true;
                world.servers[seat].host.begin_anew();
                world.servers[seat].image = None;
            }),
            Fault::LockAlarm => self.tell_lock_gone(usize::MAX),
            Fault::BackUpCoordinator => {
                self.keeper.backup = Some((self.keeper.view.clone(), self.keeper.version));
            }
            Fault::RestoreCoordinator => {
                if let Some((view, version)) = self.keeper.backup.clone() {
                    self.observer.coordinator_restored(&view);
                    (self.keeper.view, self.keeper.version, self.keeper.is_older) = (view, version, true);
                }
            }
            Fault::CopyStore(seat) => {
                self.servers[seat % count].copy_disk();
            }
            Fault::RestoreStore(seat) => {
                let seat = seat % count;
                let Some((store, disk, image)) = self.servers[seat].copy.clone() else { return Ok(()) };
                if store != self.servers[seat].host.store {
                    return Ok(()); // The coordinator knows a later generation of the store: it would not be opened.
                }
                self.end(seat, 0);
                self.observer.store_restored(store, disk.promised);
                let server = &mut self.servers[seat];
                (server.host.disk, server.image) = (disk, image);
            }
            Fault::Repair => self.repair(),
            Fault::DoWithoutTheLost => self.do_without_the_lost(),
            Fault::StopClock(whom) => self.on(whom, World::stop_clock),
            Fault::ClocksGo { jumps } => self.clocks_go(jumps)?,
            Fault::Hang(whom, thread) => self.on(whom, |world, seat| world.hang(seat, thread)),
            Fault::ThreadsGoOn => self.threads_go_on()?,
            Fault::SyncsFail => self.syncs_fail(),
            Fault::AcceptDisk => self.accept_disk(),
            Fault::CopyAll => self.copy_all(),
            Fault::RestoreAll => self.restore_all(),
        }
        Ok(())
    }

    /// The log that goes furthest of those that may lead stays whole, so nothing is lost that was acknowledged; but a
    /// torn record cannot be told from a rotten one, so its owner may distrust it as well.
    fn rot_after_power_loss(&mut self, entries_max: u64) {
        for seat in 0..self.servers.len() {
            self.end(seat, 0);
        }
        // A change on its way may take the whole one out of the view; then only an operator could go on.
        if self.agenda.values().any(|happening| matches!(happening, Happening::Change { .. })) {
            return;
        }
        let is_eligible = |seat: &usize| self.keeper.view.is_eligible(self.servers[*seat].host.store);
        let whole = (0..self.servers.len())
            .filter(is_eligible)
            .max_by_key(|seat| self.servers[*seat].host.disk.durable_end().id);
        self.observer.disks_lost = true;
        for seat in 0..self.servers.len() {
            let rotten = self.dice.below(entries_max + 1) as usize;
            let distrusts = self.dice.chance(30);
            let disk = &mut self.servers[seat].host.disk;
            if Some(seat) == whole {
                disk.is_suspect |= distrusts;
            } else if rotten > 0 {
                disk.durable = disk.durable.saturating_sub(rotten);
                disk.entries.truncate(disk.durable);
                disk.is_suspect = true;
            }
        }
    }

    /// Acts as an operator who reads the table of the group: does nothing if nothing is wrong, and else gives the
    /// order to the active, or to the member whose log goes furthest.
    fn repair(&mut self) {
        let now_ns = self.now_ns;
        let is_wrong = self.servers.iter().filter(|server| server.host.is_up()).any(|server| {
            let status = server.host.member().status(server.clock.moment(now_ns));
            status.trouble.is_some_and(|text| text.contains("repair"))
        });
        let texts: Vec<String> = self
            .servers
            .iter()
            .filter(|server| server.host.is_up())
            .filter_map(|server| server.host.member().status(server.clock.moment(now_ns)).trouble)
            .collect();
        self.note(format!("what is wrong: {texts:?}"));
        let running = (0..self.servers.len()).filter(|seat| self.servers[*seat].host.is_up());
        let furthest = running.max_by_key(|seat| self.servers[*seat].host.disk.durable_end().id);
        let active = self.whom(Whom::Active).filter(|seat| self.servers[*seat].is_serving());
        if let Some(seat) = active.or(furthest).filter(|_| is_wrong) {
            let life = self.servers[seat].life;
            let what = Arrival::Order(Order::Repair { without: Vec::new(), is_confirmed: true });
            self.soon(Happening::Arrival { seat, life, what });
        }
    }

    fn on(&mut self, whom: Whom, act: impl FnOnce(&mut World, usize)) {
        if let Some(seat) = self.whom(whom) {
            act(self, seat);
        }
    }
}
