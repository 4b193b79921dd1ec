//! Hadoop's checksum of a file: the MD5 of its blocks' MD5s of their chunks' CRCs.
//!
//! It depends on block size and bytes per checksum as well as on the content, and is worth comparing only
//! between files that were written alike.

use crate::{Error, FileSystem, Result};
use md5::{Digest, Md5};
use proto::hdfs::{ChecksumTypeProto, OpBlockChecksumResponseProto};
use std::fmt;

/// Bytes that Hadoop first reserves for block checksums; it doubles them as needed, and digests all reserved bytes
/// instead of the used ones.
const RESERVED_FIRST: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChecksum {
    pub bytes_per_crc: u32,
    /// Checksums in a whole block; 0 for a file of at most one block.
    pub crcs_per_block: u64,
    pub kind: ChecksumTypeProto,
    pub md5: [u8; 16],
}

impl FileChecksum {
    /// The name that says how it was made, as `MD5-of-0MD5-of-512CRC32C`.
    pub fn algorithm(&self) -> String {
        format!("MD5-of-{}MD5-of-{}{}", self.crcs_per_block, self.bytes_per_crc, name_of(self.kind))
    }

    /// The bytes that Hadoop compares and prints: both figures, then the digest.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.bytes_per_crc.to_be_bytes().to_vec();
        bytes.extend(self.crcs_per_block.to_be_bytes());
        bytes.extend(self.md5);
        bytes
    }
}

impl fmt::Display for FileChecksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t", self.algorithm())?;
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn name_of(kind: ChecksumTypeProto) -> &'static str {
    match kind {
        ChecksumTypeProto::ChecksumCrc32c => "CRC32C",
        _ => "CRC32",
    }
}

/// The checksum of a file without blocks.
fn of_nothing() -> FileChecksum {
    FileChecksum {
        bytes_per_crc: 0,
        crcs_per_block: 0,
        kind: ChecksumTypeProto::ChecksumCrc32,
        md5: Md5::digest([0; RESERVED_FIRST]).into(),
    }
}

pub(crate) async fn of_file(fs: &FileSystem, path: &str) -> Result<FileChecksum> {
    let located = fs.block_locations(path, 0, i64::MAX as u64).await?;
    let mut parts = Vec::with_capacity(located.blocks.len());
    for block in &located.blocks {
        let options = fs.read_options();
        let part = crate::block_checksum::of_block(block, &options).await;
        parts.push(part.map_err(|source| Error::Read {
            path: path.to_owned(),
            offset: block.offset,
            source,
        })?);
    }
    combine(&parts).map_err(|reason| Error::Checksum { path: path.to_owned(), reason })
}

fn combine(parts: &[OpBlockChecksumResponseProto]) -> std::result::Result<FileChecksum, String> {
    let Some(first) = parts.first() else { return Ok(of_nothing()) };
    let (bytes_per_crc, kind) = (first.bytes_per_crc, first.crc_type());
    let mut digests = Vec::with_capacity(parts.len() * 16);
    for (number, part) in (1..).zip(parts) {
        if part.bytes_per_crc != bytes_per_crc || part.crc_type() != kind {
            return Err(format!(
                "its first block has a {} for each {bytes_per_crc} bytes, and block {number} a {} for each {}",
                name_of(kind),
                name_of(part.crc_type()),
                part.bytes_per_crc
            ));
        }
        if part.block_checksum.len() != 16 {
            let bytes = part.block_checksum.len();
            return Err(format!(
                "a data server sent {bytes} bytes as the MD5 of block {number}, which has 16"
            ));
        }
        digests.extend_from_slice(&part.block_checksum);
    }
    let mut reserved = RESERVED_FIRST;
    while reserved < digests.len() {
        reserved *= 2;
    }
    digests.resize(reserved, 0);
    let crcs_per_block = if parts.len() > 1 { first.crc_per_block } else { 0 };
    Ok(FileChecksum { bytes_per_crc, crcs_per_block, kind, md5: Md5::digest(&digests).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_has_hadoops_magic_checksum() {
        let expected = "MD5-of-0MD5-of-0CRC32\t00000000000000000000000070bc8f4b72a86921468bf8e8441dce51";
        assert_eq!(combine(&[]).unwrap().to_string(), expected);
    }

    #[test]
    fn blocks_that_do_not_fit_together_are_refused() {
        let part = |bytes_per_crc, md5: &'static [u8]| OpBlockChecksumResponseProto {
            bytes_per_crc,
            crc_per_block: 8,
            block_checksum: bytes::Bytes::from_static(md5),
            crc_type: None,
            block_checksum_options: None,
        };
        let mixed = combine(&[part(512, &[0; 16]), part(1024, &[0; 16])]).unwrap_err();
        assert_eq!(
            mixed,
            "its first block has a CRC32 for each 512 bytes, and block 2 a CRC32 for each 1024"
        );
        assert!(combine(&[part(512, &[0; 15])]).is_err());
        let one = combine(&[part(512, &[7; 16])]).unwrap();
        assert_eq!((one.crcs_per_block, one.bytes().len()), (0, 28));
        assert_eq!(combine(&[part(512, &[7; 16]), part(512, &[7; 16])]).unwrap().crcs_per_block, 8);
    }
}
