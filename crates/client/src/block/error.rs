//! What goes wrong with a block, and what the caller should do about it.

use proto::hdfs::{DatanodeInfoProto, ExtendedBlockProto};
use std::io;
use thiserror::Error;

/// A block could not be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// No pipeline came to be. Nothing was written: abandon the block and ask for another one without
    /// `bad_node`, when it is known.
    #[error("no pipeline for {block}: {reason}")]
    Setup { block: String, bad_node: Option<Box<DatanodeInfoProto>>, reason: String },
    /// The pipeline broke and could not be mended. `acknowledged` bytes of the block are on all servers that
    /// are left; the caller still has, or has lost, what it wrote after them.
    #[error("the pipeline of {block} broke after {acknowledged} bytes: {reason}")]
    Broken { block: String, bad_node: Option<Box<DatanodeInfoProto>>, acknowledged: u64, reason: String },
    /// A bug of the caller: more bytes than the block may hold, or a location without servers.
    #[error("{0}")]
    Misuse(String),
}

impl WriteError {
    /// The server to leave out next time.
    pub fn bad_node(&self) -> Option<&DatanodeInfoProto> {
        match self {
            Self::Setup { bad_node, .. } | Self::Broken { bad_node, .. } => bad_node.as_deref(),
            Self::Misuse(_) => None,
        }
    }
}

/// A block could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Every replica was tried. Ask the metadata service for fresh locations, then give up.
    #[error("no replica of {block} could be read from offset {offset}: {reason}")]
    NoReplica { block: String, offset: u64, reason: String },
    #[error("{0}")]
    Misuse(String),
}

/// A replica whose bytes do not match its checksums: report it to the metadata service.
#[derive(Clone, Debug, PartialEq)]
pub struct BadReplica {
    pub block: ExtendedBlockProto,
    pub node: DatanodeInfoProto,
    /// The storage that the location named, or nothing.
    pub storage_id: String,
}

/// What went wrong on one connection; the writer and the reader turn it into one of the above.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Wire(#[from] proto::data_transfer::Error),
    #[error("no answer within {0:?}")]
    Timeout(std::time::Duration),
    /// The other side said no.
    #[error("{message}")]
    Refused { message: String, first_bad_link: String },
    #[error("{0}")]
    Pipeline(String),
}
