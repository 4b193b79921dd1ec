//! The usage of quotas where snapshots keep something: HDFS's `computeQuotaUsage`.
//!
//! A file counts for all blocks that it or a snapshot of it has, as often as any of them wants. A deleted inode goes
//! on to count like that in the directory that it was deleted from, until a sweep finds that no snapshot sees it there. An inode
//! that was moved away counts twice: in its present place like anything else, and in its former directory for the
//! amounts of the last snapshot that saw it there. Those amounts stand in its past entry.
//!
//! So what counts follows from the tree and the side tables alone, not from which snapshots are alive: a snapshot
//! that is deleted changes no usage. The sweeps after it do, and each edit of a sweep says by how much.

use super::{AFTER_ALL, BEFORE_ALL, EntryKey, PastEntry};
use crate::{
    Context, Namespace, SnapshotId,
    looks::{Answer, Counted, Question},
    quota::{Amounts, replicated},
    store::{NONE, block_list::Stored, inode::NAMED},
    usage::block_bytes,
};
use base::{InodeId, POLICY_UNSPECIFIED};
use std::collections::BTreeSet;

impl Namespace {
    /// The past entry through which an inode that hangs nowhere still counts: the one that it was deleted from.
    pub(crate) fn deleted_from(&self, inode: InodeId) -> Option<&EntryKey> {
        let snapshots = &self.tree.snapshots;
        let is_deletion =
            |key: &&EntryKey| snapshots.entries.get(*key).is_some_and(|entry| entry.charged.is_none());
        let names = snapshots.named.get(&inode)?;
        names.iter().filter(is_deletion).max_by_key(|key| key.2)
    }

    /// The handle of the inode that counts in a directory through this past entry: one that was deleted from it.
    /// `None` if the entry's inode does not count there.
    pub(crate) fn counted_through(&self, key: &EntryKey, entry: &PastEntry) -> Option<u32> {
        let handle = self.handle(entry.inode)?;
        let is_loose = self.tree.inode(handle).parent == NONE;
        let is_counted = entry.charged.is_none() && is_loose && self.deleted_from(entry.inode) == Some(key);
        is_counted.then_some(handle)
    }

    /// The directory in which an inode counts; `NONE` for the root, and for what counts nowhere any more.
    pub(crate) fn counted_in(&self, handle: u32) -> u32 {
        let inode = self.tree.inode(handle);
        if inode.parent != NONE || !inode.has(NAMED) {
            return inode.parent;
        }
        self.deleted_from(inode.id()).and_then(|key| self.handle(key.0)).unwrap_or(NONE)
    }

    /// The storage policy in force for an inode where it counts.
    pub(crate) fn policy_in_force(&self, handle: u32) -> u8 {
        let mut at = handle;
        while self.tree.policies > 0 && at != NONE {
            match self.tree.own_policy(at) {
                POLICY_UNSPECIFIED => at = self.counted_in(at),
                policy => return policy,
            }
        }
        POLICY_UNSPECIFIED
    }

    /// The most replicas that the records of a file want; 0 if it has none.
    pub(crate) fn replication_in_past(&self, file: u32) -> u16 {
        let records = self.tree.snapshots.records_of(self.tree.inode(file).id());
        records.map(|(_, past)| self.tree.attributes.get(past.attributes).replication).max().unwrap_or(0)
    }

    /// The last snapshot that saw an inode where it counts, when it was deleted, or the directory above that was deleted with
    /// it. [`AFTER_ALL`] for what is in the tree, [`BEFORE_ALL`] for what counts nowhere.
    pub(crate) fn died(&self, handle: u32) -> SnapshotId {
        let mut top = handle;
        while self.tree.inode(top).parent != NONE {
            top = self.tree.inode(top).parent;
        }
        if top == self.tree.root {
            return AFTER_ALL;
        }
        self.deleted_from(self.tree.inode(top).id()).map_or(BEFORE_ALL, |key| key.2)
    }

    /// How often each block of a file counts that has [died](Self::died) in this snapshot; `gone`: without these records.
    pub(crate) fn held_replication(&self, file: u32, died: SnapshotId, gone: &[SnapshotId]) -> u16 {
        self.replication_with(self.tree.attributes_of(file).replication, file, died, gone)
    }

    /// As [`Self::held_replication`], if the file wanted so many replicas for itself. Once it is deleted that counts only if it died
    /// after its last record: otherwise each snapshot that sees it has a record of it.
    pub(crate) fn replication_with(&self, own: u16, file: u32, died: SnapshotId, gone: &[SnapshotId]) -> u16 {
        if self.tree.snapshots.records.is_empty() {
            return own;
        }
        let (mut most, mut latest) = (0, BEFORE_ALL);
        for (key, past) in self.tree.snapshots.records_of(self.tree.inode(file).id()) {
            if !gone.contains(&key) {
                most = most.max(self.tree.attributes.get(past.attributes).replication);
                latest = key;
            }
        }
        if latest == BEFORE_ALL || latest < died { most.max(own) } else { most }
    }

