//! The check that prost leaves out: is every required field there, at every level, and is each length true?
//!
//! [`check`] walks the wire bytes along a table made from the protocol definitions. It allocates nothing and
//! is bounded by the length of the message and by [`DEPTH_MAX`]; after it, decoding cannot fail half-way into
//! something large.

use crate::{
    decode_error::{DEPTH_MAX, DecodeError},
    wire::{Cursor, WireType},
};
use bytes::Bytes;
use prost::{Message, Name};

pub(crate) struct Schema {
    pub name: &'static str,
    /// The fields, in the order of their numbers.
    pub fields: &'static [Field],
    /// The union of the fields' bits.
    pub required: u64,
}

pub(crate) struct Field {
    pub number: u32,
    pub name: &'static str,
    pub kind: Kind,
    pub repeated: bool,
    /// One bit of a word if the field is required, else 0.
    pub required_bit: u64,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Varint,
    Fixed64,
    Fixed32,
    String,
    Bytes,
    /// Index into [`SCHEMAS`].
    Message(u16),
    /// Index into [`ENUMS`].
    Enum(u16),
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// Decodes a message after [`check`] has found it whole.
///
/// # Errors
/// Those of [`check`], but for [`DecodeError::UnknownMessage`]: a message without a schema is decoded without the
/// check. [`DecodeError::Other`] if prost does not accept the bytes.
pub fn decode<M: Message + Default + Name>(bytes: Bytes) -> Result<M, DecodeError> {
    let schema = const { schema_of(M::PACKAGE, M::NAME) };
    match schema {
        Some(index) => check_at(&SCHEMAS[index], &bytes)?,
        // A message of Clover's own, or one nested in another: rare enough for a search by name.
        None => {
            if let Some(schema) = find(&M::full_name()) {
                check_at(schema, &bytes)?;
            }
        }
    }
    M::decode(bytes).map_err(|error| DecodeError::Other(error.to_string()))
}

/// Checks `bytes` as a message of the given full name, such as `hadoop.hdfs.MkdirsRequestProto`.
///
/// # Errors
/// [`DecodeError::UnknownMessage`] if there is no message of that name, [`DecodeError::MissingField`] if a required
/// field is missing, [`DecodeError::InvalidUtf8`] if a text is not UTF-8, [`DecodeError::WrongWireType`] if a field is
/// of another kind, and [`DecodeError::TooDeep`] if messages are nested too deep. Bytes that are cut off or malformed
/// give the errors of [`Cursor`].
pub fn check(message: &str, bytes: &[u8]) -> Result<(), DecodeError> {
    let schema = find(message).ok_or_else(|| DecodeError::UnknownMessage(message.to_owned()))?;
    check_at(schema, bytes)
}

/// The full names of all messages known, in order.
pub fn messages() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|schema| schema.name)
}

fn find(name: &str) -> Option<&'static Schema> {
    SCHEMAS.binary_search_by(|schema| schema.name.cmp(name)).ok().map(|index| &SCHEMAS[index])
}

fn check_at(schema: &'static Schema, bytes: &[u8]) -> Result<(), DecodeError> {
    walk(schema, Cursor::new(bytes), DEPTH_MAX)
}

fn walk(schema: &'static Schema, mut cursor: Cursor<'_>, depth: u32) -> Result<(), DecodeError> {
    let mut seen = 0;
    while !cursor.is_empty() {
        let (number, wire_type) = cursor.key()?;
        let Some(field) = schema.field(number) else {
            cursor.skip(number, wire_type, depth)?;
            continue;
        };
        if field.value(schema, &mut cursor, wire_type, depth)? {
            seen |= field.required_bit;
        }
    }
    if seen != schema.required {
        return Err(schema.first_missing(seen));
    }
    Ok(())
}

