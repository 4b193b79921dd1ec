//! The amounts that a sweep gives back: an inode that no snapshot sees any more no longer counts.

use super::ledger::Ledger;
use crate::{
    Namespace, SnapshotId,
    quota::{Amounts, replicated},
    snapshots::EntryKey,
    store::{NONE, inode::NAMED},
};
use base::InodeId;
use std::collections::{BTreeMap, BTreeSet};

/// The entries and inodes that the edit takes away. If one of two is below the other, the upper one accounts for
/// both.
pub(crate) struct Gone<'ns> {
    pub ns: &'ns Namespace,
    pub entries: BTreeSet<EntryKey>,
    pub unlinked: BTreeSet<InodeId>,
    /// The states of files that snapshots had.
    pub records: &'ns [(InodeId, SnapshotId)],
    /// The files of which blocks go that only snapshots had.
    pub trimmed: &'ns [InodeId],
}

pub(crate) fn sweep(ledger: &mut Ledger<'_>, gone: &Gone<'_>) {
    let ns = gone.ns;
    for key in &gone.entries {
        let Some(entry) = ns.tree.snapshots.entries.get(key) else { continue };
        let directory = ns.expect(key.0);
        if !ledger.is_charged(directory) || !gone.counts_on(directory) {
            continue;
        }
        match (ns.counted_through(key, entry), &entry.charged) {
            (Some(child), _) => {
                let policy = ns.policy_in_force(child);
                ledger.charge(directory, -ns.subtree_amounts(child, policy, key.2, true));
            }
            (None, Some(charged)) => ledger.charge(directory, -**charged),
            (None, None) => {}
        }
    }
    for inode in &gone.unlinked {
        let child = ns.expect(*inode);
        let directory = ns.tree.inode(child).parent;
        if ledger.is_charged(directory) && gone.counts_on(directory) {
            let died = ns.died(child);
            ledger.charge(directory, -ns.subtree_amounts(child, ns.policy_in_force(child), died, true));
        }
    }
    for (inode, change) in gone.files() {
        let Some(file) = ns.handle(inode).filter(|handle| ns.tree.inode(*handle).is_file()) else { continue };
        let directory = ns.counted_in(file);
        if ledger.is_charged(directory) && gone.counts_on(file) {
            ledger.charge(directory, difference(ns, file, &change));
        }
    }
}

impl Gone<'_> {
    fn files(&self) -> BTreeMap<InodeId, Change> {
        let mut files: BTreeMap<InodeId, Change> = BTreeMap::new();
        for (inode, key) in self.records {
            files.entry(*inode).or_default().records.push(*key);
        }
        for inode in self.trimmed {
            files.entry(*inode).or_default().is_trimmed = true;
        }
        files
    }

    /// Whether nothing at or above an inode is taken away.
    fn counts_on(&self, handle: u32) -> bool {
        let ns = self.ns;
        let mut at = handle;
        while at != NONE {
            let inode = ns.tree.inode(at);
            if self.unlinked.contains(&inode.id()) {
                return false;
            }
            let is_loose = inode.parent == NONE && inode.has(NAMED);
            if is_loose && ns.deleted_from(inode.id()).is_some_and(|key| self.entries.contains(key)) {
                return false;
            }
            at = ns.counted_in(at);
        }
        true
    }
}

/// The part of a sweep that concerns one file.
#[derive(Default)]
struct Change {
    records: Vec<SnapshotId>,
    is_trimmed: bool,
}

fn difference(ns: &Namespace, file: u32, change: &Change) -> Amounts {
    let policy = ns.policy_in_force(file);
    let died = ns.died(file);
    let count = |gone: &[SnapshotId], kept: u64| {
        let bytes = ns.bytes_without(file, gone, kept);
        replicated(bytes, ns.held_replication(file, died, gone), policy)
    };
    let kept = ns.needed_length(file, &change.records).filter(|_| change.is_trimmed);
    let mut difference = count(&change.records, kept.unwrap_or(u64::MAX));
    difference -= count(&[], u64::MAX);
    difference
}
