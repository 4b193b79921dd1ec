//! A client's call in the envelope of another member.

use crate::Target;
use base::{CallId, CallOrigin, Caller, ClientId, Level, MemberId};
use bytes::Bytes;
use metad::foreign::{Seal, close, open};
use prost::Message as _;
use proto::clover::forward::ForwardRequestProto;
use rpc::Call;
use std::{net::SocketAddr, sync::Arc};

pub fn targets() -> [Target; 1] {
    [Target { name: "forwarded_call", samples: envelopes, check }]
}

const CLUSTER: &str = "CID-1";

fn seal() -> Seal {
    Seal::new(b"known to members only")
}

fn call(request: &'static [u8], peer: &str) -> Call {
    let peer: SocketAddr = peer.parse().expect("an address");
    Call {
        protocol: proto::protocol::CLIENT_NAMENODE,
        method: "mkdirs",
        request: Bytes::from_static(request),
        caller: Arc::new(Caller::simple("alice", &["staff"])),
        origin: CallOrigin {
            client_id: ClientId([7; 16]),
            call_id: CallId(3),
            retry_count: -1,
            repeats: 1,
            address: Some(peer.ip()),
        },
        peer,
        connection: 0,
        state_id: Some(9),
        caller_context: Some("context".into()),
        is_forwarded: false,
        is_part: false,
        redirects: 0,
        read_point: None,
    }
}

fn envelopes() -> Vec<Vec<u8>> {
    [call(b"request", "10.0.0.1:40000"), call(&[0; 300], "[::1]:40000")]
        .iter()
        .map(|call| close(&seal(), CLUSTER, MemberId(2), call, Level::NEWEST).encode_to_vec())
        .collect()
}

/// An envelope that no member has sealed is refused. One that a member has sealed is taken, or refused: a secret that
/// became known must not crash servers.
fn check(bytes: &[u8]) -> bool {
    let Ok(mut request) = ForwardRequestProto::decode(bytes) else { return false };
    let outer = call(b"", "10.0.0.2:50000");
    let protocols = [proto::protocol::CLIENT_NAMENODE];
    let was_sealed = request.mac == seal().code(&request);
    let opened = open(&seal(), CLUSTER, &protocols, &outer, request.clone());
    assert!(was_sealed || opened.is_err(), "only a member's own words are believed");
    request.mac = seal().code(&request);
    let Ok(opened) = open(&seal(), CLUSTER, &protocols, &outer, request.clone()) else { return false };
    assert_eq!((&opened.user, &opened.real_user), (&request.user, &request.real_user));
    let call = opened.into_call(outer.caller.clone());
    assert_eq!((call.protocol, call.method), (&*request.protocol, &*request.method));
    assert_eq!(call.request, request.request);
    assert_eq!(call.origin.client_id.0, *request.client_id);
    let retry_count = request.client_retry_count.unwrap_or(request.retry_count);
    assert_eq!((call.origin.call_id.0, call.origin.retry_count), (request.call_id, retry_count));
    was_sealed
}
