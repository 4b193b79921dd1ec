//! Which group decides a call, by this group's tree.
//!
//! Every group has all directories, so every group can say who is the home of what a path names. What it says is about the tree that it looks at: the
//! group that is named looks again.

use crate::{
    Namespace, SnapshotId,
    footprint::{Mark, Reach, SPREAD},
    path::Path,
    reserved,
    snapshots::view::DOT_SNAPSHOT,
};
use base::{BlockId, GroupId, InodeId, InodeOrigin, Timestamp, directory_log};
use std::collections::BTreeSet;

/// What a call wants to do at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// A look, or a change of times: a directory's home knows its times and its files.
    Look,
    /// A change of what the path names. That of a directory is ordered by the root group.
    Change,
    /// A file is made there, with the directories above it that are missing.
    CreateWithParents,
}

/// A call of a client about files or their blocks, or about directories, as far as it matters for which group decides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeCall {
    /// What the call wants to do at its paths.
    pub intent: Intent,
    /// For a rename: from where, and to where.
    pub paths: Vec<String>,
    /// A file that the call names by its id.
    pub file: Option<InodeId>,
    pub block: Option<BlockId>,
    /// The call is a rename of this kind.
    pub rename: Option<Rename>,
    /// The call looks at each of its paths by itself. One that does not is decided by its first path.
    pub is_batch: bool,
}

/// Where a rename puts what it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// At the second path. If a directory is there: in that directory, under the last name of the first path.
    ToOrInto,
    /// At the second path, whatever is there.
    To,
}

/// The group that decides a call, and whether it can do that alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This group decides the call.
    Group(GroupId),
    /// The call is to be taken apart: its paths have several homes, and this group decides about the first one.
    Apart(GroupId),
}

impl Decision {
    pub fn group(self) -> GroupId {
        match self {
            Self::Group(group) | Self::Apart(group) => group,
        }
    }
}

impl HomeCall {
    /// Which group decides the call.
    pub fn decision(&self, ns: &Namespace) -> Decision {
        if let Some(block) = self.block {
            return Decision::Group(ns.decider_of_block(block));
        }
        if let Some(file) = self.file {
            return Decision::Group(ns.decider_of_written_file(file, self.paths.first().map(String::as_str)));
        }
        let Some((first, others)) = self.paths.split_first() else { return Decision::Group(GroupId::ROOT) };
        let group = ns.decider(first, self.intent);
        match self.rename {
            // The root group renames directories, and files that go to another home.
            Some(_) if others.iter().any(|to| ns.decider(to, Intent::Look) != group) => {
                Decision::Group(GroupId::ROOT)
            }
            Some(_) => Decision::Group(group),
            None if self.is_batch && others.iter().any(|path| ns.decider(path, self.intent) != group) => {
                Decision::Apart(group)
            }
            // The files of a `concat` are in one directory, or it is refused by the home of the first.
            None => Decision::Group(group),
        }
    }

    /// Adds the marks of what a plan of the call rests on at a home. False: it may rest on anything.
    #[must_use]
    pub fn seen(&self, ns: &Namespace, seen: &mut Vec<directory_log::Mark>) -> bool {
        if let Some(file) = self.file {
            ns.seen_by_home_of(file, seen);
        }
        let is_known = self.paths.iter().all(|path| ns.seen_by_home(path, seen))
            && self.moved_into(ns).is_none_or(|path| ns.seen_by_home(&path, seen));
        // The file of a block is found by the block alone.
        is_known && self.block.is_none()
    }

    /// The path that a rename makes in a directory that is there, and that the call does not name.
    fn moved_into(&self, ns: &Namespace) -> Option<String> {
        let [from, to] = &self.paths[..] else { return None };
        if self.rename != Some(Rename::ToOrInto) || !ns.is_directory(to) {
            return None;
        }
        let name = from.trim_end_matches('/').rsplit('/').next()?;
        Some(format!("{}/{name}", to.trim_end_matches('/')))
    }
}

/// What only the home of a directory knows of it: the other groups do not see its files come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnFacts {
    pub modified: Timestamp,
    pub children: u32,
}

