//! Long random histories against an obvious model of what each server holds.

use super::cluster::*;
use crate::{random::Random, *};
use base::{BlockId, Epoch, InodeId};
use std::collections::{BTreeMap, BTreeSet};

const SERVERS: u16 = 5;

/// The replicas that are really on the disks, and the blocks that the namespace really has.
#[derive(Default)]
struct World {
    disks: BTreeMap<u16, BTreeSet<u64>>,
    blocks: BTreeMap<u64, u16>,
    up: BTreeSet<u16>,
    next: u64,
}

struct Run {
    cluster: Cluster,
    world: World,
    random: Random,
}

impl Run {
    fn new(seed: u64) -> Self {
        let config = Config { pending_timeout_ms: 2_000, ..racks(SERVERS) };
        let cluster = Cluster::with_servers(config, SERVERS);
        let world = World {
            disks: (1..=SERVERS).map(|server| (server, BTreeSet::new())).collect(),
            up: (1..=SERVERS).collect(),
            next: 1,
            ..World::default()
        };
        Self { cluster, world, random: Random::new(seed) }
    }

    fn any_block(&mut self) -> Option<u64> {
        let count = self.world.blocks.len();
        (count > 0).then(|| *self.world.blocks.keys().nth(self.random.below(count)).unwrap())
    }

