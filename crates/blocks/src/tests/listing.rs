//! A balancer asks for the blocks of a data server.

use super::cluster::*;
use crate::*;
use base::BlockId;

/// Three servers with a storage each, and blocks 1 to 40 on two of them, in turn.
fn forty_blocks() -> Cluster {
    let mut cluster = Cluster::with_servers(config(), 3);
    for id in 1..=40 {
        let first = (id % 3) as u16 + 1;
        cluster.add_stored(block(id, id * 10), 2, &[first, first % 3 + 1]);
    }
    cluster
}

fn wanted(server: u16) -> Wanted<'static> {
    let server_uuid = ["uuid-0", "uuid-1", "uuid-2", "uuid-3"][usize::from(server)];
    Wanted { server_uuid, storage_type: None, bytes_min: 0 }
}

/// All that is listed in slices of seven records, from a record on and round to it again.
fn listed(map: &BlockMap, wanted: &Wanted<'_>, start: u32) -> Vec<u64> {
    let mut ids = Vec::new();
    for (mut from, until) in [(start, u32::MAX), (0, start)] {
        loop {
            let slice = map.list_blocks(wanted, from, until, 7);
            ids.extend(slice.found.iter().map(|listed| listed.block.id.0));
            if slice.next == from || slice.next >= until.min(map.record_count()) {
                break;
            }
            from = slice.next;
        }
    }
    ids
}

#[test]
fn every_block_of_a_server_is_listed_once_wherever_the_listing_begins() {
    let cluster = forty_blocks();
    let expected: Vec<u64> = (1..=40).filter(|id| cluster.holders(*id).contains(&2)).collect();
    assert!(expected.len() > 20);
    for start in [0, 1, 6, 7, 39, 40] {
        let mut ids = listed(&cluster.map, &wanted(2), start);
        ids.sort_unstable();
        assert_eq!(ids, expected, "from {start}");
    }
    assert_eq!(cluster.map.replica_count_of(&uuid(2)), Some(expected.len() as u64));
}

#[test]
fn a_listed_block_comes_with_all_places_of_good_replicas() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.report_bad(block(1, 5), &uuid(3), None, cluster.now);
    let slice = cluster.map.list_blocks(&wanted(1), 0, u32::MAX, 100);
    let [listed] = &slice.found[..] else { panic!("one block: {slice:?}") };
    let holders: Vec<&str> = listed.locations.iter().map(|at| &**at.server.uuid()).collect();
    assert_eq!(holders, [uuid(1), uuid(2)]);
    let of_the_damaged = cluster.map.list_blocks(&wanted(3), 0, u32::MAX, 100);
    assert!(of_the_damaged.found.is_empty(), "a damaged replica is nothing to be moved");
}

#[test]
fn small_blocks_other_storage_types_and_unfinished_blocks_are_left_out() {
    let mut cluster = forty_blocks();
    let all = listed(&cluster.map, &wanted(1), 0);
    let big = Wanted { bytes_min: 200, ..wanted(1) };
    assert_eq!(listed(&cluster.map, &big, 0), all.iter().copied().filter(|id| *id >= 20).collect::<Vec<_>>());
    let archive = Wanted { storage_type: Some(StorageType::Archive), ..wanted(1) };
    assert!(listed(&cluster.map, &archive, 0).is_empty());
    cluster.map.reopen(block(all[0], all[0] * 10), &[]);
    assert_eq!(listed(&cluster.map, &wanted(1), 0), all[1..]);
}

#[test]
fn a_replica_that_is_to_be_deleted_is_not_listed() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let there: Vec<bool> = [1, 2].map(|server| !listed(&cluster.map, &wanted(server), 0).is_empty()).into();
    assert_eq!(there.iter().filter(|is_there| **is_there).count(), 1, "{there:?}");
}

#[test]
fn nothing_is_listed_of_a_storage_that_is_not_surely_known_or_of_an_unknown_server() {
    let mut cluster = forty_blocks();
    assert!(listed(&cluster.map, &Wanted { server_uuid: "nobody", ..wanted(1) }, 0).is_empty());
    assert_eq!(cluster.map.replica_count_of("nobody"), None);
    cluster.map.set_commanding(None, cluster.now);
    cluster.map.set_commanding(Some(base::Epoch(2)), cluster.now);
    assert!(listed(&cluster.map, &wanted(1), 0).is_empty());
}
