//! Why an operation is not carried out, and what the other side is told.

use blockstore::StoreError;
use proto::hdfs::{BlockOpResponseProto, Status};
use rpc::streaming::StreamError;
use std::io;

/// The end of an operation and of its connection.
#[derive(Debug)]
pub enum Refusal {
    /// Answered with a status and a message.
    Answer { status: Status, message: String, first_bad_link: String },
    /// No answer is sent: the peer does not wait for one, or it has been sent already.
    Close(String),
}

impl Refusal {
    pub fn error(message: impl Into<String>) -> Self {
        Self::Answer { status: Status::Error, message: message.into(), first_bad_link: String::new() }
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Answer {
            status: Status::ErrorUnsupported,
            message: message.into(),
            first_bad_link: String::new(),
        }
    }

    /// The pipeline could not be set up because of the server at `address`.
    pub fn bad_link(address: String, message: impl Into<String>) -> Self {
        Self::Answer { status: Status::Error, message: message.into(), first_bad_link: address }
    }

    /// Whether the received bytes do not match their checksums.
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Self::Answer { status: Status::ErrorChecksum, .. })
    }

    pub fn response(&self) -> Option<BlockOpResponseProto> {
        match self {
            Self::Answer { status, message, first_bad_link } => Some(BlockOpResponseProto {
                status: (*status).into(),
                first_bad_link: Some(first_bad_link.clone()),
                message: Some(message.clone()),
                ..Default::default()
            }),
            Self::Close(_) => None,
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Self::Answer { message, .. } | Self::Close(message) => message,
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::error(error.to_string())
    }
}

impl From<proto::data_transfer::Error> for Refusal {
    fn from(error: proto::data_transfer::Error) -> Self {
        Self::error(error.to_string())
    }
}

/// The connection itself failed: there is no peer to answer.
impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Close(error.to_string())
    }
}

impl From<StreamError> for Refusal {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Wire(error) => error.into(),
            other => Self::Close(other.to_string()),
        }
    }
}
