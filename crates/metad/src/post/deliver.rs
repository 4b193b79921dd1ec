//! Sends the messages of the outbox, while this member leads.
//!
//! A message leaves once its edit has committed, and is sent again until the other group says that it has carried it out. That is then noted in the own log,
//! so that the next active does not begin from the start. An active that knows less sends messages again, and the other group knows their numbers.
//!
//! A question begins with the first message that is not known to be carried out: the other group relies on that.
//!
//! The other group's answer names its place in the directory log. This group notes the messages as carried out when its own tree has come to that place: see
//! [`note_carried_out::plan`].

use super::ways::{Question, Ways};
use crate::{
    partition::Partition,
    points::{self, Point},
};
use base::{GroupId, directory_log::Dix};
use bytes::Bytes;
use namespace::{Planned, ops::note_carried_out};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::task::AbortHandle;

/// The bytes of messages in one question, about.
const QUESTION_BYTES: usize = 1 << 20;
/// How soon a group is asked again that has not carried out what it was sent.
const PAUSE: Duration = Duration::from_millis(20);
/// How soon a group is asked again that has not done so for long.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often the outbox is looked at while nothing commits.
const LOOK: Duration = Duration::from_millis(200);

/// The tasks that deliver, one a group. Dropping it ends them.
#[derive(Default)]
struct Tasks(BTreeMap<GroupId, AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.values().for_each(AbortHandle::abort);
    }
}

/// Delivers until the server stops. To be run as a task.
pub async fn run(partition: Arc<Partition>, ways: Arc<Ways>, stop: Arc<AtomicBool>) {
    let mut tasks = Tasks::default();
    while !stop.load(Ordering::Acquire) {
        tokio::select! {
            () = partition.committed.notified() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
        if !partition.has_homes() || !partition.member.is_serving() {
            continue;
        }
        let groups = partition.tree().namespace.groups_with_messages();
        for group in groups {
            let is_running = tasks.0.get(&group).is_some_and(|task| !task.is_finished());
            if !is_running {
                let task = tokio::spawn(deliver(partition.clone(), ways.clone(), group));
                tasks.0.insert(group, task.abort_handle());
            }
        }
    }
}

/// Delivers what waits for one group, until nothing waits any more or this member does not lead.
async fn deliver(partition: Arc<Partition>, ways: Arc<Ways>, group: GroupId) {
    let mut pause = PAUSE;
    let mut noted = 0;
    while partition.member.is_serving() {
        let (messages, last) = committed_messages(&partition, group, noted);
        if messages.is_empty() {
            return;
        }
        points::pass(Point::OutboxCommitted);
        points::pass_if(Point::JoinCommitted, || has_join(&partition, group, last));
        let question = Question { messages, ..Question::default() };
        let (carried_out, dix, trouble) = match ways.ask(group, question).await {
            // A program of an older release does not name its place. Its word is not noted.
            Ok(answer) => match answer.dix {
                Some(dix) => (answer.carried_out(), Dix(dix), answer.trouble),
                None => (0, Dix(0), answer.trouble.or_else(|| Some("it does not tell its place".into()))),
            },
            Err(reason) => (0, Dix(0), Some(reason)),
        };
        if carried_out > noted {
            points::pass(Point::OutboxAnswered);
            points::pass_if(Point::JoinAnswered, || has_join(&partition, group, carried_out));
            if !come_to(&partition, dix).await {
                return;
            }
            noted = carried_out;
            note(&partition, group, carried_out, dix);
            pause = PAUSE;
        }
        if carried_out < last {
            let reason = trouble.unwrap_or_default();
            tracing::debug!(%group, carried_out, last, reason, "orders about blocks were not all carried out");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// The first messages to a group behind number `after` whose edits have committed, and the number of the last one of these.
fn committed_messages(partition: &Partition, group: GroupId, after: u64) -> (Vec<Bytes>, u64) {
    let committed = partition.commit.committed();
    let tree = partition.tree();
    let (mut messages, mut last, mut bytes) = (Vec::new(), after, 0);
    for message in tree.namespace.messages_to(group) {
        if message.number <= after {
            continue;
        }
        if message.at.sn > committed || bytes > QUESTION_BYTES {
            break;
        }
        let encoded = Bytes::from(message.to_bytes());
        bytes += encoded.len();
        last = message.number;
        messages.push(encoded);
    }
    (messages, last)
}

/// Whether a message to the group that waits is about files that were joined, up to number `last`.
fn has_join(partition: &Partition, group: GroupId, last: u64) -> bool {
    let tree = partition.tree();
    let mut sent = tree.namespace.messages_to(group).take_while(|message| message.number <= last);
    sent.any(|message| points::has_join(message))
}

/// Waits until this group has come to the place in the directory log. False: this member does not lead any more.
async fn come_to(partition: &Partition, dix: Dix) -> bool {
    let mut pause = PAUSE;
    while partition.tree().namespace.directory_log().dix < dix {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOK);
        if !partition.member.is_serving() {
            return false;
        }
    }
    true
}

/// Notes in the own log what the other group had carried out when it was at this place in the directory log.
fn note(partition: &Partition, group: GroupId, carried_out: u64, dix: Dix) {
    partition.write(Box::new(move |turn| {
        let planned = turn.plan_own(|namespace, context, _| {
            note_carried_out::plan(namespace, context, group, carried_out, dix)
        });
        if let Planned::Edit(edit) = planned {
            turn.apply(edit);
        }
    }));
}
