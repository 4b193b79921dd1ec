//! Blocks with all their replicas on one rack, though there are others.

use super::cluster::*;
use crate::*;
use base::AdminState;

/// These servers are on `/b`, all others on `/a`.
fn on_b(servers: &[u16]) -> Config {
    let table =
        (1..=8).map(|server| (ip(server), if servers.contains(&server) { "/b" } else { "/a" }.into()));
    Config { racks: table.collect(), pending_timeout_ms: 2_000, ..config() }
}

fn arrive(cluster: &mut Cluster, commands: &[(u16, Command)]) -> Vec<u16> {
    let mut targets = Vec::new();
    for (_, id, to) in transfers(commands) {
        for target in to {
            let target = target.trim_start_matches("uuid-").parse().unwrap();
            cluster.tell(target, &[received(block(id, 5))]);
            targets.push(target);
        }
    }
    targets
}

/// Carries out what is ordered until nothing more is.
fn settle(cluster: &mut Cluster, servers: &[u16]) {
    for _ in 0..20 {
        let commands = cluster.pass(200, servers);
        arrive(cluster, &commands);
        for (server, id) in deletions(&commands) {
            cluster.tell(server, &[Increment::Deleted(block(id, 5))]);
        }
    }
}

#[test]
fn a_block_whose_replicas_are_on_one_rack_gets_one_on_another() {
    let mut cluster = Cluster::with_servers(on_b(&[4]), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    assert_eq!(cluster.map.stats().misplaced, 0, "nobody has looked yet");
    let commands = cluster.pass(300, &[1, 2, 3, 4]);
    let [(1..=3, 1, targets)] = &transfers(&commands)[..] else { panic!("one copy: {commands:?}") };
    assert_eq!(*targets, [uuid(4)]);
    arrive(&mut cluster, &commands);
    let goes = only_one_told(&cluster.pass(300, &[1, 2, 3, 4]));
    assert!(goes < 4, "one of the crowded rack goes, not {goes}");
    assert_eq!(cluster.map.stats().under_replicated, 0);
    cluster.tell(goes, &[Increment::Deleted(block(1, 5))]);
    assert!(cluster.pass(3_000, &[1, 2, 3, 4]).is_empty(), "and then there is peace");
    assert_eq!(cluster.live(1), 3);
}

#[test]
fn one_replica_needs_no_second_rack_and_one_rack_has_no_second() {
    let mut cluster = Cluster::with_servers(on_b(&[4]), 4);
    cluster.add_stored(block(1, 5), 1, &[1]);
    assert!(cluster.pass(1_000, &[1, 2, 3, 4]).is_empty());
    let mut cluster = Cluster::with_servers(on_b(&[]), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    assert!(cluster.pass(1_000, &[1, 2, 3, 4]).is_empty());
    assert_eq!(cluster.map.stats().misplaced, 0);
}

#[test]
fn a_rack_that_comes_later_gets_replicas_of_what_is_there() {
    let mut cluster = Cluster::with_servers(on_b(&[4]), 3);
    for id in 1..=20 {
        cluster.add_stored(block(id, 5), 2, &[1 + (id % 3) as u16, 1 + ((id + 1) % 3) as u16]);
    }
    assert!(cluster.pass(1_000, &[1, 2, 3]).is_empty());
    cluster.start(4);
    cluster.report(4, &[]);
    cluster.pass_trial(4);
    settle(&mut cluster, &[1, 2, 3, 4]);
    for id in 1..=20 {
        let holders = cluster.holders(id);
        assert!(holders.len() == 2 && holders.contains(&4), "block {id} is on {holders:?}");
    }
}

#[test]
fn the_more_endangered_blocks_go_before_the_misplaced_ones() {
    let mut cluster = Cluster::with_servers(Config { transfers_per_live_server: 1, ..on_b(&[4]) }, 4);
    for id in 1..=30 {
        cluster.add_stored(block(id, 5), 3, &[1, 2, 3]);
    }
    cluster.map.tick(cluster.now, &|_| 0);
    cluster.sweep();
    cluster.add_stored(block(31, 5), 3, &[1, 2, 3]);
    cluster.tell(1, &[Increment::Deleted(block(31, 5))]);
    cluster.tell(2, &[Increment::Deleted(block(31, 5))]);
    let first = transfers(&cluster.pass(100, &[1, 2, 3, 4]));
    let second = transfers(&cluster.pass(100, &[1, 2, 3, 4]));
    assert!(first.iter().chain(&second).any(|(_, id, _)| *id == 31), "{first:?}, {second:?}");
}

#[test]
fn a_full_rack_leaves_the_block_where_it_is() {
    let mut cluster = Cluster::with_servers(on_b(&[4]), 4);
    cluster.add_stored(block(1, 5 * GIB), 3, &[1, 2, 3]);
    let full = |cluster: &mut Cluster| {
        for server in 1..=3 {
            cluster.heartbeat(server);
        }
        assert!(cluster.beat(4, GIB).is_empty());
    };
    for _ in 0..10 {
        full(&mut cluster);
        cluster.now = cluster.now.plus_ms(100);
        cluster.map.tick(cluster.now, &|_| 0);
        cluster.sweep();
    }
    let stats = cluster.map.stats();
    assert_eq!((stats.misplaced, stats.under_replicated, stats.missing), (1, 1, 0));
    assert_eq!(cluster.holders(1), [1, 2, 3]);
}

#[test]
fn a_block_is_not_misplaced_any_more_when_the_other_rack_is_gone() {
    let mut cluster = Cluster::with_servers(on_b(&[4]), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.pass(200, &[1, 2, 3, 4]);
    // The copy never arrives, and the server dies.
    cluster.pass(5_000, &[1, 2, 3]);
    let stats = cluster.map.stats();
    assert_eq!((stats.misplaced, stats.under_replicated, stats.pending_transfers), (0, 0, 0));
    cluster.start(4);
    cluster.report(4, &[]);
    cluster.pass_trial(4);
    settle(&mut cluster, &[1, 2, 3, 4]);
    assert!(cluster.holders(1).contains(&4));
}

#[test]
fn a_server_that_moves_to_another_rack_takes_its_replicas_along() {
    let mut cluster = Cluster::with_servers(on_b(&[3, 4]), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    assert!(cluster.pass(500, &[1, 2, 3, 4]).is_empty());
    // The machine is carried to rack `/a`, and gets an address there.
    let moved = Registration { ip: ip(7).as_str().into(), ..registration(3) };
    cluster.pass(2_000, &[1, 2, 4]);
    cluster.map.register(moved, session(3), cluster.now).unwrap();
    assert_eq!(cluster.map.server(&uuid(3)).unwrap().rack.as_ref(), "/a");
    let commands = cluster.pass(300, &[1, 2, 4]);
    let [(_, 1, targets)] = &transfers(&commands)[..] else { panic!("one copy: {commands:?}") };
    assert_eq!(*targets, [uuid(4)]);
}

#[test]
fn the_only_replica_of_a_rack_stays_while_its_server_is_a_newcomer() {
    let mut cluster = Cluster::with_servers(on_b(&[4]), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.start(4);
    cluster.report(4, &[finalized(block(1, 5))]);
    let commands = cluster.pass(1_000, &[1, 2, 3, 4]);
    assert_eq!(deletions(&commands), [], "none goes, neither the newcomer's nor another one for its sake");
    cluster.pass_trial(4);
    let goes = only_one_told(&cluster.pass(500, &[1, 2, 3, 4]));
    assert!(goes < 4);
}

#[test]
fn a_replica_in_maintenance_is_on_its_rack_all_the_same() {
    let mut cluster = Cluster::with_servers(on_b(&[3, 4]), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.order_admin_state(&uuid(3), AdminOrder::Maintenance, cluster.now);
    assert!(cluster.pass(1_000, &[1, 2, 3, 4]).is_empty());
    assert_eq!(cluster.map.stats().misplaced, 0);
}

#[test]
fn one_copy_is_ordered_however_often_the_block_is_looked_at() {
    let mut cluster = Cluster::with_servers(on_b(&[4, 5, 6]), 6);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    let commands = cluster.pass(1_000, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(transfers(&commands).len(), 1, "{commands:?}");
}

#[test]
fn what_a_doubted_server_claims_is_on_no_rack() {
    let mut cluster = Cluster::with_servers(on_b(&[4, 5]), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.start(4);
    cluster.report(4, &[finalized(block(1, 5))]);
    let index = cluster.map.servers.find(&uuid(4)).unwrap();
    cluster.map.doubt(index);
    assert!(cluster.pass(500, &[1, 2, 3, 4]).is_empty(), "only the liar is on another rack");
    assert_eq!(cluster.map.stats().misplaced, 0, "and there is no room that counts");
    cluster.start(5);
    cluster.report(5, &[]);
    cluster.pass_trial(5);
    let commands = cluster.pass(500, &[1, 2, 3, 4, 5]);
    assert_eq!(arrive(&mut cluster, &commands), [5]);
    let gone = deletions(&cluster.pass(500, &[1, 2, 3, 4, 5]));
    let [(1..=3, 1), (4, 1)] = gone[..] else {
        panic!("the liar's replica goes, and one of rack /a: {gone:?}")
    };
}

#[test]
fn a_server_that_dies_on_its_way_out_does_not_wait_for_misplaced_blocks() {
    let mut cluster = Cluster::with_servers(on_b(&[3, 4]), 4);
    cluster.add_stored(block(1, 5 * GIB), 2, &[1, 2]);
    let pass_with_a_full_rack = |cluster: &mut Cluster, rounds: u64| {
        for _ in 0..rounds {
            [1, 2].into_iter().for_each(|server| _ = cluster.heartbeat(server));
            cluster.beat(3, GIB);
            cluster.now = cluster.now.plus_ms(100);
            cluster.map.tick(cluster.now, &|_| 0);
            cluster.sweep();
        }
    };
    cluster.beat(4, GIB);
    pass_with_a_full_rack(&mut cluster, 5);
    assert_eq!(cluster.map.stats().misplaced, 1);
    cluster.map.order_admin_state(&uuid(4), AdminOrder::Decommission, cluster.now);
    cluster.now = cluster.now.plus_ms(10_000);
    pass_with_a_full_rack(&mut cluster, 20);
    let face = cluster.map.server(&uuid(4)).unwrap();
    assert_eq!((face.alive, face.admin_state), (false, AdminState::Decommissioned));
}
