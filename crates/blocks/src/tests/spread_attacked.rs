//! Attacks on the rule that a block is on two racks.

use super::cluster::*;
use crate::{
    queue::{Priority, Queue},
    *,
};
use base::{BlockId, Epoch};
use std::collections::BTreeMap;

/// These servers are on `/b`, those on `/c`, all others on `/a`.
fn on_racks(b: &[u16], c: &[u16]) -> Config {
    let rack = |server: u16| match (b.contains(&server), c.contains(&server)) {
        (true, _) => "/b",
        (_, true) => "/c",
        _ => "/a",
    };
    let table = (1..=8).map(|server| (ip(server), rack(server).into()));
    Config { racks: table.collect(), pending_timeout_ms: 2_000, ..config() }
}

fn trial(cluster: &mut Cluster, server: u16, end: impl Fn(&mut BlockMap, u32)) {
    let index = cluster.map.servers.find(&uuid(server)).unwrap();
    end(&mut cluster.map, index);
}

/// Carries out what is ordered; returns the numbers of copies and of deletions.
fn obey(cluster: &mut Cluster, rounds: usize, servers: &[u16]) -> (usize, usize) {
    let (mut copies, mut gone) = (0, 0);
    for _ in 0..rounds {
        let commands = cluster.pass(200, servers);
        for (_, id, targets) in transfers(&commands) {
            for target in targets {
                copies += 1;
                cluster.tell(target.trim_start_matches("uuid-").parse().unwrap(), &[received(block(id, 5))]);
            }
        }
        for (server, id) in deletions(&commands) {
            gone += 1;
            cluster.tell(server, &[Increment::Deleted(block(id, 5))]);
        }
    }
    (copies, gone)
}

#[test]
fn a_liar_on_a_rack_of_its_own_does_not_make_all_blocks_misplaced() {
    let mut cluster = Cluster::with_servers(on_racks(&[4], &[]), 3);
    for id in 1..=20 {
        cluster.add_stored(block(id, 5), 3, &[1, 2, 3]);
    }
    cluster.start(4);
    cluster.report(4, &[]);
    trial(&mut cluster, 4, BlockMap::doubt);
    cluster.pass(10_000, &[1, 2, 3, 4]);
    let stats = cluster.map.stats();
    assert_eq!((stats.misplaced, stats.under_replicated), (0, 0), "nobody can take a copy on another rack");
}

#[test]
fn a_doubted_replica_goes_though_a_newcomer_keeps_the_only_one_of_a_rack() {
    let mut cluster = Cluster::with_servers(on_racks(&[4], &[5]), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    for server in [4, 5] {
        cluster.start(server);
        cluster.report(server, &[finalized(block(1, 5))]);
    }
    trial(&mut cluster, 5, BlockMap::doubt);
    let mut gone = Vec::new();
    for _ in 0..10 {
        for server in 1..=5 {
            // The newcomer has less room than the liar.
            let room = if server == 4 { 10 * GIB } else { 50 * GIB };
            gone.extend(cluster.beat(server, room).into_iter().map(|_| server));
        }
        cluster.now = cluster.now.plus_ms(100);
        cluster.map.tick(cluster.now, &|_| 0);
        cluster.sweep();
    }
    assert_eq!(gone, [5]);
}

/// Of `count` blocks that are worked on at a time, how many of each level in a long while, if none can be helped.
fn worked_on(count: usize) -> BTreeMap<u64, usize> {
    let mut queue = Queue::default();
    let levels = [Priority::Highest, Priority::VeryLow, Priority::Low, Priority::Misplaced];
    for id in 0..40 {
        for (at, level) in (0..).zip(levels) {
            queue.put(BlockId(100 * at + id), level);
        }
    }
    let mut turns = BTreeMap::new();
    for _ in 0..1_024 {
        queue.next(count).iter().for_each(|id| *turns.entry(id.0 / 100).or_default() += 1);
    }
    turns
}

#[test]
fn no_level_starves_because_of_blocks_that_cannot_be_helped() {
    for count in 1..12 {
        let turns = worked_on(count);
        assert_eq!(turns.len(), 4, "{count} at a time: {turns:?}");
        assert!(turns[&0] >= turns[&1] && turns[&2] >= turns[&3], "{count} at a time: {turns:?}");
    }
}

#[test]
fn a_server_that_flaps_between_racks_costs_no_more_than_two_copies_of_a_block_for_each_turn() {
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: 2_000, ..config() }, 5);
    for server in 1..=5 {
        cluster.map.learn_rack(&ip(server), if server > 3 { "/b" } else { "/a" });
    }
    for id in 1..=10 {
        cluster.add_stored(block(id, 5), 3, &[1, 2, 4]);
    }
    assert_eq!(obey(&mut cluster, 5, &[1, 2, 3, 4, 5]), (0, 0));
    for turn in 0..6 {
        cluster.map.learn_rack(&ip(4), if turn % 2 == 0 { "/a" } else { "/b" });
        let (copies, gone) = obey(&mut cluster, 20, &[1, 2, 3, 4, 5]);
        assert!(copies <= 20 && copies == gone, "{copies} copies, {gone} gone");
        assert_eq!(obey(&mut cluster, 5, &[1, 2, 3, 4, 5]), (0, 0), "peace");
        assert_eq!(cluster.map.stats().misplaced, 0);
        for id in 1..=10 {
            assert_eq!(cluster.live(id), 3);
        }
    }
}

