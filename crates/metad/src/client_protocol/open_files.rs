//! The files that are being written, and the clients that write them.

use super::{decode, require_superuser, walks};
use crate::{audit::lines, core::Core};
use base::{FsError, InodeId};
use namespace::{Privileged, reads::list_open_files};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

/// One page of HDFS's `listOpenFiles` (`dfs.namenode.list.openfiles.num.responses`).
const PAGE: usize = 1_000;

pub fn list_open_files(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((message, reply)) = decode::<p::ListOpenFilesRequestProto>(&call, reply) else { return };
    let types = message.types;
    let read = list_open_files::Request {
        after: InodeId(u64::try_from(message.id).unwrap_or(0)),
        // Clients before 3.2 name no path.
        directory: message.path.unwrap_or_else(|| "/".into()),
        limit: PAGE,
    };
    let reply = lines::watch_read(core, &call, reply, &read);
    if !read.directory.starts_with('/') {
        let text = format!("Absolute path required, but got '{}'", read.directory);
        return reply.fs_error(&FsError::InvalidArgument(text));
    }
    if let Err(error) = require_superuser(core, &call, Privileged::ListOpenFiles) {
        return reply.fs_error(&error);
    }
    let all = p::OpenFilesTypeProto::AllOpenFiles as i32;
    // Clients before 3.1 name no type. Files that keep data servers from leaving service are the other type.
    let keeping = (!types.is_empty() && !types.contains(&all))
        .then(|| core.partition.blocks.lock().files_that_keep_servers());
    walks::read(core, call, reply, read, move |_, page| {
        let is_asked_for = |file: &list_open_files::OpenFile| {
            keeping.as_ref().is_none_or(|keeping| keeping.contains(&file.inode))
        };
        let entries =
            page.files.into_iter().filter(is_asked_for).map(|file| p::OpenFilesBatchResponseProto {
                id: file.inode.0 as i64,
                path: file.path,
                client_name: file.holder,
                client_machine: file.machine,
            });
        p::ListOpenFilesResponseProto {
            entries: entries.collect(),
            has_more: page.has_more,
            types: types.clone(),
        }
    });
}
