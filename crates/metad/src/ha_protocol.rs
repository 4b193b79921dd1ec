//! Hadoop's `HAServiceProtocol` and `ZKFCProtocol`: the questions and orders of `haadmin`.
//!
//! In Hadoop a server is told by an operator, or by a controller beside it, to become active or standby. Here the
//! group decides that itself, and has an active whenever it can. So an order to become active is a hand-over by the
//! present active, and an order to become standby is a hand-over to a member that is ready; nothing leaves the group
//! without an active, and no order loses anything.

use crate::{
    admin_protocol,
    client_protocol::{decode, ha_state as state, require_superuser},
    core::Core,
    partition::Partition,
};
use base::MemberId;
use group::Role;
use namespace::Privileged;
use proto::{
    common as p,
    exception::{HEALTH_CHECK_FAILED, SERVICE_FAILED},
};
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

/// Why this member could not become active now; `None` where it is, or could.
fn not_ready(partition: &Partition) -> Option<String> {
    if let Some(reason) = partition.commit.failure() {
        return Some(reason);
    }
    match partition.member.standing().role {
        Role::Serving { .. } | Role::Reading { .. } => None,
        Role::Stopped { reason } => Some(reason),
        _ if partition.member.status().is_in_sync => None,
        _ => Some("This member is a junior: it is not complete yet, and catches up.".into()),
    }
}

pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    match call.method {
        "getServiceStatus" => {
            let Some((_, reply)) = decode::<p::GetServiceStatusRequestProto>(&call, reply) else { return };
            let not_ready_reason = not_ready(&core.partition);
            reply.ok(&p::GetServiceStatusResponseProto {
                state: state(&core.partition) as i32,
                ready_to_become_active: Some(not_ready_reason.is_none()),
                not_ready_reason,
            });
        }
        "monitorHealth" => {
            let Some((_, reply)) = decode::<p::MonitorHealthRequestProto>(&call, reply) else { return };
            match core.partition.commit.failure() {
                None => reply.ok(&p::MonitorHealthResponseProto {}),
                Some(reason) => reply.error(RpcError::application(HEALTH_CHECK_FAILED, reason)),
            }
        }
        "transitionToActive" => {
            let Some((_, reply)) = decode::<p::TransitionToActiveRequestProto>(&call, reply) else { return };
            let done = |reply: Replier| reply.ok(&p::TransitionToActiveResponseProto {});
            become_active(core, &call, reply, Privileged::TransitionToActive, done);
        }
        "transitionToStandby" => {
            let Some((_, reply)) = decode::<p::TransitionToStandbyRequestProto>(&call, reply) else { return };
            let done = |reply: Replier| reply.ok(&p::TransitionToStandbyResponseProto {});
            become_standby(core, &call, reply, Privileged::TransitionToStandby, done);
        }
        "transitionToObserver" => reply.error(RpcError::application(
            SERVICE_FAILED,
            "No member is an observer for good: every standby answers reads here, and every standby may be elected.",
        )),
        method => reply.error(RpcError::no_such_method(method, call.protocol)),
    }
}

/// Answers `haadmin -failover` where automatic failover is configured. It asks a controller, which is the member
/// itself here.
pub fn call_controller(core: &Arc<Core>, call: Call, reply: Replier) {
    match call.method {
        "gracefulFailover" => {
            let Some((_, reply)) = decode::<p::GracefulFailoverRequestProto>(&call, reply) else { return };
            let done = |reply: Replier| reply.ok(&p::GracefulFailoverResponseProto {});
            become_active(core, &call, reply, Privileged::GracefulFailover, done);
        }
        "cedeActive" => {
            let Some((_, reply)) = decode::<p::CedeActiveRequestProto>(&call, reply) else { return };
            let done = |reply: Replier| reply.ok(&p::CedeActiveResponseProto {});
            become_standby(core, &call, reply, Privileged::CedeActive, done);
        }
        method => reply.error(RpcError::no_such_method(method, call.protocol)),
    }
}

fn become_active(core: &Arc<Core>, call: &Call, reply: Replier, operation: Privileged, done: fn(Replier)) {
    if let Err(error) = require_superuser(core, call, operation) {
        return reply.fs_error(&error);
    }
    if state(&core.partition) == p::HaServiceStateProto::Active {
        return done(reply);
    }
    hand_over(core, call, Some(core.partition.member.me().member), reply, done);
}

fn become_standby(core: &Arc<Core>, call: &Call, reply: Replier, operation: Privileged, done: fn(Replier)) {
    if let Err(error) = require_superuser(core, call, operation) {
        return reply.fs_error(&error);
    }
    if core.partition.forwarder.is_alone() {
        let message = "This group has one member: nobody could take over. Add members first.";
        return reply.error(RpcError::application(SERVICE_FAILED, message));
    }
    if state(&core.partition) != p::HaServiceStateProto::Active {
        return done(reply);
    }
    hand_over(core, call, None, reply, done);
}

fn hand_over(core: &Arc<Core>, call: &Call, to: Option<MemberId>, reply: Replier, done: fn(Replier)) {
    admin_protocol::order_hand_over(core, call, to, move |result| match result {
        Ok(_) => done(reply),
        Err(reason) => reply.error(RpcError::application(SERVICE_FAILED, reason)),
    });
}
