//! The errors of the client library, sorted by what the caller can do about them.

use crate::block::{ReadError, WriteError};
use crate::config::ConfigError;
use base::FsError;
use std::io;
use thiserror::Error;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, Error)]
pub enum Error {
    /// The file system said no: fix the request.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// No metadata server answered: start one, or correct the address.
    #[error("cannot reach a metadata server of {target} ({tried}): {reason}")]
    Unreachable { target: String, tried: String, reason: String },
    /// The only metadata server that was named does not serve, and names no other: name another one.
    #[error("metadata server {server} does not serve, and names no other one: {reason}")]
    NotServing { server: String, reason: String },
    /// A metadata server answered something that this client does not understand: a bug on either side.
    #[error("{address} answered {method} with nonsense: {reason}")]
    Nonsense { address: String, method: String, reason: String },
    /// Fix the configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Data could not be read: try again later, or look after the data servers. Hadoop's clients call it a
    /// `BlockMissingException`.
    #[error("{}", unreadable(path, *offset, source))]
    Read { path: String, offset: u64, source: ReadError },
    /// The file has no checksum of Hadoop's: compare its bytes. All blocks could be read.
    #[error("{path} has no checksum as a whole: {reason}")]
    Checksum { path: String, reason: String },
    /// Data could not be written: the acknowledged bytes stay, the rest is to be written again.
    #[error("writing {path}: {source}")]
    Write { path: String, source: WriteError },
    /// A replica was not moved: it is where it was.
    #[error("moving a replica of {block} from {from} to {to}: {reason}")]
    Move { block: String, from: String, to: String, reason: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Fs(FsError::NotFound(_)))
    }

    pub fn is_access_denied(&self) -> bool {
        matches!(self, Self::Fs(FsError::AccessDenied(_)))
    }
}

/// Begins as the sentence of Hadoop's clients.
fn unreadable(path: &str, at: u64, source: &ReadError) -> String {
    match source {
        ReadError::NoReplica { block, offset, reason } => format!(
            "Could not obtain block: {block} file={path}: no replica could be read from offset {offset} of the block: \
             {reason}"
        ),
        ReadError::Misuse(reason) => format!("reading {path} at {at}: {reason}"),
    }
}
