//! A server takes over from another, which has ordered things that nobody else knows of.

use super::cluster::*;
use crate::*;
use base::{Block, BlockId, Epoch, GenerationStamp, Sn};

fn take_over(cluster: &mut Cluster) {
    cluster.map.become_listening(cluster.now);
    cluster.map.become_commanding(Epoch(2), cluster.now);
}

/// A report under a lease that was asked for now, if `asks`.
fn report_with_lease(cluster: &mut Cluster, server: u16, lease: u64, rows: &[ReportedReplica]) {
    cluster
        .speak(server, |map, id, now| {
            let report = map.begin_report(id, &storage(server), StorageType::Disk, lease, now)?;
            map.report_slice(report, rows, now)?;
            map.finish_report(report, now)
        })
        .unwrap();
    cluster.check();
}

/// Block 1 has three replicas and shall have two. The active before has told server 3 to delete its own, and died.
/// Deleting another one would leave a single replica; and had it been two of two, none.
#[test]
pub fn no_replica_is_deleted_before_all_holders_have_reported_to_the_new_active() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2, 3]);
    take_over(&mut cluster);
    assert_eq!(cluster.map.stale_storage_count(), 3);
    assert!(deletions(&cluster.pass(1_000, &[1, 2, 3])).is_empty());
    cluster.report(1, &[finalized(block(1, 5))]);
    cluster.report(2, &[finalized(block(1, 5))]);
    assert!(deletions(&cluster.pass(1_000, &[1, 2, 3])).is_empty(), "server 3 may have deleted its own");
    cluster.report(3, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 1, "what it did not name is forgotten by a sweep");
    assert!(deletions(&cluster.pass(1_000, &[1, 2, 3])).is_empty(), "and so it had");
    assert_eq!(cluster.map.stale_storage_count(), 0);
    assert_eq!(cluster.holders(1), [1, 2]);
}

#[test]
fn a_damaged_replica_stays_until_the_others_are_known_to_be_there() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2, 3]);
    cluster.map.become_listening(cluster.now);
    cluster.map.report_bad(block(1, 5), &uuid(3), None, cluster.now);
    cluster.map.become_commanding(Epoch(2), cluster.now);
    assert!(deletions(&cluster.pass(1_000, &[1, 2, 3])).is_empty());
    for server in 1..=3 {
        cluster.report(server, &[finalized(block(1, 5))]);
    }
    assert_eq!(deletions(&cluster.pass(1_000, &[1, 2, 3])), [(3, 1)]);
}

/// The server took its picture, obeyed the old active once more, and then heard of the new one.
#[test]
pub fn a_report_that_began_before_its_server_was_answered_shows_too_much() {
    let mut cluster = Cluster::with_servers(config(), 1);
    let old_lease = cluster.speak(1, |map, id, now| map.grant_report_lease(id, now));
    take_over(&mut cluster);
    cluster.report(1, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 1, "not answered yet");
    cluster.heartbeat(1);
    report_with_lease(&mut cluster, 1, old_lease, &[]);
    assert_eq!(
        cluster.map.stale_storage_count(),
        1,
        "it had the lease before the takeover, and maybe the picture"
    );
    let lease = lease_with(&mut cluster, Some(2));
    report_with_lease(&mut cluster, 1, lease, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 0);
}

/// The permission that comes with an answer of this claim.
fn lease_with(cluster: &mut Cluster, epoch: Option<u64>) -> u64 {
    let terms = Terms { claim: Claim::of(epoch.map(Epoch), Sn(9)), is_sure: true, wants_lease: true };
    cluster
        .speak(1, |map, id, now| map.answer_heartbeat(id, &Heartbeat::default(), terms, now))
        .unwrap()
        .lease
}

/// Two loops of one data server speak at once. The permission came with no claim, or with an old one, and the picture was
/// taken then; the claim came with the answer to the other loop, which was under way.
#[test]
pub fn a_report_that_was_allowed_without_the_claim_shows_too_much() {
    let mut cluster = Cluster::with_servers(config(), 1);
    take_over(&mut cluster);
    for epoch in [None, Some(1)] {
        let lease = lease_with(&mut cluster, epoch);
        cluster.heartbeat(1);
        report_with_lease(&mut cluster, 1, lease, &[]);
        assert_eq!(cluster.map.stale_storage_count(), 1, "{epoch:?}");
    }
    let lease = lease_with(&mut cluster, Some(2));
    report_with_lease(&mut cluster, 1, lease, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 0);
}

