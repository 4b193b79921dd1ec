//! Files that have lost a block: no good replica of it is on any live data server.

use super::{
    decode, require_superuser,
    walks::{self, Slice},
};
use crate::core::Core;
use base::BlockId;
use namespace::Privileged;
use proto::hdfs as p;
use rpc::{Call, Replier};
use serving::admission;
use std::sync::Arc;

/// One page of HDFS's `listCorruptFileBlocks` (`dfs.corruptfilesreturned.max`).
const PAGE: usize = 500;

/// Blocks that are looked at without letting others in between.
const SLICE: usize = 500;

/// The cookie is the last block that has been looked at, as text.
pub fn list_corrupt_file_blocks(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ListCorruptFileBlocksRequestProto>(&call, reply) else { return };
    if let Err(error) = require_superuser(core, &call, Privileged::ListCorruptFileBlocks) {
        return reply.fs_error(&error);
    }
    if core.partition.blocks.lock().safe_mode_stage() != ::blocks::SafeModeStage::Off {
        return reply.fs_error(&admission::losses_not_known());
    }
    let last = request.cookie.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
    let (mut last, mut files) = (BlockId(last), Vec::new());
    let blocks = core.partition.blocks.clone();
    walks::in_slices(core, call, reply, move |tree, _| {
        let map = blocks.lock();
        for (looked_at, (block, inode)) in map.files_of_lost_blocks(last).enumerate() {
            if looked_at == SLICE {
                return Ok(Slice::More);
            }
            last = block;
            let path = inode.and_then(|inode| tree.namespace.path_of(inode));
            if let Some(path) = path.filter(|file| namespace::path::is_within(file, &request.path)) {
                files.push(path);
            }
            if files.len() >= PAGE {
                break;
            }
        }
        let (files, cookie) = (std::mem::take(&mut files), last.0.to_string());
        Ok(Slice::Answer(p::ListCorruptFileBlocksResponseProto {
            corrupt: p::CorruptFileBlocksProto { files, cookie },
        }))
    });
}
