//! How changes preserve what snapshots see, and how it is let go.
//!
//! `apply` names what is preserved ([`crate::preserve`]) before it changes anything; while it runs, entries that
//! are taken out of or put into a directory named there get their lifetimes.

use super::{AFTER_ALL, BEFORE_ALL, EntryKey, PastEntry, PastInode, RecordKey};
use crate::{
    BlockChange, Namespace, SnapshotId,
    outbox::Order,
    store::{
        NONE,
        block_list::Stored,
        inode::{BORN, NAMED, SNAPSHOTTABLE},
    },
};
use base::{Block, InodeId};
use std::sync::Arc;

impl Namespace {
    /// Keeps an inode as it is for the snapshots up to `key` that have no record of it yet.
    pub(crate) fn preserve(&mut self, inode: InodeId, key: SnapshotId) {
        if self.tree.snapshots.record_at(inode, key).is_some() {
            return;
        }
        let handle = self.expect(inode);
        let record = self.tree.inode(handle);
        let size = if record.is_directory() {
            u64::from(record.children_count())
        } else {
            self.final_length_of(handle)
        };
        let quota = self.tree.quotas.get(&inode).filter(|_| record.has_quota());
        let past = PastInode {
            attributes: record.attributes,
            modified: record.modified(),
            accessed: record.accessed(),
            size,
            blocks: None,
            xattrs: self.tree.xattrs_of(handle).cloned(),
            limits: quota.map(|quota| Arc::new(quota.limits)),
        };
        self.acquire_attributes_again(past.attributes);
        let tree = &mut self.tree;
        tree.snapshots.add_record(&tree.attributes, (inode, key), past);
    }

    /// How long a file is in a snapshot that is made now: a block that is being cut is already short.
    pub(crate) fn final_length_of(&self, file: u32) -> u64 {
        let length = self.tree.length_of(file);
        match self.truncation_of(self.tree.inode(file).id()) {
            Some((block, _, cut)) => length - block.length + cut,
            None => length,
        }
    }

    /// The snapshot for which this edit preserves a directory's entries.
    fn preserved_for(&self, directory: u32) -> Option<SnapshotId> {
        let id = self.tree.inode(directory).id();
        self.preserving.iter().find(|(inode, _)| *inode == id).map(|(_, key)| *key)
    }

    /// An inode is about to be taken out of its directory.
    pub(crate) fn note_unlinked(&mut self, handle: u32) {
        let inode = self.tree.inode(handle);
        let (id, parent, is_born) = (inode.id(), inode.parent, inode.has(BORN));
        let mut born = BEFORE_ALL;
        if is_born {
            born = self.tree.snapshots.remove_birth(id).unwrap_or(BEFORE_ALL);
            self.tree.inodes.get_mut(handle).set_flag(BORN, false);
        }
        if self.preserving.is_empty() {
            return;
        }
        let Some(died) = self.preserved_for(parent).filter(|died| born < *died) else { return };
        let key: EntryKey = (self.tree.inode(parent).id(), Arc::from(self.tree.name_of(handle)), died);
        let charged = self.keeping.iter().find(|(inode, _)| *inode == id);
        let charged = charged.map(|(_, amounts)| Arc::new(*amounts));
        self.tree.snapshots.add_entry(key, PastEntry { inode: id, born, charged });
        self.tree.inodes.get_mut(handle).set_flag(NAMED, true);
    }

    /// An inode was put into its directory.
    pub(crate) fn note_linked(&mut self, handle: u32) {
        if self.preserving.is_empty() {
            return;
        }
        let inode = self.tree.inode(handle);
        let (id, parent) = (inode.id(), inode.parent);
        if let Some(born) = self.preserved_for(parent) {
            self.tree.snapshots.set_birth(id, born);
            self.tree.inodes.get_mut(handle).set_flag(BORN, true);
        }
    }

    /// An inode that was just taken out of its directory goes away, unless snapshots see it. A subtree that must be
    /// taken apart in steps waits for [`crate::ops::cleanup`].
    pub(crate) fn discard(&mut self, handle: u32, at_once: bool, changes: &mut Vec<BlockChange>) {
        if self.tree.inode(handle).has(NAMED) {
            return self.keep_top(handle);
        }
        if at_once && !self.has_past_below(handle) {
            return self.remove_subtree(handle, changes);
        }
        self.hang_nowhere(handle);
        self.tree.orphans.push_back(handle);
    }

    /// Whether a directory that goes away has entries that are still to be swept.
    fn has_past_below(&self, top: u32) -> bool {
        if self.tree.snapshots.entries.is_empty() {
            return false;
        }
        let mut stack = vec![top];
        while let Some(handle) = stack.pop() {
            self.visits.add();
            let inode = self.tree.inode(handle);
            if !inode.is_directory() {
                continue;
            }
            if self.tree.snapshots.has_entries(inode.id()) {
                return true;
            }
            stack.extend(self.tree.children_of(handle, 0));
        }
        false
    }

