//! What an operator asks of the group and orders it to do.
//!
//! Every member takes every question and every order. What only the active can carry out goes on to it once:
//! unlike a client's call it is not repeated, since there is no retry cache for it. Orders want a superuser.

mod deletions;
mod orders;
pub mod show;
mod unclean;

pub use orders::order_hand_over;
pub use show::{Standstill, ask as ask_member, of_a_standstill};
pub use unclean::{AuditError, append as note_unclean, count as unclean_elections};

use crate::{
    client_protocol::{decode, require_superuser},
    core::Core,
};
use proto::{clover::admin as p, exception};
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    if call.method == "getGroup" {
        let Some((request, reply)) = decode::<p::GetGroupRequestProto>(&call, reply) else { return };
        return show::get_group(core, call, request.is_local(), reply);
    }
    if let Err(error) = require_superuser(core, &call) {
        return reply.fs_error(&error);
    }
    tracing::info!(user = %call.caller, peer = %call.peer, order = call.method, "an operator's order");
    match call.method {
        "handOver" => orders::hand_over(core, call, reply),
        "failActive" => orders::fail_active(core, call, reply),
        "addMember" => orders::add_member(core, call, reply),
        "removeMember" => orders::remove_member(core, call, reply),
        "allowDeletions" => deletions::allow(core, call, reply),
        "uncleanElect" => unclean::elect(core, call, reply),
        method => reply.error(RpcError::no_such_method(method, call.protocol)),
    }
}

/// An order that is not carried out: the sentence says why.
pub fn refuse(reply: Replier, reason: impl Into<String>) {
    reply.error(RpcError::application(exception::SERVICE_FAILED, reason));
}
