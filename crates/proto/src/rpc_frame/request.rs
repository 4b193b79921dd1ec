//! From the client: headers of calls, and the steps that set up a connection.

use super::{
    AuthProtocol, CALL_CONNECTION_CONTEXT, CALL_PING, CALL_SASL, KIND_PROTOCOL_BUFFER, MAGIC,
    RETRY_COUNT_UNKNOWN, VERSION,
};
use crate::{
    DecodeError,
    common::{IpcConnectionContextProto, RpcSaslProto, UserInformationProto},
    decode_error::DEPTH_MAX,
    wire::{Cursor, WireType, put_varint, varint_length, zigzag_decode, zigzag_encode},
};
use base::ClientId;
use bytes::{BufMut, BytesMut};
use prost::Message;

const REQUEST_HEADER: &str = "hadoop.common.RpcRequestHeaderProto";
const CALL_HEADER: &str = "hadoop.common.RequestHeaderProto";

/// `RpcRequestHeaderProto`, borrowed from the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    pub kind: Option<i32>,
    pub operation: Option<i32>,
    pub call_id: i32,
    /// 16 bytes in a call; often none in out-of-band steps.
    pub client_id: &'a [u8],
    pub retry_count: i32,
    /// The newest state of the namespace that the client has seen, if it cares.
    pub state_id: Option<i64>,
    /// The name that the client's program gives itself, for the audit log.
    pub caller_context: Option<&'a str>,
}

/// `RequestHeaderProto`: which method of which protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallHeader<'a> {
    pub method: &'a str,
    pub protocol: &'a str,
    pub version: u64,
}

/// Reads the header at the start of a frame and moves `frame` past it.
///
/// # Errors
/// [`DecodeError::MissingField`] if the call id or the client id is missing, [`DecodeError::WrongWireType`] if a field
/// has another wire type; those of [`required::check`](crate::required::check) for the caller's context and the trace.
/// A header that is cut off or malformed gives the errors of [`Cursor`].
pub fn parse_request_header<'a>(frame: &mut Cursor<'a>) -> Result<RequestHeader<'a>, DecodeError> {
    let mut header = Cursor::new(frame.delimited()?);
    let mut parsed = RequestHeader {
        kind: None,
        operation: None,
        call_id: 0,
        client_id: &[],
        retry_count: RETRY_COUNT_UNKNOWN,
        state_id: None,
        caller_context: None,
    };
    let (mut has_call_id, mut has_client_id) = (false, false);
    while !header.is_empty() {
        match header.key()? {
            // An unknown value of an enumeration counts as absent.
            (1, WireType::Varint) => {
                parsed.kind = Some(header.varint()? as i32).filter(|k| (0..=2).contains(k))
            }
            (2, WireType::Varint) => {
                parsed.operation = Some(header.varint()? as i32).filter(|o| (0..=2).contains(o));
            }
            (3, WireType::Varint) => {
                parsed.call_id = zigzag_decode(header.varint()?);
                has_call_id = true;
            }
            (4, WireType::Delimited) => {
                parsed.client_id = header.delimited()?;
                has_client_id = true;
            }
            (5, WireType::Varint) => parsed.retry_count = zigzag_decode(header.varint()?),
            (6, WireType::Delimited) => {
                crate::required::check("hadoop.common.RPCTraceInfoProto", header.delimited()?)?;
            }
            (7, WireType::Delimited) => {
                parsed.caller_context = Some(parse_caller_context(header.delimited()?)?);
            }
            (8, WireType::Varint) => parsed.state_id = Some(header.varint()? as i64),
            (9 | 10, WireType::Delimited) => drop(header.delimited()?),
            (1..=10, _) => {
                return Err(DecodeError::WrongWireType { message: REQUEST_HEADER, field: "(header)" });
            }
            (number, wire_type) => header.skip(number, wire_type, DEPTH_MAX)?,
        }
    }
    if !has_call_id {
        return Err(DecodeError::MissingField { message: REQUEST_HEADER, field: "callId" });
    }
    if !has_client_id {
        return Err(DecodeError::MissingField { message: REQUEST_HEADER, field: "clientId" });
    }
    Ok(parsed)
}

