//! The bytes that arrive on the RPC port.

use crate::Target;
use bytes::BytesMut;
use proto::{
    rpc_frame::{self, parse_preamble},
    wire::Cursor,
};

pub fn targets() -> [Target; 3] {
    [
        Target { name: "rpc_preamble", samples: preambles, check: check_preamble },
        Target { name: "rpc_request", samples: requests, check: check_request },
        Target { name: "rpc_reply", samples: replies, check: check_reply },
    ]
}

const LIMIT: usize = 64 << 20;

fn preambles() -> Vec<Vec<u8>> {
    let mut out = BytesMut::new();
    rpc_frame::put_preamble(&mut out, rpc_frame::AuthProtocol::None);
    vec![out.to_vec()]
}

fn check_preamble(bytes: &[u8]) -> bool {
    matches!(parse_preamble(bytes), rpc_frame::Preamble::Hadoop { .. })
}

fn requests() -> Vec<Vec<u8>> {
    let client = base::ClientId([7; 16]);
    let call =
        rpc_frame::CallHeader { method: "mkdirs", protocol: proto::protocol::CLIENT_NAMENODE, version: 1 };
    let mut call_frame = BytesMut::new();
    rpc_frame::put_request(&mut call_frame, 5, client, -1, Some(9), call, 3, |out| {
        out.extend_from_slice(&[10, 1, b'/']);
    });
    let mut context = BytesMut::new();
    rpc_frame::put_connection_context(&mut context, client, "user", Some("real"), call.protocol);
    let mut ping = BytesMut::new();
    rpc_frame::put_ping(&mut ping, client);
    vec![call_frame.to_vec(), context.to_vec(), ping.to_vec()]
}

/// Reads a request as the server's reader goes through a frame.
fn check_request(bytes: &[u8]) -> bool {
    let Ok(Some(length)) = rpc_frame::frame_length(bytes, LIMIT) else { return false };
    assert!((1..=LIMIT).contains(&length), "a frame's length is checked before it is believed");
    let Some(frame) = bytes.get(4..4 + length) else { return false };
    let mut frame = Cursor::new(frame);
    let Ok(header) = rpc_frame::parse_request_header(&mut frame) else { return false };
    let is_well_formed = rpc_frame::check_header(&header).is_ok();
    if header.call_id < 0 {
        if header.call_id == rpc_frame::CALL_PING {
            return is_well_formed;
        }
        let Ok(body) = frame.delimited() else { return false };
        let context =
            proto::decode::<proto::common::IpcConnectionContextProto>(bytes::Bytes::copy_from_slice(body));
        return is_well_formed && context.is_ok();
    }
    let Ok(_) = rpc_frame::parse_call_header(&mut frame) else { return false };
    is_well_formed && frame.delimited().is_ok()
}

fn replies() -> Vec<Vec<u8>> {
    let to = rpc_frame::ReplyTo {
        call_id: 3,
        client_id: Some(base::ClientId([7; 16])),
        retry_count: 0,
        state_id: Some(4),
    };
    let mut success = BytesMut::new();
    rpc_frame::put_success(&mut success, to, 2, |out| out.extend_from_slice(&[8, 1]));
    let mut error = BytesMut::new();
    let (status, code) = (rpc_frame::Status::Error, rpc_frame::ErrorCode::Application);
    rpc_frame::put_error(&mut error, to, status, code, "java.io.IOException", "no");
    vec![success.to_vec(), error.to_vec()]
}

fn check_reply(bytes: &[u8]) -> bool {
    let Ok(Some(length)) = rpc_frame::frame_length(bytes, LIMIT) else { return false };
    let Some(frame) = bytes.get(4..4 + length) else { return false };
    rpc_frame::parse_reply(&mut Cursor::new(frame)).is_ok()
}
