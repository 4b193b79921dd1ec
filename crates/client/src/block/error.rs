//! The errors of reading and writing a block, and what the caller should do about each.

use proto::hdfs::{DatanodeInfoProto, ExtendedBlockProto};
use thiserror::Error;

/// A block could not be written.
#[derive(Clone, Debug, Error)]
pub enum WriteError {
    /// No pipeline came to be. Nothing was written: abandon the block and ask for another one without
    /// `bad_node`, when it is known.
    #[error("no pipeline for {block}: {reason}")]
    Setup { block: String, bad_node: Option<Box<DatanodeInfoProto>>, reason: String },
    /// The pipeline broke and could not be mended. `acknowledged` bytes of the block are on all servers that
    /// are left; what was written after them is lost unless the caller has it.
    #[error("the pipeline of {block} broke after {acknowledged} bytes: {reason}")]
    Broken { block: String, bad_node: Option<Box<DatanodeInfoProto>>, acknowledged: u64, reason: String },
    /// A bug of the caller: a location without servers, impossible options.
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
#[derive(Clone, Debug, Error)]
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
