//! Many statuses: pages of directories, and lists of snapshots.

use super::{FileStatus, Put, Writer};
use crate::hdfs::RemoteExceptionProto;

/// Bytes of a usual entry of a page.
const ENTRY: usize = 112;

/// `DirectoryListingProto`: 1 partialListing, 2 remainingEntries.
pub struct Listing<I> {
    pub entries: I,
    pub remaining: u32,
}

impl<E: Put, I: ExactSizeIterator<Item = E>> Put for Listing<I> {
    fn about(&self) -> usize {
        Writer::FIELD_MAX + self.entries.len() * ENTRY
    }

    fn put(self, out: &mut Writer) {
        for entry in self.entries {
            out.message(1, entry);
        }
        out.uint(2, self.remaining.into());
    }
}

/// `GetBatchedListingResponseProto`: 1 listings, 2 hasMore, 3 startAfter.
pub struct BatchedListing<'a, I> {
    pub pages: I,
    pub has_more: bool,
    /// The cookie with which the client goes on.
    pub start_after: &'a [u8],
}

impl<P: Put, I: ExactSizeIterator<Item = P> + Clone> Put for BatchedListing<'_, I> {
    fn about(&self) -> usize {
        let pages: usize = self.pages.clone().map(|page| Writer::FIELD_MAX + page.about()).sum();
        pages + 2 * Writer::FIELD_MAX + self.start_after.len()
    }

    fn put(self, out: &mut Writer) {
        for page in self.pages {
            out.message(1, page);
        }
        out.bool(2, self.has_more);
        out.bytes(3, self.start_after);
    }
}

/// `BatchedDirectoryListingProto`: 1 partialListing, 2 parentIdx, 3 exception.
pub struct BatchedPage<I> {
    /// The index of the directory among the paths asked for.
    pub parent: u32,
    pub entries: Result<I, RemoteExceptionProto>,
}

impl<E: Put, I: ExactSizeIterator<Item = E>> Put for BatchedPage<I> {
    fn about(&self) -> usize {
        Writer::FIELD_MAX + self.entries.as_ref().map_or(ENTRY, |entries| entries.len() * ENTRY)
    }

    fn put(self, out: &mut Writer) {
        match self.entries {
            Ok(entries) => {
                for entry in entries {
                    out.message(1, entry);
                }
                out.uint(2, self.parent.into());
            }
            Err(exception) => {
                out.uint(2, self.parent.into());
                out.generated(3, &exception);
            }
        }
    }
}

/// `SnapshottableDirectoryStatusProto`: 1 dirStatus, 2 snapshot_quota, 3 snapshot_number, 4 parent_fullpath.
pub struct SnapshottableDirectory<'a> {
    pub status: FileStatus<'a>,
    pub quota: u32,
    pub snapshots: u32,
    pub parent: &'a [u8],
}

impl Put for SnapshottableDirectory<'_> {
    fn about(&self) -> usize {
        4 * Writer::FIELD_MAX + self.status.about() + self.parent.len()
    }

    fn put(self, out: &mut Writer) {
        out.message(1, self.status);
        out.uint(2, self.quota.into());
        out.uint(3, self.snapshots.into());
        out.bytes(4, self.parent);
    }
}

/// `SnapshotStatusProto`: 1 dirStatus, 2 snapshotID, 3 parent_fullpath, 4 isDeleted.
pub struct SnapshotStatus<'a> {
    pub status: FileStatus<'a>,
    pub id: u32,
    pub parent: &'a [u8],
    pub is_deleted: bool,
}

impl Put for SnapshotStatus<'_> {
    fn about(&self) -> usize {
        4 * Writer::FIELD_MAX + self.status.about() + self.parent.len()
    }

    fn put(self, out: &mut Writer) {
        out.message(1, self.status);
        out.uint(2, self.id.into());
        out.bytes(3, self.parent);
        out.bool(4, self.is_deleted);
    }
}