fn parse_caller_context(bytes: &[u8]) -> Result<&str, DecodeError> {
    crate::required::check("hadoop.common.RPCCallerContextProto", bytes)?;
    let mut message = Cursor::new(bytes);
    let mut context = "";
    while !message.is_empty() {
        match message.key()? {
            (1, WireType::Delimited) => context = utf8(message.delimited()?, "context")?,
            (number, wire_type) => message.skip(number, wire_type, DEPTH_MAX)?,
        }
    }
    Ok(context)
}

fn utf8<'a>(bytes: &'a [u8], field: &'static str) -> Result<&'a str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::InvalidUtf8 {
        message: CALL_HEADER,
        field,
        text: String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned(),
    })
}

/// Reads which method is called and moves `frame` past it: what is left is the length and the request.
///
/// # Errors
/// [`DecodeError::MissingField`] if the method, the protocol or its version is missing, [`DecodeError::WrongWireType`]
/// if a field has another wire type, [`DecodeError::InvalidUtf8`] if a name is not UTF-8. A header that is cut off or
/// malformed gives the errors of [`Cursor`].
pub fn parse_call_header<'a>(frame: &mut Cursor<'a>) -> Result<CallHeader<'a>, DecodeError> {
    let mut header = Cursor::new(frame.delimited()?);
    let (mut method, mut protocol, mut version) = (None, None, None);
    while !header.is_empty() {
        match header.key()? {
            (1, WireType::Delimited) => method = Some(utf8(header.delimited()?, "methodName")?),
            (2, WireType::Delimited) => {
                protocol = Some(utf8(header.delimited()?, "declaringClassProtocolName")?);
            }
            (3, WireType::Varint) => version = Some(header.varint()?),
            (1..=3, _) => return Err(DecodeError::WrongWireType { message: CALL_HEADER, field: "(header)" }),
            (number, wire_type) => header.skip(number, wire_type, DEPTH_MAX)?,
        }
    }
    let missing = |field| DecodeError::MissingField { message: CALL_HEADER, field };
    Ok(CallHeader {
        method: method.ok_or_else(|| missing("methodName"))?,
        protocol: protocol.ok_or_else(|| missing("declaringClassProtocolName"))?,
        version: version.ok_or_else(|| missing("clientProtocolVersion"))?,
    })
}

/// Checks what Hadoop's server demands of every header. The text of an error is Hadoop's.
///
/// # Errors
/// The header has no operation, an operation other than a call, or no kind of call.
pub fn check_header(header: &RequestHeader<'_>) -> Result<(), String> {
    match header.operation {
        None => return Err(" IPC Server: No rpc op in rpcRequestHeader".into()),
        Some(0) => {}
        Some(other) => return Err(format!("IPC Server does not implement rpc header operation {other}")),
    }
    match header.kind {
        None => Err(" IPC Server: No rpc kind in rpcRequestHeader".into()),
        Some(_) => Ok(()),
    }
}

/// The first bytes of a connection.
pub fn put_preamble(out: &mut BytesMut, auth: AuthProtocol) {
    const SERVICE_CLASS_DEFAULT: u8 = 0;
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION, SERVICE_CLASS_DEFAULT, auth.byte()]);
}

