//! Too few replicas, too many, and damaged ones.

use super::cluster::*;
use crate::*;
use base::{BlockId, Epoch};

const ALL: [u16; 4] = [1, 2, 3, 4];

#[test]
fn a_dead_servers_blocks_are_copied() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    let commands = cluster.pass(3_000, &[2, 3, 4]);
    let [(source, 1, targets)] = &transfers(&commands)[..] else { panic!("one transfer: {commands:?}") };
    assert!([2, 3].contains(source));
    assert_eq!(*targets, [uuid(4)]);
    assert_eq!(cluster.map.stats().pending_transfers, 1);
    cluster.tell(4, &[received(block(1, 5))]);
    assert_eq!(cluster.holders(1), [2, 3, 4]);
    let stats = cluster.map.stats();
    assert_eq!((stats.pending_transfers, stats.under_replicated), (0, 0));
}

#[test]
fn a_copy_that_never_arrives_is_ordered_again() {
    let mut cluster = Cluster::with_servers(Config { pending_timeout_ms: 2_000, ..config() }, 2);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    let commands = cluster.pass(5_500, &[1, 2]);
    assert_eq!(transfers(&commands), vec![(1, 1, vec![uuid(2)]); 3]);
}

#[test]
fn the_most_endangered_blocks_come_first() {
    let mut cluster = Cluster::with_servers(Config { transfers_per_live_server: 1, ..config() }, 4);
    for id in 1..=4 {
        cluster.add_stored(block(id, 5), 3, &[1, 2, 3]);
    }
    cluster.add_stored(block(9, 5), 3, &[1, 2, 3]);
    cluster.tell(1, &[Increment::Deleted(block(9, 5))]);
    cluster.tell(2, &[Increment::Deleted(block(9, 5))]);
    for id in 1..=4 {
        cluster.tell(1, &[Increment::Deleted(block(id, 5))]);
    }
    cluster.map.tick(cluster.now, &|_| 0);
    let first = (1..=3).flat_map(|server| cluster.heartbeat(server).into_iter().map(move |c| (server, c)));
    let first: Vec<_> = first.collect();
    assert!(transfers(&first).iter().any(|(source, block, _)| (*source, *block) == (3, 9)), "{first:?}");
}

#[test]
fn more_replicas_on_request_and_fewer_again() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.map.set_replication(BlockId(1), 3, cluster.now);
    let commands = cluster.pass(200, &ALL);
    let [(1, 1, targets)] = &transfers(&commands)[..] else { panic!("{commands:?}") };
    assert_eq!(targets.len(), 2, "one pipeline makes both copies");
    for target in targets {
        cluster.tell(target.trim_start_matches("uuid-").parse().unwrap(), &[received(block(1, 5))]);
    }
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert_eq!(cluster.map.stats().excess, 2);
    let deleted = deletions(&cluster.pass(200, &ALL));
    assert_eq!(deleted.len(), 2);
    for (server, id) in deleted {
        cluster.tell(server, &[Increment::Deleted(block(id, 5))]);
    }
    assert_eq!(cluster.holders(1).len(), 1);
    assert_eq!(cluster.map.stats().excess, 0);
}

#[test]
fn a_deletion_that_never_arrived_is_ordered_again() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let lost = deletions(&cluster.pass(100, &[1, 2]));
    assert_eq!(lost.len(), 1);
    assert!(deletions(&cluster.pass(500, &[1, 2])).is_empty());
    cluster.report(lost[0].0, &[finalized(block(1, 5))]);
    assert_eq!(deletions(&cluster.pass(100, &[1, 2])), lost);
}

#[test]
fn superfluous_replicas_go_from_the_fuller_rack() {
    let mut cluster = Cluster::with_servers(racks(4), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    let deleted = deletions(&cluster.pass(200, &ALL));
    assert!(matches!(deleted[..], [(1 | 2, 1)]), "{deleted:?}");
}

#[test]
fn the_hinted_replica_goes() {
    for goes in [1, 2] {
        let mut cluster = Cluster::with_servers(config(), 4);
        cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
        let hint = Some(uuid(goes).as_str().into());
        cluster.tell(4, &[Increment::Received { block: block(1, 5), delete_hint: hint }]);
        assert_eq!(deletions(&cluster.pass(200, &ALL)), [(goes, 1)]);
    }
}

#[test]
fn nothing_is_deleted_while_a_holder_is_not_fully_known() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.set_commanding(None, cluster.now);
    cluster.map.set_commanding(Some(Epoch(2)), cluster.now);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    assert!(deletions(&cluster.pass(500, &[1, 2, 3])).is_empty());
    for server in 1..=3 {
        cluster.report(server, &[finalized(block(1, 5))]);
    }
    assert_eq!(deletions(&cluster.pass(500, &[1, 2, 3])).len(), 1);
}

