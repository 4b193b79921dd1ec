//! Whether the caller may read, write or traverse.

use crate::{Context, Namespace};
use base::FsResult;

/// `action`: the bits of Hadoop's `FsActionProto` (4 read, 2 write, 1 execute).
pub fn check(ns: &Namespace, ctx: &Context<'_>, path: &str, action: u8) -> FsResult<()> {
    let _ = (ns, ctx, path, action);
    todo!()
}
