//! Blocks read on the machine of their data server: from files that the server has opened and handed over, or at least
//! through its domain socket instead of the network.
//!
//! Which way is taken is asked anew for each block. Whatever does not work out, the block is read through the network, and
//! a server that has refused is left alone for a while: so it is with the stock client.

mod address;
mod piece;
mod releases;
mod replica;
mod replicas;
mod request;
mod segments;
mod store;

pub(super) use piece::FileSource;
pub use store::{LocalConfig, LocalReads};
