//! The open files of a replica, as its data server has handed them over.

use super::segments::SlotHold;
use pipeline::Checksum;
use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::FileExt},
    time::{Duration, Instant},
};
use thiserror::Error;

/// Version, kind of checksum, bytes per checksum: the beginning of a meta file.
const META_HEADER_BYTES: usize = 7;

/// The version of meta files that is understood.
const META_VERSION: u16 = 1;

/// A replica that can be read without its server.
pub struct LocalReplica {
    block_file: File,
    meta_file: File,
    pub checksum: Checksum,
    /// Bytes of the block file when it was opened. The sum of the last chunk is for as many.
    pub length: u64,
    /// The generation stamp that was asked for.
    stamp: u64,
    opened: Instant,
    slot: Option<SlotHold>,
}

/// Why bytes cannot be had from the files.
#[derive(Debug, Error)]
pub enum PieceError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the bytes from offset {offset}: {mismatch}")]
    Mismatch { offset: u64, mismatch: String },
}

impl LocalReplica {
    /// Takes the files over. Blocks for a moment.
    ///
    /// # Errors
    /// `InvalidData` if the meta file is of another version or tells an impossible checksum; or a file cannot be read.
    pub fn new(
        block_file: OwnedFd,
        meta_file: OwnedFd,
        stamp: u64,
        slot: Option<SlotHold>,
    ) -> io::Result<Self> {
        let (block_file, meta_file) = (File::from(block_file), File::from(meta_file));
        let mut header = [0; META_HEADER_BYTES];
        meta_file.read_exact_at(&mut header, 0)?;
        let checksum = checksum(header)?;
        let length = block_file.metadata()?.len();
        Ok(Self { block_file, meta_file, checksum, length, stamp, opened: Instant::now(), slot })
    }

    /// Whether it may be read as the replica of a block of this stamp, up to `end`. Without a slot nobody tells that it has
    /// gone: then it is not used for longer than `stale`.
    pub fn serves(&self, stamp: u64, end: u64, stale: Duration) -> bool {
        let is_valid = match &self.slot {
            Some(slot) => slot.is_valid(),
            None => self.opened.elapsed() < stale,
        };
        is_valid && stamp <= self.stamp && end <= self.length
    }

    /// Reads the bytes `begin..end`, with those around them that make whole chunks, and checks them if `verifies`. Answers with the
    /// bytes and the place of `begin` in them. Blocks.
    ///
    /// # Errors
    /// The files cannot be read or are too short; or the bytes do not match their checksums, perhaps because a writer has
    /// appended to the replica meanwhile.
    pub fn read(&self, begin: u64, end: u64, verifies: bool) -> Result<(Vec<u8>, usize), PieceError> {
        let has_sums = verifies && self.checksum.size() > 0;
        let chunk = match has_sums {
            true => u64::from(self.checksum.bytes_per_checksum()),
            false => 1,
        };
        let start = begin - begin % chunk;
        let stop = end.div_ceil(chunk).saturating_mul(chunk).min(self.length).max(end);
        let mut data = vec![0; (stop - start) as usize];
        self.block_file.read_exact_at(&mut data, start)?;
        if has_sums {
            let mut sums = vec![0; self.checksum.sums_bytes(data.len())];
            let at = META_HEADER_BYTES as u64 + start / chunk * self.checksum.size() as u64;
            self.meta_file.read_exact_at(&mut sums, at)?;
            self.checksum
                .verify(&data, &sums)
                .map_err(|mismatch| PieceError::Mismatch { offset: start, mismatch: mismatch.to_string() })?;
        }
        Ok((data, (begin - start) as usize))
    }
}

fn checksum(header: [u8; META_HEADER_BYTES]) -> io::Result<Checksum> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let version = u16::from_be_bytes([header[0], header[1]]);
    if version != META_VERSION {
        return Err(invalid(format!("a meta file of version {version}; {META_VERSION} is understood")));
    }
    let bytes_per_checksum = u32::from_be_bytes([header[3], header[4], header[5], header[6]]);
    Checksum::new(i32::from(header[2]), bytes_per_checksum).map_err(|error| invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use std::io::Write;

    fn files(data: &[u8], sums: &[u8], header: [u8; 7]) -> (OwnedFd, OwnedFd) {
        let (mut block, mut meta) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        block.write_all(data).unwrap();
        meta.write_all(&header).unwrap();
        meta.write_all(sums).unwrap();
        (block.into(), meta.into())
    }

    const HEADER: [u8; 7] = [0, 1, 2, 0, 0, 2, 0];

    fn replica(data: &[u8]) -> LocalReplica {
        let mut sums = BytesMut::new();
        Checksum::CRC32C_512.compute(data, &mut sums);
        let (block, meta) = files(data, &sums, HEADER);
        LocalReplica::new(block, meta, 1001, None).unwrap()
    }

    #[test]
    fn any_range_is_read_and_checked() {
        let data: Vec<u8> = (0..1500u32).map(|number| (number * 7) as u8).collect();
        let replica = replica(&data);
        for (begin, end) in [(0, 1500), (0, 1), (511, 513), (512, 1024), (1499, 1500), (700, 700)] {
            for verifies in [true, false] {
                let (bytes, at) = replica.read(begin, end, verifies).unwrap();
                let wanted = &data[begin as usize..end as usize];
                assert_eq!(&bytes[at..at + wanted.len()], wanted, "{begin}..{end}");
            }
        }
    }

    #[test]
    fn rotten_bytes_are_found_where_they_are_checked() {
        let mut data = vec![5; 2048];
        let good = data.clone();
        data[1030] = 6;
        let mut sums = BytesMut::new();
        Checksum::CRC32C_512.compute(&good, &mut sums);
        let (block, meta) = files(&data, &sums, HEADER);
        let replica = LocalReplica::new(block, meta, 1001, None).unwrap();
        assert!(matches!(replica.read(1500, 1501, true), Err(PieceError::Mismatch { offset: 1024, .. })));
        replica.read(0, 1024, true).unwrap();
        let (bytes, at) = replica.read(1030, 1031, false).unwrap();
        assert_eq!(bytes[at], 6);
    }

    #[test]
    fn files_that_end_too_soon_are_an_error_and_no_bytes() {
        let replica = replica(&[1; 600]);
        assert!(matches!(replica.read(500, 601, true), Err(PieceError::Io(_))));
        let (block, meta) = files(&[1; 600], &[0; 4], HEADER);
        let short = LocalReplica::new(block, meta, 1001, None).unwrap();
        assert!(matches!(short.read(0, 600, true), Err(PieceError::Io(_))));
    }

    #[test]
    fn meta_files_that_are_none_are_refused() {
        for header in [[0, 2, 2, 0, 0, 2, 0], [0, 1, 9, 0, 0, 2, 0], [0, 1, 2, 0, 0, 0, 0], [0xff; 7]] {
            let (block, meta) = files(&[], &[], header);
            assert!(LocalReplica::new(block, meta, 1001, None).is_err(), "{header:?}");
        }
    }

    #[test]
    fn a_replica_serves_its_stamp_and_its_length() {
        let replica = replica(&[1; 600]);
        let long = Duration::from_secs(600);
        assert!(replica.serves(1001, 600, long) && replica.serves(1000, 1, long));
        assert!(!replica.serves(1002, 600, long), "it was appended to");
        assert!(!replica.serves(1001, 601, long));
        assert!(!replica.serves(1001, 600, Duration::ZERO), "nobody tells that it has gone");
    }
}
