//! Messages with their length in front, as a varint.

use super::{Error, MESSAGE_BYTES_MAX};
use bytes::{BufMut, Bytes, BytesMut};
use prost::{Message, Name};
use std::ops::Range;

/// The range of a length-prefixed message within `bytes`; `None` while its prefix is incomplete. The range may end
/// behind the bytes received so far.
///
/// # Errors
/// [`Error::Length`] if the length is not a varint of five bytes at most; [`Error::MessageTooLong`] if it is above
/// [`MESSAGE_BYTES_MAX`].
pub fn frame(bytes: &[u8]) -> Result<Option<Range<usize>>, Error> {
    let mut length = 0u64;
    for (index, &byte) in bytes.iter().take(5).enumerate() {
        length |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            if length > MESSAGE_BYTES_MAX as u64 {
                return Err(Error::MessageTooLong { length });
            }
            let start = index + 1;
            return Ok(Some(start..start + length as usize));
        }
    }
    if bytes.len() >= 5 { Err(Error::Length) } else { Ok(None) }
}

/// Takes a length-prefixed message off the front of `buffer`; nothing while it is incomplete.
///
/// # Errors
/// Those of [`frame`]; and [`Error::Malformed`] if the message is complete and does not decode.
pub fn take<M: Message + Default + Name>(buffer: &mut BytesMut) -> Result<Option<M>, Error> {
    match frame(buffer)? {
        Some(range) if range.end <= buffer.len() => {
            let mut bytes = buffer.split_to(range.end);
            decode(bytes.split_off(range.start).freeze()).map(Some)
        }
        _ => Ok(None),
    }
}

/// Decodes the message that [`frame`] found.
///
/// # Errors
/// [`Error::Malformed`] if the bytes are not a message of this type, or lack a required field.
pub fn decode<M: Message + Default + Name>(bytes: Bytes) -> Result<M, Error> {
    crate::decode::<M>(bytes).map_err(|error| Error::Malformed { what: M::NAME, reason: error.to_string() })
}

/// Appends a message with its length in front.
pub fn encode(message: &impl Message, out: &mut BytesMut) {
    out.reserve(message.encoded_len() + 5);
    message.encode_length_delimited(out).expect("a BytesMut grows");
}

/// A message with its length in front.
pub fn encoded(message: &impl Message) -> Bytes {
    let mut out = BytesMut::new();
    encode(message, &mut out);
    out.freeze()
}

/// Appends an opcode header: version, opcode, message.
pub(super) fn encode_op(code: u8, message: &impl Message, out: &mut BytesMut) {
    out.reserve(message.encoded_len() + 8);
    out.put_u16(super::VERSION);
    out.put_u8(code);
    encode(message, out);
}
