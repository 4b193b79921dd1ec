//! A standby hears what the active hears, each speaker's words in their order, but the speakers mixed in any way:
//! the journal may be far behind the data servers, or a data server behind the journal. In the end it knows the
//! same.

use super::cluster::*;
use crate::{random::Random, *};
use base::{Block, BlockId, Epoch, GenerationStamp, InodeId};
use std::collections::{BTreeMap, VecDeque};

const SERVERS: u16 = 4;

/// News from the namespace.
#[derive(Clone, Debug)]
enum Told {
    Allocated(Block, u16),
    Stamp(GenerationStamp),
    Reopened(Block),
    Restamped(Block),
    Committed(Block),
    Completed(BlockId),
    Replication(BlockId, u16),
    Removed(BlockId),
}

/// A report of a data server.
#[derive(Clone, Debug)]
enum Said {
    Increments(Vec<Increment>),
    Everything(Vec<ReportedReplica>),
}

/// A block as it is being written, or was.
#[derive(Clone, Debug)]
struct Written {
    block: Block,
    pipeline: Vec<u16>,
    is_open: bool,
    is_appended: bool,
    keeps_stamp: bool,
}

struct Run {
    active: Cluster,
    standby: Cluster,
    /// On their way to the standby.
    journal: VecDeque<Told>,
    speakers: BTreeMap<u16, VecDeque<Said>>,
    disks: BTreeMap<u16, BTreeMap<u64, ReportedReplica>>,
    blocks: BTreeMap<u64, Written>,
    last: (u64, u64),
    random: Random,
}

impl Run {
    fn new(seed: u64) -> Self {
        let config = Config { pending_timeout_ms: 1_000, ..config() };
        let active = Cluster::with_servers(config.clone(), SERVERS);
        let mut standby = Cluster::with_servers(config, SERVERS);
        standby.map.become_listening(standby.now);
        Self {
            active,
            standby,
            journal: VecDeque::new(),
            speakers: (1..=SERVERS).map(|server| (server, VecDeque::new())).collect(),
            disks: (1..=SERVERS).map(|server| (server, BTreeMap::new())).collect(),
            blocks: BTreeMap::new(),
            last: (0, 1_000),
            random: Random::new(seed),
        }
    }

    fn tell(&mut self, told: Told) {
        hear_namespace(&mut self.active, &told);
        self.journal.push_back(told);
    }

    fn say(&mut self, server: u16, said: Said) {
        hear_server(&mut self.active, server, &said);
        self.speakers.get_mut(&server).unwrap().push_back(said);
    }

    fn increment(&mut self, server: u16, increment: Increment) {
        let disk = self.disks.get_mut(&server).unwrap();
        match &increment {
            Increment::Receiving(block) => {
                disk.insert(block.id.0, ReportedReplica { block: *block, state: ReplicaState::BeingWritten });
            }
            Increment::Received { block, .. } => {
                disk.insert(block.id.0, finalized(*block));
            }
            Increment::Deleted(block) => {
                disk.remove(&block.id.0);
            }
        }
        self.say(server, Said::Increments(vec![increment]));
    }

    fn any(&mut self, is_open: bool) -> Option<u64> {
        let ids: Vec<u64> =
            self.blocks.iter().filter(|(_, it)| it.is_open == is_open).map(|(id, _)| *id).collect();
        (!ids.is_empty()).then(|| ids[self.random.below(ids.len())])
    }

    fn step(&mut self) {
        match self.random.below(14) {
            0 | 1 => self.open(),
            2 => self.replace_pipeline(),
            3..6 => self.close(),
            6 => self.remove(),
            7 => self.change_replication(),
            8 => self.lose(),
            9 => self.report(),
            10 | 11 => self.append(),
            _ => self.work(),
        }
        for _ in 0..self.random.below(4) {
            self.let_one_through();
        }
    }

    fn open(&mut self) {
        self.last = (self.last.0 + 1, self.last.1 + 1);
        let block = stamped(self.last.0, self.last.1, 0);
        let mut pipeline: Vec<u16> = (1..=SERVERS).collect();
        self.random.shuffle(&mut pipeline);
        pipeline.truncate(1 + self.random.below(3));
        let replication = 1 + self.random.below(3) as u16;
        self.tell(Told::Allocated(block, replication));
        for server in &pipeline {
            self.increment(*server, Increment::Receiving(block));
        }
        self.blocks.insert(
            block.id.0,
            Written { block, pipeline, is_open: true, is_appended: false, keeps_stamp: false },
        );
    }