impl Schema {
    #[inline]
    fn field(&self, number: u32) -> Option<&'static Field> {
        // Most messages number their fields from 1 without gaps.
        if let Some(field) = self.fields.get((number as usize).wrapping_sub(1))
            && field.number == number
        {
            return Some(field);
        }
        self.fields.binary_search_by_key(&number, |field| field.number).ok().map(|index| &self.fields[index])
    }

    fn first_missing(&self, seen: u64) -> DecodeError {
        let missing = self.fields.iter().find(|field| field.required_bit & !seen != 0);
        DecodeError::MissingField { message: self.name, field: missing.map_or("?", |field| field.name) }
    }
}

impl Field {
    /// Reads the value. False where it counts as absent: an enumeration's value that nobody knows.
    fn value(
        &self,
        schema: &'static Schema,
        cursor: &mut Cursor<'_>,
        wire_type: WireType,
        depth: u32,
    ) -> Result<bool, DecodeError> {
        let wrong = || DecodeError::WrongWireType { message: schema.name, field: self.name };
        match (self.kind, wire_type) {
            (Kind::Varint, WireType::Varint) => cursor.varint().map(|_| true),
            (Kind::Enum(index), WireType::Varint) => {
                let value = cursor.varint()? as i32;
                Ok(ENUMS[usize::from(index)].binary_search(&value).is_ok())
            }
            (Kind::Fixed64, WireType::Fixed64) => cursor.take(8).map(|_| true),
            (Kind::Fixed32, WireType::Fixed32) => cursor.take(4).map(|_| true),
            (Kind::Bytes, WireType::Delimited) => cursor.delimited().map(|_| true),
            (Kind::String, WireType::Delimited) => {
                let text = cursor.delimited()?;
                match std::str::from_utf8(text) {
                    Ok(_) => Ok(true),
                    Err(_) => Err(DecodeError::InvalidUtf8 {
                        message: schema.name,
                        field: self.name,
                        text: shown(text),
                    }),
                }
            }
            (Kind::Message(index), WireType::Delimited) => {
                let inner = Cursor::new(cursor.delimited()?);
                let Some(depth) = depth.checked_sub(1) else { return Err(DecodeError::TooDeep) };
                walk(&SCHEMAS[usize::from(index)], inner, depth).map(|()| true)
            }
            // The packed form of a repeated number.
            (kind, WireType::Delimited) if self.repeated => {
                let mut inner = Cursor::new(cursor.delimited()?);
                while !inner.is_empty() {
                    match kind {
                        Kind::Varint | Kind::Enum(_) => inner.varint().map(drop)?,
                        Kind::Fixed64 => inner.take(8).map(drop)?,
                        Kind::Fixed32 => inner.take(4).map(drop)?,
                        Kind::String | Kind::Bytes | Kind::Message(_) => return Err(wrong()),
                    }
                }
                Ok(true)
            }
            _ => Err(wrong()),
        }
    }
}

/// The start of a text that is not UTF-8, for a message to a human.
fn shown(text: &[u8]) -> String {
    const BYTES_MAX: usize = 200;
    String::from_utf8_lossy(&text[..text.len().min(BYTES_MAX)]).into_owned()
}

/// The index of `package.name` in [`SCHEMAS`]; computed while compiling.
const fn schema_of(package: &str, name: &str) -> Option<usize> {
    let (mut low, mut high) = (0, SCHEMAS.len());
    while low < high {
        let middle = (low + high) / 2;
        let order = compare(SCHEMAS[middle].name.as_bytes(), package.as_bytes(), name.as_bytes());
        if order == 0 {
            return Some(middle);
        } else if order < 0 {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    None
}

/// Compares `left` with `package.name`: negative, zero or positive.
const fn compare(left: &[u8], package: &[u8], name: &[u8]) -> i32 {
    let length = package.len() + 1 + name.len();
    let mut index = 0;
    while index < left.len() && index < length {
        let right = if index < package.len() {
            package[index]
        } else if index == package.len() {
            b'.'
        } else {
            name[index - package.len() - 1]
        };
        if left[index] != right {
            return left[index] as i32 - right as i32;
        }
        index += 1;
    }
    left.len() as i32 - length as i32
}

#[cfg(test)]
mod tests;
