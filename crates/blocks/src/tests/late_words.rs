//! What a data server says may be long under way, and arrive behind what it has said since.

use super::cluster::*;
use crate::*;
use base::BlockId;

/// Sends a full report of two of its parts, of which the answer is not waited for.
fn late_report(
    cluster: &mut Cluster,
    server: u16,
    lease: u64,
    rows: &[ReportedReplica],
) -> Result<ReportDone, ServerError> {
    let done = cluster.speak(server, |map, id, now| {
        let report = map.begin_report(id, &storage(server), StorageType::Disk, lease, now)?;
        map.report_slice(report, rows, now)?;
        map.finish_report(report, now)
    });
    cluster.check();
    done
}

fn grant(cluster: &mut Cluster, server: u16) -> u64 {
    let lease = cluster.speak(server, |map, id, now| map.grant_report_lease(id, now));
    assert_ne!(lease, 0);
    lease
}

/// Block 1 had replicas on servers 1, 2 and 3, and shall have one. Two have deleted theirs. Returns the server that has kept
/// its own, and one that has not.
fn two_have_deleted(cluster: &mut Cluster) -> (u16, u16) {
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let deleted: Vec<u16> = deletions(&cluster.pass(300, &[1, 2, 3])).iter().map(|(of, _)| *of).collect();
    assert_eq!(deleted.len(), 2);
    for server in &deleted {
        cluster.tell(*server, &[Increment::Deleted(block(1, 5))]);
    }
    let kept = (1..=3).find(|server| !deleted.contains(server)).expect("one has kept it");
    assert_eq!(cluster.holders(1), [kept]);
    (kept, deleted[0])
}

fn stored_three_times() -> Cluster {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster
}

fn nothing_is_deleted(cluster: &mut Cluster) {
    let commands = cluster.pass(2_000, &[1, 2, 3]);
    assert_eq!(deletions(&commands), [], "the last replica goes");
}

#[test]
pub fn a_full_report_that_is_older_than_a_deletion_does_not_bring_the_replica_back() {
    let mut cluster = stored_three_times();
    let leases: Vec<u64> = (1..=3).map(|server| grant(&mut cluster, server)).collect();
    let (kept, other) = two_have_deleted(&mut cluster);
    let lease = leases[usize::from(other) - 1];
    let done = late_report(&mut cluster, other, lease, &[finalized(block(1, 5))]).unwrap();
    assert_eq!(done.outdated, 1);
    assert_eq!(cluster.holders(1), [kept]);
    nothing_is_deleted(&mut cluster);
}

#[test]
fn a_full_report_of_unknown_age_does_not_bring_it_back_either() {
    let mut cluster = stored_three_times();
    let (kept, other) = two_have_deleted(&mut cluster);
    late_report(&mut cluster, other, 0, &[finalized(block(1, 5))]).unwrap();
    // A number that no server has given it.
    late_report(&mut cluster, other, 1 << 40, &[finalized(block(1, 5))]).unwrap();
    assert_eq!(cluster.holders(1), [kept]);
    nothing_is_deleted(&mut cluster);
}

#[test]
fn a_deletion_between_two_slices_of_a_report_counts_more_than_the_later_slice() {
    let mut cluster = stored_three_times();
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    let deleted = deletions(&cluster.pass(300, &[1, 2, 3]))[0].0;
    let lease = grant(&mut cluster, deleted);
    let report = cluster
        .speak(deleted, |map, id, now| map.begin_report(id, &storage(deleted), StorageType::Disk, lease, now))
        .unwrap();
    cluster.tell(deleted, &[Increment::Deleted(block(1, 5))]);
    cluster.map.report_slice(report, &[finalized(block(1, 5))], cluster.now).unwrap();
    cluster.map.finish_report(report, cluster.now).unwrap();
    cluster.check();
    assert_eq!(cluster.holders(1).len(), 2);
}

/// A copy was made there again, and the news of that is late.
#[test]
fn a_full_report_that_is_younger_than_the_deletion_is_believed() {
    let mut cluster = stored_three_times();
    let (kept, other) = two_have_deleted(&mut cluster);
    let lease = grant(&mut cluster, other);
    late_report(&mut cluster, other, lease, &[finalized(block(1, 5))]).unwrap();
    let deleted = deletions(&cluster.pass(1_000, &[1, 2, 3]));
    assert_eq!(deleted.len(), 1, "one of the two goes");
    assert!([kept, other].contains(&deleted[0].0));
}

/// The answer to the first news was waited for too long, and the server has told it again, with the deletion behind it.
#[test]
pub fn late_news_of_a_replica_that_was_deleted_is_doubted_until_its_server_has_reported_anew() {
    let mut cluster = stored_three_times();
    let (kept, other) = two_have_deleted(&mut cluster);
    cluster.tell(other, &[received(block(1, 5))]);
    let commands = cluster.pass(2_000, &[1, 2, 3]);
    assert_eq!(deletions(&commands), [], "the last replica goes");
    assert!(
        commands.iter().any(|(server, command)| *server == other && matches!(command, Command::Register)),
        "it is asked to begin anew"
    );
    // A report that was under way all the time does not end the doubt.
    late_report(&mut cluster, other, 0, &[finalized(block(1, 5))]).unwrap();
    nothing_is_deleted(&mut cluster);
    cluster.start(other);
    let lease = grant(&mut cluster, other);
    late_report(&mut cluster, other, lease, &[]).unwrap();
    cluster.pass(300, &[1, 2, 3]);
    assert_eq!(cluster.holders(1), [kept]);
    assert_eq!(cluster.map.stale_storage_count(), 0);
}

#[test]
fn a_full_report_is_not_taken_behind_one_that_was_allowed_later() {
    let mut cluster = stored_three_times();
    let (first, second) = (grant(&mut cluster, 2), grant(&mut cluster, 2));
    late_report(&mut cluster, 2, second, &[]).unwrap();
    cluster.pass(300, &[1, 2, 3]);
    let late = late_report(&mut cluster, 2, first, &[finalized(block(1, 5))]);
    assert!(matches!(late, Err(ServerError::ReportGone)), "{late:?}");
    assert_eq!(cluster.holders(1), [1, 3]);
}

/// A permission of another life of the metadata server may have any number.
#[test]
fn a_number_that_was_never_given_out_keeps_no_later_report_away() {
    let mut cluster = stored_three_times();
    late_report(&mut cluster, 2, 1 << 40, &[finalized(block(1, 5))]).unwrap();
    let lease = grant(&mut cluster, 2);
    late_report(&mut cluster, 2, lease, &[]).unwrap();
    cluster.pass(300, &[1, 2, 3]);
    assert_eq!(cluster.holders(1), [1, 3]);
}

#[test]
fn a_replica_that_came_after_the_permission_is_not_missed_in_the_report() {
    let mut cluster = Cluster::with_servers(config(), 3);
    let lease = grant(&mut cluster, 2);
    cluster.add_stored(block(1, 5), 1, &[2]);
    late_report(&mut cluster, 2, lease, &[]).unwrap();
    cluster.pass(300, &[1, 2, 3]);
    assert_eq!(cluster.holders(1), [2]);
    // It is gone by the word of a later report.
    let lease = grant(&mut cluster, 2);
    late_report(&mut cluster, 2, lease, &[]).unwrap();
    cluster.pass(300, &[1, 2, 3]);
    assert_eq!(cluster.holders(1), [] as [u16; 0]);
}
