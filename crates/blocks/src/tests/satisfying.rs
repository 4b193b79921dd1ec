//! A user asks that the replicas of a file be on the media of its policy.

use super::cluster::*;
use crate::*;
use StorageType::{Archive, Disk, Ssd};
use base::{BlockId, Epoch, InodeId};

pub(super) const COLD: u8 = 2;
const WARM: u8 = 5;
const HOT: u8 = 7;
const ALL_SSD: u8 = 12;
const FILE: InodeId = InodeId(77);

/// Data servers with storages of some media. They carry out what they are ordered, and tell of it, unless a story says otherwise.
pub(super) struct Story {
    pub(super) cluster: Cluster,
    pub(super) servers: Vec<(u16, Vec<StorageType>)>,
    pub(super) policy: u8,
    /// Hadoop's data servers do not move a replica from one of their storages to another by an order.
    moves_within: bool,
    /// Media without room.
    full: Vec<StorageType>,
    /// Servers that tell of nothing that they receive.
    pub(super) absorbing: Vec<u16>,
}

fn storage_of(server: u16, medium: StorageType) -> String {
    if medium == Disk { storage(server) } else { format!("DS-{server}-{medium}") }
}

impl Story {
    pub(super) fn new(config: Config, servers: &[(u16, &[StorageType])]) -> Self {
        let cluster = Cluster::with_servers(config, servers.len() as u16);
        let servers = servers.iter().map(|(server, media)| (*server, media.to_vec())).collect();
        let mut story = Self {
            cluster,
            servers,
            policy: HOT,
            moves_within: true,
            full: Vec::new(),
            absorbing: Vec::new(),
        };
        for (server, media) in story.servers.clone() {
            story.beat(server);
            media.into_iter().for_each(|medium| story.report(server, medium, &[]));
        }
        story
    }

    /// Each server has all of these media.
    fn alike(config: Config, count: u16, media: &[StorageType]) -> Self {
        let servers: Vec<_> = (1..=count).map(|server| (server, media)).collect();
        Self::new(config, &servers)
    }

