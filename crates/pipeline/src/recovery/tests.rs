//! Stories of recoveries: a pipeline is cut at some point, its servers tell what they have, and a length comes of it.

use super::*;
use base::{BlockId, GenerationStamp, ReplicaState};

type Word = Result<Option<Candidate>, Failure>;

/// The stamp of the block as the metadata service knows it.
const STAMP: GenerationStamp = GenerationStamp(1001);
const NEW_STAMP: GenerationStamp = GenerationStamp(1010);
const ID: BlockId = BlockId(1);

fn block(stamp: GenerationStamp, length: u64) -> Block {
    Block { id: ID, generation_stamp: stamp, length }
}

fn has(state: ReplicaState, length: u64) -> Word {
    Ok(Some(Candidate { block: block(STAMP, length), state }))
}

fn finished(length: u64) -> Word {
    has(ReplicaState::Finalized, length)
}

fn being_written(length: u64) -> Word {
    has(ReplicaState::BeingWritten, length)
}

/// Its server was restarted.
fn interrupted(length: u64) -> Word {
    has(ReplicaState::WaitingRecovery, length)
}

fn being_copied(length: u64) -> Word {
    has(ReplicaState::Temporary, length)
}

fn with_stamp(stamp: u64, word: Word) -> Word {
    word.map(|found| {
        found.map(|found| Candidate {
            block: Block { generation_stamp: GenerationStamp(stamp), ..found.block },
            ..found
        })
    })
}

fn nothing() -> Word {
    Ok(None)
}

fn silent() -> Word {
    Err(Failure::Unknown("cannot reach the server".into()))
}

fn superseded() -> Word {
    Err(Failure::Superseded("blk_1_1001 is being recovered at stamp 1011".into()))
}

/// The order for a block in which the metadata service knows of no byte yet.
fn order(servers: usize) -> RecoveryOrder {
    RecoveryOrder {
        block: block(STAMP, 0),
        stamp: NEW_STAMP,
        truncation: None,
        target: ID,
        servers: (0..servers).map(|server| format!("server {server}").into()).collect(),
    }
}

/// An order to leave `to` bytes of a block of 9.
fn truncation(servers: usize, to: u64) -> RecoveryOrder {
    RecoveryOrder { block: block(STAMP, 9), truncation: Some(to), ..order(servers) }
}

/// An order to truncate a block that a snapshot shows: its first bytes are copied into block 2.
fn truncation_by_copy(servers: usize, to: u64) -> RecoveryOrder {
    RecoveryOrder { target: BlockId(2), ..truncation(servers, to) }
}

fn decide<const SERVERS: usize>(
    order: RecoveryOrder,
    words: [Word; SERVERS],
) -> Result<Outcome, RecoveryError> {
    assert_eq!(order.servers.len(), SERVERS);
    let mut recovery = BlockRecovery::new(order);
    while let Some(server) = recovery.ask() {
        recovery.answered(server, words[server].clone());
    }
    recovery.decide()
}

/// The length agreed on, and who takes it.
#[track_caller]
fn agreed(outcome: Result<Outcome, RecoveryError>) -> (u64, Vec<usize>) {
    match outcome {
        Ok(Outcome::Agreed(agreement)) => {
            let servers = agreement.participants().iter().map(|participant| participant.server).collect();
            (agreement.length(), servers)
        }
        other => panic!("no length was agreed on, but {other:?}"),
    }
}

#[track_caller]
fn is_deleted(outcome: Result<Outcome, RecoveryError>) {
    assert!(matches!(outcome, Ok(Outcome::Delete)), "{outcome:?}");
}

#[track_caller]
fn fails(outcome: Result<Outcome, RecoveryError>) -> RecoveryError {
    outcome.expect_err("nothing can be decided")
}

// ---- The writer dies, and nobody else.

#[test]
fn packets_are_on_their_way_down_the_pipeline() {
    // Seven bytes have reached all, so seven may have been acknowledged, and no more.
    let words = [being_written(9), being_written(8), being_written(7)];
    assert_eq!(agreed(decide(order(3), words)), (7, vec![0, 1, 2]));
}

