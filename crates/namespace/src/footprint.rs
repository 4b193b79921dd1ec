//! The visible changes of an edit, and the state that an answer about a path rests on. By comparing the two, a
//! service knows whether an answer may rest on an edit that is not yet durable, or may yet be given up.
//!
//! Both are sets of [`Mark`]s. On the way down, an answer depends on who may pass each inode, and on the one entry by
//! which the way goes on (or on its absence). At the end it depends on the inode's status, and a listing also on the
//! statuses of the children. An edit leaves a mark on each of those that it changes. So an answer rests on an edit
//! only if the two have a mark in common: an edit below `/x` does not matter to `/a/b`.
//!
//! A snapshot's content does not change, with two exceptions: the places of blocks that the present file shares with
//! it, and the policies of inodes that were moved since. One mark stands for all of those.

use crate::{Namespace, path::Path, paths::Paths, reserved, snapshots::view::DOT_SNAPSHOT, store::NONE};
use base::{InodeId, directory_log::MarkKind};
use rapidhash::v3::rapidhash_v3;

/// 2^64 divided by the golden ratio: a product with it spreads neighbouring numbers.
pub(crate) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Something that an answer may rest on, and an edit may change. Two things may have one mark by chance: then an answer
/// waits that need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u64);

impl Mark {
    /// A hash that differs in high and in low bits, for tables of marks.
    pub fn hash(self) -> u64 {
        self.0.wrapping_mul(SPREAD).rotate_left(32)
    }

    /// The state that snapshots share with the present.
    const PAST: Mark = Mark(u64::MAX);

    /// Whether it stands for a name, or for the way through a directory.
    pub(crate) fn is_of_a_way(self) -> bool {
        matches!(self.0 & 3, 0 | 3)
    }

    /// The permissions of an inode, the attributes that all below inherit from it, and its snapshots.
    pub(crate) fn passage(inode: InodeId) -> Self {
        Self(inode.0 << 2)
    }

    /// The status of an inode, and its blocks.
    fn itself(inode: InodeId) -> Self {
        Self(inode.0 << 2 | 1)
    }

    /// The statuses of a directory's children.
    fn children(inode: InodeId) -> Self {
        Self(inode.0 << 2 | 2)
    }

    /// The mark of a name in a directory: it stands for the question which inode has that name, if any.
    pub(crate) fn entry(directory: InodeId, name: &[u8]) -> Self {
        Self((rapidhash_v3(name) ^ directory.0.wrapping_mul(SPREAD)) << 2 | 3)
    }
}

/// The mark as entries of the directory log carry it. All groups and releases compare these marks with their own, so the keys are part of the format.
impl From<Mark> for base::directory_log::Mark {
    fn from(mark: Mark) -> Self {
        let kind = match mark.0 & 3 {
            0 => MarkKind::Passage,
            1 => MarkKind::Inode,
            2 => MarkKind::Names,
            _ => MarkKind::Name,
        };
        Self::new(kind, (mark.0 >> 2).into())
    }
}

impl Mark {
    /// Keeps the marks on which the plan of a change rests: names, and ways through directories.
    pub(crate) fn keep_ways(marks: &mut Vec<Self>) {
        marks.retain(|mark| mark.is_of_a_way());
    }

    /// The mark of the same thing as a mark of the directory log. `None`: trees have no mark for it.
    pub fn of_directory_log(mark: base::directory_log::Mark) -> Option<Self> {
        let key = u64::try_from(mark.key).ok().filter(|key| key >> 62 == 0)?;
        let kind = match mark.kind {
            MarkKind::Passage => 0,
            MarkKind::Inode => 1,
            MarkKind::Names => 2,
            MarkKind::Name => 3,
            MarkKind::Files | MarkKind::Contents => return None,
        };
        Some(Self(key << 2 | kind))
    }
}

/// How far a look at a path goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// To the inode that it names.
    Itself,
    /// To the children of that as well.
    Children,
}

/// The part of the tree that a look depends on.
#[derive(Clone, Debug)]
pub enum Sight<'a> {
    /// No inode.
    Nothing,
    /// The inodes that these paths name, and the way there.
    Paths(Paths<'a>),
    /// The inodes that these paths name, the way there, and the children of those inodes.
    Listings(Paths<'a>),
    /// More than can be told apart from edits in flight.
    Everything,
}

impl Sight<'_> {
    /// Adds the marks of what an answer about this part of the tree rests on. False: it may rest on anything.
    #[must_use]
    pub fn marks(self, ns: &Namespace, seen: &mut Vec<Mark>) -> bool {
        let (mut paths, reach) = match self {
            Self::Nothing => return true,
            Self::Paths(paths) => (paths, Reach::Itself),
            Self::Listings(paths) => (paths, Reach::Children),
            Self::Everything => return false,
        };
        seen.reserve(32);
        paths.all(|path| ns.seen_on(path, reach, seen))
    }
}

