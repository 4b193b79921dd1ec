//! Blocks on the wire: writing one to a pipeline of data servers and reading one from its replicas.
//!
//! This is the layer below files: it knows one block at a time and never talks to the metadata service. A
//! file's writer asks for a block, writes it with a [`BlockWriter`], and says goodbye to it with `close`; a
//! file's reader opens a [`BlockReader`] on each block that the range touches.

mod connection;
pub mod error;
mod local;
pub mod options;
mod pipe;
pub mod reader;
pub mod replacement;
mod streamer;
pub mod writer;

pub(crate) use connection::describe;
pub use error::{BadReplica, ReadError, WriteError};
pub use local::{LocalConfig, LocalReads};
pub use options::{BlockOptions, Checksums};
pub use reader::BlockReader;
pub use replacement::{Replacement, ReplacementPolicy};
pub use writer::{BlockWriter, PipelineKeeper};