    /// How many replicas a deleted file is to want for itself, if those that it wants are more than any snapshot does that is
    /// left: none sees it as it was in the end.
    pub(crate) fn lower_replication(&self, file: u32) -> Option<u16> {
        let own = self.tree.attributes_of(file).replication;
        let records = || {
            let records = self.tree.snapshots.records_of(self.tree.inode(file).id());
            records.map(|(key, past)| (key, self.tree.attributes.get(past.attributes).replication))
        };
        if records().all(|(_, replication)| replication >= own) {
            return None;
        }
        let (mut low, mut most) = (BEFORE_ALL, 0);
        for (key, replication) in records() {
            if self.latest_seeing(file, low, key).is_some() {
                most = most.max(replication);
            }
            low = key;
        }
        let is_lower = (1..own).contains(&most) && self.latest_seeing(file, low, AFTER_ALL).is_none();
        is_lower.then_some(most)
    }

    /// Bytes of all blocks that a file and its records have.
    pub(crate) fn held_bytes(&self, file: u32) -> i64 {
        self.bytes_without(file, &[], u64::MAX)
    }

    /// As [`Self::held_bytes`], without these records, and without those of the file's own blocks that begin behind its first
    /// `kept` bytes. A block counts as the file has it, or else as its first record does.
    pub(crate) fn bytes_without(&self, file: u32, gone: &[SnapshotId], kept: u64) -> i64 {
        let block_size = self.tree.attributes_of(file).block_size;
        if self.tree.snapshots.records.is_empty() && kept == u64::MAX {
            return self.tree.file_bytes(file);
        }
        let own = || {
            let mut offset = 0;
            self.tree.blocks_of(file).take_while(move |stored| {
                let begins = offset;
                offset += stored.block.length;
                begins < kept
            })
        };
        let mut bytes = own().map(|stored| block_bytes(stored, block_size)).sum();
        let mut counted = BTreeSet::new();
        for (key, past) in self.tree.snapshots.records_of(self.tree.inode(file).id()) {
            let Some(blocks) = past.blocks.as_ref().filter(|_| !gone.contains(&key)) else { continue };
            if counted.is_empty() {
                counted.extend(own().map(|stored| stored.block.id));
            }
            for stored in blocks.iter().filter(|stored| counted.insert(stored.block.id)) {
                bytes += block_bytes(*stored, block_size);
            }
        }
        bytes
    }

    /// The bytes for which a block goes on to count that a file loses. `offset`: where the block begins in the file. The block counts on if a record of the
    /// file has it, or will have it; the records of deleted snapshots count as well, until they are swept away.
    pub(crate) fn bytes_in_past(&self, file: u32, offset: u64, stored: Stored) -> i64 {
        let bytes = |stored: Stored| block_bytes(stored, self.tree.attributes_of(file).block_size);
        let mut latest = BEFORE_ALL;
        for (key, past) in self.tree.snapshots.records_of(self.tree.inode(file).id()) {
            latest = key;
            match &past.blocks {
                None if past.size > offset => return bytes(stored),
                None => {}
                Some(blocks) => {
                    if let Some(listed) = blocks.iter().find(|listed| listed.block.id == stored.block.id) {
                        return bytes(*listed);
                    }
                }
            }
        }
        // Snapshots since then see the file as it is.
        let is_seen =
            self.final_length_of(file) > offset && self.latest_seeing(file, latest, AFTER_ALL).is_some();
        if is_seen { bytes(stored) } else { 0 }
    }

    /// A file under a policy, where it counts as it is.
    pub(crate) fn file_amounts(&self, file: u32, policy: u8, died: SnapshotId) -> Amounts {
        let replication = self.held_replication(file, died, &[]);
        Amounts { inodes: 1, ..replicated(self.held_bytes(file), replication, policy) }
    }

    /// What a whole subtree counts for whose top has this policy in force; see [`Counted`].
    pub(crate) fn subtree_amounts(&self, top: u32, policy: u8, died: SnapshotId, anew: bool) -> Amounts {
        self.amounts_of(Counted { top: self.tree.inode(top).id(), policy, died, anew })
    }

