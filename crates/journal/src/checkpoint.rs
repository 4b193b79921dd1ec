//! The record that makes an image usable.

use base::LogPoint;
use bytes::Bytes;

/// Names an image. Its encoding is the payload of a `Checkpoint` entry; once that has committed, recovery may
/// start from the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last entry that the image contains.
    pub at: LogPoint,
    /// Bytes of the whole image file.
    pub file_bytes: u64,
    /// Over the image file's content up to its trailer.
    pub sha256: [u8; 32],
}

impl Checkpoint {
    pub const ENCODED_BYTES: usize = 64;

    pub fn encode(&self) -> Bytes {
        todo!()
    }

    pub fn decode(_bytes: &[u8]) -> Option<Self> {
        todo!()
    }
}
