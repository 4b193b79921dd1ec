//! A block map and a few data servers to talk to it.

use crate::*;
use base::{Block, BlockId, GenerationStamp, InodeId, Moment};

pub const GIB: u64 = 1 << 30;

pub struct Cluster {
    pub map: BlockMap,
    /// The connection on which all data servers speak.
    pub connection: u64,
    pub now: Moment,
}

pub fn block(id: u64, length: u64) -> Block {
    Block { id: BlockId(id), generation_stamp: GenerationStamp(1001), length }
}

pub fn finalized(block: Block) -> ReportedReplica {
    ReportedReplica { block, state: ReplicaState::Finalized }
}

pub fn received(block: Block) -> Increment {
    Increment::Received { block, delete_hint: None }
}

pub fn uuid(server: u16) -> String {
    format!("uuid-{server}")
}

pub fn storage(server: u16) -> String {
    format!("DS-{server}")
}

pub fn ip(server: u16) -> String {
    format!("10.0.0.{server}")
}

/// The key of all its registrations.
pub fn session(server: u16) -> SessionKey {
    SessionKey([server as u8; SessionKey::BYTES])
}

#[cfg(feature = "broken")]
thread_local! {
    static LEFT_OUT: std::cell::Cell<Rules> = const { std::cell::Cell::new(Rules::all()) };
}

/// Tells the story with a block map that leaves a rule out; whether it ends as it is told.
#[cfg(feature = "broken")]
pub fn without(rule: crate::Broken, story: fn()) -> bool {
    LEFT_OUT.set(Rules::without(rule));
    let ended = std::panic::catch_unwind(story);
    LEFT_OUT.set(Rules::all());
    ended.is_ok()
}

pub fn config() -> Config {
    let mut config = Config {
        #[cfg(feature = "broken")]
        rules: LEFT_OUT.get(),
        heartbeat_interval_ms: 100,
        recheck_interval_ms: 500,
        ..Config::default()
    };
    config.stale_interval_ms = 1_000;
    config.takeover_grace_ms = 0;
    config.safe_mode.extension_ms = 0;
    config
}

/// Servers 1 to `servers`, two to a rack if `racks`.
pub fn racks(servers: u16) -> Config {
    let table = (1..=servers).map(|server| (ip(server), format!("/rack{}", server.div_ceil(2)))).collect();
    Config { racks: table, ..config() }
}

pub fn heartbeat_of(server: u16) -> Heartbeat {
    let report = StorageReport {
        id: storage(server).as_str().into(),
        capacity: 100 * GIB,
        remaining: 90 * GIB - u64::from(server) * GIB,
        ..StorageReport::default()
    };
    Heartbeat { storages: vec![report], xceivers: 1, ..Heartbeat::default() }
}

pub fn registration(server: u16) -> Registration {
    Registration {
        uuid: uuid(server).as_str().into(),
        ip: ip(server).as_str().into(),
        host_name: format!("host{server}").as_str().into(),
        transfer_port: 9866,
        ..Registration::default()
    }
}

/// The second storage of data servers that have two.
pub const SECOND: &str = "DS-second";

pub fn two_storages(server: u16) -> Heartbeat {
    let mut heartbeat = heartbeat_of(server);
    let second = StorageReport { id: SECOND.into(), ..heartbeat.storages[0].clone() };
    heartbeat.storages.push(second);
    heartbeat
}

/// What single storages and single heartbeats tell; neither the clock nor the broom goes on.
impl Cluster {
    /// A heartbeat of a server with this much room; returns the blocks that it is ordered to delete.
    pub fn beat(&mut self, server: u16, remaining: u64) -> Vec<u64> {
        let mut heartbeat = heartbeat_of(server);
        heartbeat.storages[0].remaining = remaining;
        self.beat_with(server, &heartbeat)
    }

    pub fn beat_with(&mut self, server: u16, heartbeat: &Heartbeat) -> Vec<u64> {
        let commands = self.speak(server, |map, id, now| map.heartbeat(id, heartbeat, now)).unwrap();
        self.check();
        let commands: Vec<_> = commands.into_iter().map(|command| (server, command)).collect();
        deletions(&commands).into_iter().map(|(_, id)| id).collect()
    }

    pub fn report_of(&mut self, server: u16, storage: &str, replicas: &[ReportedReplica]) {
        let done = self.speak(server, |map, id, now| {
            let report = map.begin_report(id, storage, StorageType::Disk, 0, now)?;
            map.report_slice(report, replicas, now)?;
            map.finish_report(report, now)
        });
        done.unwrap();
        self.check();
    }

    pub fn tell_of(&mut self, server: u16, storage: &str, increments: &[Increment]) {
        let said = self.speak(server, |map, id, now| {
            map.incremental_report(id, storage, StorageType::Disk, increments, now)
        });
        said.unwrap();
        self.check();
    }

    pub fn sweep(&mut self) {
        while self.map.sweep(10, self.now) {}
        self.check();
    }

    pub fn live(&self, id: u64) -> usize {
        self.map.replicas(BlockId(id)).unwrap().live
    }
}

impl Cluster {
    pub fn empty(config: Config) -> Self {
        let now = Moment::from_ms(1_000_000);
        Self { map: BlockMap::new(config, 7, now), connection: 1, now }
    }

