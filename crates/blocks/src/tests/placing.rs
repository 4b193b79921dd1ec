//! The choice of places for new replicas.

use super::cluster::*;
use crate::*;
use base::{BlockId, InodeId};
use std::collections::BTreeSet;

fn choose(cluster: &mut Cluster, placement: Placement) -> Vec<u16> {
    let placement = Placement { block_size: 1 << 20, ..placement };
    let targets = cluster.map.choose_targets(&placement, cluster.now);
    targets.iter().map(|at| at.server.uuid().trim_start_matches("uuid-").parse().unwrap()).collect()
}

fn rack(server: u16) -> u16 {
    server.div_ceil(2)
}

#[test]
fn the_writers_host_then_another_rack_then_that_rack_again() {
    let mut cluster = Cluster::with_servers(racks(8), 8);
    for _ in 0..50 {
        let writer = Reader { host: Some("10.0.0.3") };
        let targets = choose(&mut cluster, Placement { writer, replication: 3, ..Placement::default() });
        assert_eq!(targets[0], 3);
        assert_ne!(rack(targets[1]), rack(3));
        assert_eq!(rack(targets[2]), rack(targets[1]));
    }
}

#[test]
fn a_strangers_block_goes_anywhere() {
    let mut cluster = Cluster::with_servers(racks(8), 8);
    let mut firsts = BTreeSet::new();
    for _ in 0..100 {
        let targets = choose(&mut cluster, Placement { replication: 3, ..Placement::default() });
        assert_eq!(targets.iter().collect::<BTreeSet<_>>().len(), 3);
        assert_eq!(targets.iter().map(|at| rack(*at)).collect::<BTreeSet<_>>().len(), 2);
        firsts.insert(targets[0]);
    }
    assert_eq!(firsts.len(), 8);
}

#[test]
fn many_replicas_are_spread_over_racks() {
    let mut cluster = Cluster::with_servers(racks(8), 8);
    let targets = choose(&mut cluster, Placement { replication: 8, ..Placement::default() });
    assert_eq!(targets.iter().collect::<BTreeSet<_>>().len(), 8);
    let targets = choose(&mut cluster, Placement { replication: 20, ..Placement::default() });
    assert_eq!(targets.len(), 8, "no server takes two");
}

#[test]
fn excluded_servers_are_not_used_and_favoured_ones_are() {
    let mut cluster = Cluster::with_servers(config(), 5);
    for _ in 0..20 {
        let excluded = [&*uuid(2), &*uuid(4), "nobody"];
        let targets = choose(
            &mut cluster,
            Placement {
                replication: 3,
                excluded: &excluded,
                favoured: &["host5:9866"],
                ..Placement::default()
            },
        );
        assert_eq!(targets.iter().collect::<BTreeSet<_>>(), [1, 3, 5].iter().collect());
    }
    let targets = choose(
        &mut cluster,
        Placement { replication: 1, favoured: &["10.0.0.4:9866", "10.0.0.4:1", "x"], ..Placement::default() },
    );
    assert_eq!(targets, [4]);
}

/// As in HDFS: where no server has this port, or no port is said, one of the host's is meant.
#[test]
fn a_favoured_host_stands_for_a_server_on_it() {
    let mut cluster = Cluster::with_servers(config(), 5);
    for favoured in ["host5:9866", "10.0.0.5:9866", "host5", "10.0.0.5", "host5:1", "10.0.0.5:1", "host5:x"] {
        for _ in 0..10 {
            let placement = Placement { replication: 1, favoured: &[favoured], ..Placement::default() };
            assert_eq!(choose(&mut cluster, placement), [5], "{favoured}");
        }
    }
}

#[test]
fn an_additional_server_is_another_one() {
    let mut cluster = Cluster::with_servers(config(), 3);
    let existing = [cluster.place(1), cluster.place(3)];
    let targets =
        choose(&mut cluster, Placement { replication: 1, existing: &existing, ..Placement::default() });
    assert_eq!(targets, [2]);
}

#[test]
fn a_writer_may_ask_not_to_write_to_itself() {
    let mut cluster = Cluster::with_servers(config(), 2);
    for _ in 0..20 {
        let writer = Reader { host: Some("10.0.0.1") };
        let placement = Placement { writer, replication: 1, avoid_writer: true, ..Placement::default() };
        assert_eq!(choose(&mut cluster, placement), [2]);
    }
}

