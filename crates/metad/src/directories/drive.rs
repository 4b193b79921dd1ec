//! Steps the machine of this member's side, and does what a step leaves.

use super::{
    links::{Links, Sender},
    side::AnswerLater,
    step::Input,
};
use crate::{
    neighbours::Neighbours,
    partition::{
        Partition,
        turn::{TURN_NS_MAX, Turn},
    },
    peers::Secret,
    points::{self, Point},
};
use base::{Epoch, FsError, GroupId, Sn, directory_log::Entry};
use dirlog::root::{self, ReadLog};
use env::pulse;
use namespace::{Edit, ops::Body};
use rpc::{Call, Replier};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How long the thread sleeps at most.
const LOOK: Duration = Duration::from_millis(50);

/// Opens the ways to other groups, and has the machine hear of commits. To be called on a thread of the runtime.
pub fn connect(
    partition: &Arc<Partition>,
    secret: Option<&Secret>,
    neighbours: Option<&Arc<Neighbours>>,
    answer: AnswerLater,
) {
    // A server connects its partition once.
    let _ = partition.directories.answer.set(answer);
    let observing = Arc::downgrade(partition);
    partition.commit.observe(move |sn| {
        if let Some(partition) = observing.upgrade() {
            on_committed(&partition, sn);
        }
    });
    let Some((secret, neighbours)) = secret.zip(neighbours) else { return };
    let losing = Arc::downgrade(partition);
    let sender = Sender {
        me: partition.member.me().member,
        group: partition.cluster.group,
        cluster_id: partition.cluster.cluster_id.clone(),
        secret: secret.clone(),
        neighbours: neighbours.clone(),
        lost: Box::new(move |group| {
            if let Some(partition) = losing.upgrade().filter(|it| it.cluster.group == GroupId::ROOT) {
                step(&partition, Input::Root(root::Input::Lost(group)));
            }
        }),
    };
    // A server connects its partition once.
    let _ = partition.directories.links.set(Links::new(sender));
}

/// Sends what was ordered in the turn that is over.
pub fn pump(partition: &Arc<Partition>) {
    if partition.directories.is_used() {
        step(partition, Input::Tick);
    }
}

/// This group sends the call on to another one. If the call has waited here, the machine keeps later entries out until it comes again: now it hears
/// that the call does not. It runs under the namespace's lock, and a step may come to answers: the thread of the directories takes it.
pub fn forget(partition: &Arc<Partition>, call: &Call) {
    if partition.directories.forget(call) {
        partition.directories.wake();
    }
}

/// Entries of the own log up to here have committed.
fn on_committed(partition: &Arc<Partition>, sn: Sn) {
    if partition.directories.is_used() {
        step(partition, Input::Committed(sn));
    }
    if partition.has_homes() {
        partition.committed.notify_one();
    }
}

/// Steps the machine when time has passed, and reads for it. Runs on a thread of its own until `stop`.
pub fn run(partition: &Arc<Partition>, stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        partition.directories.sleep(partition.moment(), LOOK);
        pulse::step();
        for ReadLog { group, after, bytes_max } in partition.directories.take_reads() {
            let read = partition.tree().namespace.directory_entries(after, bytes_max);
            step(partition, Input::Root(root::Input::LogRead { group, read }));
        }
        pump(partition);
    }
}

/// Steps the machine. It may run under the namespace's lock.
pub(super) fn step(partition: &Arc<Partition>, input: Input) {
    let directories = &partition.directories;
    let look = || (partition.moment(), partition.member.lease_end());
    let Some(after) = directories.step(look, input) else { return };
    if let Some(epoch) = after.turn {
        queue(partition, epoch);
    }
    carry_on(partition, after.again);
    for (call, reply) in after.refused {
        reply.fs_error(&FsError::Retry(format!(
            "{} has waited for a change of directories for too long; try again in a moment.",
            call.method
        )));
    }
    if let Some(visible) = after.visible {
        points::pass(Point::RootVisible);
        partition.commit.advance_directories(visible);
    }
    directories.want_reads(after.reads);
    if let Some((epoch, why)) = after.alarm {
        carry_on(partition, directories.raise(partition.cluster.group, epoch, why));
    }
    if after.prove && !directories.is_proving.swap(true, Ordering::AcqRel) {
        let (asked, now) = (Arc::downgrade(partition), partition.moment());
        partition.member.confirm(move |confirmed| {
            let Some(partition) = asked.upgrade() else { return };
            partition.directories.is_proving.store(false, Ordering::Release);
            match confirmed {
                Ok(()) => step(&partition, Input::Proved(now)),
                Err(reason) => tracing::debug!(reason, "that this member leads could not be proved"),
            }
        });
    }
    directories.wake_for(after.deadline);
}

/// Has calls that have waited here carried out again.
pub fn carry_on(partition: &Partition, calls: Vec<(Call, Replier)>) {
    let answer = partition.directories.answer.get();
    if let Some(answer) = answer.filter(|_| !calls.is_empty()) {
        answer(calls);
    }
}

/// Applies the entries that wait, in the writer's turn. This member has received them as the active of `epoch`.
///
/// A turn that has taken long leaves the rest for another one: readers and other calls get in between.
pub fn apply(turn: &mut Turn<'_>, epoch: Epoch) {
    if turn.epoch() != epoch {
        // This member has led again meanwhile, and gets them anew.
        return;
    }
    let partition = turn.partition();
    while partition.moment().ns - turn.moment.ns <= TURN_NS_MAX {
        let Some(entry) = partition.directories.next_to_apply(epoch) else { break };
        pulse::step();
        if let Err(why) = apply_one(turn, epoch, &entry) {
            return carry_on(partition, partition.directories.raise(partition.cluster.group, epoch, why));
        }
    }
}

/// Has the writer apply entries, and answer what the root group asks, behind what waits for it already. What is left then has another turn with the
/// next step, which follows each turn.
fn queue(partition: &Arc<Partition>, epoch: Epoch) {
    let asked = partition.clone();
    partition.try_write(Box::new(move |turn| {
        if let Some(turn) = turn {
            apply(turn, epoch);
            asked.directories.answer_asks(turn.namespace(), epoch, asked.moment());
        }
        asked.directories.end_turn(epoch);
    }));
}

fn apply_one(turn: &mut Turn<'_>, epoch: Epoch, entry: &Entry) -> Result<(), String> {
    let change = Edit::decode(&entry.payload)
        .map_err(|error| format!("entry {} of the directory log cannot be read: {error}", entry.dix))?;
    let planned = turn.plan_own(|namespace, context, _| namespace.follow(context, &change, entry.point()));
    turn.apply(planned.map_err(|error| error.to_string())?);
    points::pass(Point::HomeApplied);
    points::pass_if(Point::MoveRelayed, || matches!(change.body, Body::MoveFile(_)));
    turn.partition().directories.on_applied(epoch, turn.applied(), entry.dix);
    Ok(())
}