/// A long report is taken in slices. What its first ones told of may be deleted by an order of the old active.
#[test]
pub fn a_report_that_began_before_the_takeover_and_ends_behind_it_shows_too_much() {
    let mut cluster = Cluster::with_servers(config(), 1);
    cluster.map.become_listening(cluster.now);
    let begin = |map: &mut BlockMap, id: ServerId<'_>, now| {
        map.begin_report(id, &storage(1), StorageType::Disk, 0, now)
    };
    let report = cluster.speak(1, begin).unwrap();
    cluster.map.become_commanding(Epoch(2), cluster.now);
    cluster.heartbeat(1);
    cluster.map.finish_report(report, cluster.now).unwrap();
    assert_eq!(cluster.map.stale_storage_count(), 1);
}

/// The same, where a report is whole and waits for the sweep.
#[test]
fn a_report_that_was_whole_before_the_takeover_and_is_swept_behind_it_shows_too_much() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.become_listening(cluster.now);
    assert!(cluster.report(1, &[]).needs_sweep);
    cluster.map.become_commanding(Epoch(2), cluster.now);
    cluster.heartbeat(1);
    while cluster.map.sweep(100, cluster.now) {}
    assert_eq!(cluster.map.stale_storage_count(), 2);
}

/// The process that made the report is gone, and the next one may obey an older active until it is answered.
#[test]
fn a_report_that_began_before_its_server_registered_anew_shows_too_much() {
    let mut cluster = Cluster::with_servers(config(), 1);
    take_over(&mut cluster);
    cluster.heartbeat(1);
    let begin = |map: &mut BlockMap, id: ServerId<'_>, now| {
        map.begin_report(id, &storage(1), StorageType::Disk, 0, now)
    };
    let report = cluster.speak(1, begin).unwrap();
    let registration = (*cluster.map.server(&uuid(1)).unwrap().registration).clone();
    cluster.map.register(registration, session(1), cluster.now).unwrap();
    cluster.map.finish_report(report, cluster.now).unwrap();
    assert_eq!(cluster.map.stale_storage_count(), 1);
}

#[test]
fn a_heartbeat_that_does_not_claim_to_come_from_the_active_fences_nobody() {
    let mut cluster = Cluster::with_servers(config(), 1);
    take_over(&mut cluster);
    let silent = |map: &mut BlockMap, id: ServerId<'_>, now| {
        map.heartbeat_without_orders(id, &Heartbeat::default(), now)
    };
    assert!(cluster.speak(1, silent).unwrap().is_empty());
    cluster.report(1, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 1);
}

/// The thread of a heartbeat made its claim, and was then without the processor while another member led, and this one
/// again. The data server may have heard of the epoch between.
#[test]
fn orders_go_out_with_the_claim_of_their_own_reign_only() {
    let mut cluster = Cluster::with_servers(config(), 1);
    take_over(&mut cluster);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.map.remove(&[BlockId(1)]);
    let mut answer = |epoch: Option<u64>, is_sure| {
        let claim = Claim::of(epoch.map(Epoch), Sn(9));
        let terms = Terms { claim, is_sure, wants_lease: false };
        let say = |map: &mut BlockMap, id: ServerId<'_>, now| {
            map.answer_heartbeat(id, &Heartbeat::default(), terms, now)
        };
        cluster.speak(1, say).unwrap().commands
    };
    for (epoch, is_sure) in [(Some(1), true), (Some(3), true), (None, true), (Some(2), false)] {
        assert!(answer(epoch, is_sure).is_empty(), "{epoch:?}");
    }
    assert!(matches!(answer(Some(2), true)[..], [Command::Invalidate(_)]));
}

#[test]
fn orders_are_withdrawn_where_the_lease_has_ended_but_for_the_call_to_register() {
    let claim = Claim::of(Some(Epoch(2)), Sn(9));
    let commands = vec![Command::Register, Command::Invalidate(vec![block(1, 5)])];
    let mut answer = Answer { claim, commands, lease: 0, is_slow: false };
    answer.withdraw_orders();
    assert!(matches!(answer.commands[..], [Command::Register]));
}

