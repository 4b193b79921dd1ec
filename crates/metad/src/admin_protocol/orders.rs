//! Orders that the active carries out.

use super::{refuse, successor};
use crate::{
    CoordinatorConfig, client_protocol::decode, core::Core, format::check_numbers, forward, member::Standing,
    partition::Partition,
};
use base::MemberId;
use group::Order;
use prost::Message;
use proto::{clover::admin as p, protocol};
use rpc::{Call, Replier};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// How long an order may take. A change of the members waits for the coordinator, a hand-over for commits;
/// `haadmin` gives up a server that is to become standby after 5 s.
const PATIENCE: Duration = Duration::from_secs(4);

/// How soon an order is given again that could not be carried out yet.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// How long until the answer to an order to fail is on its way.
const LAST_WORDS: Duration = Duration::from_millis(20);

pub fn hand_over(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::HandOverRequestProto>(&call, reply) else { return };
    let to = request.to.map(MemberId);
    if !core.partition.member.is_serving() {
        return pass_on(core, call, reply);
    }
    if to == Some(core.partition.member.me().member) {
        return refuse(reply, format!("member {} is active already", core.partition.member.me().member));
    }
    let Some(runtime) = core.partition.forwarder.runtime() else {
        return refuse(reply, "this group has one member: nobody could go on");
    };
    let core = core.clone();
    drop(runtime.spawn(async move {
        let found = match successor::look(&core.partition, &call.caller.user, to).await {
            Ok(found) => found,
            Err(reason) => return refuse(reply, reason),
        };
        order(&core.partition, Order::HandOver { to: found.to }, reply, move |reply, message| {
            let message = match &found.warning {
                Some(warning) => format!("{message}. WARNING: {warning}"),
                None => message,
            };
            let active = found.to.map(|to| to.0);
            reply.ok(&p::HandOverResponseProto { message: Some(message), active, warning: found.warning });
        });
    }));
}

/// Ends the active as if its process had been killed. It tells the other members nothing, so they have to notice its
/// silence.
pub fn fail_active(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::FailActiveRequestProto>(&call, reply) else { return };
    if !core.partition.member.is_serving() {
        return pass_on(core, call, reply);
    }
    let Some(runtime) = core.partition.forwarder.runtime() else {
        return refuse(reply, "this group has one member: nobody could go on");
    };
    let core = core.clone();
    drop(runtime.spawn(async move {
        if !request.is_forced()
            && let Err(reason) = successor::look(&core.partition, &call.caller.user, None).await
        {
            return refuse(reply, reason);
        }
        let me = core.partition.member.me().member;
        tracing::warn!(user = %call.caller, "this member fails because an operator wants to see it");
        reply.ok(&p::FailActiveResponseProto {
            message: Some(format!(
                "Member {me} drops everything, and starts again as if it had been killed."
            )),
            failed: Some(me.0),
        });
        tokio::time::sleep(LAST_WORDS).await;
        core.partition.member.restart("an operator has failed it");
    }));
}

pub fn add_member(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::AddMemberRequestProto>(&call, reply) else { return };
    if !core.partition.member.is_serving() {
        return pass_on(core, call, reply);
    }
    if matches!(core.config.group.coordinator, CoordinatorConfig::Embedded) {
        // The further server could never join, and from then on it would be missed.
        return refuse(
            reply,
            "coordinator = embedded: this cluster was made for one metadata server, and others could not join. Stop it, name a \
             ZooKeeper in its file, and give it the order `clover meta make-group`",
        );
    }
    let (core, added) = (core.clone(), MemberId(request.member));
    tokio::spawn(async move {
        let (coordinator, group) = (core.partition.member.coordinator().clone(), core.cluster.group);
        let checked = move || check_numbers(&*coordinator, group, &[added]);
        match tokio::task::spawn_blocking(checked).await.expect("the coordinator does not panic") {
            Ok(()) => reconfigure(
                &core,
                reply,
                request.in_sync_min,
                |members| members.push(added),
                move |reply, message| {
                    reply.ok(&p::AddMemberResponseProto { message: Some(message) });
                },
            ),
            Err(error) => refuse(reply, error.to_string()),
        }
    });
}

pub fn remove_member(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveMemberRequestProto>(&call, reply) else { return };
    if !core.partition.member.is_serving() {
        return pass_on(core, call, reply);
    }
    let removed = MemberId(request.member);
    let keep = |members: &mut Vec<MemberId>| members.retain(|member| *member != removed);
    reconfigure(core, reply, request.in_sync_min, keep, move |reply, message| {
        reply.ok(&p::RemoveMemberResponseProto { message: Some(message) });
    });
}

