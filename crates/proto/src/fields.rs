//! The fields of a message that nobody has decoded.

use crate::{
    decode_error::DEPTH_MAX,
    wire::{Cursor, WireType},
};

/// The texts and numbers of a message, as far as it can be read.
#[derive(Default)]
pub(crate) struct Fields {
    texts: Vec<(u32, String)>,
    numbers: Vec<(u32, u64)>,
}

impl Fields {
    pub fn of(message: &[u8]) -> Self {
        let mut fields = Self::default();
        let mut cursor = Cursor::new(message);
        while !cursor.is_empty() {
            let Ok((number, wire_type)) = cursor.key() else { break };
            let read = match wire_type {
                WireType::Varint => cursor.varint().map(|value| fields.numbers.push((number, value))),
                WireType::Delimited => cursor.delimited().map(|bytes| {
                    fields.texts.push((number, String::from_utf8_lossy(bytes).into_owned()));
                }),
                other => cursor.skip(number, other, DEPTH_MAX),
            };
            if read.is_err() {
                break;
            }
        }
        fields
    }

    pub fn text(&self, number: u32) -> Option<String> {
        self.texts.iter().find(|(field, _)| *field == number).map(|(_, text)| text.clone())
    }

    pub fn texts(&self, number: u32) -> Vec<String> {
        self.texts.iter().filter(|(field, _)| *field == number).map(|(_, text)| text.clone()).collect()
    }

    pub fn number(&self, number: u32) -> Option<u64> {
        self.numbers.iter().find(|(field, _)| *field == number).map(|(_, value)| *value)
    }

    /// The bytes of the first message in this field.
    pub fn message(message: &[u8], number: u32) -> Option<&[u8]> {
        let mut cursor = Cursor::new(message);
        while !cursor.is_empty() {
            let (field, wire_type) = cursor.key().ok()?;
            match wire_type {
                WireType::Delimited if field == number => return cursor.delimited().ok(),
                other => cursor.skip(field, other, DEPTH_MAX).ok()?,
            }
        }
        None
    }
}
