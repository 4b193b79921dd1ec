//! Small pieces of replies.

use base::Caller;
use namespace::Reply;
use rpc::Call;
use std::sync::Arc;

/// An operation whose answer is yes or no.
pub fn boolean(essentials: Reply) -> bool {
    match essentials {
        Reply::Bool(answer) => answer,
        _ => true,
    }
}

pub fn user(call: &Call) -> Arc<Caller> {
    call.caller.clone()
}
