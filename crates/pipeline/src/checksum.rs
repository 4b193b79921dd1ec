//! Checksums of chunks.

use base::ChecksumKind;
use bytes::BufMut;
use thiserror::Error;

/// How data is covered by checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    kind: ChecksumKind,
    /// 1 to [`BYTES_PER_CHECKSUM_MAX`].
    bytes_per_checksum: u32,
}

/// A chunk and its checksum must fit a packet of 16 MiB with its header.
pub const BYTES_PER_CHECKSUM_MAX: u32 = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChecksumError {
    #[error("checksum type {0} is unknown; 0 (NULL), 1 (CRC32) and 2 (CRC32C) are served")]
    Kind(i32),
    #[error("{0} bytes per checksum; 1 to {BYTES_PER_CHECKSUM_MAX} are served")]
    BytesPerChecksum(u32),
}

/// Data that is not what its checksum says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "checksum mismatch in the chunk {offset} bytes into the data: stored {stored:#010x}, computed {computed:#010x}"
)]
pub struct Mismatch {
    /// The offset of the chunk within the data verified.
    pub offset: usize,
    pub stored: u32,
    pub computed: u32,
}

impl Checksum {
    pub const CRC32C_512: Checksum = Checksum { kind: ChecksumKind::Crc32c, bytes_per_checksum: 512 };

    /// # Errors
    /// [`ChecksumError::Kind`] if the type is none of 0 (NULL), 1 (CRC32) and 2 (CRC32C);
    /// [`ChecksumError::BytesPerChecksum`] if `bytes_per_checksum` is 0 or above [`BYTES_PER_CHECKSUM_MAX`].
    pub fn new(kind: i32, bytes_per_checksum: u32) -> Result<Self, ChecksumError> {
        let kind = ChecksumKind::numbered(kind).ok_or(ChecksumError::Kind(kind))?;
        if !(1..=BYTES_PER_CHECKSUM_MAX).contains(&bytes_per_checksum) {
            return Err(ChecksumError::BytesPerChecksum(bytes_per_checksum));
        }
        Ok(Self { kind, bytes_per_checksum })
    }

    pub fn kind(&self) -> ChecksumKind {
        self.kind
    }

    pub fn bytes_per_checksum(&self) -> u32 {
        self.bytes_per_checksum
    }

    /// Bytes of one checksum.
    pub fn size(&self) -> usize {
        self.kind.sum_bytes()
    }

    /// Bytes of checksums for `data_length` bytes that begin a chunk.
    pub fn sums_bytes(&self, data_length: usize) -> usize {
        data_length.div_ceil(self.bytes_per_checksum as usize) * self.size()
    }

    /// The checksum of `chunk` that follows bytes whose checksum is `sum` (0 for none).
    pub fn append(&self, sum: u32, chunk: &[u8]) -> u32 {
        match self.kind {
            ChecksumKind::Null => 0,
            ChecksumKind::Crc32c => crc32c::crc32c_append(sum, chunk),
            ChecksumKind::Crc32 => {
                let mut hasher = crc32fast::Hasher::new_with_initial(sum);
                hasher.update(chunk);
                hasher.finalize()
            }
        }
    }

    /// Writes one checksum for each chunk of `data`.
    pub fn compute(&self, data: &[u8], mut sums: impl BufMut) {
        if self.size() > 0 {
            for chunk in data.chunks(self.bytes_per_checksum as usize) {
                sums.put_u32(self.append(0, chunk));
            }
        }
    }

    /// Checks `data` against `sums`, which must be as many as [`Checksum::sums_bytes`] says.
    ///
    /// # Errors
    /// A [`Mismatch`] names the first chunk whose checksum is not the one in `sums`. Type NULL has no checksums and
    /// never fails.
    ///
    /// # Panics
    /// `sums` is not as long as [`Checksum::sums_bytes`] says, and the type is not NULL.
    pub fn verify(&self, data: &[u8], sums: &[u8]) -> Result<(), Mismatch> {
        if self.size() == 0 {
            return Ok(());
        }
        assert_eq!(sums.len(), self.sums_bytes(data.len()), "as many checksums as chunks");
        let chunks = data.chunks(self.bytes_per_checksum as usize);
        for (index, (chunk, sum)) in chunks.zip(sums.chunks_exact(4)).enumerate() {
            let stored = u32::from_be_bytes([sum[0], sum[1], sum[2], sum[3]]);
            let computed = self.append(0, chunk);
            if stored != computed {
                let offset = index * self.bytes_per_checksum as usize;
                return Err(Mismatch { offset, stored, computed });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crc(kind: i32, bytes_per_checksum: u32) -> Checksum {
        Checksum::new(kind, bytes_per_checksum).unwrap()
    }

    #[test]
    fn sums_are_the_published_check_values() {
        assert_eq!(crc(1, 512).append(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc(2, 512).append(0, b"123456789"), 0xe306_9283);
        for kind in [1, 2] {
            let checksum = crc(kind, 512);
            let front = checksum.append(0, b"1234");
            assert_eq!(checksum.append(front, b"56789"), checksum.append(0, b"123456789"));
        }
    }

    #[test]
    fn a_flipped_bit_is_found_in_its_chunk() {
        for kind in [1, 2] {
            let checksum = crc(kind, 100);
            let mut data = (0..=255).cycle().take(1050).collect::<Vec<u8>>();
            let mut sums = Vec::new();
            checksum.compute(&data, &mut sums);
            assert_eq!(sums.len(), checksum.sums_bytes(data.len()));
            assert_eq!(checksum.verify(&data, &sums), Ok(()));
            data[1049] ^= 1;
            assert_eq!(checksum.verify(&data, &sums).unwrap_err().offset, 1000);
        }
    }

    #[test]
    fn absurd_parameters_are_refused() {
        for size in [0, -1i32 as u32, i32::MAX as u32] {
            assert_eq!(Checksum::new(2, size), Err(ChecksumError::BytesPerChecksum(size)));
        }
        assert_eq!(Checksum::new(3, 512), Err(ChecksumError::Kind(3)));
        assert_eq!(Checksum::new(-1, 512), Err(ChecksumError::Kind(-1)));
        assert_eq!(crc(0, 512).sums_bytes(4096), 0);
    }
}
