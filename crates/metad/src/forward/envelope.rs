//! A call in its envelope, and what proves that a member of the cluster has closed it.
//!
//! The code covers every field. It says that a member vouches for the client's name and address, no more: it
//! is not kept from being sent twice, since the retry cache does that, nor is anything encrypted.

use base::{CallId, CallOrigin, Caller, ClientId, Level, MemberId};
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use proto::{
    clover::forward::{ForwardRequestProto, RefusalProto},
    exception,
    rpc_frame::{ErrorCode, Status},
};
use rpc::{Call, RpcError};
use sha2::Sha256;
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// Part of every code, so that one made for something else fits no envelope.
const PURPOSE: &[u8] = b"clover forward 1";

/// The cluster's secret, put to this use.
#[derive(Clone)]
pub struct Seal {
    mac: Hmac<Sha256>,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    pub fn new(secret: &[u8]) -> Self {
        Self { mac: Hmac::new_from_slice(secret).expect("a key of any length will do") }
    }

    fn over(&self, request: &ForwardRequestProto) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        let mut part = |bytes: &[u8]| {
            mac.update(&(bytes.len() as u64).to_le_bytes());
            mac.update(bytes);
        };
        part(PURPOSE);
        part(request.cluster_id.as_bytes());
        part(&request.from.to_le_bytes());
        part(request.user.as_bytes());
        // An absent field differs from an empty one by the count before it.
        for optional in [
            request.real_user.as_deref().map(str::as_bytes),
            request.address.as_deref(),
            request.caller_context.as_deref().map(str::as_bytes),
        ] {
            part(&[u8::from(optional.is_some())]);
            part(optional.unwrap_or_default());
        }
        part(&request.client_id);
        part(&request.call_id.to_le_bytes());
        part(&request.retry_count.to_le_bytes());
        part(request.protocol.as_bytes());
        part(request.method.as_bytes());
        part(&request.request);
        part(&[u8::from(request.state_id.is_some())]);
        part(&request.state_id.unwrap_or_default().to_le_bytes());
        if let Some(count) = request.client_retry_count {
            part(&count.to_le_bytes());
        }
        if let Some(is_part) = request.is_part {
            part(&[u8::from(is_part)]);
        }
        mac
    }

    /// The code that goes with an envelope, and proves that a member has closed it.
    pub fn code(&self, request: &ForwardRequestProto) -> Bytes {
        Bytes::copy_from_slice(&self.over(request).finalize().into_bytes())
    }

    fn is_whole(&self, request: &ForwardRequestProto) -> bool {
        self.over(request).verify_slice(&request.mac).is_ok()
    }
}

/// Puts a call into its envelope. Below level 3 it does not tell the client's count of its retries from our own: members of an older
/// release would not open it.
pub fn close(seal: &Seal, scope: &str, from: MemberId, call: &Call, level: Level) -> ForwardRequestProto {
    let mut request = ForwardRequestProto {
        cluster_id: scope.to_owned(),
        from: from.0,
        user: call.caller.user.to_string(),
        real_user: call.caller.real_user.as_deref().map(str::to_owned),
        address: call.origin.address.map(|address| match address {
            IpAddr::V4(address) => Bytes::copy_from_slice(&address.octets()),
            IpAddr::V6(address) => Bytes::copy_from_slice(&address.octets()),
        }),
        client_id: Bytes::copy_from_slice(&call.origin.client_id.0),
        call_id: call.origin.call_id.0,
        retry_count: raised(call.origin.retry_count, call.origin.repeats),
        protocol: call.protocol.to_owned(),
        method: call.method.to_owned(),
        request: call.request.clone(),
        state_id: call.state_id,
        caller_context: call.caller_context.as_deref().map(str::to_owned),
        mac: Bytes::new(),
        client_retry_count: (call.origin.repeats > 0 && level >= Level::NOTED_ANSWERS)
            .then_some(call.origin.retry_count),
        is_part: call.is_part.then_some(true),
    };
    request.mac = seal.code(&request);
    request
}