    pub(crate) fn hang_nowhere(&mut self, handle: u32) {
        self.change(handle, |ns| ns.tree.inodes.get_mut(handle).parent = NONE);
    }

    /// An inode in no directory stays for the past entries that name it.
    pub(crate) fn keep_top(&mut self, handle: u32) {
        self.hang_nowhere(handle);
        let inode = self.tree.inode(handle);
        let (id, is_file, is_open) = (inode.id(), inode.is_file(), inode.is_open());
        let snapshots = &mut self.tree.snapshots;
        snapshots.kept.insert(id, handle);
        // A file that never changed has nothing that the snapshots do not see.
        if !is_file || is_open || snapshots.records_of(id).next().is_some() {
            snapshots.unsearched.push_back(id);
        }
        self.tree.inodes.get_mut(handle).set_flag(SNAPSHOTTABLE, false);
    }

    /// Drops a past entry. The inode goes to the orphans if nothing names it any more.
    pub(crate) fn drop_entry(&mut self, key: &EntryKey) {
        let Some((entry, true)) = self.tree.snapshots.remove_entry(key) else { return };
        let handle = self.expect(entry.inode);
        self.tree.inodes.get_mut(handle).set_flag(NAMED, false);
        if self.tree.snapshots.kept.remove(&entry.inode).is_some() {
            self.tree.orphans.push_back(handle);
        }
    }

    /// Drops a record, with the blocks that it alone has.
    pub(crate) fn drop_record(&mut self, key: RecordKey, changes: &mut Vec<BlockChange>) {
        let replication = self.handle(key.0).map(|handle| self.block_replication(handle));
        let tree = &mut self.tree;
        let Some(past) = tree.snapshots.remove_record(&tree.attributes, key) else { return };
        self.release_attributes(past.attributes);
        let Some(handle) = self.handle(key.0) else { return };
        let source = self.source_of(handle);
        for stored in past.blocks.iter().flat_map(|blocks| blocks.iter()) {
            let current = self.tree.blocks_of(handle).any(|other| other.block.id == stored.block.id);
            let is_source = source.is_some_and(|source| source.id == stored.block.id);
            if !current && !is_source && !self.is_listed_in_past(key.0, stored.block) {
                self.block_is_gone(key.0, stored.block, changes);
            }
        }
        if self.tree.inode(handle).is_file()
            && let Some(from) = replication
        {
            self.tell_replication(handle, from, changes);
        }
    }

    /// Whether a record of the file has the block in a list of its own.
    pub(crate) fn is_listed_in_past(&self, file: InodeId, block: Block) -> bool {
        let records = self.tree.snapshots.records_of(file);
        records
            .filter_map(|(_, past)| past.blocks.as_ref())
            .any(|blocks| blocks.iter().any(|stored| stored.block.id == block.id))
    }

    /// Whether a snapshot shows something of the file behind its first `offset` bytes: then the block that begins
    /// there must stay as it is.
    pub(crate) fn is_block_in_past(&self, file: u32, offset: u64) -> bool {
        let snapshots = &self.tree.snapshots;
        if snapshots.living == 0 {
            return false;
        }
        let inode = self.tree.inode(file).id();
        let mut records = snapshots.records_of(inode);
        let latest = snapshots.records_of(inode).next_back().map_or(BEFORE_ALL, |(key, _)| key);
        records.any(|(_, past)| past.blocks.is_none() && past.size > offset)
            // A record with a list of its own may share its first blocks with the file as it is.
            || self.block_at(file, offset).is_some_and(|block| self.is_listed_in_past(inode, block))
            // Snapshots since then see the file as it is.
            || (self.tree.length_of(file) > offset && self.latest_seeing(file, latest, AFTER_ALL).is_some())
    }

    /// The block of the file that begins behind so many bytes.
    fn block_at(&self, file: u32, offset: u64) -> Option<Block> {
        let mut begins = 0;
        for stored in self.tree.blocks_of(file) {
            if begins >= offset {
                return (begins == offset).then_some(stored.block);
            }
            begins += stored.block.length;
        }
        None
    }

    /// Blocks of a file are about to go away, those behind its first `kept` bytes: records that have some of them,
    /// and begin with the current blocks, get a list of their own.
    pub(crate) fn keep_blocks(&mut self, file: u32, kept: u64) {
        if self.tree.snapshots.records.is_empty() {
            return;
        }
        let inode = self.tree.inode(file).id();
        let needs_list = |past: &PastInode| past.blocks.is_none() && past.size > kept;
        let records = self.tree.snapshots.records_of(inode).filter(|(_, past)| needs_list(past));
        let records: Vec<(SnapshotId, Arc<PastInode>)> =
            records.map(|(key, past)| (key, past.clone())).collect();
        for (key, past) in records {
            let mut offset = 0;
            let mut is_within = |stored: &Stored| {
                let begins = offset;
                offset += stored.block.length;
                begins < past.size
            };
            let blocks: Vec<Stored> = self.tree.blocks_of(file).take_while(|it| is_within(it)).collect();
            let tree = &mut self.tree;
            tree.snapshots.remove_record(&tree.attributes, (inode, key));
            let past = PastInode { blocks: Some(blocks.into()), ..(*past).clone() };
            tree.snapshots.add_record(&tree.attributes, (inode, key), past);
        }
    }

