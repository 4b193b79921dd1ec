//! The fields of a message that nobody has decoded.
//!
//! Whoever decodes the message later must find the same in it. So of a field that stands in it twice the last one counts, as decoders have it,
//! and the parts of a message within it are put together.

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
        self.texts.iter().rfind(|(field, _)| *field == number).map(|(_, text)| text.clone())
    }

    pub fn texts(&self, number: u32) -> Vec<String> {
        self.texts.iter().filter(|(field, _)| *field == number).map(|(_, text)| text.clone()).collect()
    }

    pub fn number(&self, number: u32) -> Option<u64> {
        self.numbers.iter().rfind(|(field, _)| *field == number).map(|(_, value)| *value)
    }

    /// Any number but 0 is a yes.
    pub fn is_set(&self, number: u32) -> bool {
        self.number(number).is_some_and(|value| value != 0)
    }

    /// The bytes of the messages in this field, in their order, as far as the message can be read.
    pub fn messages(message: &[u8], number: u32) -> Vec<&[u8]> {
        let mut cursor = Cursor::new(message);
        let mut found = Vec::new();
        while !cursor.is_empty() {
            let Ok((field, wire_type)) = cursor.key() else { break };
            let read = match wire_type {
                WireType::Delimited if field == number => cursor.delimited().map(|bytes| found.push(bytes)),
                other => cursor.skip(field, other, DEPTH_MAX),
            };
            if read.is_err() {
                break;
            }
        }
        found
    }
}