#[test]
fn a_server_that_restarts_may_obey_an_older_active_until_it_is_answered_again() {
    let mut cluster = Cluster::with_servers(config(), 1);
    take_over(&mut cluster);
    cluster.heartbeat(1);
    cluster.report(1, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 0);
    let registration = (*cluster.map.server(&uuid(1)).unwrap().registration).clone();
    cluster.map.register(registration, session(1), cluster.now).unwrap();
    cluster.report(1, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 1);
    cluster.heartbeat(1);
    cluster.report(1, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 0);
}

#[test]
fn copies_wait_for_servers_that_are_late() {
    let mut cluster = Cluster::with_servers(Config { takeover_grace_ms: 3_000, ..config() }, 2);
    cluster.add_stored(block(1, 5), 2, &[1]);
    cluster.map.become_listening(cluster.now);
    cluster.map.become_commanding(Epoch(2), cluster.now);
    assert!(transfers(&cluster.pass(2_500, &[1, 2])).is_empty());
    assert_eq!(cluster.map.stats().under_replicated, 1, "it is known all the while");
    assert_eq!(transfers(&cluster.pass(1_500, &[1, 2])), [(1, 1, vec![uuid(2)])]);
}

/// Between the loading of the image and the takeover a standby has heard everybody.
fn standby(reported: u64) -> Cluster {
    let mut config = config();
    config.safe_mode.extension_ms = 30_000;
    let mut cluster = Cluster::empty(config);
    cluster.map.become_listening(cluster.now);
    for id in 1..=4 {
        cluster.add_complete(block(id, 1), 2);
    }
    cluster.map.set_last_allocated(BlockId(1_000), GenerationStamp(5_000));
    cluster.map.activate(cluster.now);
    cluster.start(1);
    let rows: Vec<_> = (1..=reported).map(|id| finalized(block(id, 1))).collect();
    cluster.report(1, &rows);
    cluster
}

#[test]
fn a_standby_that_has_heard_everything_serves_at_once() {
    let mut cluster = standby(4);
    cluster.map.become_commanding(Epoch(2), cluster.now);
    assert!(!cluster.map.in_safe_mode());
    assert_eq!(cluster.map.stats().under_replicated, 0, "the blocks are looked at in slices");
    cluster.pass(100, &[1]);
    assert_eq!(cluster.map.stats().under_replicated, 4);
}

#[test]
fn a_standby_that_has_heard_too_little_begins_in_safe_mode() {
    let mut cluster = standby(2);
    cluster.map.become_commanding(Epoch(2), cluster.now);
    assert!(cluster.map.in_safe_mode());
}

#[test]
fn safe_mode_by_hand_outlives_a_takeover() {
    let mut cluster = standby(4);
    cluster.map.enter_safe_mode();
    cluster.map.become_commanding(Epoch(2), cluster.now);
    assert!(cluster.map.in_safe_mode());
}

fn stamped(id: u64, stamp: u64, length: u64) -> Block {
    Block { id: BlockId(id), generation_stamp: GenerationStamp(stamp), length }
}

/// A listening server that knows blocks up to 1 and stamps up to 1001; block 1 is being written.
fn lagging() -> Cluster {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.map.become_listening(cluster.now);
    cluster.map.add_block(
        block(1, 0),
        base::InodeId(16_386),
        2,
        BlockState::UnderConstruction,
        &[],
        cluster.now,
    );
    cluster.map.set_last_allocated(BlockId(1), GenerationStamp(1001));
    cluster
}

#[test]
fn what_a_server_says_last_of_a_replica_counts() {
    let mut cluster = lagging();
    cluster.tell(1, &[received(stamped(1, 1002, 7))]);
    cluster.tell(1, &[Increment::Receiving(stamped(1, 1003, 0))]);
    assert_eq!(cluster.map.stats().postponed, 1);
    cluster.map.set_last_allocated(BlockId(1), GenerationStamp(1003));
    assert_eq!(cluster.map.stats().postponed, 0, "the stamp is known: nothing more is waited for");
    cluster.map.set_pipeline(stamped(1, 1003, 0), &[]);
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().replicas[0].state, ReplicaState::BeingWritten);
    assert_eq!(cluster.holders(1), [1]);
}

