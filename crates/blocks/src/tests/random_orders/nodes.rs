//! The data servers of the histories: their disks, what they say, and what they are ordered.

use super::*;

pub(super) enum Message {
    News(usize, Increment),
    Full(Vec<Vec<u64>>),
}

#[derive(Default)]
pub(super) struct Node {
    /// The storage of each replica.
    pub(super) disk: BTreeMap<u64, usize>,
    pub(super) rotten: BTreeSet<u64>,
    /// Orders to delete that have arrived, or are under way. A lost answer is not here.
    pub(super) inbox: VecDeque<u64>,
    /// What it says, in order.
    pub(super) outbox: VecDeque<Message>,
    pub(super) remaining: u64,
    pub(super) is_off: bool,
    /// Which of its storages have failed.
    pub(super) failed: [bool; 2],
}

pub(super) fn name(server: u16, at: usize) -> String {
    format!("DS-{server}-{at}")
}

impl Run {
    pub(super) fn say(&mut self, server: u16, message: Message) {
        self.nodes.get_mut(&server).unwrap().outbox.push_back(message);
    }

    pub(super) fn medium(&self, at: usize) -> StorageType {
        if self.mode.media && at == 1 { StorageType::Archive } else { StorageType::Disk }
    }

    pub(super) fn beat(&self, server: u16) -> Heartbeat {
        let report = |at| StorageReport {
            id: name(server, at).as_str().into(),
            storage_type: self.medium(at),
            capacity: 100 * GIB,
            remaining: self.nodes[&server].remaining * GIB,
            ..StorageReport::default()
        };
        let failed = self.nodes[&server].failed;
        let storages = (0..2).filter(|at| !failed[*at]).map(report).collect();
        let failed_volumes = failed.iter().filter(|failed| **failed).count() as u32;
        // Which others are slow changes with what is known of them.
        let is_accused =
            |other: &u16| (self.nodes[other].disk.len() as u16 + server + other).is_multiple_of(7);
        let accused = (1..=SERVERS).filter(is_accused).map(|other| SlowPeer {
            address: format!("{}:9866", ip(other)),
            outlier: Outlier { latency_ms: f64::from(other), ..Outlier::default() },
        });
        Heartbeat {
            storages,
            xceivers: 1,
            failed_volumes,
            slow_peers: accused.collect(),
            ..Heartbeat::default()
        }
    }

    pub(super) fn picture(&self, server: u16) -> Message {
        let of = |at| {
            self.nodes[&server].disk.iter().filter(|(_, held)| **held == at).map(|(id, _)| *id).collect()
        };
        Message::Full(vec![of(0), of(1)])
    }

    /// The data server begins a session: all that it was ordered before is done or dropped.
    pub(super) fn register(&mut self, server: u16) {
        self.log.push(format!("{server} registers"));
        self.nodes.get_mut(&server).unwrap().outbox.clear();
        self.cluster.map.register(registration(server), session(server), self.cluster.now).unwrap();
        self.heartbeat(server, false);
        let picture = self.picture(server);
        self.say(server, picture);
    }

    pub(super) fn sure(&self, id: u64) -> Vec<u16> {
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

    pub(super) fn heartbeat(&mut self, server: u16, may_be_lost: bool) {
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
                            if to == server {
                                self.move_within(server, id, &target.storage);
                                continue;
                            }
                            let takes = !self.nodes[&to].disk.contains_key(&id) && !self.nodes[&to].is_off;
                            if may && takes && (self.is_calm || self.random.below(4) > 0) {
                                self.log.push(format!("{id} is copied from {server} to {to}"));
                                let mut at = match self.mode.media {
                                    true => usize::from(*target.storage == name(to, 1)),
                                    false => self.random.below(2),
                                };
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

    /// The server is ordered to move a replica to another of its storages. Some do not, and tell nothing.
    fn move_within(&mut self, server: u16, id: u64, storage: &str) {
        let at = usize::from(storage == name(server, 1));
        let obeys = self.is_calm || self.random.below(4) > 0;
        let node = self.nodes.get_mut(&server).unwrap();
        if !obeys || node.failed != [false; 2] || !node.disk.contains_key(&id) || node.rotten.contains(&id) {
            return;
        }
        node.disk.insert(id, at);
        self.log.push(format!("{server} moves {id} to {at}, as it was ordered"));
        self.say(server, Message::News(at, received(block(id, id))));
    }

    pub(super) fn carry_out(&mut self, server: u16) {
        let node = self.nodes.get_mut(&server).unwrap();
        let Some(id) = node.inbox.pop_front() else { return };
        self.log.push(format!("{server} deletes {id}"));
        node.rotten.remove(&id);
        if let Some(at) = node.disk.remove(&id) {
            self.say(server, Message::News(at, Increment::Deleted(block(id, id))));
        }
    }

    pub(super) fn deliver(&mut self, server: u16) {
        let is_alive = self.cluster.map.server(&uuid(server)).is_some_and(|face| face.alive);
        if !is_alive || self.nodes[&server].is_off {
            return; // It is refused, and registers with its next heartbeat.
        }
        let Some(message) = self.nodes.get_mut(&server).unwrap().outbox.pop_front() else { return };
        match message {
            Message::News(at, news) => {
                self.log.push(format!("{server} tells {news:?} on {at}"));
                let medium = self.medium(at);
                self.cluster
                    .speak(server, |map, id, now| {
                        map.incremental_report(id, &name(server, at), medium, &[news], now)
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
                    let medium = self.medium(at);
                    self.cluster
                        .speak(server, |map, id, now| {
                            let report = map.begin_report(id, &name(server, at), medium, 0, now)?;
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

    pub(super) fn deliver_all(&mut self, server: u16) {
        for _ in 0..self.nodes[&server].outbox.len() {
            self.deliver(server);
        }
    }

    /// A data server starts anew. It loses its queue of orders, and some replicas of blocks that other servers hold as well.
    pub(super) fn restart(&mut self, server: u16) {
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

    pub(super) fn shift(&mut self, server: u16, id: u64) {
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

    /// The server fetches the block from a server that has it, or only says so.
    pub(super) fn balance(&mut self, server: u16, id: u64) {
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

    pub(super) fn rot(&mut self, server: u16, id: u64) {
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
}
