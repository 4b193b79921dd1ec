//! The walk over the files whose replicas are to be on the media of their storage policies.
//!
//! A client has asked for a file, or for all files below a directory ([`crate::ops::satisfy_storage_policy`]). The walk names the blocks of each file, some
//! at a time, for `blocks` to move their replicas. It keeps its place in memory alone: a new active begins again with each file and
//! directory that still waits. That costs a look at each block, and no move of replicas that are on the right media already.
//!
//! As Hadoop's satisfier does it, directories are walked to the bottom, and the files and directories that clients have named have their
//! turns one after the other.

use crate::Namespace;
use base::{BlockId, InodeId};

/// Inodes that one look visits: some milliseconds.
const INODES_PER_LOOK: usize = 5_000;
/// Directories in each other: more than a path can name. They can be more only where directories are renamed while the walk is inside them.
const DEPTH_MAX: usize = 10_000;

/// How far the walk has come.
#[derive(Debug, Default)]
pub struct Walk {
    current: Option<Current>,
    /// The file or directory whose turn has ended last.
    last: InodeId,
}

#[derive(Debug)]
struct Current {
    /// The file or directory that was asked for.
    asked: InodeId,
    has_begun: bool,
    /// The directories that the walk is inside, and the name of the last child that it has visited in each.
    inside: Vec<(InodeId, Vec<u8>)>,
}

/// The outcome of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing waits.
    Idle,
    /// The blocks of the next files; there may be none among the inodes that were visited.
    Blocks(Vec<BlockId>),
    /// All files of this file or directory have been named. It is walked until its note is taken away.
    Walked(InodeId),
    /// The request was withdrawn, or its file or directory deleted: the blocks that were named for it need not be moved any more.
    Withdrawn,
}

impl Walk {
    /// Goes on until about `room` blocks are named.
    pub fn look(&mut self, ns: &Namespace, room: usize) -> Look {
        let Some(current) = &mut self.current else {
            let next = ns.satisfying_after(self.last);
            self.current = next.map(|asked| Current { asked, has_begun: false, inside: Vec::new() });
            return if self.current.is_some() { self.look(ns, room) } else { Look::Idle };
        };
        if !ns.is_to_satisfy(current.asked) {
            self.end();
            return Look::Withdrawn;
        }
        if current.has_begun && current.inside.is_empty() {
            return Look::Walked(current.asked);
        }
        Look::Blocks(current.go_on(ns, room))
    }

    /// Ends the turn of the file or directory that is being walked.
    fn end(&mut self) {
        if let Some(current) = self.current.take() {
            self.last = current.asked;
        }
    }
}

impl Current {
    fn go_on(&mut self, ns: &Namespace, room: usize) -> Vec<BlockId> {
        let mut blocks = Vec::new();
        if !self.has_begun {
            self.has_begun = true;
            self.visit(ns, self.asked, &mut blocks);
        }
        let mut visited = 0;
        while blocks.len() < room && visited < INODES_PER_LOOK {
            let Some((directory, after)) = self.inside.last_mut() else { break };
            visited += 1;
            match ns.child_after(*directory, after) {
                Some((name, child)) => {
                    *after = name;
                    self.visit(ns, child, &mut blocks);
                }
                None => drop(self.inside.pop()),
            }
        }
        blocks
    }

    fn visit(&mut self, ns: &Namespace, inode: InodeId, blocks: &mut Vec<BlockId>) {
        let Some(handle) = ns.handle(inode) else { return };
        if ns.tree.inode(handle).is_file() {
            let all = ns.tree.blocks_of(handle).map(|stored| stored.block.id);
            blocks.extend(all.filter(|block| !ns.is_foreign(*block)));
        } else if self.inside.len() < DEPTH_MAX {
            self.inside.push((inode, Vec::new()));
        }
    }
}

impl Namespace {
    /// How many files and directories wait for their storage policies to be satisfied.
    pub fn waiting_for_policies(&self) -> usize {
        self.satisfying.len()
    }

    /// Whether the file or directory waits, and is where clients can see it. In a namespace of several groups directories do not wait, because no
    /// group would know when all others are done.
    fn is_to_satisfy(&self, inode: InodeId) -> bool {
        self.satisfying.contains(&inode)
            && self.handle(inode).is_some_and(|handle| {
                self.tree.is_attached(handle) && (self.tree.inode(handle).is_file() || !self.has_homes())
            })
    }

    /// The next one that waits, in the order of ids and from the beginning again.
    fn satisfying_after(&self, last: InodeId) -> Option<InodeId> {
        let behind = self.satisfying.range(InodeId(last.0.saturating_add(1))..);
        let before = self.satisfying.range(..=last);
        behind.chain(before).copied().find(|inode| self.is_to_satisfy(*inode))
    }

    fn child_after(&self, directory: InodeId, name: &[u8]) -> Option<(Vec<u8>, InodeId)> {
        let handle = self.handle(directory).filter(|handle| self.tree.inode(*handle).is_directory())?;
        let rank = if name.is_empty() { 0 } else { self.tree.rank_after(handle, name) };
        let child = self.tree.children_of(handle, rank).next()?;
        Some((self.tree.name_of(child).to_vec(), self.tree.inode(child).id()))
    }
}