#[test]
fn a_damaged_replica_is_replaced_and_only_then_deleted() {
    let mut cluster = Cluster::with_servers(config(), 4);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.report_bad(block(1, 5), &uuid(2), Some(&storage(2)), cluster.now);
    cluster.check();
    assert_eq!(cluster.holders(1), [1, 3]);
    assert_eq!(cluster.map.stats().corrupt, 1);
    let commands = cluster.pass(200, &ALL);
    assert_eq!(transfers(&commands).len(), 1);
    assert!(deletions(&commands).is_empty());
    cluster.tell(4, &[received(block(1, 5))]);
    assert_eq!(deletions(&cluster.pass(200, &ALL)), [(2, 1)]);
    assert_eq!(cluster.holders(1), [1, 3, 4]);
    assert_eq!(
        cluster.map.stats().corrupt,
        1,
        "its data server has not said yet that it has deleted the replica"
    );
    cluster.tell(2, &[Increment::Deleted(block(1, 5))]);
    assert_eq!(cluster.map.stats().corrupt, 0);
}

#[test]
fn a_block_with_damaged_replicas_only_is_offered_all_the_same() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    for server in 1..=2 {
        cluster.map.report_bad(block(1, 5), &uuid(server), None, cluster.now);
    }
    let located = cluster.map.locations(BlockId(1), Reader::default(), 0, cluster.now).unwrap();
    assert!(located.corrupt);
    assert_eq!(located.locations.len(), 2);
    assert!(cluster.pass(1_000, &[1, 2]).is_empty(), "the last replicas are never deleted");
    assert_eq!(cluster.map.stats().missing, 1);
}

#[test]
fn a_damaged_replica_makes_room_where_every_server_has_one() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.report_bad(block(1, 5), &uuid(2), None, cluster.now);
    let commands = cluster.pass(300, &[1, 2, 3]);
    assert_eq!(deletions(&commands), [(2, 1)]);
    cluster.tell(2, &[Increment::Deleted(block(1, 5))]);
    let commands = [commands, cluster.pass(300, &[1, 2, 3])].concat();
    assert!(
        matches!(&transfers(&commands)[..], [(1 | 3, 1, targets)] if *targets == [uuid(2)]),
        "{commands:?}"
    );
}

#[test]
fn outdated_replicas_of_a_complete_block_are_deleted_when_there_are_enough() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    let old = base::Block { generation_stamp: base::GenerationStamp(1000), ..block(1, 5) };
    assert_eq!(cluster.report(3, &[finalized(old)]).corrupt, 1);
    let commands = cluster.pass(200, &[1, 2, 3]);
    let [(3, Command::Invalidate(blocks))] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!((blocks[0].id, blocks[0].generation_stamp), (old.id, old.generation_stamp));
}

#[test]
fn blocks_without_replicas_are_counted_as_missing() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.add_stored(block(2, 5), 2, &[1]);
    cluster.pass(3_000, &[2]);
    let stats = cluster.map.stats();
    assert_eq!((stats.missing, stats.missing_with_replication_one, stats.under_replicated), (2, 1, 2));
}

#[test]
fn in_safe_mode_nothing_is_copied_or_deleted() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.enter_safe_mode();
    cluster.map.set_replication(BlockId(1), 3, cluster.now);
    cluster.report(3, &[finalized(block(99, 5))]);
    assert!(cluster.pass(1_000, &[1, 2, 3]).is_empty());
    assert!(cluster.map.leave_safe_mode(false, cluster.now));
    assert_eq!(transfers(&cluster.pass(1_000, &[1, 2, 3])).len(), 1);
}

#[test]
fn the_rate_of_balancing_is_told_once_to_each_server_that_lives() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.map.set_balancing_rate(7 << 20);
    let told = |commands: &[Command]| matches!(commands, [Command::BalancingRate(7_340_032)]);
    assert!(told(&cluster.heartbeat(1)));
    assert!(cluster.heartbeat(1).is_empty());
    // Only the latest rate waits for a server.
    cluster.map.set_balancing_rate(9);
    cluster.map.set_balancing_rate(7 << 20);
    assert!(told(&cluster.heartbeat(2)));
}

#[test]
fn the_files_of_lost_blocks_are_known() {
    let mut cluster = Cluster::with_servers(config(), 1);
    cluster.add_stored(block(7, 1), 1, &[1]);
    assert_eq!(cluster.map.files_of_lost_blocks(BlockId(0)).count(), 0);
    cluster.pass(5_000, &[]);
    let inode = cluster.map.inode_of(BlockId(7));
    assert!(inode.is_some());
    let (lost, file) = cluster.map.files_of_lost_blocks(BlockId(0)).next().unwrap();
    assert_eq!(file, inode);
    assert_eq!(cluster.map.files_of_lost_blocks(lost).count(), 0, "there is one");
}
