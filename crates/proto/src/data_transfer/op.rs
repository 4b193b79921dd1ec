//! The header of an operation.
//!
//! ```text
//! 0   2  version, 28, big-endian
//! 2   1  opcode
//! 3   n  length of the message, varint of at most 5 bytes
//! ..     the message
//! ```

use super::{Error, VERSION, delimited};
use bytes::{Bytes, BytesMut};
use prost::Message;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    WriteBlock,
    ReadBlock,
    ReplaceBlock,
    CopyBlock,
    BlockChecksum,
    TransferBlock,
    RequestShortCircuitFds,
    ReleaseShortCircuitFds,
    RequestShortCircuitShm,
    BlockGroupChecksum,
    Custom,
}

impl Opcode {
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            80 => Self::WriteBlock,
            81 => Self::ReadBlock,
            83 => Self::ReplaceBlock,
            84 => Self::CopyBlock,
            85 => Self::BlockChecksum,
            86 => Self::TransferBlock,
            87 => Self::RequestShortCircuitFds,
            88 => Self::ReleaseShortCircuitFds,
            89 => Self::RequestShortCircuitShm,
            90 => Self::BlockGroupChecksum,
            127 => Self::Custom,
            _ => return None,
        })
    }

    pub fn code(self) -> u8 {
        match self {
            Self::WriteBlock => 80,
            Self::ReadBlock => 81,
            Self::ReplaceBlock => 83,
            Self::CopyBlock => 84,
            Self::BlockChecksum => 85,
            Self::TransferBlock => 86,
            Self::RequestShortCircuitFds => 87,
            Self::ReleaseShortCircuitFds => 88,
            Self::RequestShortCircuitShm => 89,
            Self::BlockGroupChecksum => 90,
            Self::Custom => 127,
        }
    }
}

/// An operation as received, its message not yet decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    pub code: Opcode,
    pub message: Bytes,
}

/// Bytes before the length of the message: version and opcode.
pub const PREFIX_BYTES: usize = 3;

/// The opcode at the beginning of `bytes`, and the range of its message; `None` while more bytes are needed to know.
/// The range may end behind the bytes received so far.
///
/// # Errors
/// [`Error::Version`] if the version is not the one spoken here; [`Error::Opcode`] if the opcode is unknown; and for
/// the length of the message [`Error::Length`] or [`Error::MessageTooLong`], as [`delimited::frame`].
pub fn frame(bytes: &[u8]) -> Result<Option<(Opcode, Range<usize>)>, Error> {
    let Some(version) = bytes.first_chunk::<2>() else { return Ok(None) };
    let version = u16::from_be_bytes(*version);
    if version != VERSION {
        return Err(Error::Version(version));
    }
    let Some(&code) = bytes.get(2) else { return Ok(None) };
    let code = Opcode::from_code(code).ok_or(Error::Opcode(code))?;
    let message = delimited::frame(&bytes[PREFIX_BYTES..])?;
    Ok(message.map(|range| (code, range.start + PREFIX_BYTES..range.end + PREFIX_BYTES)))
}

/// Takes an operation off the front of `buffer`; nothing while it is incomplete.
///
/// # Errors
/// Those of [`frame`]. The message itself is not decoded yet.
pub fn take(buffer: &mut BytesMut) -> Result<Option<Op>, Error> {
    match frame(buffer)? {
        Some((code, range)) if range.end <= buffer.len() => {
            let mut bytes = buffer.split_to(range.end);
            Ok(Some(Op { code, message: bytes.split_off(range.start).freeze() }))
        }
        _ => Ok(None),
    }
}

/// Appends an operation.
pub fn encode(code: Opcode, message: &impl Message, out: &mut BytesMut) {
    delimited::encode_op(code.code(), message, out);
}
