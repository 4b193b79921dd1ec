//! Takes the messages of other groups' actives.

use super::{drive::step, links::is_proved, step::Input};
use crate::{client_protocol::decode, core::Core};
use base::GroupId;
use dirlog::{home, root, wire};
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
    for message in request.messages {
        let input = match core.cluster.group {
            GroupId::ROOT => wire::decode_to_root(message)
                .map(|message| Input::Root(root::Input::Message { from, message })),
            _ => wire::decode_to_group(message).map(|message| Input::Home(home::Input::Message(message))),
        };
        match input {
            Ok(input) => step(&core.partition, input),
            Err(error) => {
                tracing::warn!(peer = %call.peer, group = %from, %error, "a message about directories makes no sense");
                return reply.error(RpcError::application(exception::IO, error.to_string()));
            }
        }
    }
    reply.ok(&DirectoryLogResponseProto::default());
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
