//! What a data server says may be long under way, and arrive behind what it has said since.

use super::cluster::*;
use crate::*;
use base::{BlockId, Epoch};

const EARLIER: u64 = 1;
const LATER: u64 = 2;

/// Block 1 had replicas on servers 1, 2 and 3, and shall have one. Two have deleted theirs, and said so on a later connection.
/// Returns the server that has kept its own, and one that has not.
fn two_have_deleted() -> (Cluster, u16, u16) {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let deleted: Vec<u16> = deletions(&cluster.pass(300, &[1, 2, 3])).iter().map(|(of, _)| *of).collect();
    assert_eq!(deleted.len(), 2);
    cluster.connection = LATER;
    for server in &deleted {
        cluster.tell(*server, &[Increment::Deleted(block(1, 5))]);
    }
    let kept = (1..=3).find(|server| !deleted.contains(server)).expect("one has kept it");
    assert_eq!(cluster.holders(1), [kept]);
    (cluster, kept, deleted[0])
}

fn begin(cluster: &mut Cluster, server: u16) -> Result<ReportId, ServerError> {
    cluster.speak(server, |map, id, now| map.begin_report(id, &storage(server), StorageType::Disk, 0, now))
}

fn nothing_is_deleted(cluster: &mut Cluster) {
    let commands = cluster.pass(2_000, &[1, 2, 3]);
    assert_eq!(deletions(&commands), [], "the last replica goes");
}

#[test]
pub fn a_full_report_on_an_earlier_connection_does_not_bring_a_deleted_replica_back() {
    let (mut cluster, kept, other) = two_have_deleted();
    cluster.connection = EARLIER;
    let late = begin(&mut cluster, other).and_then(|report| {
        cluster.map.report_slice(report, &[finalized(block(1, 5))], cluster.now)?;
        cluster.map.finish_report(report, cluster.now).map(drop)
    });
    assert_eq!(late, Err(ServerError::Overtaken));
    assert_eq!(cluster.holders(1), [kept]);
    nothing_is_deleted(&mut cluster);
}

#[test]
pub fn news_on_an_earlier_connection_does_not_bring_it_back_either() {
    let (mut cluster, kept, other) = two_have_deleted();
    cluster.connection = EARLIER;
    let late = cluster.speak(other, |map, id, now| {
        map.incremental_report(id, &storage(other), StorageType::Disk, &[received(block(1, 5))], now)
    });
    assert_eq!(late, Err(ServerError::Overtaken));
    assert_eq!(cluster.holders(1), [kept]);
    nothing_is_deleted(&mut cluster);
}

/// A long report is taken in slices. Its sender has given it up in the middle.
#[test]
fn the_rest_of_a_long_report_is_given_up_once_its_server_reports_on_a_later_connection() {
    let (mut cluster, kept, other) = two_have_deleted();
    let report = begin(&mut cluster, other).unwrap();
    let rows = [finalized(block(1, 5))];
    cluster.connection = LATER + 1;
    cluster.tell(other, &[]);
    assert_eq!(cluster.map.report_slice(report, &rows, cluster.now), Err(ServerError::Overtaken));
    assert_eq!(cluster.map.finish_report(report, cluster.now).unwrap_err(), ServerError::ReportGone);
    cluster.check();
    assert_eq!(cluster.holders(1), [kept]);
    nothing_is_deleted(&mut cluster);
}

/// The replica was made there again.
#[test]
fn a_report_on_the_latest_connection_is_believed() {
    let (mut cluster, kept, other) = two_have_deleted();
    cluster.report(other, &[finalized(block(1, 5))]);
    let deleted = deletions(&cluster.pass(1_000, &[1, 2, 3]));
    assert_eq!(deleted.len(), 1, "one of the two goes");
    assert!([kept, other].contains(&deleted[0].0));
}

/// A heartbeat was given up, and a report is still waited for on the connection of before.
#[test]
fn heartbeats_on_a_later_connection_void_no_report() {
    let mut cluster = Cluster::with_servers(config(), 2);
    let report = begin(&mut cluster, 1).unwrap();
    cluster.connection = LATER;
    cluster.heartbeat(1);
    cluster.map.finish_report(report, cluster.now).unwrap();
    cluster.connection = EARLIER;
    cluster.report(1, &[]);
}

/// The numbers of another data server, or of an earlier session, say nothing.
#[test]
fn connections_are_compared_within_a_session() {
    let (mut cluster, kept, other) = two_have_deleted();
    cluster.connection = EARLIER;
    cluster.report(kept, &[finalized(block(1, 5))]);
    cluster.start(other);
    cluster.report(other, &[]);
}

/// The report was made while the active of before was obeyed, and comes behind the heartbeat on a later connection with which
/// its sender has heard of this active.
#[test]
pub fn after_a_takeover_a_report_on_an_earlier_connection_shows_too_much() {
    let mut cluster = Cluster::with_servers(config(), 1);
    cluster.map.become_listening(cluster.now);
    cluster.map.become_commanding(Epoch(2), cluster.now);
    cluster.connection = LATER;
    cluster.heartbeat(1);
    cluster.connection = EARLIER;
    cluster.report(1, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 1);
    cluster.connection = LATER;
    cluster.report(1, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 0);
}

/// The first heartbeat that this active has answered was given up by its data server, and the answer is lost with the connection. A report that
/// was asked for by hand, and so has no permission, comes on the next one: its sender may still obey the active of before.
#[test]
pub fn after_a_takeover_an_answer_that_may_be_lost_proves_nothing() {
    let mut cluster = Cluster::with_servers(config(), 1);
    cluster.map.become_listening(cluster.now);
    cluster.map.become_commanding(Epoch(2), cluster.now);
    cluster.connection = EARLIER;
    cluster.heartbeat(1);
    cluster.connection = LATER;
    cluster.report(1, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 1);
    cluster.heartbeat(1);
    cluster.report(1, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 0);
}
