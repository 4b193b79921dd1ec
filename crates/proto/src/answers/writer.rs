//! Puts the fields of a message one behind the other.

use super::Put;
use crate::wire::{VARINT_BYTES_MAX, varint_length};

/// The bytes of the longest key that is written here, for numbers below 2,048.
const KEY_MAX: usize = 2;

const VARINT: u32 = 0;
const DELIMITED: u32 = 2;

/// A message on its way to bytes.
///
/// The length of a message within another is not known before it is written: as many bytes as it probably takes are
/// left free, and what was written is moved by one or two where that was wrong.
pub struct Writer {
    /// Longer than what was written, so that a field needs one look at the room that is left.
    bytes: Vec<u8>,
    end: usize,
}

impl Writer {
    /// The most bytes that a field takes beside those of its value.
    pub const FIELD_MAX: usize = KEY_MAX + VARINT_BYTES_MAX;

    pub fn with_capacity(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity + Self::FIELD_MAX], end: 0 }
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.truncate(self.end);
        self.bytes
    }

    #[inline]
    fn reserve(&mut self, count: usize) {
        if self.bytes.len() - self.end < count {
            self.grow(count);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, count: usize) {
        self.bytes.resize((self.bytes.len() * 2).max(self.end + count), 0);
    }

    /// Puts a key and a varint. A field's number is known where it is put: inlined, its key is a constant, which takes
    /// a sixth off the cost of a whole listing.
    #[inline(always)]
    fn key_and_varint(&mut self, number: u32, wire_type: u32, value: u64) {
        self.reserve(Self::FIELD_MAX);
        let Some(room) = self.bytes[self.end..].first_chunk_mut::<{ Self::FIELD_MAX }>() else {
            unreachable!("it was just reserved");
        };
        let key = number << 3 | wire_type;
        let mut at = 1;
        if key < 0x80 {
            room[0] = key as u8;
        } else {
            debug_assert!(key < 1 << 14, "field {number}");
            room[0] = key as u8 | 0x80;
            room[1] = (key >> 7) as u8;
            at = 2;
        }
        self.end += at + put_varint(&mut room[at..], value);
    }

    /// A number of any type but a signed one: `uint32`, `uint64`, an enumeration.
    #[inline]
    pub fn uint(&mut self, number: u32, value: u64) {
        self.key_and_varint(number, VARINT, value);
    }

    /// `int32`: a negative one takes ten bytes.
    #[inline]
    pub fn int(&mut self, number: u32, value: i32) {
        self.uint(number, i64::from(value) as u64);
    }

    #[inline]
    pub fn bool(&mut self, number: u32, value: bool) {
        self.uint(number, value.into());
    }

    #[inline]
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        self.key_and_varint(number, DELIMITED, value.len() as u64);
        self.reserve(value.len());
        self.bytes[self.end..self.end + value.len()].copy_from_slice(value);
        self.end += value.len();
    }

    /// A packed list of so many times zero, or false.
    pub fn zeros(&mut self, number: u32, count: usize) {
        self.key_and_varint(number, DELIMITED, count as u64);
        self.reserve(count);
        self.bytes[self.end..self.end + count].fill(0);
        self.end += count;
    }

    #[inline]
    pub fn text(&mut self, number: u32, value: &str) {
        self.bytes(number, value.as_bytes());
    }

    #[inline]
    pub fn message(&mut self, number: u32, message: impl Put) {
        let about = message.about();
        self.nested(number, about, |out| message.put(out));
    }

    /// A message that is there already.
    pub fn generated(&mut self, number: u32, message: &impl prost::Message) {
        let length = message.encoded_len();
        self.key_and_varint(number, DELIMITED, length as u64);
        self.reserve(length);
        let mut room = &mut self.bytes[self.end..self.end + length];
        message.encode_raw(&mut room);
        assert!(room.is_empty(), "a message is as long as it said");
        self.end += length;
    }

    /// A message within this one: `put` puts its fields.
    #[inline]
    pub fn nested(&mut self, number: u32, about: usize, put: impl FnOnce(&mut Self)) {
        let left = varint_length(about as u64);
        // All of it is written once more below, but for the key.
        self.key_and_varint(number, DELIMITED, 0);
        self.reserve(left);
        let start = self.end - 1 + left;
        self.end = start;
        put(self);
        let length = self.end - start;
        let needed = varint_length(length as u64);
        let start = if needed == left { start } else { self.shift(start, start - left + needed) };
        put_varint(&mut self.bytes[start - needed..start], length as u64);
    }

    /// Moves what was written from `start` on to `target`.
    #[cold]
    #[inline(never)]
    fn shift(&mut self, start: usize, target: usize) -> usize {
        self.reserve(target.saturating_sub(start));
        self.bytes.copy_within(start..self.end, target);
        self.end = self.end + target - start;
        target
    }
}

/// Puts a varint at the beginning of `room`, which must be long enough; answers its length.
#[inline]
fn put_varint(room: &mut [u8], mut value: u64) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        room[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    room[at] = value as u8;
    at + 1
}
