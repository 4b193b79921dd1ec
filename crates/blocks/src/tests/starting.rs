//! Safe mode after a start.

use super::cluster::*;
use base::{BlockId, GenerationStamp};

fn restarted(extension_ms: u64, blocks: u64) -> Cluster {
    let mut config = config();
    config.safe_mode.extension_ms = extension_ms;
    let mut cluster = Cluster::empty(config);
    for id in 1..=blocks {
        cluster.add_complete(block(id, 1), 2);
    }
    cluster.map.set_last_allocated(BlockId(1_000), GenerationStamp(5_000));
    cluster.map.activate(cluster.now);
    cluster
}

#[test]
fn an_empty_namespace_needs_no_safe_mode() {
    assert!(!restarted(30_000, 0).map.in_safe_mode());
}

#[test]
fn safe_mode_ends_when_enough_is_reported_and_the_extension_is_over() {
    let mut cluster = restarted(1_000, 4);
    assert_eq!(
        cluster.map.safe_mode_message(cluster.now),
        "The reported blocks 0 needs additional 3 blocks to reach the threshold 0.9990 of total blocks 4.\nThe \
         minimum number of live datanodes is not required. Safe mode will be turned off automatically once the \
         thresholds have been reached."
    );
    cluster.start(1);
    let rows: Vec<_> = (1..=4).map(|id| finalized(block(id, 1))).collect();
    cluster.report(1, &rows);
    assert!(cluster.map.in_safe_mode());
    assert_eq!(
        cluster.map.safe_mode_message(cluster.now),
        "The reported blocks 4 has reached the threshold 0.9990 of total blocks 4. The minimum number of live \
         datanodes is not required. In safe mode extension. Safe mode will be turned off automatically in 1 seconds."
    );
    cluster.pass(900, &[1]);
    assert!(cluster.map.in_safe_mode());
    cluster.map.take_events();
    cluster.pass(200, &[1]);
    assert!(!cluster.map.in_safe_mode());
    assert!(cluster.map.take_events().left_safe_mode);
    assert_eq!(cluster.map.stats().under_replicated, 4, "now every block is looked at");
}

#[test]
fn it_is_told_how_long_it_may_take_and_what_is_waited_for() {
    let mut cluster = restarted(1_000, 100);
    let outlook = |cluster: &Cluster| cluster.map.safe_mode_outlook(cluster.now);
    cluster.start(1);
    cluster.pass(12_000, &[1]);
    assert_eq!(
        outlook(&cluster).unwrap(),
        "No further block was reported for 12 s, and 99 are lacking: are all data servers running?"
    );
    cluster.start(2);
    let rows: Vec<_> = (1..=33).map(|id| finalized(block(id, 1))).collect();
    cluster.report(2, &rows);
    // A third in 12 s, so two thirds in 24 s.
    assert_eq!(outlook(&cluster).unwrap(), "At this pace the blocks that are lacking are there in 24 s.");
    let rows: Vec<_> = (34..=100).map(|id| finalized(block(id, 1))).collect();
    cluster.report(1, &rows);
    assert_eq!(outlook(&cluster), None, "the extension says itself how long it is");
}

#[test]
fn without_extension_it_ends_with_the_last_report_needed() {
    let mut cluster = restarted(0, 2);
    cluster.start(1);
    cluster.report(1, &[finalized(block(1, 1))]);
    assert!(!cluster.map.in_safe_mode(), "0.999 of 2 is 1 in whole blocks");
}

#[test]
fn enough_servers_may_be_asked_for() {
    let mut config = config();
    config.safe_mode.min_servers = 2;
    let mut cluster = Cluster::empty(config);
    cluster.map.activate(cluster.now);
    cluster.start(1);
    assert!(cluster.map.in_safe_mode());
    assert!(cluster.map.safe_mode_message(cluster.now).contains(
        "The number of live datanodes 1 needs an additional 1 live datanodes to reach the minimum number 2.\n"
    ));
    cluster.start(2);
    cluster.pass(100, &[1, 2]);
    assert!(!cluster.map.in_safe_mode());
}

#[test]
fn an_operator_turns_it_on_and_off() {
    let mut cluster = restarted(0, 0);
    cluster.map.enter_safe_mode();
    cluster.pass(500, &[]);
    assert!(cluster.map.in_safe_mode());
    assert_eq!(
        cluster.map.safe_mode_message(cluster.now),
        "It was turned on manually. Use \"hdfs dfsadmin -safemode leave\" to turn safe mode off."
    );
    assert!(cluster.map.leave_safe_mode(false, cluster.now));
    assert!(!cluster.map.in_safe_mode());
}

#[test]
fn replicas_from_the_future_keep_it_on_until_forced() {
    let mut cluster = restarted(0, 2);
    cluster.start(1);
    let future = base::Block { id: BlockId(2_000), generation_stamp: GenerationStamp(6_000), length: 77 };
    cluster.report(1, &[finalized(future), finalized(block(1, 1)), finalized(block(2, 1))]);
    cluster.pass(500, &[1]);
    assert!(cluster.map.in_safe_mode());
    assert!(cluster.map.safe_mode_message(cluster.now).contains("generation stamps in future: 77 byte(s)"));
    assert!(!cluster.map.leave_safe_mode(false, cluster.now));
    assert!(cluster.map.leave_safe_mode(true, cluster.now));
    assert!(deletions(&cluster.pass(500, &[1])).is_empty());
}

#[test]
fn replicas_that_are_unknown_at_the_start_are_not_deleted() {
    let mut cluster = restarted(0, 2);
    cluster.start(1);
    cluster.report(1, &[finalized(block(500, 1))]);
    assert!(cluster.pass(500, &[1]).is_empty());
    cluster.report(1, &[finalized(block(1, 1)), finalized(block(2, 1))]);
    assert!(!cluster.map.in_safe_mode());
    assert!(deletions(&cluster.pass(500, &[1])).is_empty());
    cluster.report(1, &[finalized(block(1, 1)), finalized(block(2, 1)), finalized(block(500, 1))]);
    assert_eq!(deletions(&cluster.pass(500, &[1])), [(1, 500)]);
}
