//! The questions and orders of an operator to the group.
//!
//! Every member takes every question and every order. An order that only the active can carry out is passed on to it
//! once: unlike a client's call it is not repeated, since there is no retry cache for it. An order wants a proof that
//! the cluster's secret is known ([`proof`]): some of them lose data, and a user's name proves nothing. Only orders for data servers do without
//! one: they lose nothing, and are for superusers, as in HDFS.

mod data_server_orders;
mod deletions;
pub mod facts;
mod groups;
mod namespace_groups;
mod orders;
mod proof;
mod repair_view;
mod replicas;
pub mod show;
mod successor;
pub mod takeovers;
mod unclean;
mod upgrade;

pub use orders::order_hand_over;
pub use proof::{Challenges, prove, wanted};
pub use show::{Standstill, ask as ask_member, of_a_standstill};

use crate::{client_protocol::decode, core::Core};
use proto::{clover::admin as p, exception, protocol};
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    match call.method {
        "getGroup" => {
            let Some((request, reply)) = decode::<p::GetGroupRequestProto>(&call, reply) else { return };
            show::get_group(core, call, request.is_local(), reply);
        }
        "getFacts" => {
            let Some((_, reply)) = decode::<p::GetFactsRequestProto>(&call, reply) else { return };
            reply.ok(&facts::of(core));
        }
        "getDirectoryLog" => groups::show(core, call, reply),
        "getGroups" => namespace_groups::list(core, call, reply),
        "getHome" => namespace_groups::home(core, call, reply),
        "orderDataServer" => data_server_orders::order(core, call, reply),
        "getDataServerOrders" => data_server_orders::list(core, call, reply),
        "getReplicas" => replicas::list(core, call, reply),
        "challenge" => {
            let Some((_, reply)) = decode::<p::ChallengeRequestProto>(&call, reply) else { return };
            let (cluster_id, member) = (&core.cluster.cluster_id, core.partition.member.me().member);
            reply.ok(&core.challenges.challenge(&core.env, cluster_id, member));
        }
        "order" => {
            let Some((request, reply)) = decode::<p::OrderRequestProto>(&call, reply) else { return };
            let Some(method) = protocol::method(protocol::ADMIN, &request.order) else {
                return reply.error(RpcError::no_such_method(&request.order, call.protocol));
            };
            let (cluster_id, member) = (&core.cluster.cluster_id, core.partition.member.me().member);
            let secret = core.secret.as_ref();
            match core.challenges.admit(secret, cluster_id, member, &request, core.moment()) {
                Ok(()) => carry_out(core, Call { method, request: request.request, ..call }, reply),
                Err(error) => {
                    tracing::warn!(user = %call.caller, peer = %call.peer, order = method, %error, "an order was refused");
                    reply.fs_error(&error);
                }
            }
        }
        // The member that has passed it on has seen the proof.
        _ if call.is_forwarded => carry_out(core, call, reply),
        order => reply.fs_error(&proof::wanted(order)),
    }
}

fn carry_out(core: &Arc<Core>, call: Call, reply: Replier) {
    tracing::info!(user = %call.caller, peer = %call.peer, order = call.method, "an operator's order");
    match call.method {
        "handOver" => orders::hand_over(core, call, reply),
        "failActive" => orders::fail_active(core, call, reply),
        "addMember" => orders::add_member(core, call, reply),
        "removeMember" => orders::remove_member(core, call, reply),
        "allowDeletions" => deletions::allow(core, call, reply),
        "uncleanElect" => unclean::elect(core, call, reply),
        "repairView" => repair_view::repair(core, call, reply),
        "raiseLevel" => upgrade::raise_level(core, call, reply),
        "addGroup" => groups::add(core, call, reply),
        "giveSlots" => groups::give_slots(core, call, reply),
        method => reply.error(RpcError::no_such_method(method, call.protocol)),
    }
}

/// An order that is not carried out: the sentence says why.
pub fn refuse(reply: Replier, reason: impl Into<String>) {
    reply.error(RpcError::application(exception::SERVICE_FAILED, reason));
}