impl Namespace {
    /// What this group knows of a directory. `None`: it has no such directory.
    ///
    /// `at`: as a snapshot has it that sees the directory.
    pub fn own_facts_of(&self, directory: InodeId, at: Option<SnapshotId>) -> Option<OwnFacts> {
        let handle = self.handle(directory).filter(|handle| self.tree.inode(*handle).is_directory())?;
        let status = self.status_at(handle, b"", at);
        Some(OwnFacts { modified: status.modified, children: status.children_count })
    }

    /// Whether further groups hold files. If not, the root group decides everything.
    pub fn has_homes(&self) -> bool {
        self.tree.directory_log.slots.are_used()
    }

    /// The groups that hold files.
    pub fn homes(&self) -> BTreeSet<GroupId> {
        self.slots().into_iter().map(|(_, group)| group).collect()
    }

    /// The groups besides this one that hold files.
    pub(crate) fn other_homes(&self) -> impl Iterator<Item = GroupId> + use<> {
        let own = self.group();
        self.homes().into_iter().filter(move |home| *home != own)
    }

    /// The group that decides about this path. A path that makes no sense is refused by any group, so this one does.
    pub fn decider(&self, path: &str, intent: Intent) -> GroupId {
        if !self.has_homes() {
            return GroupId::ROOT;
        }
        let Ok(real) = reserved::real(self, path) else {
            // An inode that this tree does not have: a file of another group, or none.
            return reserved::inode_of(path).map_or(self.group(), |inode| self.decider_of_file(inode));
        };
        let Ok(path) = Path::parse(real.text) else { return self.group() };
        let mut way = Way::new(self);
        let mut names = path.components().take(path.depth());
        while let Some(name) = names.next() {
            let home = self.home_of(way.id());
            match way.take(name, &mut names) {
                Found::Directory => {}
                // A path through a file makes no sense: its home refuses it, which alone may know the file by its id.
                Found::File => return home,
                // A file that its home may have, or nothing.
                Found::Nothing if names.next().is_some() && intent == Intent::CreateWithParents => {
                    return GroupId::ROOT;
                }
                Found::Nothing => return home,
            }
        }
        match intent {
            Intent::Look => self.home_of(way.id()),
            Intent::Change | Intent::CreateWithParents => GroupId::ROOT,
        }
    }

    /// Whether the path names a directory of this tree, now or in a snapshot, which all groups have.
    pub fn is_directory(&self, path: &str) -> bool {
        let Some(real) = reserved::real(self, path).ok() else { return false };
        let Ok(path) = Path::parse(real.text) else { return false };
        let mut way = Way::new(self);
        let mut names = path.components().take(path.depth());
        while let Some(name) = names.next() {
            if !matches!(way.take(name, &mut names), Found::Directory) {
                return false;
            }
        }
        true
    }

    /// The group that has a file, as far as this one knows: the one to which it has moved from here, or the one that made it. A file that no group can have made is refused by any group, so this one does.
    pub fn decider_of_file(&self, file: InodeId) -> GroupId {
        if let Some(group) = self.exported_to(file) {
            return group;
        }
        match file.origin() {
            InodeOrigin::Group { number, .. } => self.home_or_this(number.into()),
            InodeOrigin::Slot { .. } => self.home_of(file),
        }
    }

    /// The group that decides about a file that a client knows by its id and by the path under which it was opened; the file may have another path by
    /// now, and may have come from another home. The group that has the file says so. The others look for it: first at the home of the path, and then at
    /// the group that made the file, which knows where it is.
    pub fn decider_of_written_file(&self, file: InodeId, path: Option<&str>) -> GroupId {
        if !self.has_homes() {
            return GroupId::ROOT;
        }
        let maker = self.decider_of_file(file);
        let is_here = self.handle(file).is_some() && self.exported_to(file).is_none();
        if is_here {
            return self.group();
        }
        if self.exported_to(file).is_some() {
            return maker;
        }
        let home = path.map_or(maker, |path| self.decider(path, Intent::Look));
        let own = self.group();
        if own == home || own == maker { maker } else { home }
    }

    /// The group that has a block, by the pool that its id names; as [`Self::decider_of_file`].
    pub fn decider_of_block(&self, block: BlockId) -> GroupId {
        self.home_or_this(block.pool_number().into())
    }

