//! How much lies below a path, and the quota that limits it.

use crate::{
    Context, Namespace, Sight, SnapshotId, Walkable,
    access::{Access, READ_EXECUTE},
    quota::{Amounts, TYPES, replicated},
    readable::readable,
    resolve::{Purpose, resolve},
    snapshots::{AFTER_ALL, EntryKey},
};
use base::{FsError, FsResult, InodeId, POLICY_UNSPECIFIED};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
}

readable! {
    Request => ContentSummary, (path) "getContentSummary", |ns, ctx, req| req.walk(ns, ctx);
    fn sight(&self) -> Sight<'_> {
        Sight::Everything
    }
}

impl Walkable for Request {
    type Progress = Option<Walk>;
    type Found = ContentSummary;

    fn step(
        &self,
        walk: &mut Option<Walk>,
        ns: &Namespace,
        ctx: &Context<'_>,
    ) -> FsResult<Option<ContentSummary>> {
        let walk = match walk {
            Some(walk) => walk,
            None => walk.insert(Walk::start(ns, ctx, &self.path)?),
        };
        walk.step(ns, ctx)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentSummary {
    pub length: u64,
    pub file_count: u64,
    pub directory_count: u64,
    /// Bytes times replication; of a block that is being written a full one.
    pub space_consumed: u64,
    /// Bytes on each medium that quotas can limit, as far as storage policies are set that say so.
    pub type_consumed: [u64; TYPES],
    /// The limits of the path itself.
    pub limits: Amounts,
    /// How HDFS names the erasure coding policy of the path; empty for none.
    pub erasure_coding: &'static str,
    /// The part of these counts that only snapshots still have.
    pub snapshot: SnapshotPart,
}

impl ContentSummary {
    /// The amounts that quotas limit.
    pub fn used(&self) -> Amounts {
        Amounts {
            inodes: (self.file_count + self.directory_count) as i64,
            bytes: self.space_consumed as i64,
            by_type: self.type_consumed.map(|bytes| bytes as i64),
        }
    }
}

/// The part of a summary that is no longer in the tree, but in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotPart {
    pub length: u64,
    pub file_count: u64,
    pub directory_count: u64,
    pub space_consumed: u64,
}

/// A summary of a large subtree is made in steps, so that others have their turn in between: call [`Walk::step`]
/// until it answers. An inode that changes meanwhile may be counted as it was before or as it is after.
///
/// As in HDFS, a summary of the present tree also counts inodes that only snapshots still have: those deleted from a
/// directory, or moved out of it, as the last snapshot that saw them there has them.
pub struct Walk {
    summary: ContentSummary,
    /// Directories that are not yet done.
    stack: Vec<Level>,
    /// In the bytes by medium, a block that is being written counts as a full one.
    counts_blocks: bool,
}

struct Level {
    directory: InodeId,
    /// The snapshot in which it is seen; `None`: as it is.
    at: Option<SnapshotId>,
    /// Whether only snapshots have the directory.
    is_past: bool,
    place: Place,
}

/// How far a directory has been visited.
enum Place {
    /// The children of the directory were visited up to this name.
    Children(Vec<u8>),
    /// Then what it had, up to this key.
    Past(Option<EntryKey>),
}

/// HDFS's `getQuotaCounts`: the limits of one inode, as they are; but the top of a snapshot has those of then.
fn limits_of(ns: &Namespace, handle: u32, at: Option<SnapshotId>) -> Amounts {
    ns.limits_at(handle, at.filter(|_| ns.is_top_of(handle, at)))
}

impl Walk {
    /// # Errors
    /// The path cannot be resolved (see [`crate::reads`]) or does not exist, or the caller may not read the
    /// directory.
    pub fn start(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Walk> {
        let resolved = resolve(ns, ctx, &Access::new(ctx), path, Purpose::Read)?;
        let Some(target) = resolved.target else {
            return Err(FsError::NotFound(format!("File does not exist: {}", resolved.path.as_str())));
        };
        let mut walk = Self::of(ns, ctx, target, resolved.snapshot)?;
        walk.summary.erasure_coding = ns.erasure_coding_at(target, resolved.ancestor, resolved.snapshot);
        Ok(walk)
    }

    pub(crate) fn of(
        ns: &Namespace,
        ctx: &Context<'_>,
        target: u32,
        at: Option<SnapshotId>,
    ) -> FsResult<Walk> {
        let summary = ContentSummary {
            length: 0,
            file_count: 0,
            directory_count: 0,
            space_consumed: 0,
            type_consumed: [0; TYPES],
            limits: limits_of(ns, target, at),
            erasure_coding: ns.erasure_coding_of(target),
            snapshot: SnapshotPart::default(),
        };
        let mut walk = Walk { summary, stack: Vec::new(), counts_blocks: false };
        walk.enter(ns, ctx, target, at, false)?;
        Ok(walk)
    }

    /// The bytes on each medium are counted as quotas count them.
    pub(crate) fn counting_blocks(self) -> Self {
        Self { counts_blocks: true, ..self }
    }

    fn enter(
        &mut self,
        ns: &Namespace,
        ctx: &Context<'_>,
        handle: u32,
        at: Option<SnapshotId>,
        is_past: bool,
    ) -> FsResult<()> {
        let inode = ns.tree.inode(handle);
        if inode.is_file() {
            self.add_file(ns, handle, at, is_past);
            return Ok(());
        }
        let access = Access::new(ctx).at(at);
        if access.enabled && !is_past && !access.may(ns, handle, READ_EXECUTE) {
            return Err(access.denial(ns, handle, &ns.last_path_of(handle), READ_EXECUTE));
        }
        self.summary.directory_count += 1;
        self.summary.snapshot.directory_count += u64::from(is_past);
        self.stack.push(Level { directory: inode.id(), at, is_past, place: Place::Children(Vec::new()) });
        Ok(())
    }

    fn add_file(&mut self, ns: &Namespace, file: u32, at: Option<SnapshotId>, is_past: bool) {
        let length = ns.length_at(file, at);
        let died = if is_past { ns.died(file) } else { AFTER_ALL };
        let replication = ns.attributes_at(file, at).replication;
        let space = match at {
            Some(_) => length * u64::from(replication),
            // With what only snapshots have of it, and as often as they want it.
            None => ns.file_amounts(file, POLICY_UNSPECIFIED, died).bytes as u64,
        };
        self.summary.file_count += 1;
        self.summary.length += length;
        self.summary.space_consumed += space;
        let policy = ns.policy_in_force(file);
        let on_media = if self.counts_blocks && at.is_none() {
            replicated(ns.held_bytes(file), ns.held_replication(file, died, &[]), policy)
        } else {
            // HDFS counts a snapshot's bytes, too, with the present replication.
            replicated(length as i64, ns.tree.attributes_of(file).replication, policy)
        };
        for (sum, bytes) in self.summary.type_consumed.iter_mut().zip(on_media.by_type) {
            *sum += bytes as u64;
        }
        if is_past {
            self.summary.snapshot.file_count += 1;
            self.summary.snapshot.length += length;
            self.summary.snapshot.space_consumed += space;
        }
    }

    /// Visits at most `limits.content_summary_step` inodes. `Ok(None)`: let others have their turn, go on.
    ///
    /// # Errors
    /// [`FsError::AccessDenied`] if the caller may not read a directory below.
    pub fn step(&mut self, ns: &Namespace, ctx: &Context<'_>) -> FsResult<Option<ContentSummary>> {
        let mut left = ctx.limits.content_summary_step.max(1);
        while let Some(mut level) = self.stack.pop() {
            // A directory that is gone has nothing below it any more.
            let Some(directory) = ns.handle(level.directory) else {
                continue;
            };
            match next(ns, directory, &mut level, &mut left, self) {
                Next::Directory(child, at, is_past) => {
                    self.stack.push(level);
                    self.enter(ns, ctx, child, at, is_past)?;
                }
                Next::Pause => {
                    self.stack.push(level);
                    return Ok(None);
                }
                Next::End => {}
            }
        }
        Ok(Some(self.summary))
    }
}

enum Next {
    /// A directory, how it is seen, and whether only snapshots have it.
    Directory(u32, Option<SnapshotId>, bool),
    Pause,
    End,
}

/// The next directory below this one; files on the way are counted.
fn next(ns: &Namespace, directory: u32, level: &mut Level, left: &mut usize, walk: &mut Walk) -> Next {
    if let Place::Children(after) = &mut level.place {
        let mut last = None;
        for (name, child) in ns.children_at(directory, after, level.at) {
            if *left == 0 {
                *after = last.map(<[u8]>::to_vec).unwrap_or(std::mem::take(after));
                return Next::Pause;
            }
            *left -= 1;
            last = Some(name);
            if ns.tree.inode(child).is_directory() {
                *after = name.to_vec();
                return Next::Directory(child, level.at, level.is_past);
            }
            walk.add_file(ns, child, level.at, level.is_past);
        }
        if level.at.is_some() || !ns.tree.snapshots.has_entries(level.directory) {
            return Next::End;
        }
        level.place = Place::Past(None);
    }
    let Place::Past(after) = &mut level.place else { return Next::End };
    for (key, entry) in ns.tree.snapshots.entries_behind(level.directory, after.as_ref()) {
        if *left == 0 {
            return Next::Pause;
        }
        *left -= 1;
        *after = Some(key.clone());
        // An entry that no living snapshot sees any more only waits to be swept away.
        if ns.latest_seeing(directory, entry.born, key.2).is_none() {
            continue;
        }
        let Some(child) = ns.handle(entry.inode) else { continue };
        // An inode that was moved away is counted as it is, in its present place.
        let at = ns.counted_through(key, entry).is_none().then_some(key.2);
        if ns.tree.inode(child).is_directory() {
            return Next::Directory(child, at, true);
        }
        walk.add_file(ns, child, at, true);
    }
    Next::End
}
