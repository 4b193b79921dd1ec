//! Numbers, texts and lists as bytes. Every length is checked against the bytes that are there before
//! anything is allocated.

use crate::store::{block_list, inode};
use base::{Block, BlockId, CallId, ClientId, Epoch, GenerationStamp, InodeId, Timestamp};

/// Why bytes are no edit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("edit ends after {0} bytes")]
    Truncated(usize),
    #[error("edit kind {0} is not known")]
    UnknownKind(u8),
    #[error("edit format version {0} is not known")]
    UnknownVersion(u8),
    #[error("edit at byte {offset}: {what}")]
    Malformed { offset: usize, what: &'static str },
}

pub(crate) struct Writer<'a>(pub &'a mut Vec<u8>);

impl Writer<'_> {
    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

pub(crate) const NUMBER_TOO_LONG: &str = "a number of more than 64 bits";

/// Reads a number as [`Writer::number`] writes it: seven bits in each byte, the lowest first, and a high bit in each byte
/// but the last. `None` if it has more than 64 bits. `byte` gives the next byte.
///
/// # Errors
/// The error of `byte`.
#[inline]
pub(crate) fn read_number<E>(mut byte: impl FnMut() -> Result<u8, E>) -> Result<Option<u64>, E> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = byte()?;
        if shift == 63 && byte > 1 {
            break;
        }
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn malformed(&self, what: &'static str) -> DecodeError {
        DecodeError::Malformed { offset: self.at, what }
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let byte = self.bytes.get(self.at).ok_or(DecodeError::Truncated(self.bytes.len()))?;
        self.at += 1;
        Ok(*byte)
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        if length > self.left() {
            return Err(DecodeError::Truncated(self.bytes.len()));
        }
        self.at += length;
        Ok(&self.bytes[self.at - length..self.at])
    }

    /// So many bytes.
    pub fn octets<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut octets = [0; N];
        octets.copy_from_slice(self.take(N)?);
        Ok(octets)
    }

    pub fn number(&mut self) -> Result<u64, DecodeError> {
        read_number(|| self.byte())?.ok_or_else(|| self.malformed(NUMBER_TOO_LONG))
    }

    /// A number below `limit`.
    pub fn number_below(&mut self, limit: u64, what: &'static str) -> Result<u64, DecodeError> {
        let number = self.number()?;
        if number < limit { Ok(number) } else { Err(self.malformed(what)) }
    }

    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.number()?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    pub fn is_at_end(&self) -> bool {
        self.left() == 0
    }

    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.left() == 0 { Ok(()) } else { Err(self.malformed("bytes after the end")) }
    }
}

/// A part of an edit that knows its own bytes.
pub(crate) trait Field: Sized {
    fn encode(&self, out: &mut Writer<'_>);
    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// The fields of a struct, one after the other.
///
/// A field named behind the braces is empty in these bytes; another kind of edit brings it. Fields that were added
/// `later` than the first version of a body stand at its end if one of them is not its type's default. Older edits
/// end before them.
macro_rules! record_fields {
    ($name:ident { $($field:ident),* $(,)? } $($absent:ident)?; later { $($later:ident),* $(,)? }) => {
        impl $crate::codec::Field for $name {
            fn encode(&self, out: &mut $crate::codec::Writer<'_>) {
                $($crate::codec::Field::encode(&self.$field, out);)*
                if $(self.$later != Default::default())||* {
                    $($crate::codec::Field::encode(&self.$later, out);)*
                }
            }

            fn decode(
                input: &mut $crate::codec::Reader<'_>,
            ) -> Result<Self, $crate::codec::DecodeError> {
                $(let $field = $crate::codec::Field::decode(input)?;)*
                let is_short = input.is_at_end();
                $(let $later = match input.is_at_end() {
                    true => Default::default(),
                    false => $crate::codec::Field::decode(input)?,
                };)*
                let edit = Self { $($field,)* $($absent: Default::default(),)? $($later),* };
                // One edit, one spelling.
                if !is_short && $(edit.$later == Default::default())&&* {
                    return Err(input.malformed("later fields that say nothing"));
                }
                Ok(edit)
            }
        }
    };
    ($name:ident { $($field:ident),* $(,)? } $($absent:ident)?) => {
        impl $crate::codec::Field for $name {
            fn encode(&self, out: &mut $crate::codec::Writer<'_>) {
                $($crate::codec::Field::encode(&self.$field, out);)*
            }

            fn decode(
                input: &mut $crate::codec::Reader<'_>,
            ) -> Result<Self, $crate::codec::DecodeError> {
                $(let $field = $crate::codec::Field::decode(input)?;)*
                Ok(Self { $($field,)* $($absent: Default::default())? })
            }
        }
    };
}
pub(crate) use record_fields;

/// Types that are one number on disk, with the bound that the records of the tree set.
macro_rules! number_fields {
    ($($type:ty: $to:expr, $from:expr, $limit:expr, $what:literal;)*) => {
        $(impl Field for $type {
            fn encode(&self, out: &mut Writer<'_>) {
                let to: fn(&$type) -> u64 = $to;
                out.number(to(self));
            }

            fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let from: fn(u64) -> $type = $from;
                input.number_below($limit, $what).map(from)
            }
        })*
    };
}

number_fields! {
    u16: |n| u64::from(*n), |n| n as u16, 1 << 16, "a number of more than 16 bits";
    InodeId: |id| id.0, InodeId, InodeId::LIMIT, "an inode id of more than 48 bits";
    Timestamp: |time| time.ms, Timestamp::from_ms, inode::TIME_LIMIT_MS, "a time of more than 48 bits";
    Epoch: |epoch| epoch.0, Epoch, u64::MAX, "an epoch of more than 64 bits";
    GenerationStamp: |stamp| stamp.0, GenerationStamp, GenerationStamp::LIMIT, "a stamp of more than 40 bits";
}

impl Field for u8 {
    fn encode(&self, out: &mut Writer<'_>) {
        out.byte(*self);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        input.byte()
    }
}

/// Any 64 bits.
impl Field for u64 {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(*self);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        input.number()
    }
}

