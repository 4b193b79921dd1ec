//! Stories of rotten replicas whose servers or disks are lost and come back, perhaps repaired: the last good one must not go for their sake, and must heal the block.
//!
//! All begin with a reader's word that the replica of server 1 is rotten. Servers 1, 2 and 3 are no newcomers.

use super::cluster::*;
use crate::*;
use base::BlockId;

/// So many milliseconds with these heartbeats; what the servers are told meanwhile.
fn run(cluster: &mut Cluster, ms: u64, beats: &[(u16, Heartbeat)]) -> Vec<(u16, Command)> {
    let end = cluster.now.plus_ms(ms);
    let mut commands = Vec::new();
    while cluster.now < end {
        cluster.now = cluster.now.plus_ms(100);
        for (server, heartbeat) in beats {
            let told = cluster.speak(*server, |map, id, now| map.heartbeat(id, heartbeat, now)).unwrap();
            commands.extend(told.into_iter().map(|command| (*server, command)));
        }
        cluster.map.tick(cluster.now, &|_| 0);
        cluster.sweep();
    }
    commands
}

/// Of a server with the least room: what is superfluous would go from there.
fn full(server: u16) -> Heartbeat {
    let mut heartbeat = heartbeat_of(server);
    heartbeat.storages[0].remaining = GIB;
    heartbeat
}

/// A block whose replicas are on these servers, and are all found rotten. There are so many servers.
fn all_rotten(servers: u16, holders: &[u16]) -> Cluster {
    let mut cluster = Cluster::with_servers(config(), servers);
    cluster.add_stored(block(1, 5), holders.len() as u16, holders);
    for server in holders {
        cluster.map.report_bad(block(1, 5), &uuid(*server), None, cluster.now);
    }
    cluster
}

/// The server registers anew, and has what it had.
fn come_back(cluster: &mut Cluster, server: u16) {
    cluster.start(server);
    cluster.report(server, &[finalized(block(1, 5))]);
}

/// What counts as what, for the message of a test that fails.
fn standing(cluster: &Cluster) -> Vec<(String, Standing)> {
    let block = cluster.map.standings(BlockId(1), cluster.now).unwrap();
    block.replicas.iter().map(|it| (it.location.storage.to_string(), it.standing)).collect()
}

/// It was alone for a while and has moved within its server; then the good one comes back.
#[test]
fn a_rotten_replica_that_moves_to_another_disk_stays_dubious() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.pass(4_000, &[3]);
    cluster.start(1);
    cluster.beat_with(1, &two_storages(1));
    cluster.report(1, &[finalized(block(1, 5))]);
    cluster.report_of(1, SECOND, &[]);
    assert_eq!(cluster.live(1), 1);
    cluster.tell_of(1, SECOND, &[received(block(1, 5))]);
    cluster.tell(1, &[Increment::Deleted(block(1, 5))]);
    come_back(&mut cluster, 2);
    let told = run(&mut cluster, 2_000, &[(1, two_storages(1)), (2, full(2)), (3, heartbeat_of(3))]);
    assert_eq!(deletions(&told), [(1, 1)], "{:?}", standing(&cluster));
}

/// Both replicas were rotten, and one was repaired.
#[test]
fn a_repaired_replica_heals_its_block_with_one_server_more() {
    let mut cluster = all_rotten(3, &[1, 2]);
    cluster.pass(4_000, &[3]);
    for server in 1..=2 {
        come_back(&mut cluster, server);
    }
    cluster.map.report_bad(block(1, 5), &uuid(2), None, cluster.now);
    cluster.pass_with_copies(60_000, &[1, 2, 3]);
    assert_eq!(cluster.live(1), 2, "{:?}", standing(&cluster));
}

/// Both replicas were rotten. The one that was repaired is back, and the other is not.
#[test]
fn a_repaired_replica_heals_its_block_on_two_servers() {
    let mut cluster = all_rotten(3, &[1, 2]);
    cluster.pass(4_000, &[3]);
    come_back(&mut cluster, 1);
    cluster.pass_with_copies(60_000, &[1, 3]);
    assert_eq!(cluster.live(1), 2, "{:?}", standing(&cluster));
}

/// All three were rotten, and one was repaired.
#[test]
fn a_repaired_replica_heals_its_block_on_four_servers() {
    let mut cluster = all_rotten(4, &[1, 2, 3]);
    cluster.pass(4_000, &[4]);
    for server in 1..=3 {
        come_back(&mut cluster, server);
    }
    cluster.map.report_bad(block(1, 5), &uuid(2), None, cluster.now);
    cluster.map.report_bad(block(1, 5), &uuid(3), None, cluster.now);
    cluster.pass_with_copies(60_000, &[1, 2, 3, 4]);
    assert_eq!(cluster.live(1), 3, "{:?}", standing(&cluster));
}

