//! The identity of a store, and its limits.

use base::{GroupId, MemberId};

/// Files that are written in bulk beside the log (images, the next segment) are synced in pieces of so many bytes.
/// The sync of a batch waits for all else that is on its way to the disk, and an edit must not wait for a whole
/// image.
pub(crate) const BULK_BYTES: usize = 1 << 20;

/// The cluster, group and member that a store belongs to. `format` writes it once; the caller of `open` compares it
/// with its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The id of the cluster, for example `CID-<uuid>`; at most 255 bytes.
    pub cluster_id: String,
    pub group: GroupId,
    pub member: MemberId,
}

/// Numbers of a journal. The defaults are for a server; simulations use tiny ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Size of a segment file, preallocated. A multiple of 4096, at least [`Settings::SEGMENT_BYTES_MIN`].
    pub segment_bytes: u64,
    /// Batches under way to the disk at the same time. Entries that arrive meanwhile share the next batch.
    pub flights_max: usize,
    /// Most bytes of payload in one batch; a larger entry gets a batch of its own.
    pub batch_bytes_max: usize,
    /// Payload bytes that may wait for the disk before [`crate::Journal::wait_for_room`] blocks.
    pub waiting_bytes_max: usize,
    /// Refuse to take a new segment when the disk would have less than this left.
    pub reserve_bytes: u64,
}

impl Settings {
    /// Room for a header, a footer and two small batches; a larger batch gets a larger segment.
    pub const SEGMENT_BYTES_MIN: u64 = 16 * 1024;
    /// A segment is read whole.
    pub const SEGMENT_BYTES_MAX: u64 = 1 << 30;
    /// A single batch may be larger than a segment's usual size by one entry of the largest size.
    pub const SEGMENT_FILE_BYTES_MAX: u64 =
        Self::SEGMENT_BYTES_MAX + 2 * crate::record::PAYLOAD_BYTES_MAX as u64;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            // Two: one flush on the device while the next is written.
            flights_max: 2,
            batch_bytes_max: 1 << 20,
            waiting_bytes_max: 16 << 20,
            reserve_bytes: 64 << 20,
        }
    }
}
