//! The calls of clients that change nothing.

use super::{
    answers::Encoded,
    calls::{self, Sight, decode},
    files,
    places::Places,
    status::{self, Name},
};
use crate::core::Core;
use base::FsError;
use namespace::{Namespace, reads};
use proto::{
    answers::{BatchedListing, BatchedPage, Listing, Only, Put, WithLocations},
    hdfs as p,
};
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn get_file_info(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetFileInfoRequestProto>(&call, reply) else { return };
    calls::read(core, &call, reply, Sight::Paths(&[&request.src]), |tree, context| {
        let found = reads::get_file_info::get(&tree.namespace, context, &request.src)?;
        Ok(Encoded::of(Only(found.map(|found| status::view(&found, Name::Empty)))))
    });
}

/// Without symbolic links the same as `getFileInfo`.
pub fn get_file_link_info(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetFileLinkInfoRequestProto>(&call, reply) else { return };
    calls::read(core, &call, reply, Sight::Paths(&[&request.src]), |tree, context| {
        let found = reads::get_file_info::get(&tree.namespace, context, &request.src)?;
        Ok(Encoded::of(Only(found.map(|found| status::view(&found, Name::Empty)))))
    });
}

pub fn get_located_file_info(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetLocatedFileInfoRequestProto>(&call, reply) else { return };
    let host = host(&call);
    calls::read(core, &call, reply, Sight::Paths(&[request.src()]), |tree, context| {
        let found =
            reads::get_block_locations::get_located_file_info(&tree.namespace, context, request.src())?;
        Ok(Encoded::of(Only(found.map(|(found, blocks)| WithLocations {
            status: status::view(&found, Name::Empty),
            locations: blocks.map(|blocks| Places { partition: &core.partition, blocks, host: &host }),
        }))))
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
    let host = if request.need_location { host(&call) } else { String::new() };
    let paths = [&*request.src];
    let sight = listing(&request.start_after, &paths);
    calls::read(core, &call, reply, sight, |tree, context| {
        let page = reads::get_listing::get(
            &tree.namespace,
            context,
            &request.src,
            &request.start_after,
            request.need_location,
        )?;
        let host = request.need_location.then_some(&*host);
        Ok(Encoded::of(Only(page.as_ref().map(|page| Listing {
            entries: entries(core, &tree.namespace, page, host),
            remaining: page.remaining,
        }))))
    });
}

pub fn get_batched_listing(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetBatchedListingRequestProto>(&call, reply) else { return };
    let host = host(&call);
    let paths: Vec<&str> = request.paths.iter().map(String::as_str).collect();
    let sight = listing(request.start_after.get(4..).unwrap_or_default(), &paths);
    calls::read(core, &call, reply, sight, |tree, context| {
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
        let host = request.need_location.then_some(&*host);
        let pages = found.listings.iter().map(|partial| BatchedPage {
            parent: partial.parent_index,
            entries: match &partial.listing {
                Ok(page) => Ok(entries(core, &tree.namespace, page, host)),
                Err(error) => {
                    let (class, message) = proto::exception::to_remote(error);
                    Err(p::RemoteExceptionProto { class_name: class.to_owned(), message: Some(message) })
                }
            },
        });
        let mut cookie = found.next.0.to_be_bytes().to_vec();
        cookie.extend_from_slice(&found.next.1);
        Ok(Encoded::of(BatchedListing { pages, has_more: found.has_more, start_after: &cookie }))
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
        calls::refuse_unknown_places(&core.partition, &request.src, &blocks.blocks)?;
        if blocks.wants_access_time {
            files::note_access(&core.partition, blocks.inode);
        }
        Ok(Encoded::of(Only(Some(Places { partition: &core.partition, blocks, host: &host }))))
    });
}

/// The part of the tree that a listing looks at. A listing that goes on after an inode by its number depends on that
/// inode's name as well.
fn listing<'a>(start_after: &[u8], paths: &'a [&'a str]) -> Sight<'a> {
    if start_after.starts_with(b"/") { Sight::Everything } else { Sight::Listings(paths) }
}

/// The host of the caller, to name the nearest replicas first.
pub fn host(call: &Call) -> String {
    call.origin.address.map(|address| address.to_string()).unwrap_or_default()
}

/// The entries of a page; with the places of their blocks, as near to `host` as there are, where it is given.
fn entries<'a>(
    core: &'a Core,
    namespace: &'a Namespace,
    page: &'a reads::get_listing::Listing<'a>,
    host: Option<&'a str>,
) -> impl ExactSizeIterator<Item = impl Put> + Clone {
    page.entries.iter().map(move |entry| {
        let host = host.filter(|_| !entry.is_directory());
        let locations = host.and_then(|host| {
            let blocks = reads::get_block_locations::by_id_at(namespace, entry.id, page.snapshot)?;
            Some(Places { partition: &core.partition, blocks, host })
        });
        WithLocations { status: status::view(entry, Name::Own), locations }
    })
}
