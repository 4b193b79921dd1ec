//! Random histories of data servers that carry orders out late, lose answers, and report early, against a model of their disks. Checked at
//! every step: the map is consistent, no order goes out that leaves fewer sure replicas than are wanted, and nothing counts that is gone or
//! may go. At the end, when all is well: every block has the replicas that are wanted.
// tidy: long, because one history has faults of all kinds, and each kind is a few lines

use super::cluster::*;
use crate::{random::Random, *};
use base::{BlockId, Epoch, InodeId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const SERVERS: u16 = 4;
const BLOCKS: u64 = 4;

enum Message {
    News(usize, Increment),
    Full(Vec<Vec<u64>>),
}

#[derive(Default)]
struct Node {
    /// The storage of each replica.
    disk: BTreeMap<u64, usize>,
    rotten: BTreeSet<u64>,
    /// Orders to delete that have arrived, or are under way. A lost answer is not here.
    inbox: VecDeque<u64>,
    /// What it says, in order.
    outbox: VecDeque<Message>,
    remaining: u64,
    is_off: bool,
    /// Which of its storages have failed.
    failed: [bool; 2],
}

#[derive(Clone, Copy)]
struct Mode {
    /// Orders are carried out late.
    lag: bool,
    moves: bool,
    /// A move is told by the next full report only, as by Hadoop's DiskBalancer.
    silent: bool,
    /// A balancer has replicas copied, and says which ones should go for them. Some of its hints are nonsense.
    balancing: bool,
    takeovers: bool,
    reopens: bool,
    rot: bool,
    /// Servers are ordered out of service, and back.
    admin: bool,
    /// Servers in maintenance are switched off for a while.
    away: bool,
    /// Servers die in any state, and come back with all that they had.
    deaths: bool,
    /// Storages fail, and come back empty when their server starts anew.
    failures: bool,
    /// More replicas are wanted than there are servers.
    many: bool,
    /// Safe mode is entered and left.
    safe: bool,
}

struct Run {
    cluster: Cluster,
    nodes: BTreeMap<u16, Node>,
    wanted: BTreeMap<u64, u16>,
    random: Random,
    mode: Mode,
    epoch: u64,
    log: Vec<String>,
}

fn name(server: u16, at: usize) -> String {
    format!("DS-{server}-{at}")
}

impl Run {
    fn new(seed: u64, mode: Mode) -> Self {
        let mut config = Config { pending_timeout_ms: 2_000, ..config() };
        if mode.admin {
            config.default_replication = 1 + (seed % 3) as u16;
            config.maintenance_replication = (seed / 3 % 3) as u16;
            // HDFS refuses anything else.
            config.maintenance_replication = config.maintenance_replication.min(config.default_replication);
        }
        let mut cluster = Cluster::empty(config);
        cluster.map.activate(cluster.now);
        let mut run = Self {
            nodes: (1..=SERVERS).map(|server| (server, Node { remaining: 50, ..Node::default() })).collect(),
            wanted: BTreeMap::new(),
            random: Random::new(seed),
            mode,
            epoch: 1,
            log: Vec::new(),
            cluster,
        };
        for server in 1..=SERVERS {
            run.register(server);
            run.deliver_all(server);
            run.cluster.pass_trial(server);
        }
        for id in 1..=BLOCKS {
            let replication = 1 + run.random.below(3) as u16;
            run.wanted.insert(id, replication);
            let map = &mut run.cluster.map;
            map.add_block(
                block(id, 0),
                InodeId(1),
                replication,
                BlockState::UnderConstruction,
                &[],
                run.cluster.now,
            );
            for server in 1..=replication {
                run.nodes.get_mut(&server).unwrap().disk.insert(id, 0);
                run.say(server, Message::News(0, received(block(id, id))));
                run.deliver_all(server);
            }
            run.cluster.map.commit(block(id, id), run.cluster.now);
        }
        run
    }

    fn say(&mut self, server: u16, message: Message) {
        self.nodes.get_mut(&server).unwrap().outbox.push_back(message);
    }

    fn beat(&self, server: u16) -> Heartbeat {
        let report = |at| StorageReport {
            id: name(server, at).as_str().into(),
            capacity: 100 * GIB,
            remaining: self.nodes[&server].remaining * GIB,
            ..StorageReport::default()
        };
        let failed = self.nodes[&server].failed;
        let storages = (0..2).filter(|at| !failed[*at]).map(report).collect();
        let failed_volumes = failed.iter().filter(|failed| **failed).count() as u32;
        Heartbeat { storages, xceivers: 1, failed_volumes, ..Heartbeat::default() }
    }

    fn picture(&self, server: u16) -> Message {
        let of = |at| {
            self.nodes[&server].disk.iter().filter(|(_, held)| **held == at).map(|(id, _)| *id).collect()
        };
        Message::Full(vec![of(0), of(1)])
    }

    /// The data server begins a session: all that it was ordered before is done or dropped.
    fn register(&mut self, server: u16) {
        self.log.push(format!("{server} registers"));
        self.nodes.get_mut(&server).unwrap().outbox.clear();
        self.cluster.map.register(registration(server), session(server), self.cluster.now).unwrap();
        self.heartbeat(server, false);
        let picture = self.picture(server);
        self.say(server, picture);
    }

    fn sure(&self, id: u64) -> Vec<u16> {
        let is_sure = |(_, node): &(&u16, &Node)| {
            node.disk.contains_key(&id) && !node.rotten.contains(&id) && !node.inbox.contains(&id)
        };
        // As long as nobody can know that a server is off, it counts.
        let is_sure = |entry: &(&u16, &Node)| {
            let is_heard =
                !entry.1.is_off || self.cluster.map.server(&uuid(*entry.0)).is_some_and(|face| face.alive);
            is_sure(entry) && is_heard
        };
        self.nodes.iter().filter(is_sure).map(|(server, _)| *server).collect()
    }

    fn state(&self, server: u16) -> AdminState {
        self.cluster.map.server(&uuid(server)).unwrap().admin_state
    }

    fn sure_in_service(&self, id: u64) -> Vec<u16> {
        let mut sure = self.sure(id);
        sure.retain(|server| self.state(*server).is_in_service());
        sure
    }

    /// A server that may be switched off is needed by no block.
    fn check_those_that_left(&mut self) {
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

    fn is_known_on(&self, id: u64, server: u16) -> bool {
        let map = &self.cluster.map;
        let Some(slot) = map.arena.find(BlockId(id)) else { return false };
        map.arena.places(slot).iter().any(|place| {
            map.servers.get(map.storages.get(place).server).face.uuid().as_ref() == uuid(server).as_str()
        })
    }

    fn heartbeat(&mut self, server: u16, may_be_lost: bool) {
        if self.nodes[&server].is_off {
            return;
        }
        let heartbeat = self.beat(server);
        let commands = self.cluster.speak(server, |map, id, now| map.heartbeat(id, &heartbeat, now)).unwrap();
        let is_lost = may_be_lost && self.random.below(4) == 0;
        for command in commands {
            match command {
                Command::Register if !is_lost => {
                    while !self.nodes[&server].inbox.is_empty() {
                        self.carry_out(server);
                    }
                    self.register(server);
                }
                Command::Invalidate(blocks) => {
                    for block in blocks {
                        let id = block.id.0;
                        self.log.push(format!("{server} is ordered to delete {id}, lost: {is_lost}"));
                        let is_good = self.nodes[&server].disk.contains_key(&id)
                            && !self.nodes[&server].rotten.contains(&id);
                        self.nodes.get_mut(&server).unwrap().inbox.push_back(id);
                        let sure = self.sure_in_service(id);
                        let wanted = usize::from(self.wanted[&id]);
                        assert!(
                            !is_good || sure.len() >= wanted,
                            "block {id}: {server} is ordered to delete it, {sure:?} are sure, {wanted} are wanted\n{}",
                            self.story()
                        );
                        if is_lost {
                            self.nodes.get_mut(&server).unwrap().inbox.pop_back();
                        }
                        if !self.mode.lag {
                            while !self.nodes[&server].inbox.is_empty() {
                                self.carry_out(server);
                            }
                        }
                    }
                }
                Command::Transfer(transfers) if !is_lost => {
                    for transfer in transfers {
                        let id = transfer.block.id.0;
                        let from = &self.nodes[&server];
                        let may = from.disk.contains_key(&id) && !from.rotten.contains(&id);
                        for target in transfer.targets {
                            let to: u16 = target.server.uuid().trim_start_matches("uuid-").parse().unwrap();
                            let takes = !self.nodes[&to].disk.contains_key(&id) && !self.nodes[&to].is_off;
                            if may && takes && self.random.below(4) > 0 {
                                self.log.push(format!("{id} is copied from {server} to {to}"));
                                let mut at = self.random.below(2);
                                if self.nodes[&to].failed[at] {
                                    at = 1 - at;
                                }
                                if self.nodes[&to].failed[at] {
                                    continue;
                                }
                                self.nodes.get_mut(&to).unwrap().disk.insert(id, at);
                                self.say(to, Message::News(at, received(block(id, id))));
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn carry_out(&mut self, server: u16) {
        let node = self.nodes.get_mut(&server).unwrap();
        let Some(id) = node.inbox.pop_front() else { return };
        self.log.push(format!("{server} deletes {id}"));
        node.rotten.remove(&id);
        if let Some(at) = node.disk.remove(&id) {
            self.say(server, Message::News(at, Increment::Deleted(block(id, id))));
        }
    }

    fn deliver(&mut self, server: u16) {
        let is_alive = self.cluster.map.server(&uuid(server)).is_some_and(|face| face.alive);
        if !is_alive || self.nodes[&server].is_off {
            return; // It is refused, and registers with its next heartbeat.
        }
        let Some(message) = self.nodes.get_mut(&server).unwrap().outbox.pop_front() else { return };
        match message {
            Message::News(at, news) => {
                self.log.push(format!("{server} tells {news:?} on {at}"));
                self.cluster
                    .speak(server, |map, id, now| {
                        map.incremental_report(id, &name(server, at), StorageType::Disk, &[news], now)
                    })
                    .unwrap();
            }
            Message::Full(storages) => {
                self.log.push(format!("{server} reports {storages:?}"));
                for (at, ids) in storages.iter().enumerate() {
                    if self.nodes[&server].failed[at] {
                        continue;
                    }
                    let rows: Vec<ReportedReplica> =
                        ids.iter().map(|id| finalized(block(*id, *id))).collect();
                    self.cluster
                        .speak(server, |map, id, now| {
                            let report =
                                map.begin_report(id, &name(server, at), StorageType::Disk, 0, now)?;
                            map.report_slice(report, &rows, now)?;
                            map.finish_report(report, now)
                        })
                        .unwrap();
                    self.check();
                    if self.random.below(2) == 0 {
                        while self.cluster.map.sweep(10, self.cluster.now) {}
                    }
                }
            }
        }
    }

    fn deliver_all(&mut self, server: u16) {
        for _ in 0..self.nodes[&server].outbox.len() {
            self.deliver(server);
        }
    }

    fn step(&mut self) {
        let server = 1 + self.random.below(usize::from(SERVERS)) as u16;
        let id = 1 + self.random.below(BLOCKS as usize) as u64;
        if (self.mode.deaths || self.mode.failures || self.mode.safe) && self.random.below(12) == 0 {
            match self.random.below(3) {
                0 if self.mode.deaths => self.die(server),
                1 if self.mode.failures => self.fail(server),
                2 if self.mode.safe => self.flip_safe_mode(),
                _ => {}
            }
            return self.check();
        }
        match self.random.below(25) {
            0..6 => self.heartbeat(server, true),
            6..8 => self.carry_out(server),
            8..13 => self.deliver(server),
            13 => {
                let picture = self.picture(server);
                self.log.push(format!("{server} takes a picture"));
                self.say(server, picture);
            }
            14 | 15 => {
                let replication = 1 + self.random.below(if self.mode.many { 6 } else { 3 }) as u16;
                self.log.push(format!("{id} shall have {replication}"));
                self.wanted.insert(id, replication);
                self.cluster.map.set_replication(BlockId(id), replication, self.cluster.now);
            }
            16 => self.restart(server),
            18 if self.mode.away => self.switch(server),
            17 | 18 => self.nodes.get_mut(&server).unwrap().remaining = 10 + self.random.below(80) as u64,
            19 if self.mode.moves => self.shift(server, id),
            20 if self.mode.takeovers => self.take_over(),
            21 if self.mode.reopens => self.reopen(id),
            22 if self.mode.rot => self.rot(server, id),
            23 if self.mode.admin => self.order(server),
            24 if self.mode.balancing => self.balance(server, id),
            _ => self.time_passes(100),
        }
        self.check();
    }

    /// A server in maintenance is switched off until it counts as dead, and one that is off is started.
    fn switch(&mut self, server: u16) {
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
    fn die(&mut self, server: u16) {
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

    fn fail(&mut self, server: u16) {
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

    fn flip_safe_mode(&mut self) {
        self.log.push("safe mode is entered or left".into());
        if self.cluster.map.in_safe_mode() {
            self.cluster.map.leave_safe_mode(true, self.cluster.now);
        } else {
            self.cluster.map.enter_safe_mode();
        }
    }

    fn order(&mut self, server: u16) {
        let orders = [AdminOrder::InService, AdminOrder::Decommission, AdminOrder::Maintenance];
        let order = orders[self.random.below(orders.len())];
        self.log.push(format!("{server} shall be {order:?}"));
        self.cluster.map.order_admin_state(&uuid(server), order, self.cluster.now);
    }

    fn time_passes(&mut self, ms: u64) {
        // Nobody is taken for dead: what is known of rotten bytes would be forgotten, as in HDFS.
        for server in 1..=SERVERS {
            let heartbeat = self.beat(server);
            if !self.nodes[&server].is_off {
                self.cluster.speak(server, |map, id, now| map.take_lifeline(id, &heartbeat, now)).unwrap();
            }
        }
        self.cluster.now = self.cluster.now.plus_ms(ms);
        self.cluster.map.tick(self.cluster.now, &|_| 0);
        self.check_those_that_left();
        while self.random.below(3) > 0 && self.cluster.map.sweep(2, self.cluster.now) {}
    }

    /// A data server starts anew. It loses its queue of orders, and some replicas of blocks that other servers hold as well.
    fn restart(&mut self, server: u16) {
        if self.nodes[&server].is_off {
            return;
        }
        self.nodes.get_mut(&server).unwrap().inbox.clear();
        self.nodes.get_mut(&server).unwrap().failed = [false; 2];
        for id in 1..=BLOCKS {
            let others = self.sure(id).iter().filter(|other| **other != server).count();
            if others > 0 && self.random.below(3) == 0 {
                self.log.push(format!("{server} loses {id}"));
                let node = self.nodes.get_mut(&server).unwrap();
                node.disk.remove(&id);
                node.rotten.remove(&id);
            }
        }
        self.register(server);
    }

    fn shift(&mut self, server: u16, id: u64) {
        let node = self.nodes.get_mut(&server).unwrap();
        if node.failed != [false; 2] {
            return;
        }
        if let Some(at) = node.disk.get_mut(&id) {
            let from = *at;
            *at = 1 - from;
            self.log.push(format!("{server} moves {id} from {from}"));
            if self.mode.silent {
                return;
            }
            self.say(server, Message::News(1 - from, received(block(id, id))));
            self.say(server, Message::News(from, Increment::Deleted(block(id, id))));
        }
    }

    /// All data servers hear of the new active at once, and drop the orders of the former one.
    fn take_over(&mut self) {
        self.log.push("a takeover".into());
        self.epoch += 1;
        self.cluster.map.become_listening(self.cluster.now);
        self.cluster.map.become_commanding(Epoch(self.epoch), self.cluster.now);
        for server in 1..=SERVERS {
            let node = self.nodes.get_mut(&server).unwrap();
            node.inbox.clear();
            // Reports that were made before have no permission of the new active, and do not count: see `is_unfenced`.
            node.outbox.retain(|message| matches!(message, Message::News(..)));
            self.heartbeat(server, false);
        }
    }

    /// A client opens the block for append under its stamp, and closes it without writing.
    fn reopen(&mut self, id: u64) {
        self.log.push(format!("{id} is opened and closed"));
        self.cluster.map.reopen(block(id, id), &[]);
        self.check();
        for _ in 0..self.random.below(4) {
            let server = 1 + self.random.below(usize::from(SERVERS)) as u16;
            self.heartbeat(server, true);
            self.deliver(server);
            if self.mode.deaths || self.mode.safe {
                self.time_passes(100);
            }
            self.check();
        }
        self.cluster.map.commit(block(id, id), self.cluster.now);
        self.cluster.map.complete(BlockId(id), self.cluster.now);
    }

    /// The server fetches the block from a server that has it, or only says so.
    fn balance(&mut self, server: u16, id: u64) {
        let sources = self.sure(id);
        let from = 1 + self.random.below(usize::from(SERVERS) + 1) as u16;
        let node = self.nodes.get_mut(&server).unwrap();
        let at = match node.disk.get(&id) {
            Some(at) => *at,
            None if sources.is_empty() => return,
            None => {
                let at = self.random.below(2);
                node.disk.insert(id, at);
                at
            }
        };
        self.log.push(format!("{server} has fetched {id}, and {from} is to give it up"));
        let delete_hint = Some(uuid(from).as_str().into());
        self.say(server, Message::News(at, Increment::Received { block: block(id, id), delete_hint }));
    }

    fn rot(&mut self, server: u16, id: u64) {
        let others = self.sure(id).iter().filter(|other| **other != server).count();
        if others > 1 && self.nodes[&server].disk.contains_key(&id) {
            self.log.push(format!("{server} has a rotten {id}"));
            self.cluster.map.report_bad(block(id, id), &uuid(server), None, self.cluster.now);
            let (map, slot) = (&self.cluster.map, self.cluster.map.arena.find(BlockId(id)).unwrap());
            let is_known = map.arena.places(slot).iter().any(|place| {
                map.servers.get(map.storages.get(place).server).face.uuid().as_ref() == uuid(server).as_str()
                    && map.redundancy.corrupt.contains(BlockId(id), place)
            });
            if is_known {
                self.nodes.get_mut(&server).unwrap().rotten.insert(id);
            }
        }
    }

    fn story(&self) -> String {
        self.log.iter().rev().take(60).rev().cloned().collect::<Vec<_>>().join("\n")
    }

    fn check(&self) {
        if let Err(broken) = self.cluster.map.is_consistent() {
            panic!("{broken}\n{}", self.story());
        }
        let map = &self.cluster.map;
        for id in 1..=BLOCKS {
            let Some(slot) = map.arena.find(BlockId(id)) else { continue };
            if map.arena.record(slot).state() == BlockState::Complete {
                let located = map.locations(BlockId(id), Reader::default(), 0, self.cluster.now).unwrap();
                let faces = located.locations.iter().map(|at| map.server(at.server.uuid()).unwrap());
                let faces: Vec<_> = faces.collect();
                assert!(faces.iter().all(|face| face.alive), "{}", self.story());
                // Servers in maintenance are named only where nobody else has a good replica.
                let resting =
                    faces.iter().filter(|face| face.admin_state == AdminState::InMaintenance).count();
                assert!(resting == 0 || resting == faces.len(), "{}", self.story());
                assert_eq!(map.has_place(BlockId(id)), !located.locations.is_empty(), "{}", self.story());
            }
            for place in map.good_places(slot) {
                let storage = map.storages.get(place);
                let server: u16 =
                    map.servers.get(storage.server).face.uuid().trim_start_matches("uuid-").parse().unwrap();
                let node = &self.nodes[&server];
                let is_there = node.disk.contains_key(&id) && !node.inbox.contains(&id);
                assert!(
                    is_there
                        || storage.stale
                        || node.rotten.contains(&id)
                        || node.is_off
                        || node.failed != [false; 2],
                    "block {id} counts on {server}, where it is gone or goes\n{}",
                    self.story()
                );
            }
        }
    }

    fn settle(&mut self) {
        self.cluster.map.leave_safe_mode(true, self.cluster.now);
        for server in 1..=SERVERS {
            if self.nodes[&server].is_off {
                self.switch(server);
            }
            if self.nodes[&server].failed != [false; 2] {
                self.restart(server);
            }
            self.cluster.map.order_admin_state(&uuid(server), AdminOrder::InService, self.cluster.now);
        }
        for round in 0..60 {
            for server in 1..=SERVERS {
                for id in self.nodes[&server].rotten.clone() {
                    self.cluster.map.report_bad(block(id, id), &uuid(server), None, self.cluster.now);
                }
                while !self.nodes[&server].inbox.is_empty() {
                    self.carry_out(server);
                }
                if round % 10 == 9 {
                    let picture = self.picture(server);
                    self.say(server, picture);
                }
                self.deliver_all(server);
                self.heartbeat(server, false);
                self.check();
            }
            self.time_passes(500);
            while self.cluster.map.sweep(10, self.cluster.now) {}
        }
        for id in 1..=BLOCKS {
            let wanted = usize::from(self.wanted[&id]).min(usize::from(SERVERS));
            let sure = self.sure(id);
            let all = self.nodes.values().filter(|node| node.disk.contains_key(&id)).count();
            if sure.len() != wanted {
                for s in 1..=SERVERS {
                    let m = &self.cluster.map;
                    let x = m.servers.get(m.servers.find(&uuid(s)).unwrap());
                    eprintln!(
                        "DBG {s} contra {} toreg {} asked {:?} orders {} storages {:?}",
                        x.contradicts,
                        x.is_to_register,
                        x.last_asked,
                        x.orders.len(),
                        x.storages
                            .iter()
                            .map(|p| (
                                *p,
                                m.storages.get(*p).stale,
                                m.storages.get(*p).is_named,
                                m.storages.get(*p).is_reported
                            ))
                            .collect::<Vec<_>>()
                    );
                }
                let m = &self.cluster.map;
                let slot = m.arena.find(BlockId(id)).unwrap();
                eprintln!(
                    "DBG count {:?} pend {:?} queued {} now {:?}",
                    m.count(slot),
                    m.redundancy.pending.servers(BlockId(id)),
                    m.arena.record(slot).is_queued(),
                    self.cluster.now
                );
            }
            assert!(
                sure.len() == wanted && all == wanted,
                "block {id}: {sure:?} of {all}, not {wanted}\n{}",
                self.story()
            );
        }
        if self.mode.admin {
            self.all_may_go();
        }
    }

    /// Servers can be taken out of service, whatever has happened before, as long as enough others are there.
    fn all_may_go(&mut self) {
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

/// The number of histories of each kind. Before a change of the rules, play thousands from a seed that nobody has played before, with
/// FIRST_HISTORY and HISTORIES in the environment: 3,000 found what 1,500 had not.
const HISTORIES: u64 = 40;

#[allow(clippy::disallowed_methods, reason = "a person who plays thousands of histories says which")]
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

fn play(mode: Mode) {
    let first = number("FIRST_HISTORY", 0);
    for seed in first..first + number("HISTORIES", HISTORIES) {
        let ended = std::panic::catch_unwind(|| {
            let mut run = Run::new(seed, mode);
            for _ in 0..300 {
                run.step();
            }
            run.settle();
        });
        if let Err(why) = ended {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(why);
        }
    }
}

const SIMPLE: Mode = Mode {
    lag: false,
    moves: false,
    silent: false,
    balancing: false,
    takeovers: false,
    reopens: false,
    rot: false,
    admin: false,
    away: false,
    deaths: false,
    failures: false,
    many: false,
    safe: false,
};

#[test]
fn orders_that_are_lost_and_servers_that_begin_anew() {
    play(SIMPLE);
}

#[test]
fn takeovers_appends_and_rotten_bytes() {
    play(Mode { takeovers: true, reopens: true, rot: true, ..SIMPLE });
}

/// Rotten bytes are left out: that they are known goes with the storage that a report says to lack the replica, as in HDFS.
#[test]
fn replicas_that_are_moved() {
    play(Mode { moves: true, takeovers: true, reopens: true, ..SIMPLE });
}

#[test]
fn replicas_that_are_moved_without_a_word() {
    play(Mode { moves: true, silent: true, ..SIMPLE });
}

#[test]
fn a_balancer_that_moves_replicas_and_gives_hints_true_and_false() {
    play(Mode { balancing: true, takeovers: true, reopens: true, ..SIMPLE });
    play(Mode { balancing: true, lag: true, moves: true, ..SIMPLE });
}

#[test]
fn orders_that_are_carried_out_late() {
    play(Mode { lag: true, reopens: true, rot: true, ..SIMPLE });
}

#[test]
fn orders_that_are_carried_out_late_where_replicas_are_moved_without_a_word() {
    play(Mode { moves: true, silent: true, lag: true, ..SIMPLE });
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
