//! The first and the last block of a segment.
//!
//! Both are 4096 bytes: magic (8), crc32c of the rest (4), version (4), then the fields, then zeros.
//!
//! ```text
//! header "CLOVSEGM"                              footer "CLOVSEAL"
//! 16  group (4), 0 (4)                           16  group (4), 0 (4)
//! 24  epoch of the first entry                   24  epoch of the last entry
//! 32  epoch, 40 sn, 48 chain of the entry        32  sn, 40 chain of the last entry
//!     before the first                           48  entries in the segment
//! 56  store uuid (16)                            56  offset of this footer
//! 72  bytes allocated
//! ```

use crate::record::{BLOCK_BYTES, u32_at, u64_at};
use base::{Chain, Epoch, GroupId, LogPoint, Sn, TxId};
use std::path::Path;

const HEADER_MAGIC: [u8; 8] = *b"CLOVSEGM";
const FOOTER_MAGIC: [u8; 8] = *b"CLOVSEAL";
pub const VERSION: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    pub version: u32,
    pub group: GroupId,
    pub epoch: Epoch,
    /// The entry before the first one.
    pub previous: LogPoint,
    pub store_uuid: [u8; 16],
    /// Length of the file while it is open.
    pub allocated: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    pub version: u32,
    pub group: GroupId,
    pub end: LogPoint,
    pub count: u64,
    /// The offset of this footer in the file: all bytes before it belong to the log.
    pub offset: u64,
}

impl SegmentHeader {
    pub fn encode(&self) -> Vec<u8> {
        let mut block = new_block(self.version, self.group);
        put(&mut block, 24, self.epoch.0);
        put_point(&mut block, 32, self.previous);
        block[56..72].copy_from_slice(&self.store_uuid);
        put(&mut block, 72, self.allocated);
        finish(block, HEADER_MAGIC)
    }

    pub fn decode(block: &[u8]) -> Option<Self> {
        let block = verified(block, HEADER_MAGIC)?;
        Some(Self {
            version: u32_at(block, 12),
            group: GroupId(u32_at(block, 16)),
            epoch: Epoch(u64_at(block, 24)),
            previous: point_at(block, 32),
            store_uuid: block[56..72].try_into().expect("sixteen bytes"),
            allocated: u64_at(block, 72),
        })
    }
}

impl Footer {
    pub fn encode(&self) -> Vec<u8> {
        let mut block = new_block(self.version, self.group);
        put_point(&mut block, 24, self.end);
        put(&mut block, 48, self.count);
        put(&mut block, 56, self.offset);
        finish(block, FOOTER_MAGIC)
    }

    pub fn decode(block: &[u8]) -> Option<Self> {
        let block = verified(block, FOOTER_MAGIC)?;
        Some(Self {
            version: u32_at(block, 12),
            group: GroupId(u32_at(block, 16)),
            end: point_at(block, 24),
            count: u64_at(block, 48),
            offset: u64_at(block, 56),
        })
    }

    /// Whether these bytes are a footer, or were once.
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(&FOOTER_MAGIC)
    }
}

fn new_block(version: u32, group: GroupId) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES as usize];
    block[12..16].copy_from_slice(&version.to_le_bytes());
    block[16..20].copy_from_slice(&group.0.to_le_bytes());
    block
}

fn put(block: &mut [u8], at: usize, value: u64) {
    block[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn put_point(block: &mut [u8], at: usize, point: LogPoint) {
    put(block, at, point.id.epoch.0);
    put(block, at + 8, point.id.sn.0);
    put(block, at + 16, point.chain.0);
}

fn point_at(block: &[u8], at: usize) -> LogPoint {
    LogPoint {
        id: TxId { epoch: Epoch(u64_at(block, at)), sn: Sn(u64_at(block, at + 8)) },
        chain: Chain(u64_at(block, at + 16)),
    }
}

fn finish(mut block: Vec<u8>, magic: [u8; 8]) -> Vec<u8> {
    block[..8].copy_from_slice(&magic);
    let crc = crc32c::crc32c(&block[12..]);
    block[8..12].copy_from_slice(&crc.to_le_bytes());
    block
}

fn verified(bytes: &[u8], magic: [u8; 8]) -> Option<&[u8]> {
    let block = bytes.get(..BLOCK_BYTES as usize)?;
    (block[..8] == magic && crc32c::crc32c(&block[12..]) == u32_at(block, 8)).then_some(block)
}

/// The name of a segment whose first entry is `epoch`-`start`.
pub fn file_name(epoch: Epoch, start: Sn, is_open: bool) -> String {
    format!("{:010}-{:020}{}", epoch.0, start.0, if is_open { ".open" } else { "" })
}

/// The epoch, the first sn and whether the segment is open; `None` for any other file.
pub fn parse_file_name(name: &str) -> Option<(Epoch, Sn, bool)> {
    let (stem, is_open) = name.strip_suffix(".open").map_or((name, false), |stem| (stem, true));
    let (epoch, start) = stem.split_once('-')?;
    let (epoch, start) = (Epoch(epoch.parse().ok()?), Sn(start.parse().ok()?));
    (file_name(epoch, start, is_open) == name && Path::new(name).file_name().is_some())
        .then_some((epoch, start, is_open))
}
