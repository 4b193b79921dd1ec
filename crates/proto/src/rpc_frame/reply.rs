//! From the server: headers of replies, refusals, and the answers to those who speak something else.

use super::VERSION;
use crate::{
    DecodeError,
    decode_error::DEPTH_MAX,
    exception::SERVER_VERSION_MISMATCH,
    wire::{Cursor, WireType, put_varint, varint_length, zigzag_decode, zigzag_encode},
};
use bytes::{BufMut, BytesMut};

const REPLY_HEADER: &str = "hadoop.common.RpcResponseHeaderProto";

/// The answer of Hadoop's server to an HTTP request on the RPC port. It tells a person at a browser that the port is
/// the wrong one.
pub const HTTP_ON_RPC_PORT: &str = "HTTP/1.1 404 Not Found\r\nContent-type: text/plain\r\n\r\n\
     It looks like you are making an HTTP request to a Hadoop IPC port. \
     This is not the correct port for the web interface on this daemon.\r\n";

/// `RpcStatusProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Success = 0,
    /// This call failed; the connection lives.
    Error = 1,
    /// The connection closes after this reply.
    Fatal = 2,
}

/// `RpcErrorCodeProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    Application = 1,
    NoSuchMethod = 2,
    NoSuchProtocol = 3,
    RpcServer = 4,
    SerializingResponse = 5,
    RpcVersionMismatch = 6,
    FatalUnknown = 10,
    FatalUnsupportedSerialization = 11,
    FatalInvalidRpcHeader = 12,
    FatalDeserializingRequest = 13,
    FatalVersionMismatch = 14,
    FatalUnauthorized = 15,
}

impl ErrorCode {
    const ALL: [ErrorCode; 12] = [
        Self::Application,
        Self::NoSuchMethod,
        Self::NoSuchProtocol,
        Self::RpcServer,
        Self::SerializingResponse,
        Self::RpcVersionMismatch,
        Self::FatalUnknown,
        Self::FatalUnsupportedSerialization,
        Self::FatalInvalidRpcHeader,
        Self::FatalDeserializingRequest,
        Self::FatalVersionMismatch,
        Self::FatalUnauthorized,
    ];

    /// The code with this number on the wire.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|code| *code as u32 == number)
    }
}

/// The parts of a call's header that its reply repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    pub call_id: i32,
    /// `None` where the call had no usable client id: the reply then has an empty one, as Hadoop's.
    pub client_id: Option<base::ClientId>,
    pub retry_count: i32,
    /// The newest state of the namespace, for clients that read from standbys.
    pub state_id: Option<i64>,
}

/// `RpcResponseHeaderProto`, borrowed from the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader<'a> {
    pub call_id: i32,
    pub status: Status,
    pub exception: Option<&'a str>,
    pub message: Option<&'a str>,
    pub error_code: Option<i32>,
    pub client_id: &'a [u8],
    pub retry_count: i32,
    pub state_id: Option<i64>,
}

/// Writes a whole reply: frame length, header, and the response of `length` bytes that `body` puts.
///
/// # Panics
/// `body` puts another number of bytes than `length`.
#[inline]
pub fn put_success(out: &mut BytesMut, to: ReplyTo, length: usize, body: impl FnOnce(&mut BytesMut)) {
    let header = header_length(to, None);
    let total = delimited(header) + delimited(length);
    out.reserve(4 + total);
    out.put_u32(total as u32);
    put_header(out, header, to, Status::Success, None);
    put_varint(out, length as u64);
    let start = out.len();
    body(out);
    assert_eq!(out.len() - start, length, "a reply is as long as it was said to be");
}

/// Writes a whole refusal.
pub fn put_error(
    out: &mut BytesMut,
    to: ReplyTo,
    status: Status,
    code: ErrorCode,
    class: &str,
    message: &str,
) {
    let error = Some((class, message, code));
    let header = header_length(to, error);
    out.reserve(4 + delimited(header));
    out.put_u32(delimited(header) as u32);
    put_header(out, header, to, status, error);
}

/// The answer to another version of the framing, in the layout that version understands. Nothing for
/// versions from before replies could carry an error.
pub fn put_version_mismatch(out: &mut BytesMut, client_version: u8) {
    let message =
        format!("Server IPC version {VERSION} cannot communicate with client version {client_version}");
    match client_version {
        9.. => put_error(
            out,
            ReplyTo { call_id: -1, client_id: None, retry_count: -1, state_id: None },
            Status::Fatal,
            ErrorCode::FatalVersionMismatch,
            SERVER_VERSION_MISMATCH,
            &message,
        ),
        3..=8 => {
            let (call_id, status_fatal) = (-1, -1);
            out.put_i32(call_id);
            out.put_i32(status_fatal);
            put_writable_text(out, SERVER_VERSION_MISMATCH);
            put_writable_text(out, &message);
        }
        2 => {
            let (call_id, is_error) = (0, 1);
            out.put_i32(call_id);
            out.put_u8(is_error);
            put_writable_text(out, SERVER_VERSION_MISMATCH);
            put_writable_text(out, &message);
        }
        _ => {}
    }
}

