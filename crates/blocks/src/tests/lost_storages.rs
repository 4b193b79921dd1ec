//! Stories of storages that are lost, with their data server or while it lives.

use super::cluster::*;
use crate::*;
use base::BlockId;

/// Server 1 goes on with its first storage for ten seconds.
fn go_on_without_second(cluster: &mut Cluster, failed: &Heartbeat) {
    for _ in 0..100 {
        cluster.now = cluster.now.plus_ms(100);
        cluster.beat_with(1, failed);
        cluster.beat(2, 1);
        cluster.report_of(1, &storage(1), &[]);
        cluster.sweep();
    }
}

/// A full report is under way when a volume fails, and the heartbeat that tells of the failure arrives first. The storage does not come back with
/// the report.
#[test]
fn a_report_that_was_made_before_its_storage_failed_does_not_bring_the_storage_back() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.beat_with(1, &two_storages(1));
    cluster.report_of(1, SECOND, &[]);
    cluster.tell_of(1, SECOND, &[]);
    cluster.add_stored(block(1, 5), 2, &[2]);
    cluster.tell_of(1, SECOND, &[received(block(1, 5))]);
    assert_eq!(cluster.live(1), 2);
    let failures = VolumeFailures { locations: vec!["/d1".into()], last_ms: 7, capacity_lost: 9 };
    let failed = Heartbeat { failed_volumes: 1, volume_failures: Some(failures.clone()), ..heartbeat_of(1) };
    cluster.beat_with(1, &failed);
    cluster.sweep();
    assert_eq!(cluster.live(1), 1);
    assert_eq!(cluster.map.server(&uuid(1)).unwrap().volume_failures.as_deref(), Some(&failures));

    cluster.report_of(1, SECOND, &[finalized(block(1, 5))]); // made before
    go_on_without_second(&mut cluster, &failed);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let told = cluster.beat(2, 1);
    assert!(told.is_empty(), "the last replica is ordered to go");
    assert_eq!(cluster.live(1), 1, "the disk has failed long ago");
}

/// News of a single replica waited when the volume failed. It does not bring the storage back for long.
#[test]
fn news_that_was_made_before_a_storage_failed_does_not_bring_the_storage_back() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.beat_with(1, &two_storages(1));
    cluster.report_of(1, SECOND, &[]);
    cluster.add_stored(block(1, 5), 2, &[2]);
    let failed = Heartbeat { failed_volumes: 1, ..heartbeat_of(1) };
    cluster.beat_with(1, &failed);
    cluster.tell_of(1, SECOND, &[received(block(1, 5))]);
    go_on_without_second(&mut cluster, &failed);
    assert_eq!(cluster.live(1), 1, "the disk has failed long ago, and the block is not copied");
}

/// A data server is stopped, one of its volumes is taken from its configuration, and it starts again within ten minutes. The storage is in no heartbeat
/// any more, and its replicas do not count.
#[test]
fn a_storage_that_is_not_there_after_a_restart_does_not_count() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.beat_with(1, &two_storages(1));
    cluster.report_of(1, SECOND, &[]);
    cluster.add_stored(block(1, 5), 2, &[2]);
    cluster.tell_of(1, SECOND, &[received(block(1, 5))]);
    cluster.start(1); // its heartbeats name the first storage only
    cluster.report(1, &[]);
    let commands = cluster.pass(20_000, &[1, 2, 3]);
    cluster.report(1, &[]);
    assert_eq!(cluster.live(1), 1, "nobody has spoken of that storage since");
    assert!(!transfers(&commands).is_empty(), "a copy is ordered");
}

/// A heartbeat that was under way for long arrives last. It was sent while a volume was broken. The storage that is there again is lost for it, and
/// then the data server is asked to begin anew, because nobody knows what the storage holds.
#[test]
fn a_late_heartbeat_does_not_make_a_storage_seem_lost_for_hours() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.beat_with(1, &two_storages(1));
    cluster.report_of(1, SECOND, &[]);
    cluster.add_stored(block(1, 5), 1, &[]);
    cluster.tell_of(1, SECOND, &[received(block(1, 5))]);
    let late = Heartbeat { failed_volumes: 1, ..heartbeat_of(1) };
    cluster.beat_with(1, &late);
    let mut asked = false;
    for _ in 0..100 {
        cluster.now = cluster.now.plus_ms(100);
        let heartbeat = two_storages(1);
        let commands = cluster.speak(1, |map, id, now| map.heartbeat(id, &heartbeat, now)).unwrap();
        asked |= commands.iter().any(|command| matches!(command, Command::Register));
        cluster.sweep();
    }
    assert!(asked || cluster.map.replicas(BlockId(1)).is_some_and(|it| it.live == 1), "the block seems lost");
}

/// A reader has found the replica of server 1 rotten. Before it is deleted the server dies, and one replica is enough from then on. The server comes
/// back with what it had, and server 2 has the least room.
fn a_rotten_replica_was_away() -> Cluster {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.pass(4_000, &[2, 3]);
    assert_eq!(cluster.holders(1), [2]);
    cluster.start(1);
    cluster
}

/// The blocks that server 2 is ordered to delete from here on.
fn deleted_by_the_fullest(cluster: &mut Cluster) -> Vec<u64> {
    let mut told = Vec::new();
    for _ in 0..20 {
        cluster.now = cluster.now.plus_ms(100);
        told.extend(cluster.beat(2, GIB));
        [1, 3].into_iter().for_each(|server| _ = cluster.beat(server, 80 * GIB));
        cluster.map.tick(cluster.now, &|_| 0);
        cluster.sweep();
    }
    told
}

#[test]
fn a_rotten_replica_that_comes_back_with_its_server_costs_no_good_one() {
    let mut cluster = a_rotten_replica_was_away();
    cluster.report(1, &[finalized(block(1, 5))]);
    let told = deleted_by_the_fullest(&mut cluster);
    assert!(told.is_empty(), "the last good replica is ordered to go");
    assert_eq!((cluster.live(1), cluster.holders(1)), (1, vec![2]));
}

/// A balancer has sent the server another one meanwhile.
#[test]
fn a_replica_that_is_made_anew_is_not_taken_for_the_rotten_one() {
    let mut cluster = a_rotten_replica_was_away();
    cluster.report(1, &[]);
    cluster.tell(1, &[received(block(1, 5))]);
    assert_eq!(deleted_by_the_fullest(&mut cluster), [1], "there are two good ones");
    assert_eq!(cluster.holders(1), [1, 2], "until it is told of");
}

/// Of two replicas a reader has found the one on server 1 rotten. Both servers die; server 1 comes back first, and for a while it has the only one.
#[test]
fn a_rotten_replica_that_was_alone_for_a_while_costs_no_good_one() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.pass(4_000, &[3]);
    cluster.start(1);
    cluster.report(1, &[finalized(block(1, 5))]);
    assert_eq!(cluster.live(1), 1, "it may have been repaired, and there is no other");
    cluster.start(2);
    cluster.report(2, &[finalized(block(1, 5))]);
    let told = deleted_by_the_fullest(&mut cluster);
    assert!(told.is_empty(), "the last good replica is ordered to go");
    assert_eq!((cluster.live(1), cluster.holders(1)), (1, vec![2]));
}