/// The other one was superfluous, and its server has been told to delete it.
#[test]
fn a_replica_that_was_told_to_go_condemns_no_other() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    run(&mut cluster, 100, &[(1, heartbeat_of(1)), (2, full(2)), (3, heartbeat_of(3))]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let told = run(&mut cluster, 100, &[(1, heartbeat_of(1)), (2, full(2)), (3, heartbeat_of(3))]);
    assert_eq!(deletions(&told), [(2, 1)]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    run(&mut cluster, 4_000, &[(2, full(2)), (3, heartbeat_of(3))]);
    come_back(&mut cluster, 1);
    cluster.tell(2, &[Increment::Deleted(block(1, 5))]);
    run(&mut cluster, 4_000, &[(1, heartbeat_of(1)), (2, full(2)), (3, heartbeat_of(3))]);
    assert_eq!(cluster.live(1), 1, "{:?}", standing(&cluster));
}

/// A made-up server claims the block before the real one is back. It cannot show a single block, and is doubted.
#[test]
fn a_made_up_claim_condemns_no_replica() {
    let mut cluster = all_rotten(3, &[1]);
    cluster.pass(4_000, &[2, 3]);
    come_back(&mut cluster, 9);
    come_back(&mut cluster, 1);
    // The samples of server 9 do not come, and it is doubted.
    cluster.pass(3_000_000, &[1, 2, 3, 9]);
    assert_eq!(cluster.map.take_events().doubted, ["10.0.0.9:9866"]);
    assert_eq!(cluster.live(1), 1, "{:?}", standing(&cluster));
}

/// The made-up server is doubted already.
#[test]
fn a_doubted_claim_condemns_no_replica() {
    let mut cluster = all_rotten(3, &[1]);
    cluster.pass(4_000, &[2, 3]);
    come_back(&mut cluster, 9);
    cluster.pass(3_000_000, &[2, 3, 9]);
    assert_eq!(cluster.map.take_events().doubted, ["10.0.0.9:9866"]);
    come_back(&mut cluster, 1);
    assert_eq!(cluster.live(1), 1, "{:?}", standing(&cluster));
}

/// A whole report has shown that the other one is gone. The sweep has not come there yet.
#[test]
fn a_replica_that_is_gone_condemns_no_other() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.pass(4_000, &[2, 3]);
    cluster.report(2, &[]);
    come_back(&mut cluster, 1);
    cluster.pass(1_000, &[1, 2, 3]);
    assert_eq!(cluster.live(1), 1, "{:?}", standing(&cluster));
}

/// A made-up server that says something under the name of the real storage, and is given up. Then the real one comes back with the rotten replica.
fn forged_name(tell: fn(&mut Cluster)) {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.pass(4_000, &[2, 3]);
    cluster.start(9);
    tell(&mut cluster);
    cluster.sweep();
    cluster.speak(9, |map, id, _| map.give_up_server(id)).unwrap();
    cluster.sweep();
    come_back(&mut cluster, 1);
    let told = run(&mut cluster, 2_000, &[(1, heartbeat_of(1)), (2, full(2)), (3, heartbeat_of(3))]);
    assert_eq!(deletions(&told), [(1, 1)], "{:?}", standing(&cluster));
}

/// It gives its storage the real one's name.
#[test]
fn a_made_up_server_cannot_say_that_the_replica_came_anew() {
    forged_name(|cluster| cluster.tell_of(9, &storage(1), &[received(block(1, 5))]));
}

/// It gives its storage the real one's name.
#[test]
fn a_made_up_server_cannot_say_that_the_replica_is_deleted() {
    forged_name(|cluster| cluster.tell_of(9, &storage(1), &[Increment::Deleted(block(1, 5))]));
}

/// It gives its storage the real one's name.
#[test]
fn a_made_up_servers_report_changes_no_finding() {
    forged_name(|cluster| cluster.report_of(9, &storage(1), &[finalized(block(1, 5))]));
}

