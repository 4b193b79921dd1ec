use super::{
    AuthProtocol, CallHeader, ErrorCode, FrameError, Preamble, ReplyTo, Status, frame_length,
    parse_call_header, parse_preamble, parse_reply, parse_request_header, put_connection_context, put_error,
    put_ping, put_preamble, put_request, put_sasl, put_success, put_version_mismatch,
};
use crate::{
    common::{
        IpcConnectionContextProto, RequestHeaderProto, RpcCallerContextProto, RpcRequestHeaderProto,
        RpcResponseHeaderProto, RpcSaslProto,
        rpc_response_header_proto::{RpcErrorCodeProto, RpcStatusProto},
        rpc_sasl_proto::SaslState,
    },
    wire::{Cursor, varint_length, zigzag_decode, zigzag_encode},
};
use base::ClientId;
use bytes::{Buf, Bytes, BytesMut};
use proptest::prelude::*;
use prost::Message;

const CLIENT_ID: ClientId = ClientId([0xab; 16]);

fn written(put: impl FnOnce(&mut BytesMut)) -> BytesMut {
    let mut out = BytesMut::new();
    put(&mut out);
    out
}

/// The bytes after a frame's length, which must be true.
fn frame(mut bytes: BytesMut) -> Bytes {
    assert_eq!(frame_length(&bytes, 1 << 20), Ok(Some(bytes.len() - 4)));
    bytes.advance(4);
    bytes.freeze()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The bytes of a mkdirs call, field by field as Hadoop's client writes them.
#[test]
fn golden_request() {
    let call = CallHeader { method: "mkdirs", protocol: "a.B", version: 1 };
    let bytes =
        written(|out| put_request(out, 5, CLIENT_ID, 0, None, call, 2, |out| out.extend_from_slice(b"xy")));
    let expected = hex("0000002e
         1a 08 02 10 00 18 0a 22 10 abababababababababababababababab 28 00
         0f 0a 06 6d6b64697273 12 03 612e42 18 01
         02 7879");
    assert_eq!(bytes, expected);
}

#[test]
fn golden_connection_setup() {
    assert_eq!(written(|out| put_preamble(out, AuthProtocol::None)), &b"hrpc\x09\0\0"[..]);
    assert_eq!(written(|out| put_preamble(out, AuthProtocol::Sasl)), &b"hrpc\x09\0\xdf"[..]);
    let context = written(|out| put_connection_context(out, CLIENT_ID, "ann", None, "a.B"));
    let expected = hex("00000028
         1a 08 02 10 00 18 05 22 10 abababababababababababababababab 28 01
         0c 12 05 0a 03 616e6e 1a 03 612e42");
    assert_eq!(context, expected);
    let ping = written(|out| put_ping(out, CLIENT_ID));
    assert_eq!(ping, hex("0000001b 1a 08 02 10 00 18 07 22 10 abababababababababababababababab 28 01"));
    let negotiate = RpcSaslProto { state: SaslState::Negotiate.into(), ..Default::default() };
    let negotiate = written(|out| put_sasl(out, &negotiate));
    assert_eq!(negotiate, hex("0000000e 0a 08 02 10 00 18 41 22 00 28 01 02 10 01"));
}

#[test]
fn golden_replies() {
    let to = ReplyTo { call_id: 5, client_id: Some(CLIENT_ID), retry_count: 0, state_id: None };
    let success = written(|out| put_success(out, to, 2, |out| out.extend_from_slice(b"\x08\x01")));
    let expected = hex("0000001e 1a 08 05 10 00 18 09 3a 10 abababababababababababababababab 40 00 02 0801");
    assert_eq!(success, expected);
    let error = written(|out| put_error(out, to, Status::Error, ErrorCode::Application, "a.B", "no"));
    let expected = hex("00000026
         25 08 05 10 01 18 09 22 03 612e42 2a 02 6e6f 30 01 3a 10 abababababababababababababababab 40 00");
    assert_eq!(error, expected);
}

/// SIMPLE servers answer a negotiation with this, which Hadoop's client takes as leave to go on without.
#[test]
fn golden_sasl_success() {
    let to = ReplyTo { call_id: -33, client_id: None, retry_count: -1, state_id: None };
    let success = written(|out| put_success(out, to, 2, |out| out.extend_from_slice(b"\x10\x00")));
    assert_eq!(success, hex("00000012 0e 08 dfffffff0f 10 00 18 09 3a 00 40 01 02 1000"));
}

#[test]
fn version_mismatch_is_told_in_the_layout_of_the_version() {
    assert_eq!(&written(|out| put_version_mismatch(out, 8))[..8], [0xff; 8]);
    assert_eq!(&written(|out| put_version_mismatch(out, 2))[..5], [0, 0, 0, 0, 1]);
    assert!(written(|out| put_version_mismatch(out, 1)).is_empty());
    for version in [10, 127, 128, 200, 255] {
        let reply = frame(written(|out| put_version_mismatch(out, version)));
        let header = parse_reply(&mut Cursor::new(&reply)).unwrap();
        assert_eq!((header.call_id, header.status, header.error_code), (-1, Status::Fatal, Some(14)));
    }
}

#[test]
fn preambles_are_told_apart() {
    let simple = Preamble::Hadoop { service_class: 3, auth: AuthProtocol::None };
    let sasl = Preamble::Hadoop { service_class: 0, auth: AuthProtocol::Sasl };
    for (bytes, expected) in [
        (&b"hrpc\x09\x03\x00rest"[..], simple),
        (b"hrpc\x09\x00\xdf", sasl),
        (b"hrpc\x09\x00\x51", Preamble::UnknownAuth(0x51)),
        (b"hrpc\x08", Preamble::OtherVersion(8)),
        (b"hrpc\xc8\x00\x00", Preamble::OtherVersion(200)),
        (b"GET / HTTP/1.1", Preamble::Http),
        (b"\x16\x03\x01", Preamble::Tls),
        (b"\x00\x00\x00\x01", Preamble::Foreign([0, 0, 0, 1])),
        (b"", Preamble::Partial),
        (b"hrp", Preamble::Partial),
        (b"hrpc", Preamble::Partial),
        (b"hrpc\x09\x00", Preamble::Partial),
    ] {
        assert_eq!(parse_preamble(bytes), expected, "{bytes:?}");
    }
}

#[test]
fn frame_lengths_have_limits() {
    assert_eq!(frame_length(&[0, 0, 0], 10), Ok(None));
    assert_eq!(frame_length(&[0, 0, 0, 10], 10), Ok(Some(10)));
    assert_eq!(frame_length(&[0, 0, 0, 11], 10), Err(FrameError::TooLong { length: 11, limit: 10 }));
    assert_eq!(frame_length(b"HTTP/1.1 400", 10), Err(FrameError::Http));
    assert_eq!(frame_length(&[0; 4], 10), Err(FrameError::Empty));
    assert_eq!(frame_length(&[0xff; 4], 10), Err(FrameError::Negative(-1)));
}

/// The header that a reader by hand and the generated one both make of the bytes.
fn both_readings(bytes: &[u8]) -> (Result<RpcRequestHeaderProto, String>, Result<(), String>) {
    let checked = crate::required::check("hadoop.common.RpcRequestHeaderProto", bytes);
    let generated = checked
        .map_err(|error| error.to_string())
        .and_then(|()| RpcRequestHeaderProto::decode(bytes).map_err(|error| error.to_string()));
    let mut framed = Vec::new();
    crate::wire::put_varint(&mut framed, bytes.len() as u64);
    framed.extend_from_slice(bytes);
    let mut cursor = Cursor::new(&framed);
    let by_hand = parse_request_header(&mut cursor).map_err(|error| error.to_string()).map(|header| {
        let generated = generated.as_ref().expect("the generated reader takes what the other took");
        assert_eq!(header.call_id, generated.call_id);
        assert_eq!(header.client_id, generated.client_id);
        assert_eq!(header.retry_count, generated.retry_count());
        assert_eq!(header.state_id, generated.state_id);
        assert_eq!(
            header.caller_context,
            generated.caller_context.as_ref().map(|context| context.context.as_str())
        );
        assert!(cursor.is_empty());
    });
    (generated, by_hand)
}

prop_compose! {
    fn request_header()(
        call_id: i32,
        client_id in prop::collection::vec(any::<u8>(), 0..20),
        retry_count: Option<i32>,
        state_id: Option<i64>,
        rpc_kind in prop::option::of(0..3),
        rpc_op in prop::option::of(0..3),
        caller_context in prop::option::of("[a-zé]{0,9}"),
        authorization_header in prop::option::of(prop::collection::vec(any::<u8>(), 0..20)),
    ) -> RpcRequestHeaderProto {
        RpcRequestHeaderProto {
            rpc_kind,
            rpc_op,
            call_id,
            client_id: client_id.into(),
            retry_count,
            trace_info: None,
            caller_context: caller_context.map(|context| RpcCallerContextProto { context, signature: None }),
            state_id,
            router_federated_state: None,
            authorization_header: authorization_header.map(Bytes::from),
        }
    }
}

proptest! {
    #[test]
    fn request_headers_are_read_as_the_generated_reader_reads_them(header in request_header()) {
        let (generated, by_hand) = both_readings(&header.encode_to_vec());
        prop_assert_eq!(generated, Ok(header));
        prop_assert_eq!(by_hand, Ok(()));
    }

    #[test]
    fn mutated_request_headers_are_refused_or_read_alike(
        header in request_header(),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let mut bytes = header.encode_to_vec();
        let index = at.index(bytes.len());
        bytes[index] = byte;
        let _ = both_readings(&bytes);
    }

    #[test]
    fn requests_are_written_as_the_generated_writer_writes_them(
        call_id: i32,
        retry_count: i32,
        state_id: Option<i64>,
        method in "[a-z]{0,200}",
        protocol in "[a-z.]{0,200}",
        version: u64,
        body: Vec<u8>,
    ) {
        let call = CallHeader { method: &method, protocol: &protocol, version };
        let bytes = frame(written(|out| {
            put_request(out, call_id, CLIENT_ID, retry_count, state_id, call, body.len(), |out| {
                out.extend_from_slice(&body);
            });
        }));
        let mut cursor = Cursor::new(&bytes);
        let generated = RpcRequestHeaderProto {
            rpc_kind: Some(2),
            rpc_op: Some(0),
            call_id,
            client_id: CLIENT_ID.0.to_vec().into(),
            retry_count: Some(retry_count),
            state_id,
            ..Default::default()
        };
        prop_assert_eq!(cursor.delimited().unwrap(), generated.encode_to_vec());
        let at_call = cursor;
        let generated = RequestHeaderProto {
            method_name: method.clone(),
            declaring_class_protocol_name: protocol.clone(),
            client_protocol_version: version,
        };
        prop_assert_eq!(cursor.delimited().unwrap(), generated.encode_to_vec());
        prop_assert_eq!(cursor.delimited().unwrap(), &body);
        prop_assert!(cursor.is_empty());
        let mut cursor = at_call;
        prop_assert_eq!(parse_call_header(&mut cursor), Ok(call));
    }

    #[test]
    fn replies_are_written_as_the_generated_writer_writes_them(
        call_id: i32,
        retry_count: i32,
        state_id: Option<i64>,
        has_client_id: bool,
        class in "[a-z.$]{0,200}",
        message in "\\PC{0,200}",
    ) {
        let client_id = has_client_id.then_some(CLIENT_ID);
        let to = ReplyTo { call_id, client_id, retry_count, state_id };
        let bytes = frame(written(|out| {
            put_error(out, to, Status::Fatal, ErrorCode::FatalUnauthorized, &class, &message);
        }));
        let mut cursor = Cursor::new(&bytes);
        let generated = RpcResponseHeaderProto {
            call_id: call_id as u32,
            status: RpcStatusProto::Fatal.into(),
            server_ipc_version_num: Some(9),
            exception_class_name: Some(class.clone()),
            error_msg: Some(message.clone()),
            error_detail: Some(RpcErrorCodeProto::FatalUnauthorized.into()),
            client_id: Some(client_id.map_or(Bytes::new(), |id| id.0.to_vec().into())),
            retry_count: Some(retry_count),
            state_id,
            router_federated_state: None,
        };
        prop_assert_eq!(cursor.delimited().unwrap(), generated.encode_to_vec());
        prop_assert!(cursor.is_empty());
        let header = parse_reply(&mut Cursor::new(&bytes)).unwrap();
        prop_assert_eq!((header.call_id, header.exception, header.message, header.state_id),
            (call_id, Some(class.as_str()), Some(message.as_str()), state_id));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, limit: usize) {
        parse_preamble(&bytes);
        let _ = frame_length(&bytes, limit);
        let _ = parse_request_header(&mut Cursor::new(&bytes));
        let _ = parse_call_header(&mut Cursor::new(&bytes));
        let _ = parse_reply(&mut Cursor::new(&bytes));
    }

    #[test]
    fn varints_are_as_long_as_said(value: u64, shift in 0..64) {
        let value = value >> shift;
        let bytes = written(|out| crate::wire::put_varint(out, value));
        prop_assert_eq!(bytes.len(), varint_length(value));
        prop_assert_eq!(Cursor::new(&bytes).varint(), Ok(value));
    }

    #[test]
    fn zigzag_goes_and_comes(value: i32) {
        prop_assert_eq!(zigzag_decode(zigzag_encode(value).into()), value);
    }
}

#[test]
fn a_context_is_what_the_generated_reader_reads() {
    let bytes = frame(written(|out| put_connection_context(out, CLIENT_ID, "ann", Some("eve"), "a.B")));
    let mut cursor = Cursor::new(&bytes);
    assert_eq!(parse_request_header(&mut cursor).unwrap().call_id, -3);
    let context = IpcConnectionContextProto::decode(cursor.delimited().unwrap()).unwrap();
    let user = context.user_info.unwrap();
    assert_eq!(
        (user.effective_user(), user.real_user(), context.protocol.as_deref()),
        ("ann", "eve", Some("a.B"))
    );
}

/// The bytes that `hdfs dfs -mkdir /a/b/c` of Hadoop 3.5.0 sent to a NameNode of the same release, and the bytes that
/// came back.
const HADOOP_REQUESTS: &[u8] = include_bytes!("../../testdata/hadoop-3.5.0-mkdir-requests.bin");
const HADOOP_REPLIES: &[u8] = include_bytes!("../../testdata/hadoop-3.5.0-mkdir-replies.bin");

fn frames(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some(length) = frame_length(bytes, 1 << 20).unwrap() {
        frames.push(&bytes[4..4 + length]);
        bytes = &bytes[4 + length..];
    }
    assert!(bytes.is_empty());
    frames
}

#[test]
fn what_hadoop_s_client_sends_is_understood() {
    let simple = Preamble::Hadoop { service_class: 0, auth: AuthProtocol::None };
    assert_eq!(parse_preamble(HADOOP_REQUESTS), simple);
    let frames = frames(&HADOOP_REQUESTS[7..]);
    let mut calls = Vec::new();
    for frame in &frames[1..] {
        let mut cursor = Cursor::new(frame);
        let header = parse_request_header(&mut cursor).unwrap();
        assert_eq!(super::check_header(&header), Ok(()));
        assert_eq!((header.kind, header.client_id.len(), header.retry_count), (Some(2), 16, 0));
        assert_eq!(header.caller_context, Some("CLI"));
        let call = parse_call_header(&mut cursor).unwrap();
        assert_eq!((call.protocol, call.version), (crate::protocol::CLIENT_NAMENODE, 1));
        let request = cursor.delimited().unwrap();
        assert!(cursor.is_empty());
        calls.push((header.call_id, call.method, request));
    }
    let methods: Vec<_> = calls.iter().map(|(id, method, _)| (*id, *method)).collect();
    assert_eq!(methods, [(0, "getFileInfo"), (1, "getFileInfo"), (2, "mkdirs")]);
    let mkdirs: crate::hdfs::MkdirsRequestProto = crate::decode(calls[2].2.to_vec().into()).unwrap();
    assert_eq!((mkdirs.src.as_str(), mkdirs.masked.perm, mkdirs.create_parent), ("/a/b/c", 0o755, true));

    let mut cursor = Cursor::new(frames[0]);
    assert_eq!(parse_request_header(&mut cursor).unwrap().call_id, super::CALL_CONNECTION_CONTEXT);
    let context = IpcConnectionContextProto::decode(cursor.delimited().unwrap()).unwrap();
    assert_eq!(context.user_info.unwrap().effective_user(), "root");
}

/// Replies that this crate writes for these calls are, byte for byte, those of Hadoop's server.
#[test]
fn replies_are_those_of_hadoop_s_server() {
    let mut ours = BytesMut::new();
    for frame in frames(HADOOP_REPLIES) {
        let mut cursor = Cursor::new(frame);
        let header = parse_reply(&mut cursor).unwrap();
        assert_eq!(header.status, Status::Success);
        let response = cursor.delimited().unwrap();
        let to = ReplyTo {
            call_id: header.call_id,
            client_id: Some(ClientId(header.client_id.try_into().unwrap())),
            retry_count: header.retry_count,
            state_id: header.state_id,
        };
        put_success(&mut ours, to, response.len(), |out| out.extend_from_slice(response));
    }
    assert_eq!(ours, HADOOP_REPLIES);
}