#[test]
fn full_and_dead_servers_take_nothing() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.pass(3_000, &[1, 2]);
    let full = StorageReport {
        id: storage(1).as_str().into(),
        capacity: GIB,
        remaining: 1000,
        ..StorageReport::default()
    };
    let heartbeat = Heartbeat { storages: vec![full], ..Heartbeat::default() };
    cluster.speak(1, |map, id, now| map.heartbeat(id, &heartbeat, now)).unwrap();
    let targets = choose(&mut cluster, Placement { replication: 3, ..Placement::default() });
    assert_eq!(targets, [2]);
}

#[test]
fn room_that_was_promised_is_not_promised_again() {
    let mut cluster = Cluster::with_servers(config(), 1);
    let placement = Placement { replication: 1, block_size: 30 * GIB, ..Placement::default() };
    let counts: Vec<usize> =
        (0..4).map(|_| cluster.map.choose_targets(&placement, cluster.now).len()).collect();
    assert_eq!(
        counts,
        [1, 1, 0, 0],
        "89 GiB remain, and the third block would leave none for what is promised"
    );
}

#[test]
fn a_server_shows_how_many_blocks_are_on_their_way_to_it() {
    let mut cluster = Cluster::with_servers(config(), 1);
    let shown = |cluster: &mut Cluster| {
        cluster.heartbeat(1);
        cluster.map.server(&uuid(1)).unwrap().blocks_scheduled
    };
    for id in 1..=2 {
        let placement = Placement { replication: 1, block_size: 1 << 20, ..Placement::default() };
        let targets = cluster.map.choose_targets(&placement, cluster.now);
        let now = cluster.now;
        cluster.map.add_block(block(id, 0), InodeId(16_386), 1, BlockState::UnderConstruction, &targets, now);
    }
    assert_eq!(shown(&mut cluster), 2);
    cluster.tell(1, &[received(block(1, 100))]);
    assert_eq!(shown(&mut cluster), 1, "one of them has come");
    cluster.map.remove(&[BlockId(2)]);
    assert_eq!(shown(&mut cluster), 0, "the other one was given up");
}

#[test]
fn busy_and_silent_servers_come_last() {
    let mut cluster = Cluster::with_servers(config(), 4);
    let storage =
        StorageReport { id: storage(4).as_str().into(), remaining: GIB, ..StorageReport::default() };
    let heartbeat = Heartbeat { storages: vec![storage], xceivers: 100, ..Heartbeat::default() };
    cluster.pass(1_500, &[1, 2]);
    cluster.speak(4, |map, id, now| map.heartbeat(id, &heartbeat, now)).unwrap();
    for _ in 0..20 {
        let targets = choose(&mut cluster, Placement { replication: 2, ..Placement::default() });
        assert_eq!(targets.iter().collect::<BTreeSet<_>>(), [1, 2].iter().collect());
    }
    assert_eq!(choose(&mut cluster, Placement { replication: 4, ..Placement::default() }).len(), 4);
}

#[test]
fn the_same_seed_chooses_the_same_servers() {
    let mut one = Cluster::with_servers(racks(8), 8);
    let mut other = Cluster::with_servers(racks(8), 8);
    for _ in 0..20 {
        let placement = || Placement { replication: 3, ..Placement::default() };
        assert_eq!(choose(&mut one, placement()), choose(&mut other, placement()));
    }
}

/// The number comes from the wire (`getAdditionalDatanode`): 2^32 places would take the memory of a machine.
#[test]
fn an_absurd_number_of_replicas_gets_a_place_on_every_server_and_costs_nothing() {
    let mut cluster = Cluster::with_servers(config(), 3);
    for replication in [usize::MAX, u32::MAX as usize] {
        let targets = choose(&mut cluster, Placement { replication, ..Placement::default() });
        assert_eq!(targets.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from([1, 2, 3]));
    }
}

/// Clients that cannot reach a server give block after block up. Nothing is kept free for these.
#[test]
fn room_that_was_promised_to_blocks_that_are_given_up_is_free_again() {
    let mut cluster = Cluster::with_servers(config(), 1);
    for id in 1..=1_000 {
        let placement = Placement { replication: 1, block_size: GIB, ..Placement::default() };
        let targets = cluster.map.choose_targets(&placement, cluster.now);
        assert_eq!(targets.len(), 1, "{id}: there is room for 89 at a time");
        let now = cluster.now;
        cluster.map.add_block(block(id, 0), InodeId(16_386), 1, BlockState::UnderConstruction, &targets, now);
        cluster.map.remove(&[BlockId(id)]);
    }
}
