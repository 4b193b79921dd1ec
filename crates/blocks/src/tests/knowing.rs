//! Reports, readers and dead servers.

use super::cluster::*;
use crate::*;
use base::{BlockId, Epoch, Moment};

#[test]
fn a_full_report_is_exactly_what_the_storage_holds() {
    let mut cluster = Cluster::with_servers(config(), 2);
    for id in 1..=10 {
        cluster.add_stored(block(id, id), 1, &[1]);
    }
    let rows: Vec<_> = (1..=10).filter(|id| id % 3 != 0).map(|id| finalized(block(id, id))).collect();
    assert!(cluster.report(1, &rows).needs_sweep);
    cluster.pass(100, &[1, 2]);
    let held: Vec<u64> = (1..=10).filter(|id| !cluster.holders(*id).is_empty()).collect();
    assert_eq!(held, [1, 2, 4, 5, 7, 8, 10]);
    assert!(!cluster.report(1, &rows).needs_sweep);
}

#[test]
fn what_is_learnt_during_a_report_outlives_it() {
    let mut cluster = Cluster::with_servers(config(), 1);
    for id in 1..=4 {
        cluster.add_stored(block(id, 1), 1, &[1]);
    }
    let report = cluster
        .speak(1, |map, id, now| map.begin_report(id, &storage(1), StorageType::Disk, 0, now))
        .unwrap();
    cluster.map.report_slice(report, &[finalized(block(1, 1)), finalized(block(2, 1))], cluster.now).unwrap();
    // Between two slices one block goes, another comes into its slot.
    cluster.map.remove(&[BlockId(2)]);
    cluster.check();
    cluster.add_stored(block(5, 1), 1, &[1]);
    cluster.map.report_slice(report, &[finalized(block(3, 1))], cluster.now).unwrap();
    assert!(cluster.map.finish_report(report, cluster.now).unwrap().needs_sweep);
    cluster.pass(100, &[1]);
    assert_eq!(cluster.holders(5), [1]);
    assert_eq!(cluster.holders(3), [1]);
    assert!(cluster.holders(4).is_empty());
}

#[test]
fn a_report_ends_with_its_server_or_with_the_next_one() {
    let mut cluster = Cluster::with_servers(config(), 1);
    let begin = |cluster: &mut Cluster| {
        cluster.speak(1, |map, id, now| map.begin_report(id, &storage(1), StorageType::Disk, 0, now)).unwrap()
    };
    let first = begin(&mut cluster);
    let second = begin(&mut cluster);
    assert_eq!(cluster.map.report_slice(first, &[], cluster.now), Err(ServerError::ReportGone));
    assert_eq!(cluster.map.report_slice(second, &[], cluster.now), Ok(()));
    cluster.pass(5_000, &[]);
    assert_eq!(cluster.map.finish_report(second, cluster.now), Err(ServerError::ReportGone));
}

#[test]
fn a_reader_hears_of_the_nearest_replica_first() {
    let mut cluster = Cluster::with_servers(racks(6), 6);
    cluster.add_stored(block(1, 1), 3, &[1, 4, 5]);
    for (reader, nearest) in [("10.0.0.4", 4), ("host5", 5), ("10.0.0.2", 1), ("10.0.0.6", 5)] {
        for chance in 0..20 {
            let reader = Reader { host: Some(reader) };
            let located = cluster.map.locations(BlockId(1), reader, chance, cluster.now).unwrap();
            assert_eq!(**located.locations[0].server.uuid(), *uuid(nearest));
            assert_eq!(located.locations.len(), 3);
        }
    }
    let first = |chance| {
        let located = cluster.map.locations(BlockId(1), Reader::default(), chance, cluster.now).unwrap();
        located.locations[0].server.uuid().to_string()
    };
    let firsts: std::collections::BTreeSet<_> = (0..50).map(first).collect();
    assert_eq!(firsts.len(), 3, "strangers are spread over all replicas");
}