#[test]
fn the_last_packet_has_reached_only_some() {
    // A server that is finished has all bytes of the block.
    let words = [finished(9), being_written(9), being_written(8)];
    assert_eq!(agreed(decide(order(3), words)), (9, vec![0, 1]));
}

#[test]
fn all_servers_are_finished_and_the_file_is_not_closed() {
    assert_eq!(agreed(decide(order(3), [finished(9), finished(9), finished(9)])), (9, vec![0, 1, 2]));
}

#[test]
fn the_pipeline_stood_and_not_a_byte_was_sent() {
    is_deleted(decide(order(3), [being_written(0), being_written(0), being_written(0)]));
}

#[test]
fn the_pipeline_was_never_set_up() {
    is_deleted(decide(order(3), [nothing(), nothing(), nothing()]));
}

#[test]
fn the_pipeline_was_being_mended_and_some_have_the_new_stamp_already() {
    let words = [with_stamp(1002, being_written(7)), being_written(9)];
    assert_eq!(agreed(decide(order(2), words)), (7, vec![0, 1]));
}

// ---- Servers were restarted or are gone.

#[test]
fn the_first_server_was_restarted() {
    // The restarted server may have lost bytes that it had only in memory, so it may have less than was acknowledged.
    let words = [interrupted(5), being_written(8), being_written(7)];
    assert_eq!(agreed(decide(order(3), words)), (7, vec![1, 2]));
}

#[test]
fn all_servers_were_restarted() {
    let words = [interrupted(9), interrupted(7), interrupted(8)];
    assert_eq!(agreed(decide(order(3), words)), (7, vec![0, 1, 2]));
}

#[test]
fn one_has_lost_bytes_that_the_metadata_service_knows_of() {
    // The file was closed with nine bytes and is being appended to; the power of the first server failed. HDFS would
    // leave five.
    let words = || [interrupted(5), interrupted(11), interrupted(10)];
    let appended = RecoveryOrder { block: block(STAMP, 9), ..order(3) };
    assert_eq!(agreed(decide(appended, words())), (10, vec![1, 2]));
    // If no replica has all bytes that are known to be written, the shortest one decides, as without an append.
    let longer = RecoveryOrder { block: block(STAMP, 12), ..order(3) };
    assert_eq!(agreed(decide(longer, words())), (5, vec![0, 1, 2]));
}

#[test]
fn an_interrupted_replica_does_not_follow_a_finished_one() {
    assert_eq!(agreed(decide(order(2), [finished(9), interrupted(9)])), (9, vec![0]));
}

#[test]
fn a_server_is_away_and_another_has_lost_its_replica() {
    assert_eq!(agreed(decide(order(3), [silent(), nothing(), being_written(7)])), (7, vec![2]));
}

#[test]
fn who_is_silent_may_have_what_the_others_have_lost() {
    // Both servers had acknowledged bytes. One got a new disk, the other comes back with its replica: if the block is
    // deleted meanwhile, that replica is of no file and goes too. HDFS deletes it.
    let error = fails(decide(order(2), [nothing(), silent()]));
    assert_eq!(error, RecoveryError::MayBeElsewhere(1));
    // A server that was restarted may have lost what it had.
    let error = fails(decide(order(3), [interrupted(0), silent(), silent()]));
    assert_eq!(error, RecoveryError::MayBeElsewhere(2));
}

#[test]
fn who_has_the_pipeline_open_and_no_byte_shows_that_none_was_acknowledged() {
    is_deleted(decide(order(3), [silent(), being_written(0), nothing()]));
}

#[test]
fn a_block_that_is_known_to_have_bytes_is_not_deleted() {
    // It was closed once, and was being appended to. Its bytes may be on a server that has been away for so long that
    // it is not named any more.
    let appended = RecoveryOrder { block: block(STAMP, 9), ..order(2) };
    let error = fails(decide(appended, [nothing(), nothing()]));
    assert_eq!(error, RecoveryError::NothingLeft(9));
}