    /// Out of safe mode, with servers that have reported nothing, and are no newcomers.
    pub fn with_servers(config: Config, servers: u16) -> Self {
        let mut cluster = Self::with_newcomers(config, servers);
        for server in 1..=servers {
            cluster.pass_trial(server);
        }
        cluster.map.take_events();
        cluster
    }

    pub fn pass_trial(&mut self, server: u16) {
        let index = self.map.servers.find(&uuid(server)).unwrap();
        self.map.pass(index);
    }

    pub fn with_newcomers(config: Config, servers: u16) -> Self {
        let mut cluster = Self::empty(config);
        cluster.map.activate(cluster.now);
        for server in 1..=servers {
            cluster.start(server);
            cluster.report(server, &[]);
        }
        cluster.map.take_events();
        cluster
    }

    pub fn start(&mut self, server: u16) {
        self.map.register(registration(server), session(server), self.now).unwrap();
        assert!(self.heartbeat(server).is_empty());
    }

    pub fn heartbeat(&mut self, server: u16) -> Vec<Command> {
        self.speak(server, |map, id, now| map.heartbeat(id, &heartbeat_of(server), now)).unwrap()
    }

    pub fn report(&mut self, server: u16, replicas: &[ReportedReplica]) -> ReportDone {
        let done = self.speak(server, |map, id, now| {
            let report = map.begin_report(id, &storage(server), StorageType::Disk, 0, now)?;
            for slice in replicas.chunks(3) {
                map.report_slice(report, slice, now)?;
            }
            map.finish_report(report, now)
        });
        self.check();
        done.unwrap()
    }

    pub fn tell(&mut self, server: u16, increments: &[Increment]) {
        self.speak(server, |map, id, now| {
            map.incremental_report(id, &storage(server), StorageType::Disk, increments, now)
        })
        .unwrap();
        self.check();
    }

    pub fn speak<T>(&mut self, server: u16, say: impl FnOnce(&mut BlockMap, ServerId, Moment) -> T) -> T {
        let (uuid, ip) = (uuid(server), ip(server));
        let key = session(server);
        let connection = self.connection;
        let id = ServerId { uuid: &uuid, ip: &ip, transfer_port: 9866, session: &key.0, connection };
        say(&mut self.map, id, self.now)
    }

    pub fn add_complete(&mut self, block: Block, replication: u16) {
        self.map.add_block(block, InodeId(16_386), replication, BlockState::Complete, &[], self.now);
    }

    /// A complete block whose replicas are on these servers.
    pub fn add_stored(&mut self, block: Block, replication: u16, servers: &[u16]) {
        let targets: Vec<Location> = servers.iter().map(|server| self.place(*server)).collect();
        let open = Block { length: 0, ..block };
        self.map.add_block(
            open,
            InodeId(16_386),
            replication,
            BlockState::UnderConstruction,
            &targets,
            self.now,
        );
        for server in servers {
            self.tell(*server, &[received(block)]);
        }
        self.map.commit(block, self.now);
        self.check();
    }

    pub fn place(&self, server: u16) -> Location {
        self.map.location(&uuid(server), &storage(server)).unwrap()
    }

    /// Time passes, and these servers send their heartbeats; returns the last answers.
    pub fn pass(&mut self, ms: u64, servers: &[u16]) -> Vec<(u16, Command)> {
        let end = self.now.plus_ms(ms);
        let mut commands = Vec::new();
        while self.now < end {
            self.now = self.now.plus_ms(100);
            for server in servers {
                commands.extend(self.heartbeat(*server).into_iter().map(|command| (*server, command)));
            }
            self.map.tick(self.now, &|_| 0);
            while self.map.sweep(10, self.now) {}
            self.check();
        }
        commands
    }

    pub fn holders(&self, id: u64) -> Vec<u16> {
        let located = self.map.locations(BlockId(id), Reader::default(), 0, self.now).unwrap();
        let number = |at: &Location| at.server.uuid().trim_start_matches("uuid-").parse().unwrap();
        let mut holders: Vec<u16> = located.locations.iter().map(number).collect();
        holders.sort_unstable();
        holders
    }

    pub fn check(&self) {
        if let Err(broken) = self.map.is_consistent() {
            panic!("{broken}");
        }
    }
}

/// `(source, block, targets)` of all transfers ordered.
pub fn transfers(commands: &[(u16, Command)]) -> Vec<(u16, u64, Vec<String>)> {
    let mut found = Vec::new();
    for (server, command) in commands {
        if let Command::Transfer(transfers) = command {
            for transfer in transfers {
                let targets = transfer.targets.iter().map(|at| at.server.uuid().to_string()).collect();
                found.push((*server, transfer.block.id.0, targets));
            }
        }
    }
    found
}

/// `(server, block)` of all deletions ordered.
pub fn deletions(commands: &[(u16, Command)]) -> Vec<(u16, u64)> {
    let mut found = Vec::new();
    for (server, command) in commands {
        if let Command::Invalidate(blocks) = command {
            found.extend(blocks.iter().map(|block| (*server, block.id.0)));
        }
    }
    found
}

/// The data server that the only one of these orders goes to.
pub fn only_one_told(commands: &[(u16, Command)]) -> u16 {
    match deletions(commands)[..] {
        [(server, _)] => server,
        ref told => panic!("one replica is ordered to go: {told:?}"),
    }
}
