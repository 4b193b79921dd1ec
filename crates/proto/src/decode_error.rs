//! Tells why bytes are not the message that they should be.

use thiserror::Error;

/// Messages within messages. Hadoop's own nest about ten deep; protobuf's customary limit is 100.
pub const DEPTH_MAX: u32 = 64;

/// Why bytes are not the message they should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    #[error("Message missing required fields: {field} of {message}")]
    MissingField { message: &'static str, field: &'static str },
    #[error("field {field} of {message} has the wrong wire type")]
    WrongWireType { message: &'static str, field: &'static str },
    #[error("field {field} of {message} is not valid UTF-8: {text}")]
    InvalidUtf8 { message: &'static str, field: &'static str, text: String },
    #[error("a length of {length} bytes where {present} are left")]
    LengthPastEnd { length: u64, present: usize },
    #[error("the message ends early: {wanted} bytes wanted, {present} present")]
    Truncated { wanted: usize, present: usize },
    #[error("a varint longer than 10 bytes")]
    VarintTooLong,
    #[error("{0} is not the key of a field")]
    InvalidKey(u64),
    #[error("the end of a group that never began")]
    GroupEndWithoutStart,
    #[error("messages nested deeper than {DEPTH_MAX}")]
    TooDeep,
    #[error("no message is called {0}")]
    UnknownMessage(String),
    #[error("{0}")]
    Other(String),
}
