//! What clients ask without changing anything.

use super::{
    calls::{self, Sight, decode},
    files,
    status::{self, Name},
};
use crate::{core::Core, datanodes::wire};
use ::blocks::{BlockState, Reader};
use base::FsError;
use bytes::Bytes;
use namespace::{
    FileBlock, FileBlocks, Namespace,
    reads::{self, get_listing::Listing},
};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn get_file_info(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetFileInfoRequestProto>(&call, reply) else { return };
    calls::read(core, &call, reply, Sight::Paths(&[&request.src]), |tree, context| {
        let found = reads::get_file_info::get(&tree.namespace, context, &request.src)?;
        Ok(p::GetFileInfoResponseProto { fs: found.map(|fs| status::to_proto(&fs, Name::Empty)) })
    });
}

/// Without symbolic links the same as `getFileInfo`.
pub fn get_file_link_info(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetFileLinkInfoRequestProto>(&call, reply) else { return };
    calls::read(core, &call, reply, Sight::Paths(&[&request.src]), |tree, context| {
        let found = reads::get_file_info::get(&tree.namespace, context, &request.src)?;
        Ok(p::GetFileLinkInfoResponseProto { fs: found.map(|fs| status::to_proto(&fs, Name::Empty)) })
    });
}

pub fn get_located_file_info(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetLocatedFileInfoRequestProto>(&call, reply) else { return };
    let host = host(&call);
    calls::read(core, &call, reply, Sight::Paths(&[request.src()]), |tree, context| {
        let found =
            reads::get_block_locations::get_located_file_info(&tree.namespace, context, request.src())?;
        let fs = found.map(|(fs, blocks)| {
            let mut proto = status::to_proto(&fs, Name::Empty);
            proto.locations = blocks.map(|blocks| located_blocks(core, &blocks, &host));
            proto
        });
        Ok(p::GetLocatedFileInfoResponseProto { fs })
    });
}

pub fn is_file_closed(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::IsFileClosedRequestProto>(&call, reply) else { return };
    calls::read(core, &call, reply, Sight::Paths(&[&request.src]), |tree, context| {
        let result = reads::get_file_info::is_closed(&tree.namespace, context, &request.src)?;
        Ok(p::IsFileClosedResponseProto { result })
    });
}

pub fn get_listing(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetListingRequestProto>(&call, reply) else { return };
    let host = host(&call);
    calls::read(core, &call, reply, Sight::Paths(&[&request.src]), |tree, context| {
        let page = reads::get_listing::get(
            &tree.namespace,
            context,
            &request.src,
            &request.start_after,
            request.need_location,
        )?;
        let dir_list = page.map(|page| p::DirectoryListingProto {
            partial_listing: entries(core, &tree.namespace, &page, request.need_location, &host),
            remaining_entries: page.remaining,
        });
        Ok(p::GetListingResponseProto { dir_list })
    });
}

pub fn get_batched_listing(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetBatchedListingRequestProto>(&call, reply) else { return };
    let host = host(&call);
    let paths: Vec<&str> = request.paths.iter().map(String::as_str).collect();
    calls::read(core, &call, reply, Sight::Paths(&paths), |tree, context| {
        let start = match request.start_after.len() {
            0 => (0, &[][..]),
            1..4 => {
                return Err(FsError::InvalidArgument(
                    "The cookie of the batched listing is too short.".into(),
                ));
            }
            // Our cookie: the index of the path, big-endian, then the name.
            _ => {
                let (index, name) = request.start_after.split_at(4);
                (u32::from_be_bytes([index[0], index[1], index[2], index[3]]), name)
            }
        };
        let found =
            reads::get_listing::get_batched(&tree.namespace, context, &paths, start, request.need_location)?;
        let listings = found
            .listings
            .iter()
            .map(|partial| {
                let mut proto = p::BatchedDirectoryListingProto {
                    parent_idx: partial.parent_index,
                    ..Default::default()
                };
                match &partial.listing {
                    Ok(page) => {
                        proto.partial_listing =
                            entries(core, &tree.namespace, page, request.need_location, &host);
                    }
                    Err(error) => {
                        let (class, message) = proto::exception::to_remote(error);
                        proto.exception = Some(p::RemoteExceptionProto {
                            class_name: class.to_owned(),
                            message: Some(message),
                        });
                    }
                }
                proto
            })
            .collect();
        let mut cookie = found.next.0.to_be_bytes().to_vec();
        cookie.extend_from_slice(&found.next.1);
        Ok(p::GetBatchedListingResponseProto {
            listings,
            has_more: found.has_more,
            start_after: Bytes::from(cookie),
        })
    });
}