/// Both were rotten, and nobody knows which was repaired. One server is to leave.
#[test]
fn no_server_leaves_on_account_of_a_dubious_replica() {
    let mut cluster = all_rotten(3, &[1, 2]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.pass(4_000, &[3]);
    for server in 1..=2 {
        come_back(&mut cluster, server);
    }
    cluster.order(2, AdminOrder::Decommission);
    cluster.pass(3_000, &[1, 2, 3]);
    assert_eq!(cluster.state(2), AdminState::DecommissionInProgress, "{:?}", standing(&cluster));
}

/// The deletion of the rotten one was told when its disk failed. The disk is back before the server registers anew.
#[test]
fn a_dubious_replica_goes_before_a_good_one() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.beat_with(1, &two_storages(1));
    cluster.report_of(1, SECOND, &[]);
    cluster.add_stored(block(1, 5), 2, &[2]);
    cluster.tell_of(1, SECOND, &[received(block(1, 5))]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    let both = || [(1, two_storages(1)), (2, full(2)), (3, heartbeat_of(3))];
    let told = run(&mut cluster, 100, &both());
    assert_eq!(deletions(&told), [(1, 1)]);
    let failed = Heartbeat { failed_volumes: 1, ..heartbeat_of(1) };
    cluster.speak(1, |map, id, now| map.heartbeat(id, &failed, now)).unwrap();
    cluster.sweep();
    cluster.report_of(1, SECOND, &[finalized(block(1, 5))]);
    cluster.map.register(registration(1), session(1), cluster.now).unwrap();
    cluster.beat_with(1, &two_storages(1));
    cluster.report(1, &[]);
    cluster.report_of(1, SECOND, &[finalized(block(1, 5))]);
    let told = run(&mut cluster, 3_000, &both());
    let told = deletions(&told);
    assert!(!told.contains(&(2, 1)), "{told:?}");
    assert_eq!((cluster.live(1), cluster.holders(1)), (1, vec![2]), "{told:?} {:?}", standing(&cluster));
    assert!(told.contains(&(1, 1)));
}

/// The other one is on a server in maintenance, which is off.
#[test]
fn a_replica_that_is_away_condemns_no_other() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.order(2, AdminOrder::Maintenance);
    cluster.pass(4_000, &[3]);
    come_back(&mut cluster, 1);
    cluster.pass(1_000, &[1, 3]);
    assert_eq!(cluster.live(1), 1, "{:?}", standing(&cluster));
}

/// The other server is back as well, and tells then that it has nothing.
#[test]
fn a_replica_that_may_be_gone_condemns_no_other() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.pass(4_000, &[2, 3]);
    cluster.start(2);
    come_back(&mut cluster, 1);
    cluster.report(2, &[]);
    cluster.pass(1_000, &[1, 2, 3]);
    assert_eq!(cluster.live(1), 1, "{:?}", standing(&cluster));
}

/// The good one is lost before the rotten one was deleted.
#[test]
fn an_old_finding_ends_with_the_good_replica() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.pass(4_000, &[2, 3]);
    come_back(&mut cluster, 1);
    cluster.pass(4_000, &[1, 3]);
    assert_eq!(cluster.live(1), 1, "{:?}", standing(&cluster));
}

/// All three were rotten, all are back, and one is enough from then on.
#[test]
fn dubious_replicas_are_sorted_out_by_one_copy() {
    let mut cluster = all_rotten(4, &[1, 2, 3]);
    cluster.pass(4_000, &[4]);
    for server in 1..=3 {
        come_back(&mut cluster, server);
    }
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.pass_with_copies(60_000, &[1, 2, 3, 4]);
    assert_eq!(cluster.live(1), 1, "{:?}", standing(&cluster));
}

/// It gives its storage the real one's name.
#[test]
fn a_made_up_server_that_stays_changes_no_finding() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.pass(4_000, &[2, 3]);
    cluster.start(9);
    cluster.report_of(9, &storage(1), &[finalized(block(1, 5))]);
    come_back(&mut cluster, 1);
    let mut fake = heartbeat_of(9);
    fake.storages[0].id = storage(1).as_str().into();
    let beats = [(1, heartbeat_of(1)), (2, full(2)), (3, heartbeat_of(3)), (9, fake)];
    let told = run(&mut cluster, 3_000_000, &beats);
    assert!(!deletions(&told).contains(&(2, 1)), "{:?} {:?}", deletions(&told), standing(&cluster));
}

/// In either order: the rotten one is back first, or the good one was never away.
#[test]
fn a_good_replica_that_leaves_is_not_let_go_for_a_rotten_one() {
    for first in [true, false] {
        let mut cluster = Cluster::with_servers(config(), 2);
        cluster.add_stored(block(1, 5), 2, &[1, 2]);
        cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
        cluster.map.set_replication(BlockId(1), 1, cluster.now);
        cluster.order(2, AdminOrder::Decommission);
        if first {
            cluster.pass(4_000, &[2]);
            come_back(&mut cluster, 1);
        } else {
            cluster.pass(4_000, &[]);
            come_back(&mut cluster, 1);
            cluster.pass(1_000, &[1]);
            come_back(&mut cluster, 2);
        }
        cluster.pass(3_000, &[1, 2]);
        assert_ne!(cluster.state(2), AdminState::Decommissioned);
    }
}

