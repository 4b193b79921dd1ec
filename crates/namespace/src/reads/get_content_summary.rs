//! How much lies below a path.

use crate::{Context, Namespace};
use base::FsResult;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentSummary {
    pub length: u64,
    pub file_count: u64,
    pub directory_count: u64,
    /// Bytes times replication.
    pub space_consumed: u64,
}

/// A summary of a large subtree is made in steps, so that others have their turn in between: call
/// [`Walk::step`] until it answers.
pub struct Walk {}

impl Walk {
    pub fn start(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Walk> {
        let _ = (ns, ctx, path);
        todo!()
    }

    /// Visits at most `limits.content_summary_step` inodes. `Ok(None)`: let others have their turn, go on.
    pub fn step(&mut self, ns: &Namespace, ctx: &Context<'_>) -> FsResult<Option<ContentSummary>> {
        let _ = (ns, ctx);
        todo!()
    }
}
