//! The first entry of an epoch.

use base::{Epoch, LogPoint};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// How far each id counter of the state machine is raised, so that an id given out in a tail that was cut off
/// is never used again. Steps are relative, so every member comes to the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdSteps {
    pub inode: u64,
    pub block: u64,
    pub generation_stamp: u64,
}

impl IdSteps {
    /// For so many epochs at once.
    pub fn times(self, epochs: u64) -> Self {
        Self {
            inode: self.inode.saturating_mul(epochs),
            block: self.block.saturating_mul(epochs),
            generation_stamp: self.generation_stamp.saturating_mul(epochs),
        }
    }
}

impl Default for IdSteps {
    fn default() -> Self {
        Self { inode: 1 << 20, block: 1 << 20, generation_stamp: 1 << 10 }
    }
}

/// The payload of an `EpochStart` entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    pub epoch: Epoch,
    /// The end of the log that the new active adopted.
    pub previous: LogPoint,
    pub id_steps: IdSteps,
}

impl EpochStart {
    const VERSION: u8 = 1;
    const ENCODED_BYTES: usize = 1 + 7 * 8;

    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(Self::ENCODED_BYTES);
        bytes.put_u8(Self::VERSION);
        bytes.put_u64_le(self.epoch.0);
        bytes.put_u64_le(self.previous.id.epoch.0);
        bytes.put_u64_le(self.previous.id.sn.0);
        bytes.put_u64_le(self.previous.chain.0);
        bytes.put_u64_le(self.id_steps.inode);
        bytes.put_u64_le(self.id_steps.block);
        bytes.put_u64_le(self.id_steps.generation_stamp);
        bytes.freeze()
    }

    /// `None` for anything that is not exactly such a payload.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::ENCODED_BYTES || bytes.get_u8() != Self::VERSION {
            return None;
        }
        Some(Self {
            epoch: bytes.get_u64_le().into(),
            previous: LogPoint {
                id: base::TxId { epoch: bytes.get_u64_le().into(), sn: bytes.get_u64_le().into() },
                chain: base::Chain(bytes.get_u64_le()),
            },
            id_steps: IdSteps {
                inode: bytes.get_u64_le(),
                block: bytes.get_u64_le(),
                generation_stamp: bytes.get_u64_le(),
            },
        })
    }
}
