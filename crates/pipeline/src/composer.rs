//! The checksum of a long run of bytes from the checksums of its pieces (Hadoop's `COMPOSITE_CRC`).
//!
//! A CRC is a remainder of polynomials over one bit: the CRC of A followed by B is the CRC of A, multiplied
//! by x to the power of B's bits, plus the CRC of B. The factor is the same for every chunk of a block.

use base::ChecksumKind;

#[derive(Clone, Debug)]
pub struct Composer {
    /// The polynomial without its highest term, lowest power in the highest bit.
    polynomial: u32,
    sum: u32,
    /// The piece length met last, and x to the power of its bits.
    factor: (u64, u32),
}

impl Composer {
    /// `None` for a kind without checksums.
    pub fn new(kind: ChecksumKind) -> Option<Self> {
        let polynomial = match kind {
            ChecksumKind::Null => return None,
            ChecksumKind::Crc32 => 0xedb8_8320,
            ChecksumKind::Crc32c => 0x82f6_3b78,
        };
        Some(Self { polynomial, sum: 0, factor: (0, ONE) })
    }

    /// `length` more bytes, whose checksum is `sum`.
    pub fn append(&mut self, sum: u32, length: u64) {
        if self.factor.0 != length {
            self.factor = (length, self.power_of_x(length));
        }
        self.sum = self.multiply(self.sum, self.factor.1) ^ sum;
    }

    /// The checksum of everything so far.
    pub fn sum(&self) -> u32 {
        self.sum
    }

    /// x to the power of 8 `bytes`.
    fn power_of_x(&self, bytes: u64) -> u32 {
        let mut square = ONE >> 8;
        let mut power = ONE;
        let mut left = bytes;
        while left > 0 {
            if left & 1 == 1 {
                power = self.multiply(power, square);
            }
            square = self.multiply(square, square);
            left >>= 1;
        }
        power
    }

    fn multiply(&self, mut left: u32, right: u32) -> u32 {
        let mut product = 0;
        for bit in 0..32 {
            if right & (ONE >> bit) != 0 {
                product ^= left;
            }
            left = (left >> 1) ^ (self.polynomial & (left & 1).wrapping_neg());
        }
        product
    }
}

/// The polynomial 1.
const ONE: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Checksum;

    #[test]
    fn pieces_compose_to_the_checksum_of_the_whole() {
        let data = (0..10_000u32).map(|index| ((index * index) >> 3) as u8).collect::<Vec<u8>>();
        for kind in [1, 2] {
            let checksum = Checksum::new(kind, 512).unwrap();
            let mut composer = Composer::new(checksum.kind()).unwrap();
            for chunk in data.chunks(512) {
                composer.append(checksum.append(0, chunk), chunk.len() as u64);
            }
            assert_eq!(composer.sum(), checksum.append(0, &data));
        }
        assert!(Composer::new(ChecksumKind::Null).is_none());
    }
}