/// A string as Hadoop's `WritableUtils` sends it: a 4-byte length and UTF-8.
fn put_writable_text(out: &mut BytesMut, text: &str) {
    out.put_i32(text.len() as i32);
    out.extend_from_slice(text.as_bytes());
}

/// Reads the header of a reply and moves `frame` past it: what is left is the length and the response.
///
/// # Errors
/// [`DecodeError::MissingField`] if the call id or a status that is known is missing, [`DecodeError::WrongWireType`] if
/// a field has another wire type, [`DecodeError::InvalidUtf8`] if the exception or its message is not UTF-8. A header
/// that is cut off or malformed gives the errors of [`Cursor`].
pub fn parse_reply<'a>(frame: &mut Cursor<'a>) -> Result<ReplyHeader<'a>, DecodeError> {
    let mut header = Cursor::new(frame.delimited()?);
    let (mut call_id, mut status) = (None, None);
    let (mut exception, mut message, mut error_code, mut state_id) = (None, None, None, None);
    let (mut client_id, mut retry_count) = (&[][..], super::RETRY_COUNT_UNKNOWN);
    while !header.is_empty() {
        match header.key()? {
            (1, WireType::Varint) => call_id = Some(header.varint()? as u32 as i32),
            (2, WireType::Varint) => {
                status = match header.varint()? {
                    0 => Some(Status::Success),
                    1 => Some(Status::Error),
                    2 => Some(Status::Fatal),
                    _ => None,
                }
            }
            (3, WireType::Varint) => drop(header.varint()?),
            (4, WireType::Delimited) => exception = Some(utf8(header.delimited()?, "exceptionClassName")?),
            (5, WireType::Delimited) => message = Some(utf8(header.delimited()?, "errorMsg")?),
            (6, WireType::Varint) => error_code = Some(header.varint()? as i32),
            (7, WireType::Delimited) => client_id = header.delimited()?,
            (8, WireType::Varint) => retry_count = zigzag_decode(header.varint()?),
            (9, WireType::Varint) => state_id = Some(header.varint()? as i64),
            (10, WireType::Delimited) => drop(header.delimited()?),
            (1..=10, _) => {
                return Err(DecodeError::WrongWireType { message: REPLY_HEADER, field: "(header)" });
            }
            (number, wire_type) => header.skip(number, wire_type, DEPTH_MAX)?,
        }
    }
    let missing = |field| DecodeError::MissingField { message: REPLY_HEADER, field };
    Ok(ReplyHeader {
        call_id: call_id.ok_or_else(|| missing("callId"))?,
        status: status.ok_or_else(|| missing("status"))?,
        exception,
        message,
        error_code,
        client_id,
        retry_count,
        state_id,
    })
}

fn utf8<'a>(bytes: &'a [u8], field: &'static str) -> Result<&'a str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::InvalidUtf8 {
        message: REPLY_HEADER,
        field,
        text: String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned(),
    })
}

fn delimited(length: usize) -> usize {
    varint_length(length as u64) + length
}

fn header_length(to: ReplyTo, error: Option<(&str, &str, ErrorCode)>) -> usize {
    let status_and_version = 4;
    let call_id = 1 + varint_length(u64::from(to.call_id as u32));
    let client_id = 2 + to.client_id.map_or(0, |_| 16);
    let retry_count = 1 + varint_length(zigzag_encode(to.retry_count).into());
    let state_id = to.state_id.map_or(0, |state_id| 1 + varint_length(state_id as u64));
    let error =
        error.map_or(0, |(class, message, _)| 1 + delimited(class.len()) + 1 + delimited(message.len()) + 2);
    call_id + status_and_version + error + client_id + retry_count + state_id
}

#[inline]
fn put_header(
    out: &mut BytesMut,
    length: usize,
    to: ReplyTo,
    status: Status,
    error: Option<(&str, &str, ErrorCode)>,
) {
    put_varint(out, length as u64);
    out.put_u8(1 << 3);
    put_varint(out, u64::from(to.call_id as u32));
    out.extend_from_slice(&[2 << 3, status as u8, 3 << 3, VERSION]);
    if let Some((class, message, code)) = error {
        for (number, text) in [(4, class), (5, message)] {
            out.put_u8(number << 3 | 2);
            put_varint(out, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(&[6 << 3, code as u8]);
    }
    out.put_u8(7 << 3 | 2);
    match to.client_id {
        Some(client_id) => {
            out.put_u8(16);
            out.extend_from_slice(&client_id.0);
        }
        None => out.put_u8(0),
    }
    out.put_u8(8 << 3);
    put_varint(out, zigzag_encode(to.retry_count).into());
    if let Some(state_id) = to.state_id {
        out.put_u8(9 << 3);
        put_varint(out, state_id as u64);
    }
}