fn reconfigure(
    core: &Arc<Core>,
    reply: Replier,
    in_sync_min: Option<u32>,
    change: impl FnOnce(&mut Vec<MemberId>),
    done: impl FnOnce(Replier, String) + Send + 'static,
) {
    let Some((view, _)) = core.partition.member.status().view else {
        return refuse(reply, "the group's view is not known yet");
    };
    let mut members = view.members.clone();
    change(&mut members);
    members.sort();
    members.dedup();
    let in_sync_min = in_sync_min.unwrap_or(view.in_sync_min);
    if in_sync_min as usize > members.len() {
        // The minimum protects acknowledged changes, so an order may not lower it silently.
        return refuse(
            reply,
            format!(
                "a change needs {in_sync_min} members that have it, and {} would be left: say --in-sync-min {} if so many are \
                 to be enough from now on, or add another member first; nothing was done",
                members.len(),
                members.len()
            ),
        );
    }
    if members == view.members && in_sync_min == view.in_sync_min {
        return done(reply, "That is how it is already.".into());
    }
    let warning = one_copy_is_enough(&members, in_sync_min);
    order(&core.partition, Order::Reconfigure { members, in_sync_min }, reply, move |reply, message| {
        done(reply, warning.map_or(message.clone(), |warning| format!("{message}. WARNING: {warning}")));
    });
}

/// Why a minimum is to be thought about.
fn one_copy_is_enough(members: &[MemberId], in_sync_min: u32) -> Option<&'static str> {
    (members.len() > 1 && in_sync_min == 1).then_some(crate::ONE_COPY)
}

fn order(
    partition: &Arc<Partition>,
    order: Order,
    reply: Replier,
    done: impl FnOnce(Replier, String) + Send + 'static,
) {
    partition.member.order(
        order,
        Box::new(move |answer| match answer {
            Ok(message) => done(reply, message),
            Err(reason) => refuse(reply, reason),
        }),
    );
}

/// Hands the order to the active, which answers it.
pub(super) fn pass_on(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some(runtime) = core.partition.forwarder.runtime() else {
        return refuse(reply, "this metadata server is not ready");
    };
    if call.is_forwarded {
        return refuse(
            reply,
            format!("member {} is not active (any more)", core.partition.member.me().member),
        );
    }
    let core = core.clone();
    drop(runtime.spawn(async move {
        match core.partition.forwarder.ask_active(&call, PATIENCE).await {
            Ok(answer) => forward::pass_on(answer, reply),
            Err(reason) => refuse(reply, format!("the order did not reach the active: {reason}")),
        }
    }));
}

/// Has the group handed over to this member, or by this member to any that is ready. `done` hears of it when
/// this member has become what was wanted.
pub fn order_hand_over(
    core: &Arc<Core>,
    call: &Call,
    to: Option<MemberId>,
    done: impl FnOnce(Result<(), String>) + Send + 'static,
) {
    let Some(runtime) = core.partition.forwarder.runtime() else {
        return done(Err("this group has one member".into()));
    };
    tracing::info!(user = %call.caller, ?to, "hand-over ordered");
    let order = Call {
        protocol: protocol::ADMIN,
        method: "handOver",
        request: p::HandOverRequestProto { to: to.map(|to| to.0) }.encode_to_vec().into(),
        ..call.clone()
    };
    let core = core.clone();
    drop(runtime.spawn(async move { done(handed_over(&core, to, &order).await) }));
}

/// An order that comes while the group is between two actives, or while a member that has just handed over is
/// not back in sync, is given again for a while.
async fn handed_over(core: &Arc<Core>, to: Option<MemberId>, order: &Call) -> Result<(), String> {
    let me = core.partition.member.me().member;
    let mut standing = core.partition.member.subscribe();
    let is_so = |standing: &Standing| match to {
        Some(to) if to == me => standing.is_serving(),
        // Another member leads now; it is not enough that this one does not.
        _ => !standing.is_serving() && standing.active.is_some_and(|active| active != me),
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        if is_so(&standing.borrow_and_update()) {
            return Ok(());
        }
        let reason = match given(&core.partition, to, order).await {
            Ok(()) => format!("the order was taken, but had not come true after {PATIENCE:?}"),
            Err(reason) => reason,
        };
        // In a moment: a hand-over that succeeds takes less.
        let _ = tokio::time::timeout(AGAIN_AFTER, standing.wait_for(|standing| is_so(standing))).await;
        if Instant::now() >= deadline && !is_so(&standing.borrow()) {
            return Err(reason);
        }
    }
}

/// Gives the order once.
async fn given(partition: &Arc<Partition>, to: Option<MemberId>, order: &Call) -> Result<(), String> {
    if partition.member.is_serving() {
        let to = successor::look(partition, &order.caller.user, to).await?.to;
        let (sender, receiver) = tokio::sync::oneshot::channel();
        partition.member.order(Order::HandOver { to }, Box::new(move |answer| drop(sender.send(answer))));
        let answer = tokio::time::timeout(PATIENCE, receiver).await;
        answer.map_err(|_| format!("no answer within {PATIENCE:?}"))?.map_err(|_| "no answer")??;
        return Ok(());
    }
    if to.is_none() {
        return Err("no other member leads yet".into());
    }
    let answer = partition.forwarder.ask_active(order, PATIENCE).await?;
    match answer.refusal {
        Some(refusal) => Err(refusal.message),
        None if answer.is_elsewhere() => Err("the group is between two actives".into()),
        None => Ok(()),
    }
}
