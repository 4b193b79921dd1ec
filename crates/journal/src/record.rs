//! One entry as it stands in a segment.
//!
//! ```text
//!  0  magic "CLRE"
//!  4  crc32c of bytes 8..64
//!  8  version (1) · kind · flags (1: first of its batch, 2: last of its batch) · 0
//! 12  payload length
//! 16  epoch
//! 24  sn
//! 32  chain of the entry before
//! 40  durable sn: every entry up to here was durable when this one was written
//! 48  group
//! 52  crc32c of bytes 64..end
//! 56  0 (seven bytes)
//! 63  mark 0xA5
//! 64  payload, zeros, mark 0xA5: together a multiple of 8
//! ```
//!
//! Numbers are little-endian. A batch begins at a multiple of 4096 and is filled up with zeros. The marks tell
//! a write that was cut off (zeros where a mark should be) from a byte that has rotted.

use base::{Chain, Entry, EntryKind, Epoch, GroupId, Sn, TxId};
use bytes::{BufMut, Bytes, BytesMut};

pub const HEADER_BYTES: usize = 64;
pub const BLOCK_BYTES: u64 = 4096;
/// Larger than any batch of edits; smaller than what a frame between members may carry.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// The bytes that a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

const MAGIC: [u8; 4] = *b"CLRE";
pub(crate) const VERSION: u8 = 1;
const MARK: u8 = 0xA5;
const FIRST: u8 = 1;
const LAST: u8 = 2;

/// A record's header, its checksum verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub version: u8,
    pub kind: u8,
    pub is_first: bool,
    pub is_last: bool,
    pub payload_length: u32,
    pub id: TxId,
    pub previous_chain: Chain,
    /// Every entry up to here was durable when this record was written: the proof that a hole before it is
    /// damage and not a write that never happened.
    pub durable: Sn,
    pub group: GroupId,
    pub payload_crc: u32,
}

/// Bytes of a whole record.
pub fn record_bytes(payload_length: usize) -> usize {
    (HEADER_BYTES + payload_length + 1).next_multiple_of(8)
}

/// Bytes of a batch of these entries.
pub fn batch_bytes<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> u64 {
    let bytes: usize = entries.into_iter().map(|entry| record_bytes(entry.payload.len())).sum();
    (bytes as u64).next_multiple_of(BLOCK_BYTES)
}

/// A batch, ready to be written at a multiple of 4096.
pub fn encode_batch(entries: &[Entry], group: GroupId, durable: Sn) -> Bytes {
    let mut bytes = BytesMut::with_capacity(batch_bytes(entries) as usize);
    for (index, entry) in entries.iter().enumerate() {
        let flags = if index == 0 { FIRST } else { 0 } | if index + 1 == entries.len() { LAST } else { 0 };
        encode(entry, flags, group, durable, &mut bytes);
    }
    bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES as usize), 0);
    bytes.freeze()
}

fn encode(entry: &Entry, flags: u8, group: GroupId, durable: Sn, bytes: &mut BytesMut) {
    let start = bytes.len();
    let total = record_bytes(entry.payload.len());
    bytes.put_slice(&MAGIC);
    bytes.put_u32_le(0);
    bytes.put_slice(&[VERSION, entry.kind as u8, flags, 0]);
    bytes.put_u32_le(entry.payload.len() as u32);
    bytes.put_u64_le(entry.id.epoch.0);
    bytes.put_u64_le(entry.id.sn.0);
    bytes.put_u64_le(entry.previous_chain.0);
    bytes.put_u64_le(durable.0);
    bytes.put_u32_le(group.0);
    bytes.put_u32_le(0);
    bytes.put_slice(&[0, 0, 0, 0, 0, 0, 0, MARK]);
    bytes.put_slice(&entry.payload);
    bytes.resize(start + total, 0);
    bytes[start + total - 1] = MARK;
    let payload_crc = crc32c::crc32c(&bytes[start + HEADER_BYTES..]);
    bytes[start + 52..start + 56].copy_from_slice(&payload_crc.to_le_bytes());
    let header_crc = crc32c::crc32c(&bytes[start + 8..start + HEADER_BYTES]);
    bytes[start + 4..start + 8].copy_from_slice(&header_crc.to_le_bytes());
}

impl Header {
    /// `None` unless the magic, the checksum and the mark are right. Version and kind are not judged: a
    /// header that checks is one that was written so.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        if bytes[..4] != MAGIC || crc32c::crc32c(&bytes[8..]) != u32_at(bytes, 4) || bytes[63] != MARK {
            return None;
        }
        Some(Self {
            version: bytes[8],
            kind: bytes[9],
            is_first: bytes[10] & FIRST != 0,
            is_last: bytes[10] & LAST != 0,
            payload_length: u32_at(bytes, 12),
            id: TxId { epoch: Epoch(u64_at(bytes, 16)), sn: Sn(u64_at(bytes, 24)) },
            previous_chain: Chain(u64_at(bytes, 32)),
            durable: Sn(u64_at(bytes, 40)),
            group: GroupId(u32_at(bytes, 48)),
            payload_crc: u32_at(bytes, 52),
        })
    }

    pub fn is_supported(&self) -> bool {
        self.version == VERSION
    }

    pub fn entry_kind(&self) -> Option<EntryKind> {
        EntryKind::from_number(self.kind)
    }

    pub fn record_bytes(&self) -> usize {
        record_bytes(self.payload_length as usize)
    }

    /// Whether the bytes after the header are the ones that were written.
    pub fn payload_is_intact(&self, record: &[u8]) -> bool {
        record[HEADER_BYTES..].last() == Some(&MARK)
            && crc32c::crc32c(&record[HEADER_BYTES..]) == self.payload_crc
    }
}

/// Whether a header that does not check looks like a write that was cut off: no write of a header leaves its
/// first bytes or its mark zero, and a sector that was never written is zero.
pub fn header_looks_torn(bytes: &[u8]) -> bool {
    bytes.len() < HEADER_BYTES || bytes[..4] == [0; 4] || bytes[HEADER_BYTES - 1] == 0
}

/// Whether a record whose payload does not check looks like a write that was cut off. `offset` is where it
/// begins in the file.
pub fn record_looks_torn(record: &[u8], offset: u64) -> bool {
    if record.last().is_none_or(|mark| *mark == 0) {
        return true;
    }
    let into_sector = (offset % SECTOR_BYTES as u64) as usize;
    let first_whole = if into_sector == 0 { 0 } else { SECTOR_BYTES - into_sector };
    record.get(first_whole..).is_some_and(|rest| {
        rest.chunks_exact(SECTOR_BYTES).any(|sector| sector.iter().all(|byte| *byte == 0))
    })
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