/// Takes down what an edit changes.
pub(crate) struct Marks<'a> {
    ns: &'a Namespace,
    marks: &'a mut Vec<Mark>,
}

impl<'a> Marks<'a> {
    pub fn new(ns: &'a Namespace, marks: &'a mut Vec<Mark>) -> Self {
        Self { ns, marks }
    }

    /// What has this number, wherever it is.
    pub fn inode(&mut self, inode: InodeId) {
        self.marks.push(Mark::itself(inode));
    }

    /// An inode's status, which a listing of its directory shows as well.
    pub fn status(&mut self, inode: InodeId) {
        self.marks.push(Mark::itself(inode));
        self.marks.extend(self.ns.parent_of(inode).map(Mark::children));
    }

    /// An inode's status, and the attributes that hold for all below it.
    pub fn passage(&mut self, inode: InodeId) {
        self.status(inode);
        self.marks.push(Mark::passage(inode));
    }

    /// A file's blocks.
    pub fn blocks(&mut self, inode: InodeId) {
        self.status(inode);
        self.past();
    }

    /// A name in a directory, which has other times and another count of children for it.
    pub fn entry(&mut self, directory: InodeId, name: &[u8]) {
        self.status(directory);
        self.marks.extend([Mark::children(directory), Mark::entry(directory, name)]);
    }

    /// The name that an inode has now.
    pub fn own_entry(&mut self, inode: InodeId) {
        self.marks.push(Mark::itself(inode));
        let Some(handle) = self.ns.handle(inode) else { return };
        if let Some(parent) = self.ns.parent_of(inode) {
            self.entry(parent, self.ns.tree.name_of(handle));
        }
        self.past();
    }

    /// Files go away from the directory that another is in.
    pub fn leave(&mut self, sibling: InodeId, gone: &[InodeId]) {
        let Some(parent) = self.ns.parent_of(sibling) else { return };
        self.status(parent);
        let handles = gone.iter().filter_map(|inode| self.ns.handle(*inode));
        self.marks.extend(handles.map(|handle| Mark::entry(parent, self.ns.tree.name_of(handle))));
    }

    pub fn past(&mut self) {
        if !self.ns.tree.snapshots.roots.is_empty() {
            self.marks.push(Mark::PAST);
        }
    }
}

impl Namespace {
    /// Adds the marks of what an answer about a path rests on; none for a path that is malformed, about which there is
    /// nothing to see. False: it may rest on anything.
    #[must_use]
    pub fn seen_on(&self, path: &str, reach: Reach, seen: &mut Vec<Mark>) -> bool {
        let inode = reserved::inode_of(path);
        seen.extend(inode.map(Mark::itself));
        let Ok(real) = reserved::real(self, path) else {
            // An inode that is not there: whatever went with the subtree that it was in says so.
            return inode.is_none();
        };
        let Ok(path) = Path::parse(real.text) else { return true };
        let mut at = self.tree.root;
        let mut snapshot = None;
        let mut names = path.components();
        while let Some(name) = names.next().filter(|_| !path.is_root()) {
            let inode = self.tree.inode(at);
            seen.push(Mark::passage(inode.id()));
            if inode.is_file() {
                return true;
            }
            if snapshot.is_none() && name == DOT_SNAPSHOT && self.has_dot_snapshot(at) {
                seen.push(Mark::PAST);
                let taken = names.next().and_then(|name| self.snapshot_named(at, name));
                let Some(taken) = taken else { return true };
                snapshot = Some(taken.id);
                continue;
            }
            if snapshot.is_none() {
                seen.push(Mark::entry(inode.id(), name.as_bytes()));
            }
            match self.child_at(at, name.as_bytes(), snapshot) {
                None => return true,
                Some(child) => at = child,
            }
        }
        if snapshot.is_none() {
            let id = self.tree.inode(at).id();
            seen.extend([Mark::passage(id), Mark::itself(id)]);
            seen.extend((reach == Reach::Children).then(|| Mark::children(id)));
        }
        true
    }

    /// Adds the marks of an inode's name and passage, and of those of every directory above it. Times and numbers of children are not among
    /// them: a plan does not rest on these.
    pub(crate) fn seen_above(&self, inode: InodeId, seen: &mut Vec<Mark>) {
        let mut at = self.handle(inode);
        while let Some(handle) = at {
            let inode = self.tree.inode(handle);
            seen.push(Mark::passage(inode.id()));
            let parent = (inode.parent != NONE).then_some(inode.parent);
            if let Some(parent) = parent {
                seen.push(Mark::entry(self.tree.inode(parent).id(), self.tree.name_of(handle)));
            }
            at = parent;
        }
    }

    pub(crate) fn parent_of(&self, inode: InodeId) -> Option<InodeId> {
        let parent = self.tree.inode(self.handle(inode)?).parent;
        (parent != NONE).then(|| self.tree.inode(parent).id())
    }
}