    /// What a whole subtree counts for: known from a look, or found by one. If a look has to come first the answer is of no use.
    pub(crate) fn amounts_for(&self, ctx: &Context<'_>, counted: Counted) -> Amounts {
        let Some(looks) = ctx.looks else { return self.amounts_of(counted) };
        let look = |count_max| Counting::new(counted).step(self, count_max).map(Answer::Amounts);
        match looks.answer(Question::Amounts(counted), look) {
            Some(Answer::Amounts(amounts)) => amounts,
            _ => Amounts::default(),
        }
    }

    /// Counts a whole subtree at once.
    pub(crate) fn amounts_of(&self, counted: Counted) -> Amounts {
        let all = Counting::new(counted).step(self, usize::MAX);
        all.expect("no subtree has so many inodes")
    }

    /// Gives the former children that still count in a directory to `each`.
    pub(crate) fn for_each_past(&self, directory: InodeId, mut each: impl FnMut(Past)) {
        if self.tree.snapshots.entries.is_empty() {
            return;
        }
        for (key, entry) in self.tree.snapshots.entries_of(directory) {
            match (self.counted_through(key, entry), &entry.charged) {
                (Some(child), _) => each(Past::Deleted(child, key.2)),
                (None, Some(amounts)) => each(Past::Moved(**amounts)),
                (None, None) => {}
            }
        }
    }
}

/// A count under way. An inode that changes between two steps may count as it was before or as it is after.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counting {
    anew: bool,
    sum: Amounts,
    stack: Vec<Level>,
}

/// An inode that is to be counted, and all below it.
#[derive(Clone, Debug, PartialEq)]
struct Level {
    inode: InodeId,
    policy: u8,
    died: SnapshotId,
    /// The children up to this rank are counted; `None`: nothing of the inode is.
    done: Option<u32>,
}

impl Counting {
    pub fn new(counted: Counted) -> Self {
        let Counted { top, policy, died, anew } = counted;
        let top = Level { inode: top, policy, died, done: None };
        Self { anew, sum: Amounts::default(), stack: vec![top] }
    }

    /// Visits `count_max` inodes at most. `None` while some are left.
    pub fn step(&mut self, ns: &Namespace, count_max: usize) -> Option<Amounts> {
        let mut left = count_max.max(1);
        while let Some(level) = self.stack.pop() {
            if left == 0 {
                self.stack.push(level);
                return None;
            }
            ns.visits.add();
            left -= usize::from(level.done.is_none());
            // Something that is gone has nothing below it any more.
            let Some(handle) = ns.handle(level.inode) else { continue };
            let first = match level.done {
                Some(done) => done,
                None if self.begin(ns, handle, &level) => 0,
                None => continue,
            };
            self.count_children(ns, handle, level, first, &mut left);
        }
        Some(self.sum)
    }

    /// Counts an inode without its children. True if these are to be counted.
    fn begin(&mut self, ns: &Namespace, handle: u32, level: &Level) -> bool {
        let inode = ns.tree.inode(handle);
        if inode.is_file() {
            self.sum += ns.file_amounts(handle, level.policy, level.died);
            return false;
        }
        // The noted usage is not kept up to date for inodes that only snapshots have.
        let is_known = level.died == AFTER_ALL && !self.anew && inode.has_quota();
        if let Some(quota) = ns.tree.quotas.get(&level.inode).filter(|_| is_known) {
            self.sum += quota.used;
            return false;
        }
        self.sum += ns.directory_amounts();
        ns.for_each_past(level.inode, |past| match past {
            Past::Deleted(child, died) => self.stack.push(Level {
                inode: ns.tree.inode(child).id(),
                policy: ns.tree.policy_below(child, level.policy),
                died,
                done: None,
            }),
            Past::Moved(amounts) => self.sum += amounts,
        });
        true
    }

    /// Counts the files from a rank on, and notes the directories. If `left` does not suffice the rest is noted as well.
    fn count_children(&mut self, ns: &Namespace, directory: u32, level: Level, first: u32, left: &mut usize) {
        for (done, child) in (first..).zip(ns.tree.children_of(directory, first)) {
            if *left == 0 {
                return self.stack.push(Level { done: Some(done), ..level });
            }
            *left -= 1;
            let policy = ns.tree.policy_below(child, level.policy);
            let inode = ns.tree.inode(child);
            if inode.is_file() {
                ns.visits.add();
                self.sum += ns.file_amounts(child, policy, level.died);
            } else {
                let (inode, died) = (inode.id(), level.died);
                self.stack.push(Level { inode, policy, died, done: None });
            }
        }
    }
}

/// A former child that still counts in a directory.
pub(crate) enum Past {
    /// Counts as it is; it died in this snapshot.
    Deleted(u32, SnapshotId),
    /// Counts for so much.
    Moved(Amounts),
}
