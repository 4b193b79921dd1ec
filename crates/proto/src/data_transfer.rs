//! The streaming protocol between clients and data servers, as pure functions on bytes.
//!
//! An operation opens with a short version, an opcode and a length-prefixed message ([`op`]); answers and
//! acknowledgements are length-prefixed messages ([`delimited`]); block data travels in packets
//! ([`packet`]). Nothing here reads a socket: decoders look at the bytes received so far and say what they
//! found, that more is needed, or what is wrong, and never allocate for a length that they have not checked.

pub mod delimited;
pub mod op;
pub mod packet;
pub mod slot;

#[cfg(test)]
mod tests;

pub use op::{Op, Opcode};

use thiserror::Error;

/// `DATA_TRANSFER_VERSION` of Hadoop since 0.23; no other was ever spoken by a supported client.
pub const VERSION: u16 = 28;

/// The largest operation header and the largest answer that is read. A header carries a token and the
/// targets of a pipeline, some 200 bytes each; Hadoop's limit is protobuf's 64 MiB, which nobody needs.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// The first two bytes of a SASL handshake on the data port (`0xDEADBEEF`), which is not spoken yet.
pub const SASL_MAGIC: u32 = 0xDEAD_BEEF;

/// Bytes that are no such protocol. The connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    #[error("data transfer version {0} is not spoken here; expected {VERSION}")]
    Version(u16),
    #[error("unknown data transfer opcode {0}")]
    Opcode(u8),
    #[error("a message of {length} bytes; at most {MESSAGE_BYTES_MAX} are accepted")]
    MessageTooLong { length: u64 },
    #[error("a length that is not a 32-bit varint")]
    Length,
    #[error("malformed {what}: {reason}")]
    Malformed { what: &'static str, reason: String },
    #[error("invalid packet: {0}")]
    Packet(String),
}
