//! The calls of clients that change nothing.

use super::{
    answers::Encoded,
    batch::{batch_of, cookie_of},
    calls::{self, asked},
    files,
    places::Places,
    status::{self, Name},
};
use crate::{
    audit::lines,
    core::Core,
    post::places::{Foreign, Located},
    standby_reads,
};
use namespace::{
    FileStatus, Namespace,
    reads::{check_access, get_block_locations, get_enclosing_root, get_file_info, get_listing},
};
use proto::{
    answers::{BatchedListing, BatchedPage, Listing, Only, Put, WithLocations},
    hdfs as p,
};
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn get_file_info(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetFileInfoRequestProto| get_file_info::Request { path: message.src };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, found| Ok(one_status(found)));
}

/// Without symbolic links the same as `getFileInfo`.
pub fn get_file_link_info(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetFileLinkInfoRequestProto| get_file_info::Request { path: message.src };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, found| Ok(one_status(found)));
}

fn one_status(found: Option<FileStatus<'_>>) -> Encoded {
    Encoded::of(Only(found.map(|found| status::view(&found, Name::Empty))))
}

pub fn get_located_file_info(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetLocatedFileInfoRequestProto| get_block_locations::StatusAndBlocks {
        path: message.src.unwrap_or_default(),
    };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    let host = host(&call);
    calls::read(core, &call, reply, &read, |_, found| {
        let foreign = Foreign::default();
        let answer = Encoded::of(Only(found.map(|(found, blocks)| WithLocations {
            status: status::view(&found, Name::Empty),
            locations: blocks.map(|blocks| Places {
                partition: &core.partition,
                blocks,
                host: &host,
                foreign: &foreign,
            }),
        })));
        Located::new(core, &call, &host, foreign, answer)
    });
}

pub fn is_file_closed(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::IsFileClosedRequestProto| get_file_info::IsClosed { path: message.src };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, result| Ok(p::IsFileClosedResponseProto { result }));
}

pub fn get_listing(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetListingRequestProto| get_listing::Request {
        path: message.src,
        start_after: message.start_after,
        need_location: message.need_location,
    };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    let host = read.need_location.then(|| host(&call));
    calls::read(core, &call, reply, &read, |tree, page| {
        let foreign = Foreign::default();
        let answer = Encoded::of(Only(page.as_ref().map(|page| Listing {
            entries: entries(core, &tree.namespace, page, host.as_deref(), &foreign),
            remaining: page.remaining,
        })));
        let host = host.as_deref().unwrap_or_default();
        let located = Located::new(core, &call, host, foreign, answer)?;
        Ok(located.of_listings([page.and_then(|page| page.snapshot)]))
    });
}

pub fn get_batched_listing(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = match batch_of(&call) {
        Ok(read) => read,
        Err(refused) => return reply.error(refused),
    };
    let need_location = read.need_location;
    let reply = lines::watch_read(core, &call, reply, &read);
    let host = need_location.then(|| host(&call));
    calls::read(core, &call, reply, &read, |tree, found| {
        let foreign = Foreign::default();
        let pages = found.listings.iter().map(|partial| BatchedPage {
            parent: partial.parent_index,
            entries: match &partial.listing {
                Ok(page) => Ok(entries(core, &tree.namespace, page, host.as_deref(), &foreign)),
                Err(error) => {
                    let (class, message) = proto::exception::to_remote(error);
                    Err(p::RemoteExceptionProto { class_name: class.to_owned(), message: Some(message) })
                }
            },
        });
        let cookie = cookie_of(found.next.0, &found.next.1);
        let answer = Encoded::of(BatchedListing { pages, has_more: found.has_more, start_after: &cookie });
        let listed = |partial: &get_listing::PartialListing<'_>| {
            partial.listing.as_ref().ok().and_then(|page| page.snapshot)
        };
        let host = host.as_deref().unwrap_or_default();
        let located = Located::new(core, &call, host, foreign, answer)?;
        Ok(located.of_listings(found.listings.iter().map(listed)))
    });
}

pub fn get_preferred_block_size(core: &Arc<Core>, call: Call, reply: Replier) {
    let read =
        |message: p::GetPreferredBlockSizeRequestProto| get_file_info::BlockSize { path: message.filename };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, bsize| Ok(p::GetPreferredBlockSizeResponseProto { bsize }));
}

pub fn check_access(core: &Arc<Core>, call: Call, reply: Replier) {
    // FsActionProto counts like the permission bits.
    let read = |message: p::CheckAccessRequestProto| check_access::Request {
        action: message.mode as u8 & 7,
        path: message.path,
    };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, ()| Ok(p::CheckAccessResponseProto {}));
}

pub fn get_enclosing_root(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetEnclosingRootRequestProto| get_enclosing_root::Request {
        path: message.filename.unwrap_or_default(),
    };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, root| {
        Ok(p::GetEnclosingRootResponseProto { enclosing_root_path: Some(root.into()) })
    });
}

pub fn get_block_locations(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetBlockLocationsRequestProto| get_block_locations::Request {
        path: message.src,
        offset: message.offset,
        length: message.length,
    };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    let host = host(&call);
    calls::read(core, &call, reply, &read, |_, blocks| {
        if call.read_point.is_none() {
            calls::refuse_unknown_places(&core.partition, &read.path, &blocks.blocks)?;
            if blocks.wants_access_time {
                files::note_access(&core.partition, blocks.inode);
            }
        } else if blocks.wants_access_time {
            return Err(standby_reads::only_the_active());
        }
        let foreign = Foreign::default();
        let partition = &core.partition;
        let answer = Encoded::of(Only(Some(Places { partition, blocks, host: &host, foreign: &foreign })));
        Located::new(core, &call, &host, foreign, answer)
    });
}

/// The host of the caller, to name the nearest replicas first.
pub fn host(call: &Call) -> String {
    call.origin.address.map(|address| address.to_string()).unwrap_or_default()
}

/// The entries of a page; with the places of their blocks, as near to `host` as there are, where it is given.
fn entries<'a>(
    core: &'a Core,
    namespace: &'a Namespace,
    page: &'a get_listing::Listing<'a>,
    host: Option<&'a str>,
    foreign: &'a Foreign,
) -> impl ExactSizeIterator<Item = impl Put> + Clone {
    page.entries.iter().map(move |entry| {
        if entry.is_directory() {
            foreign.note_directory(namespace, entry.id, page.snapshot);
        }
        let host = host.filter(|_| !entry.is_directory());
        let locations = host.and_then(|host| {
            let blocks = get_block_locations::by_id_at(namespace, entry.id, page.snapshot)?;
            Some(Places { partition: &core.partition, blocks, host, foreign })
        });
        WithLocations { status: status::view(entry, Name::Own), locations }
    })
}
