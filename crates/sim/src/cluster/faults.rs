//! What a scenario does, done.

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
            Fault::Heal => {
                self.network.heal();
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
            Fault::SyncFails(whom) => self.on(whom, |world, seat| world.servers[seat].disk.fails = true),
            Fault::SlowDisk(whom, us) => self.on(whom, |world, seat| {
                world.servers[seat].disk = DiskMood { sync_us_min: us / 2, sync_us_max: us, fails: false };
            }),
            Fault::QuickDisks => {
                for server in &mut self.servers {
                    server.disk = DiskMood { fails: server.disk.fails, ..DiskMood::default() };
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
            Fault::Purge(whom) => self.on(whom, |world, seat| {
                if world.servers[seat].host.is_up() {
                    let keep = world.dice.below(8);
                    world.servers[seat].take_image(keep);
                }
            }),
            Fault::Wipe(whom) => self.on(whom, |world, seat| {
                if world.servers[seat].is_running {
                    return;
                }
                world.observer.disks_lost = true;
                world.servers[seat].host.begin_anew();
                world.servers[seat].image = None;
            }),
            Fault::LockAlarm => self.tell_lock_gone(usize::MAX),
        }
        Ok(())
    }

    fn on(&mut self, whom: Whom, act: impl FnOnce(&mut World, usize)) {
        if let Some(seat) = self.whom(whom) {
            act(self, seat);
        }
    }
}
