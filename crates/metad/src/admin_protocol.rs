//! What an operator asks of the group and orders it to do.

use crate::core::Core;
use base::FsError;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn call(_: &Arc<Core>, call: Call, reply: Replier) {
    reply.fs_error(&FsError::Unsupported(format!(
        "{} is not built yet in this version of Clover.",
        call.method
    )));
}
