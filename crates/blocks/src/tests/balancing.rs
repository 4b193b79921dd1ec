//! A balancer has a replica copied to another server, which names the server whose replica may go in return.

use super::cluster::*;
use crate::*;
use base::{BlockId, Epoch};

/// The server has received the block, so that `from` may give it up.
fn moved(block: base::Block, from: u16) -> Increment {
    Increment::Received { block, delete_hint: Some(uuid(from).as_str().into()) }
}

fn racks_of(table: &[(u16, &str)]) -> Config {
    let table = table.iter().map(|(server, rack)| (ip(*server), (*rack).to_owned())).collect();
    Config { racks: table, ..config() }
}

#[test]
fn nothing_goes_before_the_new_replica_is_told() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.tell(4, &[Increment::Receiving(block(1, 0))]);
    assert!(deletions(&cluster.pass(1_000, &[1, 2, 3, 4])).is_empty());
    cluster.tell(4, &[moved(block(1, 5), 2)]);
    assert_eq!(deletions(&cluster.pass(200, &[1, 2, 3, 4])), [(2, 1)]);
    assert_eq!(cluster.holders(1), [1, 2, 3, 4], "it counts as there until it is told to be gone");
    cluster.tell(2, &[Increment::Deleted(block(1, 5))]);
    assert_eq!(cluster.holders(1), [1, 3, 4]);
}

#[test]
fn a_replica_of_another_length_or_stamp_costs_no_other_one() {
    for wrong in [block(1, 4), base::Block { generation_stamp: base::GenerationStamp(1000), ..block(1, 5) }] {
        let mut cluster = Cluster::with_servers(config(), 4);
        cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
        cluster.tell(4, &[moved(wrong, 2)]);
        let told = deletions(&cluster.pass(1_000, &[1, 2, 3, 4]));
        assert!(told.iter().all(|(server, _)| *server == 4), "{told:?}");
    }
}

#[test]
fn a_hint_costs_nothing_where_there_are_not_too_many_replicas() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2]);
    cluster.tell(3, &[moved(block(1, 5), 1)]);
    assert!(deletions(&cluster.pass(1_000, &[1, 2, 3, 4])).is_empty());
    // The hint is of no account for what comes later: the server with the least room gives its replica up.
    cluster.tell(4, &[received(block(1, 5))]);
    assert_eq!(deletions(&cluster.pass(200, &[1, 2, 3, 4])), [(4, 1)]);
}

#[test]
fn a_server_that_names_itself_or_one_without_a_replica_gives_no_hint() {
    for named in [4, 5, 9] {
        let mut cluster = Cluster::with_servers(config(), 5);
        cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
        cluster.tell(4, &[moved(block(1, 5), named)]);
        let told = deletions(&cluster.pass(200, &[1, 2, 3, 4, 5]));
        assert_eq!(told, [(4, 1)], "the one on the server with the least room");
    }
}

#[test]
fn the_hint_waits_until_all_holders_are_surely_known() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.set_commanding(None, cluster.now);
    cluster.map.set_commanding(Some(Epoch(2)), cluster.now);
    cluster.tell(4, &[moved(block(1, 5), 2)]);
    assert!(deletions(&cluster.pass(500, &[1, 2, 3, 4])).is_empty());
    for server in 1..=4 {
        cluster.report(server, &[finalized(block(1, 5))]);
    }
    assert_eq!(deletions(&cluster.pass(600, &[1, 2, 3, 4])), [(2, 1)]);
}

/// All others have the block, so the newcomer cannot send it to anybody who would prove it.
#[test]
fn a_replica_on_a_newcomer_stays_until_a_client_has_written_through_that_server() {
    let mut cluster = Cluster::with_newcomers(config(), 4);
    for server in 1..=3 {
        cluster.pass_trial(server);
    }
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.tell(4, &[moved(block(1, 5), 2)]);
    assert!(deletions(&cluster.pass(2_000, &[1, 2, 3, 4])).is_empty(), "neither the old one nor the new one");
    cluster.add_stored(block(2, 5), 1, &[4]);
    assert_eq!(deletions(&cluster.pass(2_000, &[1, 2, 3, 4])), [(2, 1)]);
}

#[test]
fn a_newcomer_that_makes_replicas_up_costs_no_real_one_whatever_it_hints() {
    let mut cluster = Cluster::with_newcomers(config(), 5);
    for server in 1..=4 {
        cluster.pass_trial(server);
    }
    for id in 1..=20 {
        cluster.add_stored(block(id, 5), 3, &[1, 2, 3]);
        cluster.tell(5, &[moved(block(id, 5), 1 + (id % 3) as u16)]);
    }
    // Samples are asked for, and do not come.
    let told = deletions(&cluster.pass(2_000_000, &[1, 2, 3, 4, 5]));
    assert!(told.iter().all(|(server, _)| *server == 5), "{told:?}");
}

#[test]
fn the_last_replica_on_a_rack_stays_where_the_new_one_brings_no_rack() {
    let config = racks_of(&[(1, "/a"), (2, "/b"), (3, "/b"), (4, "/b")]);
    let mut cluster = Cluster::with_servers(config, 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.tell(4, &[moved(block(1, 5), 1)]);
    let told = deletions(&cluster.pass(200, &[1, 2, 3, 4]));
    assert!(matches!(told[..], [(2..=4, 1)]), "{told:?}");
}

#[test]
fn the_last_replica_on_a_rack_goes_where_the_new_one_brings_a_rack() {
    let config = racks_of(&[(1, "/a"), (2, "/b"), (3, "/b"), (4, "/c")]);
    let mut cluster = Cluster::with_servers(config, 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.tell(4, &[moved(block(1, 5), 1)]);
    assert_eq!(deletions(&cluster.pass(200, &[1, 2, 3, 4])), [(1, 1)]);
}

#[test]
fn a_replica_that_goes_from_one_disk_to_another_of_its_server_is_one_replica() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.beat_with(1, &two_storages(1));
    cluster.report_of(1, SECOND, &[]);
    cluster.tell_of(1, SECOND, &[moved(block(1, 5), 1)]);
    assert_eq!(cluster.live(1), 3);
    cluster.tell(1, &[Increment::Deleted(block(1, 5))]);
    assert_eq!(cluster.live(1), 3, "the deletion on the first disk is not about the second one");
    assert!(cluster.beat_with(1, &two_storages(1)).is_empty());
    assert!(cluster.map.location(&uuid(1), SECOND).is_some());
    assert!(
        cluster
            .map
            .locations(BlockId(1), Reader::default(), 0, cluster.now)
            .unwrap()
            .locations
            .iter()
            .any(|at| &*at.storage == SECOND)
    );
}