#[test]
fn stale_servers_are_read_from_last_and_dead_ones_not_at_all() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 1), 3, &[1, 2, 3]);
    cluster.pass(1_500, &[2, 3]);
    let reader = Reader { host: Some("10.0.0.1") };
    let located = cluster.map.locations(BlockId(1), reader, 0, cluster.now).unwrap();
    assert_eq!(**located.locations[2].server.uuid(), *uuid(1));
    assert_eq!(cluster.map.stats().stale_servers, 1);
    cluster.pass(1_000, &[2, 3]);
    assert_eq!(cluster.holders(1), [2, 3]);
    assert_eq!(cluster.map.take_events().died, ["10.0.0.1:9866"]);
    assert_eq!(cluster.map.servers(ServerFilter::Dead).len(), 1);
}

/// The metadata server's own process was stopped, or its machine was. All servers seem to be silent since.
#[test]
fn nobody_is_called_dead_because_the_metadata_server_was_held_up() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 1), 3, &[1, 2, 3]);
    cluster.pass(500, &[1, 2, 3]);
    cluster.now = cluster.now.plus_ms(1_000_000);
    cluster.map.tick(cluster.now, &|_| 0);
    assert_eq!(cluster.holders(1), [1, 2, 3]);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    cluster.map.tick(cluster.now, &|_| 0);
    assert!(cluster.heartbeat(1).is_empty(), "the others are not heard yet");
    // One of them died in that time.
    assert!(deletions(&cluster.pass(500, &[1, 2])).is_empty());
    cluster.pass(1_000, &[1, 2]);
    assert_eq!(cluster.holders(1), [1, 2]);
    assert_eq!(cluster.map.take_events().died, ["10.0.0.3:9866"]);
}

#[test]
fn a_dead_server_must_register_and_report_again() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 1), 2, &[1, 2]);
    cluster.pass(3_000, &[2]);
    assert_eq!(cluster.holders(1), [2]);
    assert!(matches!(cluster.heartbeat(1)[..], [Command::Register]));
    let refused =
        cluster.speak(1, |map, id, now| map.begin_report(id, &storage(1), StorageType::Disk, 0, now));
    assert!(matches!(refused, Err(ServerError::NotRegistered(_))));
    cluster.start(1);
    assert_eq!(cluster.holders(1), [2]);
    cluster.report(1, &[finalized(block(1, 1))]);
    assert_eq!(cluster.holders(1), [1, 2]);
}

#[test]
fn a_failed_volume_takes_its_replicas_along() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 1), 2, &[1, 2]);
    let failed = StorageReport {
        id: storage(1).as_str().into(),
        state: StorageState::Failed,
        ..StorageReport::default()
    };
    let heartbeat = Heartbeat { storages: vec![failed], ..Heartbeat::default() };
    cluster.speak(1, |map, id, now| map.heartbeat(id, &heartbeat, now)).unwrap();
    assert_eq!(cluster.holders(1), [2]);
    while cluster.map.sweep(1, cluster.now) {}
    cluster.check();
    assert_eq!(cluster.map.stats().under_replicated, 1);
}

#[test]
fn whoever_takes_an_address_replaces_its_holder() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 1), 2, &[1, 2]);
    let newcomer = Registration {
        uuid: "newcomer".into(),
        ip: ip(1).as_str().into(),
        host_name: "host1".into(),
        transfer_port: 9866,
        ..Registration::default()
    };
    cluster.map.register(newcomer, session(9), cluster.now).unwrap();
    assert_eq!(cluster.holders(1), [2]);
    assert_eq!(cluster.map.servers(ServerFilter::All).len(), 2);
    while cluster.map.sweep(1, cluster.now) {}
    cluster.check();
}

