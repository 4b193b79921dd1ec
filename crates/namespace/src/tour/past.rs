//! How an inode differed from now in the living snapshots that see it.

use super::{Link, Name, State, Stop};
use crate::{
    SnapshotId,
    snapshots::{BEFORE_ALL, PastInode},
    store::inode::BORN,
};
use base::Block;
use std::{collections::BTreeMap, sync::Arc};

/// The difference of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryDiff<'a> {
    pub snapshot: SnapshotId,
    /// Entries of the directory in the snapshot.
    pub children: u64,
    /// The snapshot was made of this very directory, and keeps its attributes.
    pub is_root: bool,
    /// The attributes and the name in this snapshot and in those since the difference before. `None`: those of the next difference that has any, or
    /// of now.
    pub state: Option<(&'a [u8], State<'a>)>,
    /// The names of the entries that came after the snapshot and before the next difference, in order.
    pub created: Vec<&'a [u8]>,
    /// The entries that went in that time, in the order of names.
    pub deleted: Vec<Link<'a>>,
}

/// The difference of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff<'a> {
    pub snapshot: SnapshotId,
    pub name: &'a [u8],
    /// In bytes.
    pub length: u64,
    pub state: State<'a>,
    /// Left empty if the file of now begins with the blocks of all differences.
    pub blocks: Vec<Block>,
}

#[derive(Default)]
struct Draft<'a> {
    is_root: bool,
    past: Option<&'a PastInode>,
    created: Vec<&'a [u8]>,
    deleted: Vec<Name<'a>>,
}

impl<'a> Stop<'a> {
    pub(super) fn state_of(&self, past: &'a PastInode) -> State<'a> {
        let tree = self.tour.tree;
        self.state_with(
            tree.attributes.values(past.attributes, &tree.strings),
            (past.modified, past.accessed),
            past.xattrs.as_deref(),
            past.limits.as_deref().copied(),
        )
    }

    /// The records that living snapshots see, each with the latest of these.
    fn records(&self) -> Vec<(SnapshotId, &'a Arc<PastInode>)> {
        let mut before = BEFORE_ALL;
        let records = self.tour.tree.snapshots.records_of(self.id());
        let mut seen = Vec::new();
        for (key, past) in records {
            match self.seen_until(key) {
                Some(latest) if latest > before => {
                    seen.push((latest, past));
                    before = latest;
                }
                _ => {}
            }
        }
        seen
    }

    /// The differences of a directory, the latest first.
    pub fn directory_diffs(&self) -> Vec<DirectoryDiff<'a>> {
        let tour = self.tour;
        let (tree, snapshots) = (tour.tree, &tour.tree.snapshots);
        if !self.is_directory() || snapshots.living == 0 {
            return Vec::new();
        }
        let id = self.id();
        let mut drafts: BTreeMap<SnapshotId, Draft<'a>> = BTreeMap::new();
        for taken in snapshots.roots.get(&id).into_iter().flat_map(|root| root.iter()) {
            drafts.entry(taken.id).or_default().is_root = true;
        }
        for (key, past) in self.records() {
            drafts.entry(key).or_default().past = Some(past);
        }
        if tour.directories.contains_key(&id) {
            for (key, entry) in snapshots.entries_of(id) {
                let Some(name) = tour.name(key, entry) else { continue };
                if name.born > BEFORE_ALL {
                    drafts.entry(name.born).or_default().created.push(&key.1);
                }
                drafts.entry(name.died).or_default().deleted.push(name);
            }
        }
        if !snapshots.births.is_empty() {
            for child in tree.children_of(self.handle, 0).filter(|child| tree.inode(*child).has(BORN)) {
                if let Some(born) = self.seen_until(tree.birth_of(child)) {
                    drafts.entry(born).or_default().created.push(tree.name_of(child));
                }
            }
        }
        let mut children = u64::from(tree.inode(self.handle).children_count());
        let diffs = drafts.into_iter().rev().map(|(snapshot, mut draft)| {
            children = (children + draft.deleted.len() as u64).saturating_sub(draft.created.len() as u64);
            draft.created.sort_unstable();
            draft.deleted.sort_unstable_by(|one, other| one.key.1.cmp(&other.key.1));
            // The snapshot of the directory itself has its attributes.
            let past = draft.past.filter(|_| !draft.is_root);
            DirectoryDiff {
                snapshot,
                children,
                is_root: draft.is_root,
                state: past.map(|past| (self.name_at(snapshot), self.state_of(past))),
                created: draft.created,
                deleted: draft.deleted.iter().map(|name| tour.past_link(name)).collect(),
            }
        });
        diffs.collect()
    }

    /// The differences of a file, the latest first.
    pub fn file_diffs(&self) -> Vec<FileDiff<'a>> {
        if self.is_directory() || self.tour.tree.snapshots.living == 0 {
            return Vec::new();
        }
        let records = self.records();
        let has_lists = records.iter().any(|(_, past)| past.blocks.is_some());
        let diffs = records.iter().rev().map(|(snapshot, past)| FileDiff {
            snapshot: *snapshot,
            name: self.name_at(*snapshot),
            length: past.size,
            state: self.state_of(past),
            blocks: if has_lists { self.blocks_of(past) } else { Vec::new() },
        });
        diffs.collect()
    }

    /// The blocks that hold the bytes of a past file.
    fn blocks_of(&self, past: &PastInode) -> Vec<Block> {
        let mut offset = 0;
        let mut is_within = |block: &Block| {
            let begins = offset;
            offset += block.length;
            begins < past.size
        };
        match &past.blocks {
            Some(blocks) => blocks.iter().map(|stored| stored.block).take_while(|it| is_within(it)).collect(),
            None => self.blocks().take_while(|it| is_within(it)).collect(),
        }
    }
}