pub fn get_preferred_block_size(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetPreferredBlockSizeRequestProto>(&call, reply) else { return };
    calls::read(core, &call, reply, Sight::Paths(&[&request.filename]), |tree, context| {
        let bsize = reads::get_file_info::preferred_block_size(&tree.namespace, context, &request.filename)?;
        Ok(p::GetPreferredBlockSizeResponseProto { bsize })
    });
}

pub fn check_access(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::CheckAccessRequestProto>(&call, reply) else { return };
    calls::read(core, &call, reply, Sight::Paths(&[&request.path]), |tree, context| {
        // FsActionProto counts like the permission bits: 4 read, 2 write, 1 execute.
        let action = request.mode as u8 & 7;
        reads::check_access::check(&tree.namespace, context, &request.path, action)?;
        Ok(p::CheckAccessResponseProto {})
    });
}

/// The root of the encryption zone or of the file system that holds the path: there are no zones.
pub fn get_enclosing_root(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetEnclosingRootRequestProto>(&call, reply) else { return };
    calls::read(core, &call, reply, Sight::Paths(&[request.filename()]), |tree, context| {
        // HDFS wants to be allowed to read the path, and does not mind if there is nothing there.
        const READ: u8 = 4;
        reads::check_access::check_if_there(&tree.namespace, context, request.filename(), READ)?;
        Ok(p::GetEnclosingRootResponseProto { enclosing_root_path: Some("/".into()) })
    });
}

pub fn get_block_locations(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetBlockLocationsRequestProto>(&call, reply) else { return };
    let host = host(&call);
    calls::read(core, &call, reply, Sight::Paths(&[&request.src]), |tree, context| {
        let blocks = reads::get_block_locations::get(
            &tree.namespace,
            context,
            &request.src,
            request.offset,
            request.length,
        )?;
        if blocks.wants_access_time {
            files::note_access(core, blocks.inode);
        }
        Ok(p::GetBlockLocationsResponseProto { locations: Some(located_blocks(core, &blocks, &host)) })
    });
}

/// Where the caller is, to name the nearest replicas first.
pub fn host(call: &Call) -> String {
    call.origin.address.map(|address| address.to_string()).unwrap_or_default()
}

fn entries(
    core: &Arc<Core>,
    namespace: &Namespace,
    page: &Listing<'_>,
    need_location: bool,
    host: &str,
) -> Vec<p::HdfsFileStatusProto> {
    page.entries
        .iter()
        .map(|entry| {
            let mut proto = status::to_proto(entry, Name::Own);
            if need_location && !entry.is_directory() {
                proto.locations = reads::get_block_locations::by_id_at(namespace, entry.id, page.snapshot)
                    .map(|blocks| located_blocks(core, &blocks, host));
            }
            proto
        })
        .collect()
}

pub fn located_blocks(core: &Core, blocks: &FileBlocks, host: &str) -> p::LocatedBlocksProto {
    let map = core.blocks.lock();
    let now = core.moment();
    let locate = |file_block: &FileBlock| {
        let chance = core.env.random.next_u64();
        let located = map.locations(file_block.block.id, Reader { host: Some(host) }, chance, now);
        wire::located_block(&core.cluster.block_pool, file_block.block, file_block.offset, located.as_ref())
    };
    let is_complete = |last: &FileBlock| {
        last.committed && map.facts(last.block.id).is_none_or(|facts| facts.state == BlockState::Complete)
    };
    p::LocatedBlocksProto {
        file_length: blocks.length,
        blocks: blocks.blocks.iter().map(locate).collect(),
        under_construction: blocks.under_construction,
        last_block: blocks.last.as_ref().map(locate),
        is_last_block_complete: blocks.is_past || blocks.last.as_ref().is_none_or(is_complete),
        file_encryption_info: None,
        ec_policy: None,
    }
}
