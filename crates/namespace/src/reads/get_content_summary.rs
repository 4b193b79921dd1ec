//! How much lies below a path, and the quota that limits it.

use crate::{
    Context, Namespace,
    access::{Access, READ_EXECUTE},
    quota::{Amounts, TYPES},
    resolve::{Purpose, resolve},
    usage::replicated,
};
use base::{FsError, FsResult, InodeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentSummary {
    pub length: u64,
    pub file_count: u64,
    pub directory_count: u64,
    /// Bytes times replication; of a block that is being written a full one.
    pub space_consumed: u64,
    /// Bytes on each medium that quotas can limit, as far as storage policies are set that say so.
    pub type_consumed: [u64; TYPES],
    /// Those of the path itself.
    pub limits: Amounts,
    /// The path names a file.
    pub is_file: bool,
    /// What of the above only snapshots still have.
    pub snapshot: SnapshotPart,
}

/// The part of a summary that is no longer in the tree, but in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotPart {
    pub length: u64,
    pub file_count: u64,
    pub directory_count: u64,
    pub space_consumed: u64,
}

/// A summary of a large subtree is made in steps, so that others have their turn in between: call
/// [`Walk::step`] until it answers. What changes meanwhile may be counted as before or as after.
pub struct Walk {
    summary: ContentSummary,
    /// Directories that are not yet done, each with the name of the child that was visited last.
    stack: Vec<(InodeId, Vec<u8>)>,
}

/// HDFS's `getQuotaCounts`: the limits of one inode.
pub(crate) fn limits_of(ns: &Namespace, handle: u32) -> Amounts {
    let inode = ns.tree.inode(handle);
    let known = ns.tree.quotas.get(&inode.id()).filter(|_| inode.has_quota());
    known.map_or(Amounts::default_limits(inode.id() == InodeId::ROOT), |quota| quota.limits)
}

impl Walk {
    pub fn start(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Walk> {
        let resolved = resolve(ns, ctx, &Access::new(ctx), path, Purpose::Read)?;
        let Some(target) = resolved.target else {
            return Err(FsError::NotFound(format!("File does not exist: {}", resolved.path.as_str())));
        };
        Self::of(ns, ctx, target)
    }

    pub(crate) fn of(ns: &Namespace, ctx: &Context<'_>, target: u32) -> FsResult<Walk> {
        let summary = ContentSummary {
            length: 0,
            file_count: 0,
            directory_count: 0,
            space_consumed: 0,
            type_consumed: [0; TYPES],
            limits: limits_of(ns, target),
            is_file: ns.tree.inode(target).is_file(),
            snapshot: SnapshotPart::default(),
        };
        let mut walk = Walk { summary, stack: Vec::new() };
        walk.enter(ns, ctx, target)?;
        Ok(walk)
    }

    fn enter(&mut self, ns: &Namespace, ctx: &Context<'_>, handle: u32) -> FsResult<()> {
        let inode = ns.tree.inode(handle);
        if inode.is_file() {
            let length = ns.tree.length_of(handle);
            let replication = ns.tree.attributes_of(handle).replication;
            self.summary.file_count += 1;
            self.summary.length += length;
            self.summary.space_consumed += ns.tree.file_bytes(handle) as u64 * u64::from(replication);
            let by_type = replicated(length as i64, replication, ns.tree.policy_of(handle)).by_type;
            for (sum, bytes) in self.summary.type_consumed.iter_mut().zip(by_type) {
                *sum += bytes as u64;
            }
            return Ok(());
        }
        let access = Access::new(ctx);
        if access.enabled && !access.may(ns, handle, READ_EXECUTE) {
            return Err(access.denial(ns, handle, &ns.tree.path_of(handle), READ_EXECUTE));
        }
        self.summary.directory_count += 1;
        self.stack.push((inode.id(), Vec::new()));
        Ok(())
    }

    /// Visits at most `limits.content_summary_step` inodes. `Ok(None)`: let others have their turn, go on.
    pub fn step(&mut self, ns: &Namespace, ctx: &Context<'_>) -> FsResult<Option<ContentSummary>> {
        let mut left = ctx.limits.content_summary_step.max(1);
        while let Some((inode, last)) = self.stack.pop() {
            // A directory that is gone has nothing below it any more.
            let Some(directory) = ns.handle(inode) else {
                continue;
            };
            let rank = if last.is_empty() { 0 } else { ns.tree.rank_after(directory, &last) };
            for child in ns.tree.children_of(directory, rank) {
                let pause = left == 0;
                if pause || ns.tree.inode(child).is_directory() {
                    // To be continued behind the last one that was visited, or this one.
                    let name = if pause { last_before(ns, directory, child) } else { ns.tree.name_of(child) };
                    self.stack.push((inode, name.to_vec()));
                    if pause {
                        return Ok(None);
                    }
                    left -= 1;
                    self.enter(ns, ctx, child)?;
                    break;
                }
                left -= 1;
                self.enter(ns, ctx, child)?;
            }
        }
        Ok(Some(self.summary))
    }
}

/// The name of the child before this one; empty if it is the first.
fn last_before(ns: &Namespace, directory: u32, child: u32) -> &[u8] {
    let rank = ns.tree.rank_after(directory, ns.tree.name_of(child));
    if rank < 2 {
        return b"";
    }
    ns.tree.children_of(directory, rank - 2).next().map(|before| ns.tree.name_of(before)).unwrap_or(b"")
}
