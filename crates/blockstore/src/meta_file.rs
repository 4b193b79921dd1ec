//! A replica's meta file: a header, then one sum for each chunk of the block file.
//!
//! ```text
//! 0..2  version, big-endian: 1
//! 2     checksum kind: 0 none, 1 CRC-32, 2 CRC-32C
//! 3..7  bytes per checksum, big-endian
//! 7..   4 bytes a chunk, big-endian; the last chunk may be short
//! ```

use crate::checksum::Checksum;
use base::ChecksumKind;
use env::{File, disk::read_exact_at};
use std::io;

/// Version (2 bytes), checksum kind (1), bytes per checksum (4).
pub const HEADER_SIZE: u64 = 7;

const VERSION: u16 = 1;

pub fn encode_header(checksum: Checksum) -> [u8; HEADER_SIZE as usize] {
    let mut header = [0; HEADER_SIZE as usize];
    header[..2].copy_from_slice(&VERSION.to_be_bytes());
    header[2] = checksum.kind as u8;
    header[3..].copy_from_slice(&checksum.bytes_per_checksum.to_be_bytes());
    header
}

/// `InvalidData` for a header that is none.
///
/// # Errors
/// `InvalidData` if the version is unknown, the type of checksum is unknown, or the bytes per checksum are out of
/// range.
pub fn decode_header(header: &[u8; HEADER_SIZE as usize]) -> io::Result<Checksum> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let version = u16::from_be_bytes([header[0], header[1]]);
    if version != VERSION {
        return Err(invalid(format!("meta file version {version}, expected {VERSION}")));
    }
    let bytes_per_checksum = i32::from_be_bytes([header[3], header[4], header[5], header[6]]);
    Checksum::new(header[2], bytes_per_checksum).map_err(|error| invalid(error.to_string()))
}

/// # Errors
/// Those of [`decode_header`]; `UnexpectedEof` if the file is shorter than a header; or the file cannot be read.
pub fn read_header(meta: &dyn File) -> io::Result<Checksum> {
    let mut header = [0; HEADER_SIZE as usize];
    read_exact_at(meta, &mut header, 0)?;
    decode_header(&header)
}

/// The offset in the meta file of the sum of the chunk that holds `offset` of the block.
pub fn sum_offset(checksum: Checksum, offset: u64) -> u64 {
    HEADER_SIZE + offset / checksum.bytes_per_checksum as u64 * checksum.size() as u64
}

/// How long a meta file is for a block of `length` bytes.
pub fn length_for(checksum: Checksum, length: u64) -> u64 {
    HEADER_SIZE + checksum.chunk_count(length) * checksum.size() as u64
}

/// How many bytes of the block file the meta file vouches for: `length` unless sums are missing.
pub fn covered_length(checksum: Checksum, length: u64, meta_length: u64) -> u64 {
    if checksum.kind == ChecksumKind::Null {
        return length;
    }
    let chunks = meta_length.saturating_sub(HEADER_SIZE) / checksum.size() as u64;
    length.min(chunks.saturating_mul(checksum.bytes_per_checksum as u64))
}

/// The sum of the partial last chunk of a replica of `length` bytes, after checking that chunk against it;
/// `None` when the last chunk is full. `InvalidData` when the bytes are not what the sum says.
///
/// # Errors
/// `InvalidData` if the bytes are not what the sum says; `UnexpectedEof` if one of the files is too short; or a file
/// cannot be read.
pub fn read_last_sum(
    block: &dyn File,
    meta: &dyn File,
    checksum: Checksum,
    length: u64,
) -> io::Result<Option<[u8; 4]>> {
    let partial = length % checksum.bytes_per_checksum as u64;
    if partial == 0 || checksum.kind == ChecksumKind::Null {
        return Ok(None);
    }
    let start = length - partial;
    let mut chunk = vec![0; partial as usize];
    read_exact_at(block, &mut chunk, start)?;
    let mut sum = [0; 4];
    read_exact_at(meta, &mut sum, sum_offset(checksum, start))?;
    if checksum.sum(&chunk) != sum {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the last {partial} bytes, from offset {start}, do not match their checksum"),
        ));
    }
    Ok(Some(sum))
}

/// The longest prefix of an interrupted replica that its sums vouch for, looking at the last chunk only.
///
/// A process that dies between writing data and its sums leaves data that no sum covers, and a last sum that
/// covers a shorter chunk than is there: that shorter chunk is what was acknowledged, so every prefix of the
/// last chunk is tried. A loss of power can do worse: the sum of a chunk that was hsynced in part and then
/// written on may be on the disk without the bytes. Then nothing vouches for that one chunk, in Hadoop's format
/// as in this one, and it is given up.
///
/// # Errors
/// The meta file's header is invalid, or a file cannot be read. A chunk that does not match its sum is no error: the
/// length is shorter then.
pub fn verified_length(block: &dyn File, meta: &dyn File) -> io::Result<u64> {
    let length = block.length()?;
    let meta_length = meta.length()?;
    if length == 0 || meta_length < HEADER_SIZE {
        return Ok(0);
    }
    let checksum = read_header(meta)?;
    let covered = covered_length(checksum, length, meta_length);
    if checksum.kind == ChecksumKind::Null || covered == 0 {
        return Ok(covered);
    }
    let start = (covered - 1) / checksum.bytes_per_checksum as u64 * checksum.bytes_per_checksum as u64;
    let mut chunk = vec![0; (covered - start) as usize];
    read_exact_at(block, &mut chunk, start)?;
    let mut sum = [0; 4];
    read_exact_at(meta, &mut sum, sum_offset(checksum, start))?;
    if checksum.sum(&chunk) == sum {
        return Ok(covered);
    }
    Ok(start + checksum.prefix_with_sum(&chunk, sum).unwrap_or(0) as u64)
}
