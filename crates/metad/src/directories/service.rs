//! Takes the messages of other groups' actives.

use super::{drive::step, links::is_proved, step::Input};
use crate::{client_protocol::decode, core::Core};
use base::GroupId;
use bytes::Bytes;
use dirlog::wire;
use proto::{
    clover::forward::{DirectoryLogRequestProto, DirectoryLogResponseProto},
    exception,
};
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

/// Takes messages of another group's active, in their order. If one cannot be read, the sender gets an error, and the messages before that one have
/// been taken.
pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<DirectoryLogRequestProto>(&call, reply) else { return };
    let from = match check(core, &request) {
        Ok(from) => from,
        Err(error) => {
            tracing::warn!(peer = %call.peer, %error, "refused messages about directories");
            return reply.error(error);
        }
    };
    if !core.partition.directories.is_leading() {
        return reply.ok(&DirectoryLogResponseProto { is_elsewhere: Some(true) });
    }
    let (input, unreadable) = match core.cluster.group {
        GroupId::ROOT => {
            let (messages, unreadable) = decode_all(request.messages, wire::decode_to_root);
            (Input::FromHome(from, messages), unreadable)
        }
        _ => {
            let (messages, unreadable) = decode_all(request.messages, wire::decode_to_group);
            (Input::FromRoot(messages), unreadable)
        }
    };
    step(&core.partition, input);
    match unreadable {
        None => reply.ok(&DirectoryLogResponseProto::default()),
        Some(error) => {
            tracing::warn!(peer = %call.peer, group = %from, %error, "a message about directories makes no sense");
            reply.error(RpcError::application(exception::IO, error.to_string()));
        }
    }
}

/// The messages before the first one that cannot be read, and why that one cannot.
fn decode_all<M, E>(messages: Vec<Bytes>, decode: impl Fn(Bytes) -> Result<M, E>) -> (Vec<M>, Option<E>) {
    let mut read = Vec::new();
    for message in messages {
        match decode(message) {
            Ok(message) => read.push(message),
            Err(error) => return (read, Some(error)),
        }
    }
    (read, None)
}

/// The group that has sent the messages.
fn check(core: &Core, request: &DirectoryLogRequestProto) -> Result<GroupId, RpcError> {
    let refuse = |message: String| Err(RpcError::application(exception::ACCESS_CONTROL, message));
    let Some(secret) = &core.secret else {
        return refuse("this cluster has one metadata server and no secret".to_owned());
    };
    if !is_proved(secret, request) {
        return refuse("messages about directories that are not from a member of this cluster".to_owned());
    }
    if request.scope != core.scope {
        return refuse(format!("messages about directories for {} came to {}", request.scope, core.scope));
    }
    let from = GroupId(request.group);
    let own = core.cluster.group;
    // The root group and another one speak with each other; no two others do.
    if !from.is_possible() || (from == GroupId::ROOT) == (own == GroupId::ROOT) {
        return refuse(format!("group {from} has nothing to say to group {own} about directories"));
    }
    Ok(from)
}
