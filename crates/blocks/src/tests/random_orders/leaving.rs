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
            self.left += 1;
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
        self.days_without_changes(80);
        for server in 1..=goes.min(2) {
            let state = self.state(server);
            assert!(
                matches!(state, AdminState::Decommissioned | AdminState::InMaintenance),
                "{server} is {state:?} for ever, {:?}\n{}",
                self.wanted,
                self.story()
            );
        }
        self.nobody_goes_twice();
        self.those_that_left_are_needed_again(goes.min(2));
    }

    /// All servers that are on do what they are told, and nothing else happens.
    fn days_without_changes(&mut self, heartbeats: usize) {
        for _ in 0..heartbeats {
            for server in (1..=SERVERS).filter(|server| !self.nodes[server].is_off).collect::<Vec<_>>() {
                while !self.nodes[&server].inbox.is_empty() {
                    self.carry_out(server);
                }
                self.deliver_all(server);
                self.heartbeat(server, false);
            }
            self.time_goes_on(500);
            while self.cluster.map.sweep(10, self.cluster.now) {}
        }
    }

    /// What lets a server go calls it back only if something has happened.
    fn nobody_goes_twice(&mut self) {
        let left = self.left;
        self.days_without_changes(80);
        assert_eq!(self.left, left, "nothing has happened, and a server went once more\n{}", self.story());
    }

    /// All servers in service die. The others are needed again as long as they have what nobody else has.
    fn those_that_left_are_needed_again(&mut self, gone: u16) {
        for server in gone + 1..=SERVERS {
            self.log.push(format!("{server} dies in the end"));
            let node = self.nodes.get_mut(&server).unwrap();
            node.is_off = true;
            node.inbox.clear();
            node.outbox.clear();
        }
        self.days_without_changes(80);
        for server in 1..=gone {
            if self.state(server).is_maintenance() && self.cluster.map.config.maintenance_replication == 0 {
                // Servers in maintenance may have the last replicas, if an operator wants it so.
                continue;
            }
            let is_good = |id: u64, on: u16| {
                let node = &self.nodes[&on];
                node.disk.contains_key(&id) && !node.rotten.contains(&id) && self.is_known_on(id, on)
            };
            // One that is needed again is enough for a block.
            let is_kept = |id: u64| (1..=gone).any(|on| self.state(on).is_leaving() && is_good(id, on));
            let held = self.nodes[&server].disk.keys().copied();
            let last: Vec<u64> = held.filter(|id| is_good(*id, server) && !is_kept(*id)).collect();
            assert!(
                last.is_empty(),
                "{server} has the last replicas of {last:?}, and is {:?}\n{}",
                self.state(server),
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