/// Another member leads for a while between the loss and the return.
#[test]
fn a_finding_outlives_a_time_without_command() {
    use base::Epoch;
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.pass(4_000, &[3]);
    cluster.map.set_commanding(None, cluster.now);
    come_back(&mut cluster, 1);
    cluster.map.set_commanding(Some(Epoch(5)), cluster.now);
    cluster.connection = 2;
    cluster.pass(1_000, &[1, 3]);
    cluster.report(1, &[finalized(block(1, 5))]);
    come_back(&mut cluster, 2);
    let told = run(&mut cluster, 2_000, &[(1, heartbeat_of(1)), (2, full(2)), (3, heartbeat_of(3))]);
    assert_eq!(deletions(&told), [(1, 1)], "{:?}", standing(&cluster));
}

/// A reader's word is late: the storage was lost a moment before.
#[test]
fn a_word_of_rot_that_comes_after_the_loss_counts() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    cluster.pass(4_000, &[2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), Some(&storage(1)), cluster.now);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    come_back(&mut cluster, 1);
    cluster.start(3);
    cluster.report(3, &[]);
    let told = run(&mut cluster, 2_000, &[(1, heartbeat_of(1)), (2, full(2)), (3, heartbeat_of(3))]);
    assert_eq!(deletions(&told), [(1, 1)], "{:?}", standing(&cluster));
}

/// The server tells that it has deleted a replica with an older stamp.
#[test]
fn a_word_about_an_older_replica_changes_no_finding() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.pass(4_000, &[2, 3]);
    cluster.start(1);
    let older = base::Block { generation_stamp: base::GenerationStamp(1000), ..block(1, 5) };
    cluster.tell(1, &[Increment::Deleted(older)]);
    cluster.report(1, &[finalized(block(1, 5))]);
    let told = run(&mut cluster, 2_000, &[(1, heartbeat_of(1)), (2, full(2)), (3, heartbeat_of(3))]);
    assert_eq!(deletions(&told), [(1, 1)], "{:?}", standing(&cluster));
}

/// The disk fails while its server lives, which gets a new copy on its other disk; then the first disk is back.
#[test]
fn a_disk_that_comes_back_beside_a_new_copy_costs_no_good_replica() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.beat_with(1, &two_storages(1));
    cluster.report_of(1, SECOND, &[]);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    let mut failed = two_storages(1);
    failed.storages[0].state = StorageState::Failed;
    cluster.speak(1, |map, id, now| map.heartbeat(id, &failed, now)).unwrap();
    cluster.sweep();
    cluster.tell_of(1, SECOND, &[received(block(1, 5))]);
    assert_eq!(cluster.live(1), 2);
    cluster.beat_with(1, &two_storages(1));
    cluster.map.register(registration(1), session(1), cluster.now).unwrap();
    cluster.beat_with(1, &two_storages(1));
    cluster.report(1, &[finalized(block(1, 5))]);
    cluster.report_of(1, SECOND, &[finalized(block(1, 5))]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let told = run(&mut cluster, 2_000, &[(1, two_storages(1)), (2, full(2)), (3, heartbeat_of(3))]);
    assert!(!deletions(&told).contains(&(2, 1)), "{:?} {:?}", deletions(&told), standing(&cluster));
}

/// All three replicas are rotten. One server is repaired while it is off.
#[test]
fn a_replica_that_was_repaired_is_copied_if_there_is_no_other() {
    let mut cluster = all_rotten(5, &[1, 2, 3]);
    cluster.pass(4_000, &[2, 3, 4, 5]);
    assert_eq!(cluster.live(1), 0);
    come_back(&mut cluster, 1);
    let commands = cluster.pass(3_000, &[1, 2, 3, 4, 5]);
    let [(1, 1, targets)] = &transfers(&commands)[..] else { panic!("one transfer: {commands:?}") };
    assert_eq!(targets.len(), 2, "both others get one");
    // The copies were checked on their way: it was repaired.
    cluster.tell(4, &[received(block(1, 5))]);
    cluster.tell(5, &[received(block(1, 5))]);
    assert_eq!((cluster.live(1), cluster.holders(1)), (3, vec![1, 4, 5]));
}

/// Both replicas were rotten. Both servers come back, one of them repaired, and nobody knows which.
#[test]
fn of_two_replicas_that_were_rotten_none_goes() {
    let mut cluster = all_rotten(3, &[1, 2]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.pass(4_000, &[3]);
    for server in 1..=2 {
        come_back(&mut cluster, server);
    }
    assert_eq!(cluster.live(1), 2);
    assert!(deletions(&cluster.pass(3_000, &[1, 2, 3])).is_empty());
}