    /// Tells that a block which the file no longer has may go, unless a record has it.
    pub(crate) fn let_go(&mut self, file: InodeId, block: Block, changes: &mut Vec<BlockChange>) {
        if self.tree.snapshots.records.is_empty() || !self.is_listed_in_past(file, block) {
            self.block_is_gone(file, block, changes);
        }
    }

    /// Cuts off what no snapshot sees of a file that is in no directory, and closes it if nothing is left that its
    /// writer may not have finished.
    pub(crate) fn trim(&mut self, file: u32, changes: &mut Vec<BlockChange>) {
        while self.has_surplus_block(file) {
            self.remove_last_block(file, changes);
        }
        if self.is_finished(file) {
            self.close_file(file);
            let last = self.tree.last_block(file);
            if last != NONE {
                changes.push(BlockChange::Completed { block: self.tree.blocks.stored(last).block });
            }
        }
    }

    /// Whether [`Self::trim`] finds something to do.
    pub(crate) fn is_to_be_trimmed(&self, file: u32) -> bool {
        self.has_surplus_block(file) || self.is_finished(file)
    }

    /// Whether an open file could be closed as it is.
    fn is_finished(&self, file: u32) -> bool {
        let last = self.tree.last_block(file);
        let is_truncated = || self.truncations.contains(&self.tree.inode(file).id());
        self.tree.inode(file).is_open()
            && (last == NONE || self.tree.blocks.stored(last).committed)
            && !is_truncated()
    }

    /// How many bytes of a kept file's blocks some snapshot sees once these records are gone; `None`: the file stays
    /// as it is.
    pub(crate) fn needed_length(&self, file: u32, gone: &[SnapshotId]) -> Option<u64> {
        let inode = self.tree.inode(file);
        let is_open = inode.is_open();
        if inode.is_directory() || (is_open && self.truncations.contains(&inode.id())) {
            return None;
        }
        let records = self.tree.snapshots.records_of(inode.id()).filter(|(key, _)| !gone.contains(key));
        let (mut needed, mut latest) = (0, None);
        for (key, past) in records {
            if past.blocks.is_none() {
                needed = needed.max(past.size);
            }
            latest = Some(key);
        }
        let is_seen = latest.is_none_or(|latest| self.latest_seeing(file, latest, AFTER_ALL).is_some());
        if !is_seen {
            return Some(needed);
        }
        // A block to which its writer has not given a length yet is not visible.
        is_open.then(|| needed.max(self.tree.length_of(file)))
    }

    /// Whether the last block of a kept file lies behind all that snapshots see of it.
    pub(crate) fn has_surplus_block(&self, file: u32) -> bool {
        if self.tree.inode(file).is_directory() || self.tree.last_block(file) == NONE {
            return false;
        }
        let last = self.tree.last_block(file);
        let offset = self.tree.length_of(file) - self.tree.blocks.stored(last).block.length;
        self.needed_length(file, &[]).is_some_and(|needed| needed <= offset)
    }

    /// The blocks of a file may need another number of replicas than before.
    pub(crate) fn tell_replication(&mut self, file: u32, from: u16, changes: &mut Vec<BlockChange>) {
        let to = self.block_replication(file);
        if to == from {
            return;
        }
        let own = self.tree.blocks_of(file).map(|stored| stored.block.id);
        let own = own.filter(|block| !self.is_foreign(*block));
        changes.extend(own.map(|block| BlockChange::ReplicationChanged { block, from, to }));
        let id = self.tree.inode(file).id();
        for group in self.groups_with_exports(file) {
            self.give_order(group, Order::SetReplication { file: id, replication: to });
        }
    }

    /// How many replicas the blocks of a file need: the most that it or a snapshot wants.
    pub(crate) fn block_replication(&self, file: u32) -> u16 {
        let current = self.tree.attributes.get(self.tree.inode(file).attributes).replication;
        if self.tree.snapshots.records.is_empty() {
            return current;
        }
        self.replication_in_past(file).max(current)
    }

    /// Forgets all about an inode that is removed. No entries are left in it if it is a directory.
    pub(crate) fn forget_past(&mut self, handle: u32, changes: &mut Vec<BlockChange>) {
        let inode = self.tree.inode(handle);
        let (id, is_born, is_root) = (inode.id(), inode.has(BORN), inode.has(SNAPSHOTTABLE));
        assert!(!inode.has(NAMED), "an inode that is removed is named by no past entry");
        if is_born {
            self.tree.snapshots.remove_birth(id);
        }
        if is_root {
            self.tree.snapshots.remove_root(id);
        }
        if !self.tree.snapshots.records.is_empty() {
            let keys: Vec<SnapshotId> = self.tree.snapshots.records_of(id).map(|(key, _)| key).collect();
            for key in keys {
                self.drop_record((id, key), changes);
            }
        }
    }
}
