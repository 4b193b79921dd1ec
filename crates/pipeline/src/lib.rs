//! The data-transfer machines: what a block's writer, each server on its way, and its reader must do with a
//! packet or an acknowledgement; and what the servers do when the writer is gone.
//!
//! ```text
//! Packer -> Window  ==packets==>  Receiver  ==packets==>  Receiver        (writing)
//!           Window  <===acks====  Responder <===acks====  Responder
//!           Range   <==packets==  (block file)                            (reading)
//! ```
//!
//! Everything here is values in and values out: no socket, no file, no clock. Client and data server drive
//! the same machines from opposite ends. How a header looks in bytes is `proto`'s business.
//!
//! Start with [`receiver`] and [`responder`], the two halves of a data server's part in a pipeline. [`recovery`] brings a
//! block to an end whose writer is gone.

pub mod ack;
pub mod checksum;
pub mod composer;
pub mod packer;
pub mod range;
pub mod receiver;
pub mod recovery;
pub mod responder;
pub mod window;

#[cfg(test)]
mod fuzz_tests;

pub use ack::{Ack, Reply, Status};
pub use checksum::Checksum;
pub use composer::Composer;
pub use packer::{Packed, Packer};
pub use range::Range;
pub use receiver::{Duty, Receiver};
pub use responder::Responder;
pub use window::Window;

use thiserror::Error;

/// A packet that breaks the protocol. The connection that brought it ends, and what it was writing is not
/// finalised.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    #[error("packet {found} where {expected} or a later one was expected")]
    Sequence { expected: i64, found: i64 },
    #[error("packet {seqno} begins at offset {found}; the bytes so far end at {expected}")]
    Offset { seqno: i64, expected: u64, found: i64 },
    #[error("packet {seqno} ends at offset {end}, past the limit of {limit} bytes")]
    PastEnd { seqno: i64, end: u64, limit: u64 },
    #[error("{found} bytes of checksums, {expected} belong to {data_length} bytes of data")]
    SumsLength { found: usize, expected: usize, data_length: usize },
    #[error(
        "a packet that begins within a chunk, at offset {offset}, reaches beyond it ({data_length} bytes, \
         {bytes_per_checksum} per checksum)"
    )]
    Unaligned { offset: u64, data_length: usize, bytes_per_checksum: u32 },
    #[error("data length {0}")]
    DataLength(i32),
    #[error("a last packet with {0} bytes of data; it must be empty")]
    LastWithData(i32),
    #[error("a packet after the last one")]
    AfterLast,
    #[error("the last packet came at offset {at}, before the range's end {end}")]
    TooShort { at: u64, end: u64 },
}