    /// A block is written on, by a client that raises the stamp or by one that keeps it.
    fn append(&mut self) {
        let Some(id) = self.any(false) else { return };
        let mut written = self.blocks[&id].clone();
        let has_it = |server: &u16| self.disks[server].get(&id) == Some(&finalized(written.block));
        let pipeline: Vec<u16> = good_holders(&self.active, id).into_iter().filter(has_it).collect();
        if pipeline.is_empty() {
            return;
        }
        (written.pipeline, written.is_open, written.is_appended) = (pipeline, true, true);
        self.tell(Told::Reopened(written.block));
        let is_raised = self.random.below(2) == 0;
        written.keeps_stamp = !is_raised;
        if is_raised {
            self.last.1 += 1;
            written.block.generation_stamp = GenerationStamp(self.last.1);
            self.tell(Told::Stamp(written.block.generation_stamp));
        }
        for server in written.pipeline.clone() {
            self.increment(server, Increment::Receiving(written.block));
        }
        if is_raised {
            self.tell(Told::Restamped(written.block));
        }
        self.blocks.insert(id, written);
    }

    /// One server of the pipeline is left behind with what it has.
    fn replace_pipeline(&mut self) {
        let Some(id) = self.any(true) else { return };
        let mut written = self.blocks[&id].clone();
        if written.pipeline.len() < 2 {
            return;
        }
        self.last.1 += 1;
        written.block.generation_stamp = GenerationStamp(self.last.1);
        self.tell(Told::Stamp(written.block.generation_stamp));
        written.pipeline.remove(0);
        for server in written.pipeline.clone() {
            self.increment(server, Increment::Receiving(written.block));
        }
        self.tell(Told::Restamped(written.block));
        self.blocks.insert(id, written);
    }

    fn close(&mut self) {
        let Some(id) = self.any(true) else { return };
        let mut written = self.blocks[&id].clone();
        written.block.length += 10 + id;
        written.is_open = false;
        for server in written.pipeline.clone() {
            self.increment(server, received(written.block));
        }
        self.tell(Told::Committed(written.block));
        self.tell(Told::Completed(written.block.id));
        self.blocks.insert(id, written);
    }

    fn remove(&mut self) {
        let is_open = self.random.below(4) == 0;
        if let Some(id) = self.any(is_open) {
            self.blocks.remove(&id);
            self.tell(Told::Removed(BlockId(id)));
        }
    }

    fn change_replication(&mut self) {
        if let Some(id) = self.any(false) {
            let replication = 1 + self.random.below(3) as u16;
            self.tell(Told::Replication(BlockId(id), replication));
        }
    }

    fn lose(&mut self) {
        let server = 1 + self.random.below(usize::from(SERVERS)) as u16;
        let disk = &self.disks[&server];
        if disk.is_empty() {
            return;
        }
        let replica = *disk.values().nth(self.random.below(disk.len())).unwrap();
        self.increment(server, Increment::Deleted(replica.block));
    }

    fn report(&mut self) {
        let server = 1 + self.random.below(usize::from(SERVERS)) as u16;
        let rows = self.disks[&server].values().copied().collect();
        self.say(server, Said::Everything(rows));
    }

    /// The active's orders are carried out.
    fn work(&mut self) {
        let servers: Vec<u16> = (1..=SERVERS).collect();
        let commands = self.active.pass(200, &servers);
        for (server, command) in &commands {
            if let Command::Invalidate(blocks) = command {
                for block in blocks {
                    let held = self.disks[server].get(&block.id.0).map(|it| it.block.generation_stamp);
                    if held == Some(block.generation_stamp) {
                        self.increment(*server, Increment::Deleted(*block));
                    }
                }
            }
        }
        for (source, id, targets) in transfers(&commands) {
            let Some(replica) = self.disks[&source].get(&id).copied() else { continue };
            for target in targets {
                let target: u16 = target.trim_start_matches("uuid-").parse().unwrap();
                if replica.state == ReplicaState::Finalized {
                    self.increment(target, received(replica.block));
                }
            }
        }
        assert!(self.standby.pass(100, &servers).is_empty(), "a standby orders nothing");
    }

    /// One word of any speaker reaches the standby. False if none is on its way.
    fn let_one_through(&mut self) -> bool {
        let mut waiting: Vec<u16> =
            self.speakers.iter().filter(|(_, words)| !words.is_empty()).map(|(server, _)| *server).collect();
        if !self.journal.is_empty() {
            waiting.push(0);
        }
        if waiting.is_empty() {
            return false;
        }
        match waiting[self.random.below(waiting.len())] {
            0 => {
                let told = self.journal.pop_front().unwrap();
                hear_namespace(&mut self.standby, &told);
            }
            server => {
                let said = self.speakers.get_mut(&server).unwrap().pop_front().unwrap();
                hear_server(&mut self.standby, server, &said);
            }
        }
        true
    }