#[test]
fn nobody_answers() {
    let error = fails(decide(order(2), [silent(), silent()]));
    assert_eq!(error, RecoveryError::NobodyAnswered("cannot reach the server".into()));
}

#[test]
fn nobody_is_named() {
    assert!(matches!(fails(decide(order(0), [])), RecoveryError::NobodyAnswered(_)));
}

// ---- A server is being added to the pipeline.

#[test]
fn a_copy_under_way_counts_for_nothing_beside_what_a_writer_wrote() {
    assert_eq!(agreed(decide(order(2), [being_copied(9), being_written(7)])), (7, vec![1]));
}

#[test]
fn a_copy_under_way_shows_that_the_block_has_bytes() {
    // HDFS: a block of which replicas were found, but none in a state to recover, is not given up.
    let error = fails(decide(order(2), [being_copied(5), being_written(0)]));
    assert_eq!(error, RecoveryError::OnlyCopies(1));
    is_deleted(decide(order(2), [being_copied(0), being_written(0)]));
}

// ---- Replicas that do not fit together.

#[test]
fn finished_replicas_of_different_lengths_are_for_a_human_to_look_at() {
    let error = fails(decide(order(3), [finished(9), finished(8), being_written(8)]));
    assert_eq!(error, RecoveryError::LengthsDiffer(8, 9));
}

#[test]
fn of_what_two_recoveries_have_finished_the_newer_one_counts() {
    // Each died before it could tell of its length, and the servers that it heard had all that was acknowledged. In
    // HDFS no later recovery comes to an end.
    let words = [with_stamp(1002, finished(7)), with_stamp(1003, finished(9)), being_written(8)];
    assert_eq!(agreed(decide(order(3), words)), (9, vec![1]));
}

#[test]
fn a_finished_replica_is_of_yesterday_if_others_of_its_stamp_have_been_written_on() {
    // An append that keeps the stamp (docs/protocol/stamps.md) did not know of the first server. HDFS takes its length.
    let words = [finished(5), being_written(9), being_written(8)];
    assert_eq!(agreed(decide(order(3), words)), (8, vec![1, 2]));
    let words = [finished(5), interrupted(9), interrupted(8)];
    assert_eq!(agreed(decide(order(3), words)), (8, vec![1, 2]));
    let words = [finished(5), finished(9), being_written(9)];
    assert_eq!(agreed(decide(order(3), words)), (9, vec![1, 2]));
    // But not if it has the stamp of a recovery, which has stopped the writers that it heard of, and cuts what they wrote.
    for longer in [being_written(9), with_stamp(1002, interrupted(9))] {
        let words = [with_stamp(1002, finished(5)), longer];
        assert_eq!(agreed(decide(order(2), words)), (5, vec![0]));
    }
}

#[test]
fn a_replica_with_an_old_stamp_has_missed_what_was_written_since() {
    let old = with_stamp(1000, finished(5));
    assert_eq!(agreed(decide(order(2), [old, being_written(7)])), (7, vec![1]));
}

// ---- Truncations.

#[test]
fn a_truncation_says_the_length_beforehand() {
    assert_eq!(agreed(decide(truncation(2, 4), [finished(9), finished(9)])), (4, vec![0, 1]));
}

#[test]
fn a_truncation_by_copy_leaves_the_old_block_and_takes_the_length_too() {
    assert_eq!(agreed(decide(truncation_by_copy(2, 4), [finished(9), finished(9)])), (4, vec![0, 1]));
}

#[test]
fn where_nobody_has_the_block_there_is_nothing_to_cut_or_to_copy() {
    for order in [truncation(2, 4), truncation_by_copy(2, 4)] {
        assert_eq!(fails(decide(order, [nothing(), nothing()])), RecoveryError::NothingLeft(9));
    }
}

