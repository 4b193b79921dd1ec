//! Symbolic links, which HDFS has and does not allow: what it answers where they are not enabled.

use super::calls::{self, asked, decode};
use crate::core::Core;
use base::{FsError, FsResult};
use namespace::reads::get_link_target;
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

/// Hadoop: "Symlinks not supported", before anything of the request is looked at.
pub fn create_symlink(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::CreateSymlinkRequestProto>(&call, reply) else { return };
    reply.fs_error(&FsError::Unsupported("Symlinks not supported".into()));
}

/// Refused: no path is a symbolic link.
pub fn get_link_target(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetLinkTargetRequestProto| get_link_target::Request { path: message.path };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, target| -> FsResult<p::GetLinkTargetResponseProto> {
        match target {}
    });
}
