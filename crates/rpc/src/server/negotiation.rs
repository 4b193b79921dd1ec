//! How a connection comes to be believed: the place where SASL will sit.
//!
//! ```text
//! AuthProtocol::None   ──────────────────────────────────────▶ settled
//! AuthProtocol::Sasl   ── NEGOTIATE ──▶ answer SUCCESS ──────▶ settled (SIMPLE)
//! ```
//!
//! A server that allows only SIMPLE answers the client's first SASL message with SUCCESS, which clients take
//! as the word to go on without. A mechanism will add the states between, and a layer that wraps frames.

use crate::RpcError;
use proto::{
    DecodeError,
    common::{RpcSaslProto, rpc_sasl_proto::SaslState},
    exception,
    rpc_frame::{AuthProtocol, ErrorCode},
};

/// One connection's way to an authenticated user.
#[derive(Debug)]
pub struct Negotiation {
    auth: AuthProtocol,
}

impl Negotiation {
    pub fn new(auth: AuthProtocol) -> Self {
        Self { auth }
    }

    /// Whether the connection context may follow.
    pub fn is_settled(&self) -> bool {
        self.auth == AuthProtocol::None
    }

    /// Takes a message of the client; what it returns is to be sent.
    ///
    /// # Errors
    /// The client did not ask for SASL, the message does not decode, or it asks for anything but to negotiate: only
    /// SIMPLE is served.
    pub fn on_message(&mut self, bytes: bytes::Bytes) -> Result<RpcSaslProto, RpcError> {
        if self.auth != AuthProtocol::Sasl {
            return Err(RpcError::invalid_header("SASL protocol not requested by client"));
        }
        let message: RpcSaslProto = proto::decode(bytes)
            .map_err(|error: DecodeError| RpcError::header_decoding("RpcSaslProto", &error))?;
        match message.state() {
            SaslState::Negotiate => {
                self.auth = AuthProtocol::None;
                Ok(RpcSaslProto { state: SaslState::Success.into(), ..Default::default() })
            }
            SaslState::Initiate | SaslState::Response => Err(refused(
                exception::ACCESS_CONTROL,
                "SIMPLE is the only authentication enabled. Available:[SIMPLE]".into(),
            )),
            SaslState::Wrap => Err(RpcError::fatal(
                ErrorCode::FatalInvalidRpcHeader,
                exception::SASL,
                "Server is not wrapping data",
            )),
            state => Err(refused(
                exception::SASL,
                format!("Client sent unsupported state {}", state.as_str_name()),
            )),
        }
    }
}

fn refused(class: &'static str, message: String) -> RpcError {
    RpcError::fatal(ErrorCode::FatalUnauthorized, class, message)
}