    fn any_up(&mut self) -> u16 {
        *self.world.up.iter().nth(self.random.below(self.world.up.len())).unwrap()
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..6 => self.write(),
            6 | 7 => self.delete(),
            8 => self.change_replication(),
            9 => self.lose_replica(),
            10 | 11 => self.report(),
            12 if self.world.up.len() > 3 => self.stop(),
            13 => self.start(),
            14 => self.damage(),
            15 => self.report_while_others_act(),
            16 => self.take_over(),
            _ => self.work(200),
        }
        self.cluster.check();
    }

    fn write(&mut self) {
        let id = self.world.next;
        self.world.next += 1;
        let replication = 1 + self.random.below(4) as u16;
        let placement =
            Placement { replication: usize::from(replication), block_size: 1 << 20, ..Placement::default() };
        let (map, now) = (&mut self.cluster.map, self.cluster.now);
        let targets = map.choose_targets(&placement, now);
        map.add_block(
            block(id, 0),
            InodeId(16_386),
            replication,
            BlockState::UnderConstruction,
            &targets,
            now,
        );
        let mut written = 0;
        for target in &targets {
            let server: u16 = target.server.uuid().trim_start_matches("uuid-").parse().unwrap();
            // A target that has stopped and is not yet known to be dead gets nothing.
            if self.world.up.contains(&server) {
                self.world.disks.get_mut(&server).unwrap().insert(id);
                self.cluster.tell(server, &[Increment::Receiving(block(id, 0)), received(block(id, id))]);
                written += 1;
            }
        }
        if written > 0 {
            self.cluster.map.commit(block(id, id), self.cluster.now);
            self.world.blocks.insert(id, replication);
        } else {
            self.cluster.map.remove(&[BlockId(id)]);
        }
    }

    fn delete(&mut self) {
        if let Some(id) = self.any_block() {
            self.world.blocks.remove(&id);
            self.cluster.map.remove(&[BlockId(id)]);
        }
    }

    fn change_replication(&mut self) {
        if let Some(id) = self.any_block() {
            let replication = 1 + self.random.below(5) as u16;
            self.world.blocks.insert(id, replication);
            self.cluster.map.set_replication(BlockId(id), replication, self.cluster.now);
        }
    }

    /// Never the last good one: what the disks have lost no one can restore.
    fn lose_replica(&mut self) {
        let Some(id) = self.any_block() else { return };
        let server = self.any_up();
        let good = self.cluster.map.facts(BlockId(id)).unwrap().live;
        if good > 1 && self.copies_up(id) > 1 && self.world.disks.get_mut(&server).unwrap().remove(&id) {
            self.cluster.tell(server, &[Increment::Deleted(block(id, id))]);
        }
    }

    fn damage(&mut self) {
        let Some(id) = self.any_block() else { return };
        let server = self.any_up();
        // Damage in all replicas could not be undone.
        let good = self.cluster.map.facts(BlockId(id)).unwrap().live;
        if good > 2 && self.copies_up(id) > 2 && self.world.disks[&server].contains(&id) {
            self.cluster.map.report_bad(block(id, id), &uuid(server), None, self.cluster.now);
        }
    }

    fn copies_up(&self, id: u64) -> usize {
        self.world.up.iter().filter(|server| self.world.disks[server].contains(&id)).count()
    }

    fn report(&mut self) {
        let server = self.any_up();
        let rows: Vec<_> = self.world.disks[&server].iter().map(|id| finalized(block(*id, *id))).collect();
        self.cluster.report(server, &rows);
    }

    /// Others get in between the slices of a report. What it says may be overtaken meanwhile; the reports
    /// at the end put that right.
    fn report_while_others_act(&mut self) {
        let server = self.any_up();
        let rows: Vec<_> = self.world.disks[&server].iter().map(|id| finalized(block(*id, *id))).collect();
        let begun = self
            .cluster
            .speak(server, |map, id, now| map.begin_report(id, &storage(server), StorageType::Disk, 0, now));
        let Ok(report) = begun else { return };
        for slice in rows.chunks(1 + rows.len() / 3) {
            if self.cluster.map.report_slice(report, slice, self.cluster.now).is_err() {
                return;
            }
            self.cluster.check();
            match self.random.below(4) {
                0 => self.write(),
                1 => self.delete(),
                2 => self.lose_replica(),
                _ => self.work(100),
            }
            self.cluster.check();
        }
        let _ = self.cluster.map.finish_report(report, self.cluster.now);
    }

    /// Another server commanded for a while.
    fn take_over(&mut self) {
        self.cluster.map.set_commanding(None, self.cluster.now);
        self.cluster.check();
        self.work(100);
        self.cluster.map.set_commanding(Some(Epoch(2)), self.cluster.now);
    }

    fn stop(&mut self) {
        let server = self.any_up();
        self.world.up.remove(&server);
    }

    fn start(&mut self) {
        let Some(server) = (1..=SERVERS).find(|server| !self.world.up.contains(server)) else { return };
        self.world.up.insert(server);
        self.register(server);
    }

    fn register(&mut self, server: u16) {
        let registration = (*self.cluster.map.server(&uuid(server)).unwrap().registration).clone();
        self.cluster.map.register(registration, session(server), self.cluster.now).unwrap();
        let commands = self.cluster.heartbeat(server);
        self.obey(commands.into_iter().map(|command| (server, command)).collect());
        let rows: Vec<_> = self.world.disks[&server].iter().map(|id| finalized(block(*id, *id))).collect();
        self.cluster.report(server, &rows);
    }

    fn work(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(100) {
            let up: Vec<u16> = self.world.up.iter().copied().collect();
            let commands = self.cluster.pass(100, &up);
            self.obey(commands);
        }
    }

    fn obey(&mut self, commands: Vec<(u16, Command)>) {
        for (server, command) in &commands {
            if matches!(command, Command::Register) {
                self.register(*server);
            }
        }
        for (server, id) in deletions(&commands) {
            if self.world.disks.get_mut(&server).unwrap().remove(&id) {
                self.cluster.tell(server, &[Increment::Deleted(block(id, id))]);
            }
        }
        for (source, id, targets) in transfers(&commands) {
            for target in targets {
                let target: u16 = target.trim_start_matches("uuid-").parse().unwrap();
                if self.world.disks[&source].contains(&id) && self.world.up.contains(&target) {
                    self.world.disks.get_mut(&target).unwrap().insert(id);
                    self.cluster.tell(target, &[received(block(id, id))]);
                }
            }
        }
    }

    /// Everybody comes up and time passes: then everything is as it should be.
    fn settle(&mut self) {
        while self.world.up.len() < usize::from(SERVERS) {
            self.start();
        }
        for _ in 0..4 {
            self.work(6_000);
            for server in 1..=SERVERS {
                let rows: Vec<_> =
                    self.world.disks[&server].iter().map(|id| finalized(block(*id, *id))).collect();
                self.cluster.report(server, &rows);
            }
        }
        self.work(6_000);
    }

    fn every_block_has_the_replicas_it_should(&self) {
        for (id, replication) in &self.world.blocks {
            let really = (1..=SERVERS).filter(|server| self.world.disks[server].contains(id));
            let really: Vec<u16> = really.collect();
            assert_eq!(self.cluster.holders(*id), really, "block {id} is where the map says");
            assert_eq!(really.len(), usize::from((*replication).min(SERVERS)), "block {id} on {really:?}");
            let racks: BTreeSet<u16> = really.iter().map(|server| server.div_ceil(2)).collect();
            assert!(racks.len() > 1 || *replication == 1, "block {id} is on one rack: {really:?}");
        }
        let stored: usize = self.world.disks.values().map(BTreeSet::len).sum();
        let wanted: usize = self.world.blocks.values().map(|replication| usize::from(*replication)).sum();
        assert_eq!(stored, wanted, "nothing is left of removed blocks");
        let stats = self.cluster.map.stats();
        assert_eq!(
            (stats.under_replicated, stats.corrupt, stats.excess, stats.pending_deletions),
            (0, 0, 0, 0)
        );
    }
}

#[test]
fn after_any_history_every_block_has_the_replicas_it_should() {
    for seed in 0..40 {
        let mut run = Run::new(seed);
        for _ in 0..150 {
            run.step();
        }
        run.settle();
        run.every_block_has_the_replicas_it_should();
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let history = |seed| {
        let mut run = Run::new(seed);
        for _ in 0..200 {
            run.step();
        }
        (run.world.disks, run.cluster.map.stats())
    };
    assert_eq!(history(3), history(3));
}
