//! Stories of what full reports lack.

use super::cluster::*;
use crate::*;
use base::{Block, BlockId};

/// A full report lacks the replica. Before the broom has come by, the data server begins another full report, because the answer to the first one
/// came too late. The replica is missing all the same.
#[test]
fn a_second_report_does_not_bring_back_what_the_first_one_lacked() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.report(1, &[]);
    assert_eq!(cluster.live(1), 1);
    let begun = cluster
        .speak(1, |map, id, now| map.begin_report(id, &storage(1), StorageType::Disk, 0, now))
        .unwrap();
    assert_eq!(cluster.live(1), 1, "server 1 has none");
    cluster.beat(2, 1);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert!(cluster.beat(2, 1).is_empty(), "the last replica is ordered to go");
    cluster.map.finish_report(begun, cluster.now).unwrap();
}

/// The second report is given up, and the broom finds what the first one lacked.
#[test]
fn a_report_that_is_given_up_does_not_undo_the_one_before() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.report(1, &[]);
    let _ = cluster
        .speak(1, |map, id, now| map.begin_report(id, &storage(1), StorageType::Disk, 0, now))
        .unwrap();
    cluster.sweep();
    cluster.beat(2, 1);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert!(cluster.beat(2, 1).is_empty(), "the last replica is ordered to go");
}

/// A replica of a block that is being written was finished and reported. Its server loses it in a power failure, begins anew, and its full report lacks
/// it. The replica does not count when the client commits the block.
#[test]
fn what_a_full_report_lacks_does_not_come_back_with_the_commit() {
    let mut cluster = Cluster::with_servers(config(), 2);
    let targets = [cluster.place(1), cluster.place(2)];
    let open = Block { length: 0, ..block(1, 5) };
    cluster.map.add_block(open, base::InodeId(1), 1, BlockState::UnderConstruction, &targets, cluster.now);
    cluster.tell(1, &[received(block(1, 5))]);
    cluster.tell(2, &[received(block(1, 5))]);
    cluster.start(1);
    cluster.report(1, &[]);
    cluster.sweep();
    cluster.beat(2, 1); // it is full
    cluster.map.commit(block(1, 5), cluster.now);
    cluster.check();
    let told = cluster.beat(2, 1);
    assert!(told.is_empty(), "the last replica is ordered to go");
    assert_eq!(cluster.live(1), 1);
}

/// A report waits for the broom, because it lacks a replica. Before the broom has come by, the next report names one that the first did not know of.
#[test]
fn a_listening_server_keeps_what_only_the_second_of_two_reports_names() {
    let mut cluster = Cluster::with_servers(config(), 1);
    cluster.map.become_listening(cluster.now);
    cluster.add_complete(block(1, 5), 1);
    cluster.add_complete(block(2, 5), 1);
    cluster.report(1, &[finalized(block(1, 5))]);
    assert!(cluster.report(1, &[]).needs_sweep);
    cluster.report(1, &[finalized(block(1, 5)), finalized(block(2, 5))]);
    assert_eq!((cluster.live(1), cluster.live(2)), (1, 1));
    cluster.sweep();
    assert_eq!((cluster.live(1), cluster.live(2)), (1, 1));
}

/// The rows of both replicas have been taken, and the reports are not at their end yet, when a client opens the file for append. It closes it again
/// without a byte.
#[test]
fn a_block_that_is_opened_again_in_the_midst_of_reports_is_not_missing_in_them() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    let reports = [1, 2].map(|server| {
        let begin = |map: &mut BlockMap, id: ServerId<'_>, now| {
            map.begin_report(id, &storage(server), StorageType::Disk, 0, now)
        };
        cluster.speak(server, begin).unwrap()
    });
    for report in reports {
        cluster.map.report_slice(report, &[finalized(block(1, 5))], cluster.now).unwrap();
    }
    cluster.map.reopen(block(1, 5), &[]);
    for report in reports {
        cluster.map.finish_report(report, cluster.now).unwrap();
    }
    cluster.check();
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().finalized_as(block(1, 5)), 2);
}