    /// The group of this number, counted from 0, if it holds files. Clients choose the numbers that they send.
    fn home_or_this(&self, number: u32) -> GroupId {
        let group = GroupId(GroupId::ROOT.0 + number);
        match group == GroupId::ROOT || self.tree.directory_log.slots.are_of(group) {
            true => group,
            false => self.group(),
        }
    }

    /// Adds the marks of what a home rests on that decides about this path: the names and passages on the way, and the files of the
    /// directory in which it ends. False: it may rest on anything.
    #[must_use]
    fn seen_by_home(&self, path: &str, seen: &mut Vec<directory_log::Mark>) -> bool {
        let mut marks: Vec<Mark> = Vec::new();
        let is_known = self.seen_on(path, Reach::Itself, &mut marks);
        seen.extend(marks.into_iter().filter(|mark| mark.is_of_a_way()).map(directory_log::Mark::from));
        seen.extend(self.directory_of(path).map(files_of));
        is_known
    }

    /// Adds the marks of what a home rests on that decides about a file by its id: the names and passages of the file and of the directories above it,
    /// and the files of its directory.
    fn seen_by_home_of(&self, file: InodeId, seen: &mut Vec<directory_log::Mark>) {
        let mut marks: Vec<Mark> = Vec::new();
        self.seen_above(file, &mut marks);
        seen.extend(marks.into_iter().map(directory_log::Mark::from));
        seen.extend(self.parent_of(file).map(files_of));
    }

    /// The deepest directory on a path that is not what the whole path names.
    fn directory_of(&self, path: &str) -> Option<InodeId> {
        let real = reserved::real(self, path).ok()?;
        let path = Path::parse(real.text).ok()?;
        let mut way = Way::new(self);
        let mut names = path.components().take(path.depth().saturating_sub(1));
        while let Some(name) = names.next() {
            if !matches!(way.take(name, &mut names), Found::Directory) {
                break;
            }
        }
        Some(way.id())
    }
}

/// The way of a path through directories, as they are now or were in a snapshot.
struct Way<'ns> {
    ns: &'ns Namespace,
    directory: u32,
    snapshot: Option<SnapshotId>,
}

/// What the next name on a way is.
enum Found {
    /// A directory, in which the way goes on.
    Directory,
    File,
    /// Nothing that this tree has.
    Nothing,
}

impl<'ns> Way<'ns> {
    fn new(ns: &'ns Namespace) -> Self {
        Self { ns, directory: ns.tree.root, snapshot: None }
    }

    /// The directory to which the way has come.
    fn id(&self) -> InodeId {
        self.ns.tree.inode(self.directory).id()
    }

    /// Goes on with a name. Behind `.snapshot` the next name is that of a snapshot, and the way stays where it is.
    fn take<'a>(&mut self, name: &str, rest: &mut impl Iterator<Item = &'a str>) -> Found {
        let ns = self.ns;
        if self.snapshot.is_none() && name == DOT_SNAPSHOT && ns.has_dot_snapshot(self.directory) {
            let Some(name) = rest.next() else { return Found::Directory };
            let Some(taken) = ns.snapshot_named(self.directory, name) else { return Found::Nothing };
            self.snapshot = Some(taken.id);
            return Found::Directory;
        }
        match ns.child_at(self.directory, name.as_bytes(), self.snapshot) {
            Some(child) if ns.tree.inode(child).is_directory() => {
                self.directory = child;
                Found::Directory
            }
            Some(_) => Found::File,
            None => Found::Nothing,
        }
    }
}

/// The mark of the files in a directory.
pub(crate) fn files_of(directory: InodeId) -> directory_log::Mark {
    directory_log::Mark::new(directory_log::MarkKind::Files, u128::from(directory.0))
}

/// Marks of contents, at most: an entry may concern the quotas of any number of directories.
const CONTENTS: u64 = 4_096;

/// The mark of what a directory, and all below it, counts for in quotas. Some directories have the same.
pub(crate) fn contents_of(directory: InodeId) -> directory_log::Mark {
    let key = directory.0.wrapping_mul(SPREAD) % CONTENTS;
    directory_log::Mark::new(directory_log::MarkKind::Contents, key.into())
}
