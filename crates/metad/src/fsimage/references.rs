//! The entries of inodes that have several, numbered in the order in which they are met.

use bytes::Bytes;
use namespace::{SnapshotId, tour::Link};
use proto::{
    fsimage::{CURRENT_SNAPSHOT, put_delimited},
    hdfs::fsimage::i_node_reference_section::INodeReference,
};
use std::io;

/// The references so far, as they will stand in their section.
#[derive(Default)]
pub struct References {
    encoded: Vec<u8>,
    count: u32,
}

impl References {
    /// Notes a reference; its number.
    ///
    /// # Errors
    /// There are 4 billion of them.
    pub fn number(&mut self, link: &Link<'_>) -> io::Result<u32> {
        let reference = match link {
            Link::Only(inode) => INodeReference { referred_id: Some(inode.0), ..INodeReference::default() },
            Link::Latest { inode, since } => INodeReference {
                referred_id: Some(inode.0),
                dst_snapshot_id: Some(since.map_or(CURRENT_SNAPSHOT, snapshot_number)),
                ..INodeReference::default()
            },
            Link::Former { inode, name, last } => INodeReference {
                referred_id: Some(inode.0),
                name: Some(Bytes::copy_from_slice(name)),
                last_snapshot_id: Some(snapshot_number(*last)),
                ..INodeReference::default()
            },
        };
        put_delimited(&mut self.encoded, &reference);
        let number = self.count;
        self.count = number.checked_add(1).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "more references than the format can number")
        })?;
        Ok(number)
    }

    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }
}

/// The number that HDFS's clients know a snapshot by: they count from 0.
pub fn snapshot_number(snapshot: SnapshotId) -> u32 {
    snapshot.0.saturating_sub(1)
}