#[test]
fn a_flap_while_nobody_ticks_costs_nothing() {
    let mut cluster = Cluster::with_servers(on_racks(&[], &[]), 3);
    let mut flapping = Cluster::with_servers(Config { pending_timeout_ms: 2_000, ..config() }, 3);
    for cluster in [&mut cluster, &mut flapping] {
        cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    }
    for turn in 0..10_000 {
        flapping.map.learn_rack(&ip(3), if turn % 2 == 0 { "/b" } else { "/default-rack" });
    }
    assert_eq!(obey(&mut flapping, 10, &[1, 2, 3]), (0, 0));
    assert_eq!(flapping.map.stats().misplaced, 0);
}

#[test]
fn a_takeover_in_the_midst_of_a_copy_leaves_as_many_as_are_wanted() {
    let mut cluster = Cluster::with_servers(on_racks(&[4, 5], &[]), 5);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    let commands = cluster.pass(300, &[1, 2, 3, 4, 5]);
    let [(_, 1, targets)] = &transfers(&commands)[..] else { panic!("one copy: {commands:?}") };
    let target: u16 = targets[0].trim_start_matches("uuid-").parse().unwrap();
    cluster.map.become_listening(cluster.now);
    cluster.pass(1_000, &[1, 2, 3, 4, 5]);
    cluster.map.become_commanding(Epoch(2), cluster.now);
    // The copy arrives late, and is told twice.
    cluster.tell(target, &[received(block(1, 5)), received(block(1, 5))]);
    for server in 1..=3 {
        cluster.heartbeat(server);
        cluster.report(server, &[finalized(block(1, 5))]);
    }
    for server in [4, 5] {
        cluster.heartbeat(server);
        let held = if server == target { vec![finalized(block(1, 5))] } else { Vec::new() };
        cluster.report(server, &held);
    }
    obey(&mut cluster, 40, &[1, 2, 3, 4, 5]);
    assert_eq!(cluster.live(1), 3);
    assert!(cluster.holders(1).contains(&target), "{:?}", cluster.holders(1));
    assert_eq!(cluster.map.stats().under_replicated, 0);
}

#[test]
fn a_block_is_not_copied_for_ever_because_its_only_other_rack_has_a_damaged_replica() {
    let mut cluster = Cluster::with_servers(on_racks(&[4], &[]), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 4]);
    cluster.map.report_bad(block(1, 5), &uuid(4), None, cluster.now);
    let (copies, _) = obey(&mut cluster, 40, &[1, 2, 3, 4]);
    assert!(copies <= 2, "{copies}");
    assert!(cluster.holders(1).len() == 3 && cluster.holders(1).contains(&4), "{:?}", cluster.holders(1));
}

#[test]
fn a_sample_on_another_rack_is_no_ping_pong() {
    let mut cluster = Cluster::with_servers(on_racks(&[4], &[]), 4);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.start(3);
    trial(&mut cluster, 3, |_, _| ());
    cluster.report(3, &[finalized(block(1, 5))]);
    let (copies, gone) = obey(&mut cluster, 60, &[1, 2, 3, 4]);
    assert!(copies <= 3 && gone <= 4, "{copies} copies, {gone} gone");
    assert_eq!(obey(&mut cluster, 20, &[1, 2, 3, 4]), (0, 0));
    assert!(cluster.holders(1).contains(&4), "{:?}", cluster.holders(1));
}

#[test]
fn data_servers_find_their_racks_though_more_clients_came_than_are_remembered() {
    let mut cluster = Cluster::empty(config());
    cluster.map.activate(cluster.now);
    for client in 0..300_000_u32 {
        cluster.map.learn_rack(&std::net::Ipv4Addr::from(client).to_string(), "/clients");
    }
    cluster.map.learn_rack(&ip(1), "/a");
    // Others are learned before the server registers.
    for client in 300_000..310_000_u32 {
        cluster.map.learn_rack(&std::net::Ipv4Addr::from(client).to_string(), "/clients");
    }
    cluster.start(1);
    assert_eq!(cluster.map.server(&uuid(1)).unwrap().rack.as_ref(), "/a");
}
