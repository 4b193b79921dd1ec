//! Answers that are written as bytes at once, straight from the data that they tell.
//!
//! The generated messages own what they carry: a page of a directory would be three strings an entry, all of it
//! walked twice for its length, before it is a byte of an answer. The most frequent answers have a view here instead:
//! a struct that borrows, with one field for each of the message's that this server ever sends. [`Writer`] puts the
//! fields in the order of their numbers, as the generated code does; the tests hold the bytes of both against each
//! other.

mod file_status;
mod listing;
mod located;
mod writer;

#[cfg(test)]
mod tests;

pub use file_status::{FileStatus, WithLocations};
pub use listing::{BatchedListing, BatchedPage, Listing, SnapshotStatus, SnapshottableDirectory};
pub use located::{LocatedBlock, LocatedBlocks, Place};
pub use writer::Writer;

/// A message that can be written.
pub trait Put {
    /// About how many bytes it takes. When it is far off, that costs some copying and nothing else.
    fn about(&self) -> usize;

    fn put(self, out: &mut Writer);
}

/// The bytes of a message.
pub fn encoded(message: impl Put) -> Vec<u8> {
    let mut out = Writer::with_capacity(message.about());
    message.put(&mut out);
    out.finish()
}

/// A message that has one field, which is another message and may be absent: most answers are.
///
/// ```text
/// GetFileInfoResponseProto, GetFileLinkInfoResponseProto, GetLocatedFileInfoResponseProto, CreateResponseProto
///                                          1 fs
/// GetListingResponseProto                  1 dirList
/// GetBlockLocationsResponseProto           1 locations
/// AddBlockResponseProto, GetAdditionalDatanodeResponseProto, UpdateBlockForPipelineResponseProto
///                                          1 block
/// GetSnapshottableDirListingResponseProto  1 snapshottableDirList
/// GetSnapshotListingResponseProto          1 snapshotList
/// ```
pub struct Only<M>(pub Option<M>);

impl<M: Put> Put for Only<M> {
    #[inline]
    fn about(&self) -> usize {
        self.0.as_ref().map_or(0, |message| message.about() + Writer::FIELD_MAX)
    }

    #[inline]
    fn put(self, out: &mut Writer) {
        if let Some(message) = self.0 {
            out.message(1, message);
        }
    }
}

/// A message that has one field, which is another message that is there any number of times.
///
/// ```text
/// SnapshottableDirectoryListingProto       1 snapshottableDirListing
/// SnapshotListingProto                     1 snapshotListing
/// ```
pub struct Many<I>(pub I);

impl<M: Put, I: ExactSizeIterator<Item = M>> Put for Many<I> {
    fn about(&self) -> usize {
        self.0.len() * 128
    }

    fn put(self, out: &mut Writer) {
        for message in self.0 {
            out.message(1, message);
        }
    }
}

/// `AppendResponseProto`: 1 block, 2 stat.
pub struct Appended<'a, B> {
    /// The last block of the file, where it is written on.
    pub block: Option<B>,
    pub status: FileStatus<'a>,
}

impl<B: Put> Put for Appended<'_, B> {
    fn about(&self) -> usize {
        self.block.as_ref().map_or(0, B::about) + self.status.about() + 2 * Writer::FIELD_MAX
    }

    fn put(self, out: &mut Writer) {
        if let Some(block) = self.block {
            out.message(1, block);
        }
        out.message(2, self.status);
    }
}
