//! Histories of data servers that are ordered out of service, and of faults that meet them there.

use super::*;

impl Run {
    pub(super) fn sure_in_service(&self, id: u64) -> Vec<u16> {
        let mut sure = self.sure(id);
        sure.retain(|server| self.state(*server).is_in_service());
        sure
    }

    /// A server that may be switched off is needed by no block.
    pub(super) fn check_those_that_left(&mut self) {
        for (address, state) in self.cluster.map.take_events().left_service {
            let server = (1..=SERVERS).find(|server| address == format!("{}:9866", ip(*server))).unwrap();
            self.log.push(format!("{server} is {state:?}"));
            // Of a copy that the map has not heard of yet, the one that it was made from is needed where that is.
            for id in self.nodes[&server].disk.keys().filter(|id| self.is_known_on(**id, server)) {
                let map = &self.cluster.map;
                let is_complete =
                    map.arena.record(map.arena.find(BlockId(*id)).unwrap()).state() == BlockState::Complete;
                let wanted = usize::from(self.wanted[id]);
                let needed = match state {
                    _ if !is_complete => 1,
                    AdminState::InMaintenance => usize::from(map.config.maintenance_replication).min(wanted),
                    // Replicas in maintenance will be back, and are not made up for.
                    _ => {
                        let slot = map.arena.find(BlockId(*id)).unwrap();
                        let needed = map.needed_in_service(slot, &map.count(slot));
                        needed.min(usize::from(map.config.default_replication))
                    }
                };
                let is_dead = !map.server(&uuid(server)).unwrap().alive;
                if is_dead && !is_complete {
                    continue;
                }
                let sure = self.sure_in_service(*id);
                assert!(
                    sure.len() >= needed,
                    "block {id}: {server} may go, {sure:?} are sure in service, {needed} are needed: {:?}\n{}",
                    map.count(map.arena.find(BlockId(*id)).unwrap()),
                    self.story()
                );
            }
        }
    }

    /// A server in maintenance is switched off until it counts as dead, and one that is off is started.
    pub(super) fn switch(&mut self, server: u16) {
        if self.nodes[&server].is_off {
            self.nodes.get_mut(&server).unwrap().is_off = false;
            return self.register(server);
        }
        if self.state(server) != AdminState::InMaintenance {
            return;
        }
        self.log.push(format!("{server} is switched off"));
        let node = self.nodes.get_mut(&server).unwrap();
        node.is_off = true;
        node.inbox.clear();
        for _ in 0..25 {
            self.time_passes(100);
        }
    }

    /// A server is switched off whatever it was to do, if others have what it has; or it is started again.
    pub(super) fn die(&mut self, server: u16) {
        if self.nodes[&server].is_off {
            self.nodes.get_mut(&server).unwrap().is_off = false;
            return self.register(server);
        }
        let is_needed = (1..=BLOCKS).any(|id| {
            let sure = self.sure(id);
            sure.iter().filter(|other| **other != server).count() == 0
        });
        if is_needed || self.nodes.values().filter(|node| node.is_off).count() > 0 {
            return;
        }
        self.log.push(format!("{server} dies"));
        let node = self.nodes.get_mut(&server).unwrap();
        node.is_off = true;
        node.inbox.clear();
        node.outbox.clear();
        for _ in 0..25 {
            self.time_passes(100);
        }
    }

    pub(super) fn fail(&mut self, server: u16) {
        let at = self.random.below(2);
        let node = &self.nodes[&server];
        let held: Vec<u64> = node.disk.iter().filter(|(_, held)| **held == at).map(|(id, _)| *id).collect();
        let is_needed =
            held.iter().any(|id| self.sure(*id).iter().filter(|other| **other != server).count() == 0);
        if is_needed || node.is_off || node.failed[1 - at] {
            return;
        }
        self.log.push(format!("{server} loses its storage {at}"));
        let node = self.nodes.get_mut(&server).unwrap();
        node.failed[at] = true;
        for id in held {
            node.disk.remove(&id);
            node.rotten.remove(&id);
        }
        node.outbox.retain(|message| !matches!(message, Message::News(on, _) if *on == at));
        self.heartbeat(server, false);
    }