    fn both_know_the_same(&mut self, when: &str) {
        assert_eq!(self.standby.map.stats().postponed, 0, "{when}");
        for (id, written) in &self.blocks {
            // Where the stamp is kept, a row of an unfinished replica says nothing to a standby that is an append behind.
            if !(written.is_open && written.keeps_stamp) {
                assert_eq!(
                    good_holders(&self.active, *id),
                    good_holders(&self.standby, *id),
                    "{when}: {written:?}"
                );
            }
            let (known, heard) = (self.active.map.facts(BlockId(*id)), self.standby.map.facts(BlockId(*id)));
            let (known, heard) = (known.unwrap(), heard.unwrap());
            assert_eq!((known.block, known.state), (heard.block, heard.state), "{when}: {written:?}");
        }
        assert_eq!(self.active.map.stats().blocks, self.standby.map.stats().blocks, "{when}");
    }

    fn settle(&mut self) {
        while self.let_one_through() {}
        for _ in 0..3 {
            self.work();
            while self.let_one_through() {}
        }
        self.standby.pass(100, &[]);
    }
}

/// The data servers with a good replica of the block. Two servers may disagree on outdated replicas until the next full
/// report: a row that came before the block was complete said nothing about them.
fn good_holders(cluster: &Cluster, id: u64) -> Vec<u16> {
    let located = cluster.map.locations(BlockId(id), Reader::default(), 0, cluster.now).unwrap();
    if located.corrupt { Vec::new() } else { cluster.holders(id) }
}

fn stamped(id: u64, stamp: u64, length: u64) -> Block {
    Block { id: BlockId(id), generation_stamp: GenerationStamp(stamp), length }
}

fn hear_namespace(cluster: &mut Cluster, told: &Told) {
    let (map, now) = (&mut cluster.map, cluster.now);
    match told {
        Told::Allocated(block, replication) => {
            map.set_last_allocated(block.id, block.generation_stamp);
            let state = BlockState::UnderConstruction;
            map.add_block(*block, InodeId(16_386), *replication, state, &[], now);
        }
        Told::Stamp(stamp) => map.set_last_allocated(BlockId(0), *stamp),
        Told::Reopened(block) => map.reopen(*block, &[]),
        Told::Restamped(block) => map.set_pipeline(*block, &[]),
        Told::Committed(block) => map.commit(*block, now),
        Told::Completed(id) => map.complete(*id, now),
        Told::Replication(id, replication) => map.set_replication(*id, *replication, now),
        Told::Removed(id) => map.remove(&[*id]),
    }
    cluster.check();
}

fn hear_server(cluster: &mut Cluster, server: u16, said: &Said) {
    match said {
        Said::Increments(increments) => cluster.tell(server, increments),
        Said::Everything(rows) => {
            cluster.report(server, rows);
        }
    }
}

#[test]
fn a_standby_ends_with_what_the_active_knows() {
    for seed in 0..100 {
        let mut run = Run::new(seed);
        for _ in 0..150 {
            run.step();
        }
        run.settle();
        run.both_know_the_same(&format!("seed {seed}"));
        // And what both know is what there is.
        for server in 1..=SERVERS {
            let rows: Vec<_> = run.disks[&server].values().copied().collect();
            run.say(server, Said::Everything(rows));
        }
        run.settle();
        run.both_know_the_same(&format!("seed {seed}, after full reports"));
        // A deletion that was queued before an append hides the row until the next full report.
        for (id, written) in run.blocks.iter().filter(|(_, written)| !written.is_appended) {
            let outdated = |cluster: &Cluster| cluster.map.redundancy.corrupt.of(BlockId(*id)).len();
            let (known, heard) = (outdated(&run.active), outdated(&run.standby));
            assert_eq!(known, heard, "seed {seed}: outdated replicas of {written:?}");
        }
    }
}

/// A client appends and keeps the stamp, and all of its data servers have told of the longer replica before the standby reads that the file was opened.
#[test]
fn a_standby_takes_no_replica_for_damaged_because_it_is_behind_an_append() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.become_listening(cluster.now);
    for server in 1..=3 {
        cluster.tell(server, &[Increment::Receiving(block(1, 5)), received(block(1, 9))]);
    }
    assert_eq!(cluster.map.stats().corrupt, 0);
    cluster.map.reopen(block(1, 5), &[]);
    cluster.map.commit(block(1, 9), cluster.now);
    cluster.check();
    assert_eq!(good_holders(&cluster, 1), [1, 2, 3]);
    assert_eq!((cluster.live(1), cluster.map.stats().postponed), (3, 0));
}

/// No append was ever in the log: the replicas are what they seem to be.
#[test]
fn a_standby_that_takes_over_calls_replicas_damaged_that_are_too_long() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.become_listening(cluster.now);
    cluster.tell(1, &[received(block(1, 9))]);
    cluster.pass(500, &[1, 2]);
    assert_eq!((cluster.map.stats().corrupt, cluster.map.stats().postponed), (0, 1));
    cluster.map.become_commanding(Epoch(2), cluster.now);
    cluster.pass(500, &[1, 2]);
    assert_eq!((cluster.live(1), cluster.map.stats().postponed), (1, 0));
}
