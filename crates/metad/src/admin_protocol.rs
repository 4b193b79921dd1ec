//! What an operator asks of the group and orders it to do.

use crate::core::Core;
use base::{FsError, MemberId};
use group::Order;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn call(_: &Arc<Core>, call: Call, reply: Replier) {
    reply.fs_error(&FsError::Unsupported(format!(
        "{} is not built yet in this version of Clover.",
        call.method
    )));
}

/// Has the group handed over to this member, or to any that is ready.
pub fn order_hand_over(
    core: &Arc<Core>,
    call: &Call,
    to: Option<MemberId>,
    done: impl FnOnce(Result<String, String>) + Send + 'static,
) {
    tracing::info!(user = %call.caller, ?to, "hand-over ordered");
    core.replica.order(Order::HandOver { to }, Box::new(done));
}
