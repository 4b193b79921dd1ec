//! The kinds of the checksums that cover a replica's bytes.

/// A kind of checksum. The numbers are Hadoop's, on the wire and in meta files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChecksumKind {
    /// The bytes have no checksums.
    Null = 0,
    /// CRC-32 as zip and Java's `CRC32` compute it.
    Crc32 = 1,
    /// CRC-32C (Castagnoli), the usual kind.
    Crc32c = 2,
}

impl ChecksumKind {
    /// The kind with this number, if there is one.
    pub fn numbered(number: i32) -> Option<Self> {
        [Self::Null, Self::Crc32, Self::Crc32c].into_iter().find(|kind| *kind as i32 == number)
    }

    /// The bytes of one checksum: 4, or 0 without checksums.
    pub const fn sum_bytes(self) -> usize {
        match self {
            Self::Null => 0,
            Self::Crc32 | Self::Crc32c => 4,
        }
    }
}