/// Writes a whole call: its frame length, both headers and the request of `length` bytes that `body` puts.
#[allow(clippy::too_many_arguments)]
pub fn put_request(
    out: &mut BytesMut,
    call_id: i32,
    client_id: ClientId,
    retry_count: i32,
    state_id: Option<i64>,
    call: CallHeader<'_>,
    length: usize,
    body: impl FnOnce(&mut BytesMut),
) {
    let header = request_header_length(call_id, 16, retry_count, state_id);
    let call_header = 1
        + varint_length(call.method.len() as u64)
        + call.method.len()
        + 1
        + varint_length(call.protocol.len() as u64)
        + call.protocol.len()
        + 1
        + varint_length(call.version);
    let total = delimited(header) + delimited(call_header) + delimited(length);
    out.reserve(4 + total);
    out.put_u32(total as u32);
    put_request_header(out, header, call_id, &client_id.0, retry_count, state_id);
    put_varint(out, call_header as u64);
    put_text(out, 1, call.method);
    put_text(out, 2, call.protocol);
    out.put_u8(3 << 3);
    put_varint(out, call.version);
    put_varint(out, length as u64);
    body(out);
}

/// Says for whom the connection speaks, and which protocol it will speak.
pub fn put_connection_context(
    out: &mut BytesMut,
    client_id: ClientId,
    effective_user: &str,
    real_user: Option<&str>,
    protocol: &str,
) {
    let context = IpcConnectionContextProto {
        user_info: Some(UserInformationProto {
            effective_user: Some(effective_user.to_owned()),
            real_user: real_user.map(str::to_owned),
        }),
        protocol: Some(protocol.to_owned()),
    };
    put_out_of_band(out, CALL_CONNECTION_CONTEXT, &client_id.0, &context);
}

/// A step of the SASL exchange. Hadoop sends these without a client id.
pub fn put_sasl(out: &mut BytesMut, message: &RpcSaslProto) {
    put_out_of_band(out, CALL_SASL, &[], message);
}

/// Keeps an idle connection alive; nothing answers it.
pub fn put_ping(out: &mut BytesMut, client_id: ClientId) {
    let header = request_header_length(CALL_PING, 16, RETRY_COUNT_UNKNOWN, None);
    out.put_u32(delimited(header) as u32);
    put_request_header(out, header, CALL_PING, &client_id.0, RETRY_COUNT_UNKNOWN, None);
}

fn put_out_of_band(out: &mut BytesMut, call_id: i32, client_id: &[u8], message: &impl Message) {
    let header = request_header_length(call_id, client_id.len(), RETRY_COUNT_UNKNOWN, None);
    let length = message.encoded_len();
    out.put_u32((delimited(header) + delimited(length)) as u32);
    put_request_header(out, header, call_id, client_id, RETRY_COUNT_UNKNOWN, None);
    put_varint(out, length as u64);
    message.encode_raw(out);
}

fn delimited(length: usize) -> usize {
    varint_length(length as u64) + length
}

fn put_text(out: &mut BytesMut, number: u8, text: &str) {
    out.put_u8(number << 3 | 2);
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn request_header_length(call_id: i32, client_id: usize, retry_count: i32, state_id: Option<i64>) -> usize {
    let kind_and_operation = 4;
    kind_and_operation
        + 1
        + varint_length(zigzag_encode(call_id).into())
        + 1
        + delimited(client_id)
        + 1
        + varint_length(zigzag_encode(retry_count).into())
        + state_id.map_or(0, |state_id| 1 + varint_length(state_id as u64))
}

fn put_request_header(
    out: &mut BytesMut,
    length: usize,
    call_id: i32,
    client_id: &[u8],
    retry_count: i32,
    state_id: Option<i64>,
) {
    put_varint(out, length as u64);
    let operation_final = 0;
    out.extend_from_slice(&[1 << 3, KIND_PROTOCOL_BUFFER as u8, 2 << 3, operation_final, 3 << 3]);
    put_varint(out, zigzag_encode(call_id).into());
    out.put_u8(4 << 3 | 2);
    put_varint(out, client_id.len() as u64);
    out.extend_from_slice(client_id);
    out.put_u8(5 << 3);
    put_varint(out, zigzag_encode(retry_count).into());
    if let Some(state_id) = state_id {
        out.put_u8(8 << 3);
        put_varint(out, state_id as u64);
    }
}