    pub(super) fn report(&mut self, server: u16, medium: StorageType, rows: &[ReportedReplica]) {
        let name = storage_of(server, medium);
        let report = |map: &mut BlockMap, by: ServerId<'_>, now| {
            let report = map.begin_report(by, &name, medium, 0, now)?;
            map.report_slice(report, rows, now)?;
            map.finish_report(report, now)
        };
        self.cluster.speak(server, report).unwrap();
        self.cluster.sweep();
    }

    pub(super) fn store(&mut self, id: u64, replication: u16, places: &[(u16, StorageType)]) {
        let map = &mut self.cluster.map;
        map.add_block(block(id, 5), FILE, replication, BlockState::Complete, &[], self.cluster.now);
        for (server, medium) in places {
            self.tell(*server, *medium, received(block(id, 5)));
        }
    }

    fn tell(&mut self, server: u16, medium: StorageType, news: Increment) {
        let name = storage_of(server, medium);
        self.cluster
            .speak(server, |map, by, now| map.incremental_report(by, &name, medium, &[news], now))
            .unwrap();
        self.cluster.check();
    }

    pub(super) fn beat(&mut self, server: u16) -> Vec<Command> {
        let heartbeat = self.heartbeat(server);
        self.cluster.speak(server, |map, by, now| map.heartbeat(by, &heartbeat, now)).unwrap()
    }

    /// The server is heard, and fetches no orders.
    fn hear(&mut self, server: u16) {
        let heartbeat = self.heartbeat(server);
        self.cluster.speak(server, |map, by, now| map.take_lifeline(by, &heartbeat, now)).unwrap();
    }

    fn heartbeat(&self, server: u16) -> Heartbeat {
        let media = &self.servers.iter().find(|(other, _)| *other == server).unwrap().1;
        let storages = media.iter().map(|medium| StorageReport {
            id: storage_of(server, *medium).as_str().into(),
            storage_type: *medium,
            capacity: 100 * GIB,
            remaining: if self.full.contains(medium) { 0 } else { 50 * GIB },
            ..StorageReport::default()
        });
        Heartbeat { storages: storages.collect(), xceivers: 1, ..Heartbeat::default() }
    }

    fn tick(&mut self, ms: u64) {
        self.cluster.now = self.cluster.now.plus_ms(ms);
        let policy = self.policy;
        self.cluster.map.tick(self.cluster.now, &|inode| if inode == FILE { policy } else { 0 });
        self.cluster.check();
    }

    /// Time passes, and the servers do what they are told. Returns the copies and moves, as block, server and server.
    pub(super) fn pass(&mut self, rounds: usize) -> Vec<(u64, u16, u16)> {
        let mut orders = Vec::new();
        for _ in 0..rounds {
            self.tick(1_000);
            for server in self.servers.iter().map(|(server, _)| *server).collect::<Vec<_>>() {
                for command in self.beat(server) {
                    self.obey(server, command, &mut orders);
                }
            }
        }
        orders
    }

    fn obey(&mut self, server: u16, command: Command, orders: &mut Vec<(u64, u16, u16)>) {
        match command {
            Command::Transfer(transfers) => {
                for Transfer { block, targets } in transfers {
                    for target in targets {
                        let to: u16 = target.server.uuid().trim_start_matches("uuid-").parse().unwrap();
                        orders.push((block.id.0, server, to));
                        if !self.absorbing.contains(&to) && (to != server || self.moves_within) {
                            self.tell(to, target.storage_type, received(block));
                        }
                    }
                }
            }
            Command::Invalidate(blocks) => {
                for deleted in blocks {
                    if self.cluster.map.replicas(deleted.id).is_none() {
                        continue;
                    }
                    let at = self.places(deleted.id.0).into_iter().find(|(holder, _)| *holder == server);
                    let (_, medium) = at.expect("it is ordered to delete what it has");
                    assert!(self.cluster.live(deleted.id.0) > 0);
                    self.tell(server, medium, Increment::Deleted(block(deleted.id.0, 5)));
                }
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn satisfy(&mut self, ids: &[u64]) {
        let ids: Vec<BlockId> = ids.iter().map(|id| BlockId(*id)).collect();
        self.cluster.map.satisfy(&ids, self.cluster.now);
    }

    /// The servers of all replicas, with their media, in order.
    pub(super) fn places(&self, id: u64) -> Vec<(u16, StorageType)> {
        let Some(replicas) = self.cluster.map.replicas(BlockId(id)) else { return Vec::new() };
        let place = |at: &ReplicaPlace| {
            let server = at.location.server.uuid().trim_start_matches("uuid-").parse().unwrap();
            (server, at.location.storage_type)
        };
        let mut places: Vec<_> = replicas.places.iter().map(place).collect();
        places.sort();
        places
    }

    fn media(&self, id: u64) -> Vec<StorageType> {
        let mut media: Vec<_> = self.places(id).into_iter().map(|(_, medium)| medium).collect();
        media.sort();
        media
    }

    pub(super) fn outcome(&self) -> (usize, u64, u64) {
        let Satisfied { done, given_up, .. } = self.cluster.map.satisfied();
        (self.cluster.map.unsatisfied(), done, given_up)
    }
}

fn racks_of(table: &[(u16, &str)]) -> Config {
    let table = table.iter().map(|(server, rack)| (ip(*server), (*rack).to_owned())).collect();
    Config { racks: table, ..config() }
}

#[test]
fn replicas_change_the_storage_within_their_servers_where_they_can() {
    let mut story = Story::alike(config(), 3, &[Disk, Ssd, Archive]);
    story.store(1, 3, &[(1, Disk), (2, Disk), (3, Disk)]);
    story.policy = COLD;
    assert!(story.pass(5).is_empty(), "a policy alone moves nothing");
    story.satisfy(&[1]);
    let mut orders = story.pass(5);
    orders.sort();
    assert_eq!(orders, [(1, 1, 1), (1, 2, 2), (1, 3, 3)]);
    assert_eq!(story.places(1), [(1, Archive), (2, Archive), (3, Archive)]);
    assert_eq!(story.outcome(), (0, 1, 0));
}

#[test]
fn as_many_replicas_move_as_the_policy_wants_and_no_more() {
    let mut story = Story::alike(config(), 3, &[Disk, Archive]);
    story.store(1, 3, &[(1, Disk), (2, Disk), (3, Disk)]);
    story.policy = WARM;
    story.satisfy(&[1]);
    assert_eq!(story.pass(5).len(), 2);
    assert_eq!(story.media(1), [Disk, Archive, Archive]);
    story.satisfy(&[1]);
    assert!(story.pass(5).is_empty(), "asked again, there is nothing to do");
    assert_eq!(story.outcome(), (0, 2, 0));
}

#[test]
fn a_copy_goes_to_another_server_first_and_then_the_old_replica_goes() {
    let media: [(u16, &[StorageType]); 4] = [(1, &[Disk]), (2, &[Disk]), (3, &[Ssd]), (4, &[Ssd])];
    let mut story = Story::new(config(), &media);
    story.store(1, 2, &[(1, Disk), (2, Disk)]);
    story.policy = ALL_SSD;
    story.satisfy(&[1]);
    let first = story.pass(2);
    assert_eq!(first.len(), 1, "one replica more at a time: {first:?}");
    story.pass(10);
    assert_eq!(story.places(1), [(3, Ssd), (4, Ssd)]);
    assert_eq!(story.outcome(), (0, 1, 0));
}

#[test]
fn a_replica_that_its_server_does_not_move_is_copied_to_another_one() {
    let mut story = Story::alike(config(), 4, &[Disk, Archive]);
    story.moves_within = false;
    story.store(1, 2, &[(1, Disk), (2, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1]);
    story.pass(400);
    assert_eq!(story.media(1), [Archive, Archive]);
    // All servers have the next block: there is no other place, and the effort ends.
    story.store(2, 4, &[(1, Disk), (2, Disk), (3, Disk), (4, Disk)]);
    story.satisfy(&[2]);
    story.pass(200);
    assert_eq!(story.media(2), [Disk; 4]);
    assert_eq!(story.outcome(), (0, 1, 1));
}

#[test]
fn without_room_on_the_wanted_medium_the_replicas_stay_and_the_effort_ends() {
    let mut story = Story::alike(config(), 3, &[Disk, Archive]);
    story.full.push(Archive);
    (1..=3).for_each(|server| drop(story.beat(server)));
    story.store(1, 2, &[(1, Disk), (2, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1]);
    assert!(story.pass(70).is_empty());
    assert_eq!(story.media(1), [Disk, Disk], "fallbacks are for copies that are needed");
    assert_eq!(story.outcome(), (0, 0, 1));
    // Once there is room, a user may ask again.
    story.full.clear();
    story.satisfy(&[1]);
    story.pass(30);
    assert_eq!(story.media(1), [Archive, Archive]);
}

#[test]
fn racks_go_before_media() {
    let racks = racks_of(&[(1, "/a"), (2, "/b"), (3, "/b"), (4, "/b")]);
    let media: [(u16, &[StorageType]); 4] = [(1, &[Disk]), (2, &[Disk]), (3, &[Ssd]), (4, &[Ssd])];
    let mut story = Story::new(racks, &media);
    story.store(1, 2, &[(1, Disk), (2, Disk)]);
    story.policy = ALL_SSD;
    story.satisfy(&[1]);
    let orders = story.pass(200);
    // Both on solid state would be on one rack.
    let places = story.places(1);
    assert!(places == [(1, Disk), (3, Ssd)] || places == [(1, Disk), (4, Ssd)], "{places:?}");
    assert_eq!(orders.len(), 1, "{orders:?}");
    assert_eq!(story.outcome(), (0, 0, 1));
}

#[test]
fn a_policy_that_changes_in_the_middle_is_the_one_that_counts() {
    let mut story = Story::alike(config(), 3, &[Disk, Ssd, Archive]);
    story.store(1, 3, &[(1, Disk), (2, Disk), (3, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1]);
    story.tick(1_000);
    story.policy = ALL_SSD;
    story.pass(10);
    assert_eq!(story.media(1), [Ssd; 3]);
    assert_eq!(story.outcome(), (0, 1, 0));
}

#[test]
fn a_block_that_is_deleted_or_written_in_the_middle_is_left_alone() {
    let mut story = Story::alike(config(), 3, &[Disk, Archive]);
    story.store(1, 2, &[(1, Disk), (2, Disk)]);
    story.store(2, 2, &[(1, Disk), (2, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1, 2]);
    story.cluster.map.remove(&[BlockId(1)]);
    story.cluster.map.reopen(block(2, 5), &[]);
    story.tick(1_000);
    assert_eq!(story.outcome(), (1, 1, 0), "the second waits for its writer");
    story.cluster.map.commit(block(2, 5), story.cluster.now);
    for server in [1, 2] {
        story.tell(server, Disk, received(block(2, 5)));
    }
    story.cluster.map.complete(BlockId(2), story.cluster.now);
    story.pass(5);
    assert_eq!(story.places(2), [(1, Archive), (2, Archive)]);
    // A writer that does not come to an end is not awaited for ever.
    story.store(3, 2, &[(1, Disk), (2, Disk)]);
    story.satisfy(&[3]);
    story.cluster.map.reopen(block(3, 5), &[]);
    story.pass(890);
    assert_eq!(story.outcome(), (1, 2, 0));
    story.pass(20);
    assert_eq!(story.outcome(), (0, 2, 1));
}

#[test]
fn nothing_is_ordered_in_safe_mode_or_by_a_server_that_does_not_lead() {
    let mut story = Story::alike(config(), 2, &[Disk, Archive]);
    story.store(1, 2, &[(1, Disk), (2, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1]);
    story.cluster.map.enter_safe_mode();
    assert!(story.pass(3).is_empty());
    story.cluster.map.leave_safe_mode(true, story.cluster.now);
    story.cluster.map.set_commanding(None, story.cluster.now);
    assert!(story.pass(3).is_empty());
    // The next reign begins without the blocks: they are named anew.
    story.cluster.map.set_commanding(Some(Epoch(2)), story.cluster.now);
    assert_eq!(story.cluster.map.unsatisfied(), 0);
}

#[test]
fn a_replica_on_a_storage_that_is_not_surely_known_costs_none_of_the_others() {
    let media: [(u16, &[StorageType]); 3] = [(1, &[Disk]), (2, &[Disk]), (3, &[Archive])];
    let mut story = Story::new(config(), &media);
    story.store(1, 1, &[(1, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1]);
    story.tick(1_000);
    // The copy has come, and then its server begins anew: it may have lost it.
    story.beat(1);
    story.tell(3, Archive, received(block(1, 5)));
    story.cluster.map.register(registration(3), session(3), story.cluster.now).unwrap();
    story.beat(3);
    for _ in 0..5 {
        story.tick(1_000);
        let told: Vec<_> = (1..=3).flat_map(|server| story.beat(server)).collect();
        assert!(told.is_empty(), "{told:?}");
    }
    story.report(3, Archive, &[finalized(block(1, 5))]);
    story.pass(5);
    assert_eq!(story.places(1), [(3, Archive)]);
}

#[test]
fn a_block_that_lacks_replicas_is_copied_and_moved_as_well() {
    let mut story = Story::alike(config(), 3, &[Disk, Archive]);
    story.store(1, 3, &[(1, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1]);
    story.pass(20);
    assert_eq!(story.places(1), [(1, Archive), (2, Archive), (3, Archive)]);
    assert_eq!(story.outcome(), (0, 1, 0));
}

/// The servers fetch the orders to move all three replicas, some time after they were given. Until the moves are told no replica goes, although
/// one is too many: the disk that a replica goes to may fail before its move is told, and its record names the other disk then.
fn no_replica_goes_while_three_move(before_they_fetch: impl FnOnce(&mut Story)) {
    let mut story = Story::alike(config(), 3, &[Disk, Archive]);
    story.moves_within = false;
    story.store(1, 3, &[(1, Disk), (2, Disk), (3, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1]);
    before_they_fetch(&mut story);
    assert_eq!(story.pass(1).len(), 3, "the servers are told, and have not answered yet");
    story.policy = HOT;
    story.cluster.map.set_replication(BlockId(1), 2, story.cluster.now);
    story.pass(10);
    assert_eq!(story.places(1).len(), 3);
    for server in [1, 2, 3] {
        story.tell(server, Archive, received(block(1, 5)));
    }
    story.pass(2);
    assert_eq!(story.media(1), [Archive, Archive], "where they are is known again");
}

#[test]
fn no_replica_goes_for_the_sake_of_one_that_may_just_be_moving() {
    no_replica_goes_while_three_move(|_| {});
}

/// A server that is too busy for heartbeats says that it lives, and fetches its orders later.
#[test]
fn a_move_that_is_fetched_late_is_under_way_for_as_long_as_any_other() {
    no_replica_goes_while_three_move(|story| {
        for _ in 0..310 {
            story.tick(1_000);
            (1..=3).for_each(|server| story.hear(server));
        }
    });
}

#[test]
fn no_server_leaves_for_the_sake_of_a_replica_that_may_just_be_moving() {
    let mut story = Story::alike(config(), 2, &[Disk, Archive]);
    story.moves_within = false;
    story.store(1, 1, &[(1, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1]);
    assert_eq!(story.pass(1), [(1, 1, 1)], "the server is told, and has not answered yet");
    story.tell(2, Disk, received(block(1, 5)));
    story.cluster.order(2, AdminOrder::Decommission);
    story.cluster.sweep();
    story.pass(10);
    assert_eq!(story.cluster.state(2), AdminState::DecommissionInProgress);
    story.tell(1, Archive, received(block(1, 5)));
    story.pass(1);
    story.cluster.sweep();
    story.pass(2);
    assert_eq!(story.cluster.state(2), AdminState::Decommissioned, "where the other is is known again");
}

#[test]
fn a_replica_on_a_silent_server_may_be_moving_until_the_server_can_tell() {
    let patient = Config { recheck_interval_ms: 300_000, ..config() };
    let mut story = Story::alike(patient, 2, &[Disk, Archive]);
    story.moves_within = false;
    story.store(1, 2, &[(1, Disk), (2, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1]);
    assert_eq!(story.pass(1).len(), 2);
    story.tell(2, Archive, received(block(1, 5)));
    // The first server moves its replica, and is cut off before it can tell.
    story.policy = HOT;
    story.cluster.map.set_replication(BlockId(1), 1, story.cluster.now);
    for _ in 0..400 {
        story.tick(1_000);
        assert!(
            story.beat(2).is_empty(),
            "if the disk fails to which the other has gone, this one is the last"
        );
    }
    story.pass(3);
    assert_eq!(story.places(1), [(1, Disk), (2, Archive)]);
    story.tell(1, Archive, received(block(1, 5)));
    story.pass(3);
    assert_eq!(story.media(1), [Archive]);
}

#[test]
fn a_policy_that_changes_back_is_satisfied_once_the_moves_under_way_are_told() {
    let mut story = Story::alike(config(), 2, &[Disk, Archive]);
    story.moves_within = false;
    story.store(1, 2, &[(1, Disk), (2, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1]);
    assert_eq!(story.pass(1).len(), 2, "the servers are told, and have not answered yet");
    story.policy = HOT;
    story.satisfy(&[1]);
    story.pass(5);
    assert_eq!(story.outcome(), (1, 0, 0), "where the replicas are now is not known");
    story.moves_within = true;
    for server in [1, 2] {
        story.tell(server, Archive, received(block(1, 5)));
    }
    story.pass(5);
    assert_eq!(story.media(1), [Disk, Disk]);
    assert_eq!(story.outcome(), (0, 1, 0));
    // Now the request is withdrawn while moves are under way, and made again under the other policy.
    story.policy = COLD;
    story.satisfy(&[1]);
    story.tick(1_000);
    story.cluster.map.stop_satisfying();
    story.policy = HOT;
    story.satisfy(&[1]);
    story.pass(10);
    assert_eq!(story.media(1), [Disk, Disk]);
}

#[test]
fn a_move_that_an_append_has_prevented_is_ordered_anew() {
    let mut story = Story::alike(config(), 2, &[Disk, Archive]);
    story.store(1, 2, &[(1, Disk), (2, Disk)]);
    story.policy = COLD;
    story.satisfy(&[1]);
    story.tick(1_000);
    story.cluster.map.reopen(block(1, 5), &[]);
    assert!(story.pass(5).is_empty(), "a block that is being written is not moved");
    story.cluster.map.commit(block(1, 5), story.cluster.now);
    for server in [1, 2] {
        story.tell(server, Disk, received(block(1, 5)));
    }
    story.cluster.map.complete(BlockId(1), story.cluster.now);
    story.pass(150);
    assert_eq!(story.media(1), [Archive, Archive], "the servers were never told of the first order");
}
