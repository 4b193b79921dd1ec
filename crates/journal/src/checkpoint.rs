//! The record that makes an image usable.

use crate::record::u64_at;
use base::{Chain, Epoch, LogPoint, Sn, TxId};
use bytes::{BufMut, Bytes, BytesMut};

/// Names an image. Its encoding is the payload of a `Checkpoint` entry; once that has committed, recovery may
/// start from the image.
///
/// ```text
/// 0  version (1)   1  epoch   9  sn   17  chain   25  bytes of the file   33  sha256 (32)
/// ```
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
    pub const ENCODED_BYTES: usize = 65;
    const VERSION: u8 = 1;

    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(Self::ENCODED_BYTES);
        bytes.put_u8(Self::VERSION);
        bytes.put_u64_le(self.at.id.epoch.0);
        bytes.put_u64_le(self.at.id.sn.0);
        bytes.put_u64_le(self.at.chain.0);
        bytes.put_u64_le(self.file_bytes);
        bytes.put_slice(&self.sha256);
        bytes.freeze()
    }

    /// `None` for anything that is not exactly such a record.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::ENCODED_BYTES || bytes[0] != Self::VERSION {
            return None;
        }
        Some(Self {
            at: LogPoint {
                id: TxId { epoch: Epoch(u64_at(bytes, 1)), sn: Sn(u64_at(bytes, 9)) },
                chain: Chain(u64_at(bytes, 17)),
            },
            file_bytes: u64_at(bytes, 25),
            sha256: bytes[33..].try_into().expect("thirty-two bytes"),
        })
    }

    /// The image's file.
    pub fn file_name(&self) -> String {
        format!("{:010}-{:020}.image", self.at.id.epoch.0, self.at.id.sn.0)
    }
}
