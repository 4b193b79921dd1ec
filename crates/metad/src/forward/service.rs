//! The service at which envelopes arrive.

use super::{
    envelope::{self, Opened},
    forwarder::{group_in, is_elsewhere, was_begun},
    recipient::Recipient,
};
use crate::{client_protocol::decode, core::Core};
use base::{Caller, GroupId};
use proto::{
    clover::forward::{ForwardRequestProto, ForwardResponseProto},
    exception, protocol,
};
use rpc::{Answer, Call, NoResponse, Replier, RpcError};
use std::sync::Arc;

/// The protocols whose calls are forwarded.
const PROTOCOLS: &[&str] =
    &[protocol::CLIENT_NAMENODE, protocol::NAMENODE, protocol::GET_USER_MAPPINGS, protocol::ADMIN];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Only groups that are known already are used.
    Known,
    /// May run a command.
    Everywhere,
}

/// Answers a call of another member: it brings a client's.
pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    let (asked, serving) = (core.clone(), core.clone());
    let resolve = move |opened: &Opened, look: Look| {
        let (user, real_user) = (&*opened.user, opened.real_user.as_deref());
        match look {
            Look::Known => asked.user_groups.known_caller(user, real_user, asked.moment()),
            Look::Everywhere => Some(asked.user_groups.caller(user, real_user, asked.moment())),
        }
    };
    let serve = move |call: Call, reply: Replier| (serving.answer)(&serving, call, reply);
    open(core.partition.recipient.as_ref(), call, reply, resolve, serve);
}

/// Opens an envelope. `resolve` looks up who asks, `serve` answers what was in it.
pub fn open(
    recipient: Option<&Recipient>,
    call: Call,
    reply: Replier,
    resolve: impl Fn(&Opened, Look) -> Option<Arc<Caller>> + Send + 'static,
    serve: impl FnOnce(Call, Replier) + Send + 'static,
) {
    let Some((request, reply)) = decode::<ForwardRequestProto>(&call, reply) else { return };
    let Some(recipient) = recipient else {
        let message =
            "this metadata server has no secret of its cluster, which proves calls that are passed on";
        return reply.error(RpcError::application(exception::ACCESS_CONTROL, message));
    };
    let opened = match envelope::open(&recipient.seal, &recipient.scope, PROTOCOLS, &call, request) {
        Ok(opened) => opened,
        Err(error) => {
            tracing::warn!(peer = %call.peer, %error, "refused a call that claims to be forwarded");
            return reply.error(error);
        }
    };
    let known = recipient.is_serving().then(|| resolve(&opened, Look::Known)).flatten();
    if let Some(caller) = known {
        return serve(opened.into_call(caller), wrapped(recipient.clone(), reply));
    }
    let recipient = recipient.clone();
    drop(recipient.runtime.clone().spawn(async move {
        if !recipient.will_serve().await {
            return elsewhere(&recipient, reply, false, None);
        }
        let caller = match resolve(&opened, Look::Known) {
            Some(caller) => Some((opened, caller)),
            None => {
                // On a thread that nobody waits for: it may take a while.
                let looked = move || resolve(&opened, Look::Everywhere).map(|caller| (opened, caller));
                tokio::task::spawn_blocking(looked).await.ok().flatten()
            }
        };
        if let Some((opened, caller)) = caller {
            serve(opened.into_call(caller), wrapped(recipient, reply));
        }
    }));
}

/// The way back of the inner call's answer.
fn wrapped(recipient: Recipient, reply: Replier) -> Replier {
    Replier::captured(move |Answer { result, state_id }| match result {
        Err(NoResponse::Refused(error)) if is_elsewhere(&error) => {
            elsewhere(&recipient, reply, was_begun(&error), group_in(&error))
        }
        // Let go likewise: on its way out, this server says nothing, and the other member asks again elsewhere.
        Err(NoResponse::GivenUp) => drop(reply),
        Err(NoResponse::Refused(error)) => reply.ok(&ForwardResponseProto {
            refusal: Some(envelope::refusal_to_proto(&error)),
            state_id,
            ..ForwardResponseProto::default()
        }),
        Ok(response) => reply.ok(&ForwardResponseProto {
            response: Some(response),
            state_id,
            ..ForwardResponseProto::default()
        }),
    })
}

fn elsewhere(recipient: &Recipient, reply: Replier, is_begun: bool, group: Option<GroupId>) {
    reply.ok(&ForwardResponseProto {
        is_elsewhere: Some(true),
        is_begun: is_begun.then_some(true),
        active: recipient.known_active().map(|member| member.0),
        group: group.map(|group| group.0),
        ..ForwardResponseProto::default()
    });
}
