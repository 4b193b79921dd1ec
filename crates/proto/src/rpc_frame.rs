//! The bytes that surround a call on a Hadoop RPC connection, version 9.
//!
//! ```text
//! preamble, once from the client:   'h' 'r' 'p' 'c'  version=9  service class  auth protocol
//!
//! frame, either way:                length: u32 big-endian, of all that follows in the frame
//! request:    varint, RpcRequestHeaderProto   varint, RequestHeaderProto   varint, the method's request
//! out of band (negative call id):  varint, RpcRequestHeaderProto   varint, a message that the id implies
//! reply:      varint, RpcResponseHeaderProto  and on success  varint, the method's response
//! ```
//!
//! The headers of requests and replies are read and written by hand: they surround every call, and so cost
//! no allocation. The tests hold them against the generated messages.
//!
//! All of it is functions on bytes. Nothing is trusted: each length is checked against what is there, and
//! [`frame_length`] is asked before anyone reserves memory for a frame.

mod reply;
mod request;

pub use reply::{
    ErrorCode, HTTP_ON_RPC_PORT, ReplyHeader, ReplyTo, Status, parse_reply, put_error, put_success,
    put_version_mismatch,
};
pub use request::{
    CallHeader, RequestHeader, check_header, parse_call_header, parse_request_header, put_connection_context,
    put_ping, put_preamble, put_request, put_sasl,
};

use thiserror::Error;

pub const MAGIC: [u8; 4] = *b"hrpc";
pub const VERSION: u8 = 9;
/// The magic and the three bytes after it.
pub const PREAMBLE_LENGTH: usize = 7;

/// `RPC_PROTOCOL_BUFFER` of `RpcKindProto`: the only kind spoken here.
pub const KIND_PROTOCOL_BUFFER: i32 = 2;

/// Call ids below zero are no calls but steps of the connection's life.
pub const CALL_AUTHORIZATION_FAILED: i32 = -1;
pub const CALL_INVALID: i32 = -2;
pub const CALL_CONNECTION_CONTEXT: i32 = -3;
pub const CALL_PING: i32 = -4;
pub const CALL_SASL: i32 = -33;

/// A client that does not say how often it has sent this call.
pub const RETRY_COUNT_UNKNOWN: i32 = -1;

/// How the client means to prove who it is; its number on the wire is the low byte of the call id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthProtocol {
    /// The connection context comes first and is believed.
    None,
    /// SASL messages (call id -33) come before the connection context.
    Sasl,
}

impl AuthProtocol {
    pub const fn byte(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Sasl => CALL_SASL as u8,
        }
    }
}

/// The first bytes of a connection, recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preamble {
    /// More bytes are needed to tell.
    Partial,
    Hadoop {
        service_class: u8,
        auth: AuthProtocol,
    },
    /// The framing is right and the way to authenticate is none that Hadoop knows.
    UnknownAuth(u8),
    /// The connection begins with another version of Hadoop's framing.
    OtherVersion(u8),
    /// An HTTP request.
    Http,
    /// The start of a TLS handshake.
    Tls,
    /// Something else altogether.
    Foreign([u8; 4]),
}

/// Tells what speaks on a new connection.
pub fn parse_preamble(bytes: &[u8]) -> Preamble {
    // A TLS record of kind handshake and version 3.x.
    if let [0x16, 0x03, ..] = bytes {
        return Preamble::Tls;
    }
    let Some((magic, rest)) = bytes.split_first_chunk::<4>() else { return Preamble::Partial };
    match magic {
        b"GET " | b"POST" | b"PUT " | b"HEAD" | b"DELE" | b"OPTI" | b"PATC" | b"CONN" | b"TRAC" | b"PRI " => {
            Preamble::Http
        }
        &MAGIC => match rest {
            [] => Preamble::Partial,
            [version, ..] if *version != VERSION => Preamble::OtherVersion(*version),
            [_, service_class, auth, ..] => {
                let service_class = *service_class;
                match *auth {
                    0 => Preamble::Hadoop { service_class, auth: AuthProtocol::None },
                    auth if auth == AuthProtocol::Sasl.byte() => {
                        Preamble::Hadoop { service_class, auth: AuthProtocol::Sasl }
                    }
                    other => Preamble::UnknownAuth(other),
                }
            }
            _ => Preamble::Partial,
        },
        other => Preamble::Foreign(*other),
    }
}

/// A frame that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    #[error("a frame of 0 bytes: even the header of a call is longer")]
    Empty,
    #[error("Unexpected data length {0}: a frame's length is positive")]
    Negative(i32),
    #[error(
        "Requested data length {length} is longer than maximum configured RPC length {limit} \
         (ipc.maximum.data.length)"
    )]
    TooLong { length: u64, limit: usize },
    /// Talk to another port: these four bytes begin the answer of a web server.
    #[error("this port speaks HTTP, not Hadoop's RPC")]
    Http,
}

/// The length of the frame that `bytes` start with, its own four bytes left out; `None` until those are
/// there. Answers before any of the frame need be in memory.
///
/// # Errors
/// [`FrameError::Negative`], [`FrameError::Empty`] for a length of zero, and [`FrameError::TooLong`] for one above
/// `limit`; but [`FrameError::Http`] if these bytes begin an HTTP message instead.
pub fn frame_length(bytes: &[u8], limit: usize) -> Result<Option<usize>, FrameError> {
    let Some(length) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = i32::from_be_bytes(*length);
    match usize::try_from(length) {
        Err(_) => Err(FrameError::Negative(length)),
        Ok(0) => Err(FrameError::Empty),
        Ok(length) if length > limit && bytes.starts_with(b"HTTP") => Err(FrameError::Http),
        Ok(length) if length > limit => Err(FrameError::TooLong { length: length as u64, limit }),
        Ok(length) => Ok(Some(length)),
    }
}

#[cfg(test)]
mod tests;