impl Field for BlockId {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.0);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        input.number().map(Self)
    }
}

impl Field for bool {
    fn encode(&self, out: &mut Writer<'_>) {
        out.byte(u8::from(*self));
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match input.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(input.malformed("neither false nor true")),
        }
    }
}

impl Field for ClientId {
    fn encode(&self, out: &mut Writer<'_>) {
        out.0.extend_from_slice(&self.0);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut id = [0; 16];
        id.copy_from_slice(input.take(16)?);
        Ok(Self(id))
    }
}

impl Field for CallId {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(u64::from(self.0 as u32));
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        input.number_below(1 << 32, "a call id of more than 32 bits").map(|n| Self(n as u32 as i32))
    }
}

impl Field for Box<str> {
    fn encode(&self, out: &mut Writer<'_>) {
        out.bytes(self.as_bytes());
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bytes = input.bytes()?;
        std::str::from_utf8(bytes).map(Into::into).map_err(|_| input.malformed("a text that is not UTF-8"))
    }
}

impl Field for Box<[u8]> {
    fn encode(&self, out: &mut Writer<'_>) {
        out.bytes(self);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        input.bytes().map(Into::into)
    }
}

impl Field for std::sync::Arc<str> {
    fn encode(&self, out: &mut Writer<'_>) {
        out.bytes(self.as_bytes());
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bytes = input.bytes()?;
        std::str::from_utf8(bytes).map(Into::into).map_err(|_| input.malformed("a text that is not UTF-8"))
    }
}

/// Zigzag, so that small numbers of either sign are short.
impl Field for i64 {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number((*self << 1 ^ *self >> 63) as u64);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = input.number()?;
        Ok((number >> 1 ^ (number & 1).wrapping_neg()) as i64)
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn encode(&self, out: &mut Writer<'_>) {
        self.0.encode(out);
        self.1.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok((A::decode(input)?, B::decode(input)?))
    }
}

impl Field for Block {
    fn encode(&self, out: &mut Writer<'_>) {
        self.id.encode(out);
        self.generation_stamp.encode(out);
        out.number(self.length);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: Field::decode(input)?,
            generation_stamp: Field::decode(input)?,
            length: input.number_below(block_list::RECORD_LENGTH_LIMIT, "a block of more than 48 bits")?,
        })
    }
}

impl<T: Field> Field for Box<T> {
    fn encode(&self, out: &mut Writer<'_>) {
        (**self).encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        T::decode(input).map(Self::new)
    }
}

impl<T: Field> Field for Option<T> {
    fn encode(&self, out: &mut Writer<'_>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if bool::decode(input)? { T::decode(input).map(Some) } else { Ok(None) }
    }
}

impl<T: Field> Field for Vec<T> {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.len() as u64);
        self.iter().for_each(|value| value.encode(out));
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = input.number()?;
        // Each value takes a byte at least.
        if count > input.left() as u64 {
            return Err(DecodeError::Truncated(input.bytes.len()));
        }
        // Grows as values are read, since a value may be far larger than a byte.
        (0..count).map(|_| T::decode(input)).collect()
    }
}
