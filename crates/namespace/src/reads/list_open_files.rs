//! The files that are being written, a page at a time in order of their ids.

use crate::{Namespace, path::is_within};
use base::InodeId;

/// A file that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile<'ns> {
    pub inode: InodeId,
    pub path: String,
    pub holder: &'ns str,
    pub machine: &'ns str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page<'ns> {
    pub files: Vec<OpenFile<'ns>>,
    pub has_more: bool,
}

/// At most `limit` files with an id above `after`, those at or below `directory`. Deleted files that still wait
/// to be taken apart are not listed. Costs a walk over the leases.
pub fn list<'ns>(ns: &'ns Namespace, after: InodeId, directory: &str, limit: usize) -> Page<'ns> {
    let mut ids: Vec<InodeId> = ns.leases.values().flatten().copied().filter(|id| *id > after).collect();
    ids.sort_unstable();
    let mut page = Page::default();
    for inode in ids {
        let Some(file) = open_file(ns, inode).filter(|file| is_within(&file.path, directory)) else {
            continue;
        };
        if page.files.len() == limit {
            page.has_more = true;
            break;
        }
        page.files.push(file);
    }
    page
}

fn open_file(ns: &Namespace, inode: InodeId) -> Option<OpenFile<'_>> {
    let path = ns.path_of(inode)?;
    let (holder, machine) = ns.tree.writer_of(ns.handle(inode)?)?;
    Some(OpenFile { inode, path, holder, machine })
}
