//! How a replica's bytes are checksummed: the kind, and how many bytes each sum covers.

use crate::error::StoreError;
use base::ChecksumKind;

/// The largest chunk of a replica on the disk: larger ones would make a partial last chunk expensive to continue. It is more than
/// what is sent and received (`pipeline::BYTES_PER_CHECKSUM_MAX`), so that a replica that another program has written counts as
/// what it is, and not as damaged.
pub const STORED_CHUNK_BYTES_MAX: u32 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Checksum {
    pub kind: ChecksumKind,
    /// 1 ..= [`STORED_CHUNK_BYTES_MAX`].
    pub bytes_per_checksum: u32,
}

impl Checksum {
    /// The checksums of HDFS clients that are not configured otherwise.
    pub const DEFAULT: Checksum = Checksum { kind: ChecksumKind::Crc32c, bytes_per_checksum: 512 };

    /// # Errors
    /// [`StoreError::Checksum`] if the type is none of 0 (NULL), 1 (CRC32) and 2 (CRC32C), or `bytes_per_checksum` is
    /// below 1 or above the limit.
    pub fn new(kind: u8, bytes_per_checksum: i32) -> Result<Self, StoreError> {
        let kind = ChecksumKind::numbered(kind.into()).ok_or_else(|| {
            StoreError::Checksum(format!(
                "checksum type {kind} is unknown; 0 (NULL), 1 (CRC32) and 2 (CRC32C) are served"
            ))
        })?;
        match u32::try_from(bytes_per_checksum) {
            Ok(bytes_per_checksum) if (1..=STORED_CHUNK_BYTES_MAX).contains(&bytes_per_checksum) => {
                Ok(Self { kind, bytes_per_checksum })
            }
            _ => Err(StoreError::Checksum(format!(
                "{bytes_per_checksum} bytes per checksum; 1 to {STORED_CHUNK_BYTES_MAX} are stored"
            ))),
        }
    }

    /// Bytes of one sum: 4, or 0 without sums.
    pub const fn size(self) -> usize {
        self.kind.sum_bytes()
    }

    /// The sum of one chunk as it stands in a meta file.
    pub fn sum(self, chunk: &[u8]) -> [u8; 4] {
        match self.kind {
            ChecksumKind::Null => [0; 4],
            ChecksumKind::Crc32 => crc32(chunk).to_be_bytes(),
            ChecksumKind::Crc32c => crc32c::crc32c(chunk).to_be_bytes(),
        }
    }

    /// The length of the longest proper prefix of `chunk` that has this sum.
    pub fn prefix_with_sum(self, chunk: &[u8], sum: [u8; 4]) -> Option<usize> {
        let wanted = u32::from_be_bytes(sum);
        let mut running = 0;
        let mut found = None;
        for (index, byte) in chunk.iter().enumerate() {
            running = match self.kind {
                ChecksumKind::Null => return None,
                ChecksumKind::Crc32 => crc32_append(running, &[*byte]),
                ChecksumKind::Crc32c => crc32c::crc32c_append(running, &[*byte]),
            };
            if running == wanted && index + 1 < chunk.len() {
                found = Some(index + 1);
            }
        }
        found
    }

    /// Sums needed for `length` bytes.
    pub const fn chunk_count(self, length: u64) -> u64 {
        length.div_ceil(self.bytes_per_checksum as u64)
    }
}

/// CRC-32 as zip and Java's `CRC32` compute it. Only old clusters and few clients ask for it, so a table of
/// one byte at a time serves.
fn crc32(bytes: &[u8]) -> u32 {
    crc32_append(0, bytes)
}

/// The sum of what `sum` covers followed by `bytes`.
fn crc32_append(sum: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!sum, |sum, byte| TABLE[((sum ^ *byte as u32) & 0xff) as usize] ^ (sum >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_the_published_check_values() {
        let sum = |kind| u32::from_be_bytes(Checksum { kind, bytes_per_checksum: 512 }.sum(b"123456789"));
        assert_eq!(sum(ChecksumKind::Crc32), 0xcbf4_3926);
        assert_eq!(sum(ChecksumKind::Crc32c), 0xe306_9283);
    }

    #[test]
    fn a_prefix_is_found_by_its_sum() {
        let chunk = b"123456789abcdef";
        for kind in [ChecksumKind::Crc32, ChecksumKind::Crc32c] {
            let checksum = Checksum { kind, bytes_per_checksum: 512 };
            assert_eq!(checksum.prefix_with_sum(chunk, checksum.sum(&chunk[..9])), Some(9));
            assert_eq!(checksum.prefix_with_sum(chunk, [1, 2, 3, 4]), None);
        }
    }

    #[test]
    fn absurd_chunk_sizes_are_refused() {
        for size in [0, -1, i32::MAX] {
            assert!(Checksum::new(2, size).is_err(), "{size}");
        }
        assert!(Checksum::new(3, 512).is_err());
        assert_eq!(Checksum::new(2, 512).unwrap(), Checksum::DEFAULT);
    }
}
