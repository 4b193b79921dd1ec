//! Creates a file and opens it for writing.

use crate::{Context, Namespace, Planned};
use base::FsResult;

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    pub permission: u16,
    /// The client's name for itself: the holder of the lease.
    pub holder: &'a str,
    pub client_machine: &'a str,
    /// Bits of Hadoop's `CreateFlagProto`; see [`flag`].
    pub flags: u32,
    pub create_parent: bool,
    pub replication: u32,
    pub block_size: u64,
}

/// Hadoop's `CreateFlagProto`.
pub mod flag {
    pub const CREATE: u32 = 0x01;
    pub const OVERWRITE: u32 = 0x02;
    pub const APPEND: u32 = 0x04;
    pub const LAZY_PERSIST: u32 = 0x10;
    pub const NEW_BLOCK: u32 = 0x20;
    pub const NO_LOCAL_WRITE: u32 = 0x40;
    pub const SHOULD_REPLICATE: u32 = 0x80;
    pub const IGNORE_CLIENT_LOCALITY: u32 = 0x100;
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let _ = (ns, ctx, req);
    todo!()
}
