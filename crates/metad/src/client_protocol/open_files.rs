//! The files that are being written, and the clients that write them.

use super::{
    calls::{self, Sight},
    decode, require_superuser,
};
use crate::core::Core;
use base::{FsError, InodeId};
use namespace::{Privileged, reads};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

/// One page of HDFS's `listOpenFiles` (`dfs.namenode.list.openfiles.num.responses`).
const PAGE: usize = 1_000;

pub fn list_open_files(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ListOpenFilesRequestProto>(&call, reply) else { return };
    // Clients before 3.2 name no path.
    let path = request.path.as_deref().unwrap_or("/");
    if !path.starts_with('/') {
        return reply
            .fs_error(&FsError::InvalidArgument(format!("Absolute path required, but got '{path}'")));
    }
    if let Err(error) = require_superuser(core, &call, Privileged::ListOpenFiles) {
        return reply.fs_error(&error);
    }
    let all = p::OpenFilesTypeProto::AllOpenFiles as i32;
    // No data server is ever being decommissioned, so nothing blocks that. Clients before 3.1 name no type.
    if !request.types.is_empty() && !request.types.contains(&all) {
        return reply.ok(&p::ListOpenFilesResponseProto {
            entries: Vec::new(),
            has_more: false,
            types: request.types.clone(),
        });
    }
    calls::read(core, &call, reply, Sight::Everything, |tree, _| {
        let after = InodeId(u64::try_from(request.id).unwrap_or(0));
        let page = reads::list_open_files::list(&tree.namespace, after, path, PAGE);
        let entries = page.files.into_iter().map(|file| p::OpenFilesBatchResponseProto {
            id: file.inode.0 as i64,
            path: file.path,
            client_name: file.holder.to_owned(),
            client_machine: file.machine.to_owned(),
        });
        Ok(p::ListOpenFilesResponseProto {
            entries: entries.collect(),
            has_more: page.has_more,
            types: request.types.clone(),
        })
    });
}
