//! Symbolic links, which HDFS has and does not allow: what it answers where they are not enabled.

use super::calls::{self, Sight, decode};
use crate::core::Core;
use base::FsError;
use namespace::reads;
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

/// Hadoop: "Symlinks not supported", before anything of the request is looked at.
pub fn create_symlink(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::CreateSymlinkRequestProto>(&call, reply) else { return };
    reply.fs_error(&FsError::Unsupported("Symlinks not supported".into()));
}

/// No path is a symbolic link, so this only tells the kind of the path.
pub fn get_link_target(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetLinkTargetRequestProto>(&call, reply) else { return };
    calls::read(core, &call, reply, Sight::Paths(&[&request.path]), |tree, context| {
        match reads::get_file_info::get(&tree.namespace, context, &request.path)? {
            None => Err(FsError::NotFound(format!("File does not exist: {}", request.path))),
            Some(_) => Err::<p::GetLinkTargetResponseProto, _>(FsError::Io(format!(
                "Path {} is not a symbolic link",
                request.path
            ))),
        }
    });
}
