//! Files that have lost a block: no good replica of it is on any live data server.

use super::{
    calls::{self, Sight},
    decode, require_superuser,
};
use crate::core::Core;
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

/// One page of HDFS's `listCorruptFileBlocks` (`dfs.corruptfilesreturned.max`).
const PAGE: usize = 500;

/// The cookie is the number of lost blocks that have been looked at, as text.
pub fn list_corrupt_file_blocks(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ListCorruptFileBlocksRequestProto>(&call, reply) else { return };
    if let Err(error) = require_superuser(core, &call) {
        return reply.fs_error(&error);
    }
    let mut looked_at: usize = request.cookie.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
    calls::read(core, &call, reply, Sight::Everything, |tree, _| {
        let mut files = Vec::new();
        let map = core.blocks.lock();
        for inode in map.files_of_lost_blocks().skip(looked_at) {
            looked_at += 1;
            let path = inode.and_then(|inode| tree.namespace.path_of(inode));
            if let Some(path) = path.filter(|file| namespace::path::is_within(file, &request.path)) {
                files.push(path);
            }
            if files.len() >= PAGE {
                break;
            }
        }
        drop(map);
        Ok(p::ListCorruptFileBlocksResponseProto {
            corrupt: p::CorruptFileBlocksProto { files, cookie: looked_at.to_string() },
        })
    });
}
