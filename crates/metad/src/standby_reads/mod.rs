//! Reads that this member answers although it does not lead ([`serving::Points`] has the rule).
//!
//! ```text
//!   a client's read ─▶ waits ─▶ one question to the active ─▶ the read point ─▶ the tree shows it ─▶ answered here
//!                                       │ no answer, no proof                       │ too late, in doubt, no place
//!                                       └───────────▶ handed to the active ◀────────┘
//! ```
//!
//! One question is under way at a time, for all reads that came before it was sent. Where several groups hold the namespace, reads are handed on: what
//! is acknowledged there does not stand in one log.

mod ask;
pub mod serve;

use crate::{
    client_protocol::{Answer, hand_over, send},
    core::Core,
    partition::{
        Partition,
        standby_reads::{PATIENCE, Read},
    },
    peers::Secret,
};
use base::{FsError, FsResult, GroupId, ReadPoint};
use group::{Agreement, Role};
use namespace::{Context, Sight};
use rpc::{Call, Replier};
use serving::{PointQuestion, Rules, Tree, Until};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// So many reads are answered by one task.
const READS_A_TASK: usize = 64;

/// Whether clients are told to bring their reads here: this member is in sync, knows who leads, and has lately been able to answer.
pub fn are_answered(partition: &Partition) -> bool {
    let (standing, status) = (partition.member.standing(), partition.member.status());
    let me = partition.member.me();
    let is_in_sync = status.view.is_some_and(|(view, _)| view.in_sync.contains(&me));
    standing.role == Role::Following
        && standing.active.is_some()
        && is_in_sync
        && partition.standby_reads.are_taken()
        && is_one_log(partition)
        && !differs(partition)
        && !partition.blocks.lock().in_safe_mode()
}

/// Whether the members are known to have made different states of the log, and this one's may be the wrong one.
fn differs(partition: &Partition) -> bool {
    matches!(partition.member.agreement(), Agreement::Differs(_))
}

/// Whether everything that clients see stands in this group's log.
fn is_one_log(partition: &Partition) -> bool {
    partition.cluster.group == GroupId::ROOT && !partition.has_homes()
}

/// Takes a look at the namespace that came to this member, which does not lead. The call is answered here, or handed to the active.
pub fn take(core: &Arc<Core>, call: Call, reply: Replier) {
    let partition = &core.partition;
    let Some(secret) = core.secret.as_ref().filter(|_| !call.is_forwarded && is_one_log(partition)) else {
        return hand_over(core, call, reply);
    };
    match partition.standby_reads.wait(call, reply) {
        Ok(None) => {}
        Ok(Some(question)) => {
            let (attending, secret) = (core.clone(), secret.clone());
            partition.forwarder.spawn(async move { attend(&attending, &secret, question).await });
        }
        Err(read) => {
            let (call, reply) = *read;
            hand_over(core, call, reply);
        }
    }
}

/// Asks for read points as long as reads wait for one.
async fn attend(core: &Arc<Core>, secret: &Secret, mut question: PointQuestion) {
    loop {
        let answer = ask::ask(core, secret, PATIENCE).await;
        let told = core.partition.standby_reads.told(question, answer.is_ok());
        let point = answer.unwrap_or_else(|why| {
            tracing::debug!(%why, "no read point: reads are handed to the active");
            None
        });
        let point = point.filter(|_| !differs(&core.partition));
        let mut reads = told.reads;
        while reads.len() > READS_A_TASK || (told.ask.is_some() && !reads.is_empty()) {
            let some = reads.split_off(reads.len().saturating_sub(READS_A_TASK));
            let answering = core.clone();
            core.partition.forwarder.spawn(async move { go_on(&answering, some, point).await });
        }
        match told.ask {
            Some(next) => question = next,
            None => return go_on(core, reads, point).await,
        }
    }
}

/// Answers these reads once the tree shows everything up to the point, or hands them on.
async fn go_on(core: &Arc<Core>, reads: Vec<Read>, point: Option<ReadPoint>) {
    let Some(first) = reads.first() else { return };
    let read_point = match point {
        Some(point) => {
            let is_shown = is_shown(&core.partition, point, first.until).await;
            core.partition.standby_reads.note_shown(is_shown);
            is_shown.then_some(point)
        }
        None => None,
    };
    for Read { call, reply, .. } in reads {
        match read_point {
            Some(_) => (core.answer)(core, Call { read_point, ..call }, reply),
            None => pass_on(core, call, reply),
        }
        // Others have a turn in between.
        tokio::task::consume_budget().await;
    }
}

async fn is_shown(partition: &Partition, point: ReadPoint, until: Instant) -> bool {
    let shows = || serving::shows(partition.tree().namespace.applied(), point, Rules::default());
    loop {
        let applied = partition.standby_reads.applied.notified();
        let mut applied = std::pin::pin!(applied);
        // Entries that are applied from here on are heard of.
        applied.as_mut().enable();
        if shows() {
            return true;
        }
        if timeout_at(until, applied).await.is_err() {
            return false;
        }
    }
}

/// Answers a read whose point the tree shows, or hands it to the active: if the read may have seen what has not committed, or if only the active can answer it.
pub fn answer<A: Answer>(
    core: &Arc<Core>,
    point: ReadPoint,
    call: &Call,
    reply: Replier,
    sight: Sight<'_>,
    look: impl FnOnce(&Tree, &Context<'_>) -> FsResult<A>,
) {
    let partition = &core.partition;
    let answer = {
        let tree = partition.tree();
        let certain = partition.commit.certain().and(Until::own(point.committed));
        let is_certain = !partition.member.is_ending()
            && !tree.namespace.has_homes()
            && serving::shows(tree.namespace.applied(), point, Rules::default())
            && tree.rests_on(certain, sight).is_none();
        is_certain.then(|| look(&tree, &partition.context(&call.caller, Some(call.origin))))
    };
    match answer {
        None | Some(Err(FsError::NotActive(_))) => pass_on(core, call.clone(), reply),
        Some(answer) => {
            partition.standby_reads.note_answered();
            send(reply, answer);
        }
    }
}

fn pass_on(core: &Arc<Core>, call: Call, reply: Replier) {
    core.partition.standby_reads.note_handed_on();
    hand_over(core, Call { read_point: None, ..call }, reply);
}

/// The refusal of a read that only the active can answer. It never reaches a client.
pub fn only_the_active() -> FsError {
    FsError::NotActive("Only the active can answer this.".into())
}
