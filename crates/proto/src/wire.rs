//! The smallest parts of protobuf's wire, read from a slice with every length checked.

use crate::decode_error::DecodeError;

/// The bytes of the longest varint: ten groups of seven bits hold 64 bits.
pub(crate) const VARINT_BYTES_MAX: usize = 10;

/// The form of a value, as the key before it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireType {
    Varint,
    Fixed64,
    Delimited,
    GroupStart,
    GroupEnd,
    Fixed32,
}

/// A place in a message. All methods move it forward and none reads past the end.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    pub rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// # Errors
    /// [`DecodeError::Truncated`] if the bytes end before the number does; [`DecodeError::VarintTooLong`] if the number
    /// needs more than 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        if let [first @ 0..=0x7f, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*first));
        }
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().take(VARINT_BYTES_MAX).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                if index == VARINT_BYTES_MAX - 1 && *byte > 1 {
                    return Err(DecodeError::VarintTooLong);
                }
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        if self.rest.len() >= VARINT_BYTES_MAX {
            Err(DecodeError::VarintTooLong)
        } else {
            Err(DecodeError::Truncated { wanted: self.rest.len() + 1, present: self.rest.len() })
        }
    }

    /// # Errors
    /// [`DecodeError::LengthPastEnd`] if fewer than `count` bytes are left.
    #[inline]
    pub fn take(&mut self, count: u64) -> Result<&'a [u8], DecodeError> {
        let present = self.rest.len();
        match usize::try_from(count).ok().and_then(|count| self.rest.split_at_checked(count)) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(DecodeError::LengthPastEnd { length: count, present }),
        }
    }

    /// A length and that many bytes.
    ///
    /// # Errors
    /// Those of [`Cursor::varint`] for the length; [`DecodeError::LengthPastEnd`] if fewer bytes are left than it says.
    #[inline]
    pub fn delimited(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.varint()?;
        self.take(length)
    }

    /// A field number and the wire type of its value.
    ///
    /// # Errors
    /// [`DecodeError::InvalidKey`] if the number is 0 or above 2^29 - 1, or the wire type is unknown; and those of
    /// [`Cursor::varint`].
    #[inline]
    pub fn key(&mut self) -> Result<(u32, WireType), DecodeError> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| DecodeError::InvalidKey(key))?;
        if number == 0 || number > 0x1fff_ffff {
            return Err(DecodeError::InvalidKey(key));
        }
        let wire_type = match key & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Delimited,
            3 => WireType::GroupStart,
            4 => WireType::GroupEnd,
            5 => WireType::Fixed32,
            _ => return Err(DecodeError::InvalidKey(key)),
        };
        Ok((number, wire_type))
    }

    /// Passes over the value of an unknown field. `depth` bounds groups within groups.
    ///
    /// # Errors
    /// [`DecodeError::GroupEndWithoutStart`] if a group ends that has not begun; [`DecodeError::TooDeep`] if groups are
    /// nested deeper than `depth`. A value that is cut off or malformed gives the errors of the other methods.
    pub fn skip(&mut self, number: u32, wire_type: WireType, depth: u32) -> Result<(), DecodeError> {
        match wire_type {
            WireType::Varint => self.varint().map(drop),
            WireType::Fixed64 => self.take(8).map(drop),
            WireType::Fixed32 => self.take(4).map(drop),
            WireType::Delimited => self.delimited().map(drop),
            WireType::GroupEnd => Err(DecodeError::GroupEndWithoutStart),
            WireType::GroupStart => {
                let depth = depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
                loop {
                    let (inner, wire_type) = self.key()?;
                    if wire_type == WireType::GroupEnd {
                        return if inner == number { Ok(()) } else { Err(DecodeError::GroupEndWithoutStart) };
                    }
                    self.skip(inner, wire_type, depth)?;
                }
            }
        }
    }
}

/// A signed number as `sint32` is sent: small ones of either sign are short.
pub fn zigzag_decode(value: u64) -> i32 {
    let value = value as u32;
    ((value >> 1) as i32) ^ -((value & 1) as i32)
}

pub fn zigzag_encode(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

/// Appends a varint.
#[inline]
pub fn put_varint(out: &mut impl bytes::BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// Bytes that a varint takes.
#[inline]
pub const fn varint_length(value: u64) -> usize {
    // The highest bit that is set, in groups of seven; zero takes a byte too.
    (63 - (value | 1).leading_zeros() as usize) / 7 + 1
}