    pub(super) fn flip_safe_mode(&mut self) {
        self.log.push("safe mode is entered or left".into());
        if self.cluster.map.in_safe_mode() {
            self.cluster.map.leave_safe_mode(true, self.cluster.now);
        } else {
            self.cluster.map.enter_safe_mode();
        }
    }

    pub(super) fn order(&mut self, server: u16) {
        let orders = [AdminOrder::InService, AdminOrder::Decommission, AdminOrder::Maintenance];
        let order = orders[self.random.below(orders.len())];
        self.log.push(format!("{server} shall be {order:?}"));
        self.cluster.map.order_admin_state(&uuid(server), order, self.cluster.now);
    }

    /// Servers can be taken out of service, whatever has happened before, as long as enough others are there.
    pub(super) fn all_may_go(&mut self) {
        let most = self.wanted.values().copied().max().unwrap();
        let needed = most.min(self.cluster.map.config.default_replication);
        let goes = SERVERS.saturating_sub(needed);
        let orders = [AdminOrder::Maintenance, AdminOrder::Decommission];
        let order = orders[self.random.below(2)];
        for server in 1..=goes.min(2) {
            self.log.push(format!("{server} shall be {order:?} in the end"));
            self.cluster.map.order_admin_state(&uuid(server), order, self.cluster.now);
        }
        for _ in 0..80 {
            for server in 1..=SERVERS {
                while !self.nodes[&server].inbox.is_empty() {
                    self.carry_out(server);
                }
                self.deliver_all(server);
                self.heartbeat(server, false);
            }
            self.time_passes(500);
            while self.cluster.map.sweep(10, self.cluster.now) {}
        }
        for server in 1..=goes.min(2) {
            let state = self.state(server);
            assert!(
                matches!(state, AdminState::Decommissioned | AdminState::InMaintenance),
                "{server} is {state:?} for ever, {:?}\n{}",
                self.wanted,
                self.story()
            );
        }
    }
}

#[test]
fn servers_that_leave_service_and_come_back() {
    play(Mode { admin: true, ..SIMPLE });
    play(Mode { admin: true, lag: true, takeovers: true, reopens: true, rot: true, ..SIMPLE });
}

#[test]
fn servers_that_are_off_for_maintenance() {
    play(Mode { admin: true, away: true, ..SIMPLE });
    play(Mode { admin: true, away: true, lag: true, takeovers: true, reopens: true, ..SIMPLE });
}

const LEAVING: Mode = Mode { admin: true, away: true, ..SIMPLE };

#[test]
fn servers_that_leave_while_others_die() {
    play(Mode { deaths: true, ..LEAVING });
    play(Mode { deaths: true, lag: true, takeovers: true, reopens: true, ..LEAVING });
}

#[test]
fn servers_that_leave_while_storages_fail() {
    play(Mode { failures: true, ..LEAVING });
    play(Mode { failures: true, lag: true, takeovers: true, reopens: true, ..LEAVING });
}

#[test]
fn servers_that_leave_where_more_replicas_are_wanted_than_there_are_servers() {
    play(Mode { many: true, ..LEAVING });
    play(Mode { many: true, lag: true, takeovers: true, reopens: true, ..LEAVING });
}

#[test]
fn servers_that_leave_in_safe_mode() {
    play(Mode { safe: true, ..LEAVING });
    play(Mode { safe: true, deaths: true, lag: true, takeovers: true, reopens: true, ..LEAVING });
}

#[test]
fn servers_that_leave_whatever_happens() {
    play(Mode {
        deaths: true,
        failures: true,
        many: true,
        safe: true,
        takeovers: true,
        reopens: true,
        lag: true,
        ..LEAVING
    });
}