#[test]
fn a_row_that_waits_does_not_undo_what_was_said_after_it() {
    let mut cluster = lagging();
    cluster.tell(1, &[received(stamped(2, 1002, 7))]);
    // Meanwhile the namespace has come further, but not yet to this block.
    cluster.tell(1, &[Increment::Deleted(stamped(2, 1002, 7))]);
    cluster.add_complete(stamped(2, 1002, 7), 2);
    assert!(cluster.holders(2).is_empty());
}

#[test]
fn a_full_report_takes_the_place_of_what_waits() {
    let mut cluster = lagging();
    cluster.tell(1, &[received(stamped(2, 1002, 7)), received(stamped(3, 1003, 7))]);
    cluster.report(1, &[finalized(stamped(3, 1003, 7))]);
    cluster.add_complete(stamped(2, 1002, 7), 2);
    cluster.add_complete(stamped(3, 1003, 7), 2);
    assert!(cluster.holders(2).is_empty());
    assert_eq!(cluster.holders(3), [1]);
}

#[test]
fn a_storage_whose_rows_found_no_room_is_asked_to_begin_anew() {
    let mut cluster = Cluster::with_servers(Config { max_postponed: 2, ..config() }, 1);
    cluster.map.become_listening(cluster.now);
    cluster.tell(1, &(1..=3).map(|id| received(block(id, 1))).collect::<Vec<_>>());
    assert_eq!(cluster.map.stats().dropped_rows, 1);
    assert!(cluster.heartbeat(1).is_empty(), "there is no room yet");
    for id in 1..=3 {
        cluster.add_complete(block(id, 1), 1);
    }
    assert!(cluster.holders(3).is_empty());
    assert!(matches!(*cluster.heartbeat(1), [Command::Register]), "everybody may ask for that");
    let rows: Vec<_> = (1..=3).map(|id| finalized(block(id, 1))).collect();
    cluster.report(1, &rows);
    assert_eq!(cluster.holders(3), [1]);
    assert!(cluster.heartbeat(1).is_empty());
}

/// A stock data server reports in full every six hours; until then what is on it stays undecided.
#[test]
fn blocks_that_stay_undecided_do_not_keep_others_waiting() {
    let mut cluster = Cluster::with_servers(config(), 2);
    let (kept, decided) = (1_500, 10);
    let all = |server: u16, cluster: &Cluster| -> Vec<ReportedReplica> {
        let late = (1..=kept).map(|id| finalized(block(id, 1)));
        let early = (kept + 1..=kept + decided).map(|id| finalized(block(id, 1)));
        let _ = cluster;
        if server == 1 { late.chain(early).collect() } else { early.collect() }
    };
    for id in 1..=kept + decided {
        cluster.add_complete(block(id, 1), 1);
    }
    let (one, two) = (all(1, &cluster), all(2, &cluster));
    cluster.start(3);
    cluster.report(1, &one);
    cluster.report(2, &two);
    cluster.report(3, &one[..kept as usize]);
    // Orders of before are void.
    take_over(&mut cluster);
    cluster.pass(200, &[1, 2, 3]);
    cluster.report(1, &one);
    cluster.report(2, &two);
    let ordered = deletions(&cluster.pass(1_000, &[1, 2, 3]));
    let blocks: std::collections::BTreeSet<u64> = ordered.iter().map(|(_, id)| *id).collect();
    assert_eq!(blocks, (kept + 1..=kept + decided).collect(), "server 3 has not reported");
}

/// A data server collects its replicas for a report, obeys an order to delete, is asked to begin anew, and sends the report in its new session.
#[test]
fn a_report_that_was_allowed_in_an_earlier_session_shows_too_much() {
    let mut cluster = Cluster::with_servers(config(), 1);
    let old_lease = cluster.speak(1, |map, id, now| map.grant_report_lease(id, now));
    cluster.start(1);
    report_with_lease(&mut cluster, 1, old_lease, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 1);
    let lease = lease_with(&mut cluster, Some(0));
    report_with_lease(&mut cluster, 1, lease, &[]);
    assert_eq!(cluster.map.stale_storage_count(), 0);
}