#[test]
fn servers_that_take_an_address_from_each_other_are_told_of_once_with_all_uuids() {
    let mut cluster = Cluster::with_servers(config(), 2);
    let registration = |uuid: &str| Registration {
        uuid: uuid.into(),
        ip: ip(7).as_str().into(),
        host_name: "host7".into(),
        transfer_port: 9866,
        ..Registration::default()
    };
    let take = |cluster: &mut Cluster, uuid: &str| {
        cluster.now = cluster.now.plus_ms(3_000);
        cluster.map.register(registration(uuid), session(9), cluster.now).unwrap();
        cluster.map.take_events()
    };
    let uuids = |contests: &[crate::Contest]| -> Vec<Vec<String>> {
        let named = |contest: &crate::Contest| contest.uuids.iter().map(|uuid| uuid.to_string()).collect();
        contests.iter().map(named).collect()
    };
    take(&mut cluster, "a");
    let replaced = take(&mut cluster, "b");
    assert_eq!(
        uuids(&replaced.contested),
        [[""; 0]; 0],
        "a server that was made anew replaces its predecessor"
    );
    assert_eq!((replaced.died.len(), replaced.joined.len()), (1, 1));
    assert_eq!(cluster.map.contested(cluster.now), []);

    let back = take(&mut cluster, "a");
    assert_eq!(uuids(&back.contested), [["a", "b"]]);
    assert_eq!(back.contested[0].address, format!("{}:9866", ip(7)));
    assert_eq!((back.died.len(), back.joined.len()), (0, 0));
    for turn in 0..20 {
        let events = take(&mut cluster, ["b", "a"][turn % 2]);
        assert!(events.is_empty(), "turn {turn}: {events:?}");
    }
    // A third one is news, once.
    assert!(take(&mut cluster, "c").is_empty());
    assert!(take(&mut cluster, "b").contested.len() == 1);
    assert!(take(&mut cluster, "c").is_empty());
    assert_eq!(uuids(&cluster.map.contested(cluster.now)), [["a", "b", "c"]]);
    assert_eq!(cluster.map.servers(ServerFilter::All).len(), 3, "two others, and one that holds the address");

    // Somebody has ended two of them.
    cluster.now = cluster.now.plus_ms(599_000);
    assert_eq!(cluster.map.contested(cluster.now).len(), 1);
    cluster.now = cluster.now.plus_ms(2_000);
    assert_eq!(cluster.map.contested(cluster.now), []);
}

#[test]
fn nobody_speaks_with_anothers_uuid() {
    let mut cluster = Cluster::with_servers(config(), 2);
    let session = &session(1).0;
    let impostor = ServerId { uuid: &uuid(1), ip: "10.9.9.9", transfer_port: 9866, session, connection: 0 };
    let refused = cluster.map.heartbeat(impostor, &Heartbeat::default(), cluster.now).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Data node 10.9.9.9:9866 is attempting to report storage ID uuid-1. Node 10.0.0.1:9866 is expected to \
         serve this storage."
    );
}

#[test]
fn a_replica_moved_between_volumes_is_one_replica() {
    let mut cluster = Cluster::with_servers(config(), 1);
    cluster.add_stored(block(1, 1), 1, &[1]);
    let moved = |map: &mut BlockMap, id: ServerId<'_>, now: Moment| {
        map.incremental_report(id, "DS-other", StorageType::Ssd, &[received(block(1, 1))], now)
    };
    cluster.speak(1, moved).unwrap();
    cluster.check();
    let located = cluster.map.locations(BlockId(1), Reader::default(), 0, cluster.now).unwrap();
    assert_eq!(located.locations.len(), 1);
    assert_eq!(&*located.locations[0].storage, "DS-other");
}

#[test]
fn a_standby_takes_reports_about_blocks_it_has_not_read_of() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.map.set_commanding(None, cluster.now);
    cluster.tell(1, &[received(block(7, 9))]);
    assert_eq!(cluster.map.stats().postponed, 1);
    cluster.add_complete(block(7, 9), 2);
    assert_eq!(cluster.holders(7), [1]);
    assert_eq!(cluster.map.stats().postponed, 0);
    assert!(cluster.pass(1_000, &[1, 2]).is_empty(), "a standby commands nothing");
    cluster.map.set_commanding(Some(Epoch(2)), cluster.now);
    let commands = cluster.pass(1_000, &[1, 2]);
    assert_eq!(transfers(&commands), [(1, 7, vec![uuid(2)])]);
}

#[test]
fn full_reports_are_let_in_a_few_at_a_time() {
    let mut cluster = Cluster::with_servers(Config { max_report_leases: 2, ..config() }, 3);
    let lease =
        |cluster: &mut Cluster, server| cluster.speak(server, |map, id, now| map.grant_report_lease(id, now));
    assert_ne!(lease(&mut cluster, 1), 0);
    assert_ne!(lease(&mut cluster, 2), 0);
    assert_eq!(lease(&mut cluster, 3), 0);
    cluster.report(1, &[]);
    assert_ne!(lease(&mut cluster, 3), 0);
}