/// A client's count of its retries with ours on top. A client that does not count stays one, until we do.
pub fn raised(retry_count: i32, repeats: u32) -> i32 {
    match repeats {
        0 => retry_count,
        repeats => retry_count.max(0).saturating_add_unsigned(repeats),
    }
}

/// The client's count of its retries, and how often members have repeated this copy, as far as the envelope tells them apart.
fn counts(request: &ForwardRequestProto) -> (i32, u32) {
    match request.client_retry_count {
        None => (request.retry_count, 0),
        Some(count) => (count, request.retry_count.saturating_sub(count.max(0)).try_into().unwrap_or(0)),
    }
}

/// The content of an envelope that is whole.
#[derive(Debug)]
pub struct Opened {
    pub user: String,
    pub real_user: Option<String>,
    /// The call without its caller, whose groups have to be looked up.
    call: Call,
}

impl Opened {
    pub fn into_call(self, caller: Arc<Caller>) -> Call {
        Call { caller, ..self.call }
    }
}

/// Opens an envelope that came on `outer`, for one of these protocols.
///
/// # Errors
/// Hadoop's `AccessControlException` if the envelope was not sealed with the cluster's secret; its `IOException` if the
/// envelope is of another cluster, or names a protocol, method, client or address that makes no sense.
pub fn open(
    seal: &Seal,
    scope: &str,
    protocols: &[&'static str],
    outer: &Call,
    request: ForwardRequestProto,
) -> Result<Opened, RpcError> {
    if !seal.is_whole(&request) {
        let message = "the call that was forwarded is not from a member of this cluster";
        return Err(RpcError::application(exception::ACCESS_CONTROL, message));
    }
    if request.cluster_id != scope {
        let message = format!("a call of cluster {} was forwarded to {scope}", request.cluster_id);
        return Err(RpcError::application(exception::IO, message));
    }
    let malformed = |what: &str| {
        RpcError::application(exception::IO, format!("the call that was forwarded has a malformed {what}"))
    };
    let protocol = protocols
        .iter()
        .copied()
        .find(|protocol| *protocol == request.protocol)
        .ok_or_else(|| malformed("protocol"))?;
    let method = proto::protocol::method(protocol, &request.method).ok_or_else(|| malformed("method"))?;
    let client_id = <[u8; 16]>::try_from(&*request.client_id).map_err(|_| malformed("client id"))?;
    let address = match request.address.as_deref() {
        None => None,
        Some(bytes) => Some(address_of(bytes).ok_or_else(|| malformed("address"))?),
    };
    let (retry_count, repeats) = counts(&request);
    let call = Call {
        protocol,
        method,
        request: request.request,
        caller: Arc::clone(&outer.caller),
        origin: CallOrigin {
            client_id: ClientId(client_id),
            call_id: CallId(request.call_id),
            retry_count,
            repeats,
            address,
        },
        peer: address.map_or(outer.peer, |address| SocketAddr::new(address, 0)),
        connection: 0,
        state_id: request.state_id,
        caller_context: request.caller_context.map(Arc::from),
        is_forwarded: true,
        is_part: request.is_part.unwrap_or(false),
        redirects: 0,
        read_point: None,
    };
    Ok(Opened { user: request.user, real_user: request.real_user, call })
}

fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

pub fn refusal_to_proto(error: &RpcError) -> RefusalProto {
    RefusalProto {
        class_name: error.class.to_string(),
        message: error.message.clone(),
        status: error.status as u32,
        code: error.code as u32,
    }
}

/// The refusal as the active has spelt it: class, text and what becomes of the connection.
pub fn refusal_from_proto(refusal: RefusalProto) -> RpcError {
    let fatal = refusal.status == Status::Fatal as u32;
    RpcError {
        class: refusal.class_name.into(),
        message: refusal.message,
        status: if fatal { Status::Fatal } else { Status::Error },
        code: ErrorCode::from_number(refusal.code).unwrap_or(ErrorCode::Application),
    }
}
