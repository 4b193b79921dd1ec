//! Pipelines played at random: a block is written, servers crash, lose their power or their disk at any moment, the
//! writer dies, and recoveries run, die and overtake each other. Whatever length is decided on, no byte is lost that was
//! acknowledged, and the replicas that count agree.
//!
//! Each part of the rule is left out once, and the play has to notice.

mod world;

use super::rule::{self, Answer, Decision, RecoveryError, RecoveryOrder};
use base::{Candidate, ReplicaState};
use world::{Ending, World};

const STORIES: u64 = 30_000;

/// The first story that goes wrong under a rule.
fn first_fault(rule: rule::Rule) -> Option<String> {
    (0..STORIES).find_map(|seed| World::play(seed, rule).err().map(|fault| format!("seed {seed}: {fault}")))
}

#[track_caller]
fn is_noticed(rule: rule::Rule, words: &str) {
    let fault = first_fault(rule).expect("a rule was left out, and nothing was lost");
    assert!(fault.contains(words), "{fault}");
}

/// The rule, by answers that were tampered with.
fn settle_by(
    order: &RecoveryOrder,
    answers: &[Answer],
    tamper: impl Fn(&Answer) -> Answer,
) -> Result<Decision, RecoveryError> {
    let answers: Vec<Answer> = answers.iter().map(tamper).collect();
    rule::settle(order, &answers)
}

fn as_if(answer: &Answer, from: ReplicaState, to: ReplicaState) -> Answer {
    match answer {
        Answer::Has(found) if found.state == from => Answer::Has(Candidate { state: to, ..*found }),
        other => other.clone(),
    }
}

#[test]
fn no_acknowledged_byte_is_lost_and_every_recovery_comes_to_an_end() {
    let stories: Result<Vec<Ending>, String> = (0..STORIES)
        .map(|seed| World::play(seed, rule::settle).map_err(|fault| format!("seed {seed}: {fault}")))
        .collect();
    let stories = stories.unwrap_or_else(|fault| panic!("{fault}"));
    // The play is worth something only if most of it ends well, and all of it happens.
    let share = |ending| 1000 * stories.iter().filter(|other| **other == ending).count() as u64 / STORIES;
    let shares = [Ending::Kept, Ending::Empty, Ending::Lost, Ending::Open].map(share);
    assert!(shares[0] > 300 && shares[1] > 200 && shares[2..].iter().all(|share| *share > 0), "{shares:?}");
}

#[test]
fn a_server_that_is_silent_must_not_be_taken_for_one_that_has_nothing() {
    let forgets_silence = |order: &RecoveryOrder, answers: &[Answer]| {
        settle_by(order, answers, |answer| match answer {
            Answer::Unknown => Answer::Nothing,
            other => other.clone(),
        })
    };
    is_noticed(forgets_silence, "the block is deleted");
}

#[test]
fn a_copy_under_way_must_not_be_taken_for_what_a_writer_wrote() {
    let counts_copies = |order: &RecoveryOrder, answers: &[Answer]| {
        settle_by(order, answers, |answer| as_if(answer, ReplicaState::Temporary, ReplicaState::BeingWritten))
    };
    is_noticed(counts_copies, "bytes of");
}

#[test]
fn an_interrupted_replica_must_not_shorten_those_that_were_not() {
    let trusts_the_interrupted = |order: &RecoveryOrder, answers: &[Answer]| {
        settle_by(order, answers, |answer| {
            as_if(answer, ReplicaState::WaitingRecovery, ReplicaState::BeingWritten)
        })
    };
    is_noticed(trusts_the_interrupted, "");
}

#[test]
fn a_finished_replica_must_not_settle_the_length_where_others_have_been_written_on() {
    let trusts_the_finished = |order: &RecoveryOrder, answers: &[Answer]| {
        let is_finished = |answer: &Answer| {
            matches!(answer, Answer::Has(found)
                if found.state == ReplicaState::Finalized && found.block.generation_stamp >= order.block.generation_stamp)
        };
        let any_finished = answers.iter().any(is_finished);
        settle_by(order, answers, |answer| match answer {
            Answer::Has(_) if any_finished && !is_finished(answer) => Answer::Nothing,
            other => other.clone(),
        })
    };
    is_noticed(trusts_the_finished, "bytes of");
}

#[test]
fn finished_replicas_of_recoveries_that_died_must_be_told_apart_by_their_stamps() {
    let forgets_stamps = |order: &RecoveryOrder, answers: &[Answer]| {
        settle_by(order, answers, |answer| match answer {
            Answer::Has(found) if found.state == ReplicaState::Finalized => {
                let mut found = *found;
                found.block.generation_stamp = order.block.generation_stamp;
                Answer::Has(found)
            }
            other => other.clone(),
        })
    };
    is_noticed(forgets_stamps, "it never comes to an end");
}

#[test]
fn a_block_that_is_known_to_have_bytes_must_not_be_deleted() {
    let forgets_length = |order: &RecoveryOrder, answers: &[Answer]| match rule::settle(order, answers) {
        Err(RecoveryError::NothingLeft(_)) => Ok(Decision::Delete),
        other => other,
    };
    is_noticed(forgets_length, "the block is deleted");
}