#[test]
fn a_truncation_goes_on_where_one_server_was_cut_and_the_leader_died() {
    // In HDFS finished replicas of different lengths end this recovery, and every one after it.
    let words = [with_stamp(1002, finished(4)), finished(9), finished(9)];
    assert_eq!(agreed(decide(truncation(3, 4), words)), (4, vec![0, 1, 2]));
    // One more has died while it was being cut.
    let words = [with_stamp(1002, finished(4)), with_stamp(1002, interrupted(9))];
    assert_eq!(agreed(decide(truncation(2, 4), words)), (4, vec![0]));
}

#[test]
fn a_replica_that_is_shorter_than_the_truncation_is_not_asked_to_grow() {
    let words = [with_stamp(1002, finished(5)), finished(3)];
    assert_eq!(agreed(decide(truncation(2, 5), words)), (5, vec![0]));
}

// ---- Recoveries beside each other.

#[test]
fn where_a_newer_recovery_has_begun_the_others_are_left_to_it() {
    let mut recovery = BlockRecovery::new(order(3));
    recovery.answered(0, being_written(7));
    recovery.answered(1, superseded());
    assert_eq!(recovery.ask(), None);
    assert!(matches!(fails(recovery.decide()), RecoveryError::Superseded(_)));
}

#[test]
fn a_server_is_asked_once_and_its_first_answer_counts() {
    let mut recovery = BlockRecovery::new(order(2));
    assert_eq!(recovery.ask(), Some(0));
    recovery.answered(0, being_written(7));
    recovery.answered(0, being_written(3));
    recovery.answered(0, superseded());
    recovery.answered(7, finished(9));
    assert_eq!(recovery.ask(), Some(1));
    recovery.answered(1, being_written(8));
    assert_eq!(recovery.ask(), None);
    assert_eq!(agreed(recovery.decide()), (7, vec![0, 1]));
}

#[test]
fn a_server_that_is_named_twice_is_asked_once() {
    // A second time it would say that a recovery has begun: this one.
    let mut named_twice = order(2);
    named_twice.servers.push(named_twice.servers[0].clone());
    let words = [being_written(7), being_written(8), superseded()];
    assert_eq!(agreed(decide(named_twice, words)), (7, vec![0, 1]));
}

#[test]
fn who_is_too_late_takes_no_part() {
    let mut recovery = BlockRecovery::new(order(2));
    recovery.answered(1, being_written(8));
    assert_eq!(agreed(recovery.decide()), (8, vec![1]));
}

// ---- The participants take the length.

fn agreement(words: [Word; 2]) -> Agreement {
    match decide(order(2), words) {
        Ok(Outcome::Agreed(agreement)) => agreement,
        other => panic!("no length was agreed on, but {other:?}"),
    }
}

#[test]
fn the_metadata_service_hears_of_those_that_have_taken_the_length() {
    let mut agreement = agreement([being_written(9), being_written(7)]);
    assert_eq!(agreement.participants()[0], Participant { server: 0, replica: block(STAMP, 9) });
    agreement.finished(0, Err("the disk is full".into()));
    agreement.finished(1, Ok("storage of 1".into()));
    // Later words change nothing, nor do those of others.
    agreement.finished(0, Ok("storage of 0".into()));
    agreement.finished(5, Ok("storage of 5".into()));
    let told = Commit { length: 7, delete: false, finished: vec![(1, "storage of 1".into())] };
    assert_eq!(agreement.commit(), Ok(told));
}

#[test]
fn nothing_is_told_if_nobody_has_taken_the_length() {
    let mut agreement = agreement([being_written(9), being_written(7)]);
    agreement.finished(0, Err("the disk is full".into()));
    agreement.finished(1, Err("another recovery has begun".into()));
    let error = RecoveryError::NobodyFinished("another recovery has begun".into());
    assert_eq!(agreement.commit(), Err(error));
}

#[test]
fn a_block_without_a_byte_goes_away() {
    assert_eq!(Commit::deletion(), Commit { length: 0, delete: true, finished: vec![] });
}
