//! Writing the coordinator's view anew after it has lost history, by an operator's order.

use super::refuse;
use crate::{client_protocol::decode, core::Core};
use base::MemberId;
use group::Order;
use proto::clover::admin as p;
use rpc::{Call, Replier};
use std::sync::Arc;

/// The member that is asked does it itself: it is the one whose log goes furthest, or the active.
pub fn repair(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RepairViewRequestProto>(&call, reply) else { return };
    let is_confirmed = request.is_confirmed();
    let without: Vec<MemberId> = request.without.iter().copied().map(MemberId).collect();
    if is_confirmed {
        tracing::error!(user = %call.caller, ?without, "REPAIR of the coordinator's view ordered");
    }
    core.partition.member.order(
        Order::Repair { without, is_confirmed },
        Box::new(move |result| match result {
            Ok(message) => {
                tracing::warn!(message, is_confirmed, "repair of the coordinator's view");
                reply.ok(&p::RepairViewResponseProto { message: Some(message), is_done: Some(is_confirmed) });
            }
            Err(reason) => refuse(reply, reason),
        }),
    );
}
