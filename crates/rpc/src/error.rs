//! The refusals of a server, and the errors that a client gets.

use base::FsError;
use proto::{
    DecodeError, exception,
    rpc_frame::{ErrorCode, Status},
};
use std::{borrow::Cow, io};
use thiserror::Error;

/// A refusal on its way to the client.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{class}: {message}")]
pub struct RpcError {
    /// The Java class that the client will throw.
    pub class: Cow<'static, str>,
    pub message: String,
    /// [`Status::Fatal`] closes the connection behind the reply.
    pub status: Status,
    pub code: ErrorCode,
}

impl RpcError {
    /// The operation failed: the class is one that the client's program knows.
    pub fn application(class: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            class: class.into(),
            message: message.into(),
            status: Status::Error,
            code: ErrorCode::Application,
        }
    }

    /// The connection cannot go on.
    pub fn fatal(code: ErrorCode, class: &'static str, message: impl Into<String>) -> Self {
        Self { class: class.into(), message: message.into(), status: Status::Fatal, code }
    }

    pub(crate) fn no_such_protocol(protocol: &str) -> Self {
        Self {
            code: ErrorCode::NoSuchProtocol,
            ..Self::application(exception::NO_SUCH_PROTOCOL, format!("Unknown protocol: {protocol}"))
        }
    }

    /// The protocol lacks the method. Also for services that know a method and do not offer it.
    pub fn no_such_method(method: &str, protocol: &str) -> Self {
        let message = format!("Unknown method {method} called on {protocol} protocol.");
        Self { code: ErrorCode::NoSuchMethod, ..Self::application(exception::NO_SUCH_METHOD, message) }
    }

    pub(crate) fn protocol_version(protocol: &str, client: u64, server: u64) -> Self {
        let message = format!("Protocol {protocol} version mismatch. (client = {client}, server = {server})");
        Self {
            code: ErrorCode::RpcVersionMismatch,
            ..Self::application(exception::PROTOCOL_VERSION_MISMATCH, message)
        }
    }

    pub(crate) fn invalid_header(message: impl Into<String>) -> Self {
        Self::fatal(ErrorCode::FatalInvalidRpcHeader, exception::RPC_SERVER, message)
    }

    /// A header of the RPC layer that does not decode.
    pub(crate) fn header_decoding(message: &str, error: &DecodeError) -> Self {
        Self::fatal(
            ErrorCode::FatalDeserializingRequest,
            exception::RPC_SERVER,
            format!("Error decoding {message}: {error}"),
        )
    }

    /// A request that does not decode. Malformed bytes end the connection; a whole message that lacks a
    /// field or holds a path that is no text is refused by itself.
    pub fn request_decoding(error: &DecodeError) -> Self {
        const PATH_FIELDS: [&str; 8] =
            ["src", "dst", "path", "srcs", "trg", "target", "snapshotRoot", "startPath"];
        match error {
            DecodeError::InvalidUtf8 { field, text, .. } if PATH_FIELDS.contains(field) => {
                FsError::InvalidPath(text.clone()).into()
            }
            DecodeError::InvalidUtf8 { .. } | DecodeError::MissingField { .. } => {
                Self::application(exception::INVALID_PROTOCOL_BUFFER, error.to_string())
            }
            _ => Self::fatal(
                ErrorCode::FatalDeserializingRequest,
                exception::RPC_SERVER,
                format!("IPC server unable to read call parameters: {error}"),
            ),
        }
    }
}

impl From<&FsError> for RpcError {
    fn from(error: &FsError) -> Self {
        let (class, message) = exception::to_remote(error);
        Self::application(class, message)
    }
}

impl From<FsError> for RpcError {
    fn from(error: FsError) -> Self {
        Self::from(&error)
    }
}

/// Why a call has no answer, or which refusal it got.
#[derive(Debug, Error)]
pub enum CallError {
    /// The server refused; what to do depends on the class. The call had no effect or has been answered.
    #[error("{class}: {message}")]
    Remote { class: String, message: String },
    /// The server was not reached: the call had no effect. Try again, or another server.
    #[error("cannot reach the server: {0}")]
    Connect(#[source] io::Error),
    /// The connection broke with the call on its way: it may have had its effect. Retry under the same
    /// call id.
    #[error("the connection broke: {0}")]
    Io(#[source] io::Error),
    /// No answer in time: the call may have had its effect. Retry under the same call id.
    #[error("no answer within {ms} ms")]
    Timeout { ms: u64 },
    /// The answer is not what the method answers: report a bug.
    #[error("the answer does not decode: {0}")]
    Decode(#[source] DecodeError),
}

impl CallError {
    /// The exception class, if the server refused.
    pub fn class(&self) -> Option<&str> {
        match self {
            Self::Remote { class, .. } => Some(class),
            _ => None,
        }
    }

    /// Whether the server cannot have executed the call.
    pub fn was_not_executed(&self) -> bool {
        matches!(self, Self::Connect(_))
    }
}

impl From<CallError> for FsError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Remote { class, message } => exception::from_remote(&class, &message),
            other => FsError::Io(other.to_string()),
        }
    }
}
