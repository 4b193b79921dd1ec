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
    let mut read = list_open_files::Request {
        after: InodeId(u64::try_from(message.id).unwrap_or(0)),
        // Clients before 3.2 name no path.
        directory: message.path.unwrap_or_else(|| "/".into()),
        limit: PAGE,
        among: None,
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
    let wants_keeping = !types.is_empty() && !types.contains(&all);
    if wants_keeping {
        read.among = Some(Arc::new(core.partition.blocks.lock().files_that_keep_servers()));
    }
    walks::read(core, call, reply, read, move |_, page| {
        let entries = page.files.into_iter().map(|file| p::OpenFilesBatchResponseProto {
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
