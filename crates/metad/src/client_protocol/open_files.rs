//! The files that are being written, and the clients that write them.

use super::{
    decode, require_superuser,
    walks::{self, Slice},
};
use crate::core::Core;
use base::{FsError, InodeId};
use namespace::{Privileged, reads::list_open_files::Look};
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
    let after = InodeId(u64::try_from(request.id).unwrap_or(0));
    let mut look = Look::new(after, path, PAGE);
    walks::read(core, call, reply, move |tree, context| {
        let step = context.limits.content_summary_step;
        let Some(page) = look.step(&tree.namespace, step) else { return Ok(Slice::More) };
        let entries = page.files.into_iter().map(|file| p::OpenFilesBatchResponseProto {
            id: file.inode.0 as i64,
            path: file.path,
            client_name: file.holder,
            client_machine: file.machine,
        });
        Ok(Slice::Answer(p::ListOpenFilesResponseProto {
            entries: entries.collect(),
            has_more: page.has_more,
            types: request.types.clone(),
        }))
    });
}
