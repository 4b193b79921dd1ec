//! The few ways in which `apply` changes the tree. Each keeps the digest, the index, the leases and the
//! counts in step.

use crate::{
    BlockChange, Namespace,
    acl::Acl,
    ops::satisfy_storage_policy,
    outbox::Order,
    store::block_list::block_digest,
    store::{
        NONE,
        attributes::AttributeValues,
        block_list::Stored,
        children,
        inode::{Inode, NAMED, XATTRS},
        open_file::OpenFile,
    },
    xattr::Xattrs,
};
use base::{Block, GenerationStamp, InodeId, POLICY_UNSPECIFIED, Timestamp};
use std::{collections::BTreeSet, sync::Arc};

impl Namespace {
    pub(crate) fn acquire_attributes(&mut self, values: AttributeValues<'_>) -> u32 {
        let tree = &mut self.tree;
        tree.policies += u64::from(values.storage_policy != POLICY_UNSPECIFIED);
        self.attributes.acquire(&mut tree.attributes, &mut tree.strings, &mut self.strings, values)
    }

    /// Counts one more inode for a combination of attributes that is there.
    pub(crate) fn acquire_attributes_again(&mut self, handle: u32) {
        let tree = &mut self.tree;
        tree.policies += u64::from(tree.attributes.get(handle).storage_policy != POLICY_UNSPECIFIED);
        self.attributes.acquire_again(&mut tree.attributes, handle);
    }

    pub(crate) fn release_attributes(&mut self, handle: u32) {
        let tree = &mut self.tree;
        let has_policy = tree.attributes.get(handle).storage_policy != POLICY_UNSPECIFIED;
        tree.policies -= u64::from(has_policy);
        self.attributes.release(&mut tree.attributes, &mut tree.strings, &mut self.strings, handle);
    }

    /// Adds an inode. If its parent is set already, it is to be [linked](Self::link) next.
    pub(crate) fn insert_inode(&mut self, inode: Inode, name: &[u8]) -> u32 {
        let id = inode.id();
        let handle = self.insert_unindexed(inode, name);
        self.index.insert(&self.tree.inodes, id, handle);
        handle
    }

    /// Inserts an inode like [`Self::insert_inode`], but it cannot be found by its id yet.
    pub(crate) fn insert_unindexed(&mut self, mut inode: Inode, name: &[u8]) -> u32 {
        let id = inode.id();
        inode.set_name(self.names.acquire(&mut self.tree.names, name), name.len());
        let counters = &mut self.tree.counters;
        counters.note_inode(id);
        if inode.is_directory() {
            counters.directories += 1;
        } else {
            counters.files += 1;
        }
        let handle = self.tree.inodes.insert(inode);
        self.tree.sum = self.tree.sum.wrapping_add(self.tree.inode_digest(handle));
        handle
    }

    /// Adds an inode to a directory that has no child of its name.
    pub(crate) fn insert_child(&mut self, parent: u32, mut inode: Inode, name: &[u8]) -> u32 {
        inode.parent = parent;
        let handle = self.insert_inode(inode, name);
        self.link(handle);
        handle
    }

    /// Changes an inode's record.
    pub(crate) fn change<R>(&mut self, handle: u32, change: impl FnOnce(&mut Namespace) -> R) -> R {
        self.tree.sum = self.tree.sum.wrapping_sub(self.tree.inode_digest(handle));
        let result = change(self);
        self.tree.sum = self.tree.sum.wrapping_add(self.tree.inode_digest(handle));
        result
    }

    pub(crate) fn set_modified(&mut self, handle: u32, time: Timestamp) {
        self.change(handle, |ns| ns.tree.inodes.get_mut(handle).set_modified(time));
    }

    /// Gives an inode other attributes.
    pub(crate) fn set_attributes(&mut self, handle: u32, wanted: AttributeChange<'_>) {
        let old = self.tree.inode(handle).attributes;
        let slot = self.tree.attributes.get(old).clone();
        // Shared, since the strings change while the new combination is entered.
        let owner = self.tree.strings.shared(slot.owner).clone();
        let group = self.tree.strings.shared(slot.group).clone();
        let values = AttributeValues {
            owner: wanted.owner.unwrap_or(&owner),
            group: wanted.group.unwrap_or(&group),
            mode: wanted.mode.unwrap_or(slot.mode),
            replication: wanted.replication.unwrap_or(slot.replication),
            storage_policy: wanted.storage_policy.unwrap_or(slot.storage_policy),
            block_size: slot.block_size,
            acl: wanted.acl.unwrap_or(slot.acl.as_ref()),
        };
        self.change(handle, |ns| {
            let new = ns.acquire_attributes(values);
            ns.tree.inodes.get_mut(handle).attributes = new;
            ns.release_attributes(old);
        });
    }

    /// Replaces all extended attributes of an inode.
    pub(crate) fn set_xattrs(&mut self, handle: u32, xattrs: Option<Arc<Xattrs>>) {
        self.change(handle, |ns| {
            let inode = ns.tree.inodes.get_mut(handle);
            let id = inode.id();
            inode.set_flag(XATTRS, xattrs.is_some());
            if xattrs.as_ref().is_some_and(|xattrs| satisfy_storage_policy::is_noted(xattrs)) {
                ns.satisfying.insert(id);
            } else {
                ns.satisfying.remove(&id);
            }
            ns.xattr_bytes += xattrs.as_ref().map_or(0, |xattrs| xattrs.bytes());
            let before = match xattrs {
                Some(xattrs) => ns.tree.xattrs.insert(id, xattrs),
                None => ns.tree.xattrs.remove(&id),
            };
            ns.xattr_bytes -= before.map_or(0, |xattrs| xattrs.bytes());
        });
    }

    /// Enters an inode into the children of its parent, where its name is free.
    fn link(&mut self, handle: u32) {
        let tree = &mut self.tree;
        let inode = tree.inodes.get(handle);
        let parent = inode.parent;
        let (name, length) = inode.name();
        let name = tree.names.get(name, length);
        let root = tree.inodes.get(parent).content;
        let (names, inodes) = (&tree.names, &tree.inodes);
        let root = children::insert(&mut tree.children, root, handle, |child| {
            let (other, length) = inodes.get(child).name();
            names.get(other, length).cmp(name)
        });
        let record = tree.inodes.get_mut(parent);
        record.content = root;
        record.set_children_count(record.children_count() + 1);
        self.note_linked(handle);
    }

    /// Takes an inode out of the children of its parent. It is to be removed or to change its parent next.
    pub(crate) fn unlink(&mut self, handle: u32) {
        self.note_unlinked(handle);
        let tree = &mut self.tree;
        let inode = tree.inodes.get(handle);
        let parent = inode.parent;
        assert!(parent != NONE, "an inode that is taken out of its directory is in one");
        let (name, length) = inode.name();
        let name = tree.names.get(name, length);
        let root = tree.inodes.get(parent).content;
        let (names, inodes) = (&tree.names, &tree.inodes);
        let root = children::remove(&mut tree.children, root, |child| {
            let (other, length) = inodes.get(child).name();
            names.get(other, length).cmp(name)
        });
        let record = tree.inodes.get_mut(parent);
        record.content = root;
        record.set_children_count(record.children_count() - 1);
    }

    /// Moves an inode to a directory where the name is free.
    pub(crate) fn move_inode(&mut self, handle: u32, parent: u32, name: &[u8]) {
        self.unlink(handle);
        self.rename_inode(handle, parent, name);
        self.link(handle);
    }

    /// Changes the name and the parent of an inode that is in no directory's list.
    pub(crate) fn rename_inode(&mut self, handle: u32, parent: u32, name: &[u8]) {
        self.change(handle, |ns| {
            let (old, length) = ns.tree.inodes.get(handle).name();
            let new = ns.names.acquire(&mut ns.tree.names, name);
            ns.names.release(&mut ns.tree.names, old, length);
            let inode = ns.tree.inodes.get_mut(handle);
            inode.set_name(new, name.len());
            inode.parent = parent;
        });
    }

    /// Removes an inode that is in no directory's list, with its blocks. A directory must be empty. Other groups that have an export of the file
    /// are told.
    pub(crate) fn remove_inode(&mut self, handle: u32, changes: &mut Vec<BlockChange>) {
        let inode = self.tree.inode(handle);
        if inode.is_file() {
            let file = inode.id();
            // The records of snapshots go first. They give orders about blocks of this file, and no order about a file may follow the one that frees
            // it: the other group would not know the file any more.
            self.forget_past(handle, changes);
            for group in self.groups_with_exports(handle) {
                self.give_order(group, Order::Free { file });
            }
        }
        self.remove_record(handle, changes);
    }

    /// Removes an inode like [`Self::remove_inode`], and tells no other group.
    pub(crate) fn remove_record(&mut self, handle: u32, changes: &mut Vec<BlockChange>) {
        let id = self.tree.inode(handle).id();
        if self.tree.inode(handle).is_open() {
            self.end_copying(handle, changes);
            self.close_file(handle);
        }
        self.forget_past(handle, changes);
        if self.tree.inode(handle).has_quota() {
            self.set_quota(handle, None);
        }
        self.tree.sum = self.tree.sum.wrapping_sub(self.tree.inode_digest(handle));
        let inode = self.tree.inode(handle);
        let (name, length) = inode.name();
        let attributes = inode.attributes;
        if inode.is_directory() {
            assert!(inode.children_count() == 0, "a directory that is removed is empty");
            self.tree.counters.directories -= 1;
        } else {
            let last = inode.content;
            for stored in self.tree.blocks.iterate(last) {
                self.tree.sum = self.tree.sum.wrapping_sub(block_digest(id, stored));
                if !self.is_foreign(stored.block.id) {
                    changes.push(BlockChange::Removed(stored.block));
                }
            }
            self.tree.blocks.remove_all(last);
            self.tree.counters.files -= 1;
        }
        if self.tree.inode(handle).has(XATTRS) {
            let xattrs = self.tree.xattrs.remove(&id);
            self.xattr_bytes -= xattrs.map_or(0, |xattrs| xattrs.bytes());
            self.satisfying.remove(&id);
        }
        self.index.remove(id, handle);
        self.names.release(&mut self.tree.names, name, length);
        self.release_attributes(attributes);
        self.tree.inodes.remove(handle);
    }

    /// Removes a whole subtree whose top is in no directory's list. Inodes in it that past entries name stay.
    pub(crate) fn remove_subtree(&mut self, top: u32, changes: &mut Vec<BlockChange>) {
        let mut order = vec![top];
        let mut at = 0;
        while at < order.len() {
            if self.tree.inode(order[at]).is_directory() {
                let children: Vec<u32> = self.tree.children_of(order[at], 0).collect();
                for child in children {
                    if self.tree.inode(child).has(NAMED) {
                        self.unlink(child);
                        self.keep_top(child);
                    } else {
                        order.push(child);
                    }
                }
            }
            at += 1;
        }
        // The directories come first: once their lists are cleared, no inode refers to another one.
        for handle in &order {
            if self.tree.inode(*handle).is_directory() {
                let record = self.tree.inodes.get_mut(*handle);
                let root = std::mem::replace(&mut record.content, NONE);
                record.set_children_count(0);
                children::clear(&mut self.tree.children, root);
            }
        }
        for handle in order.into_iter().rev() {
            self.remove_inode(handle, changes);
        }
    }

    /// Makes the record of a new file that of one that is being written; it enters the leases with
    /// [`Self::derive_open`] once it is in the tree.
    pub(crate) fn opened(&mut self, mut file: Inode, holder: &str, machine: &str) -> Inode {
        let open = OpenFile {
            last_block: file.content,
            holder: self.strings.acquire(&mut self.tree.strings, holder),
            machine: self.strings.acquire(&mut self.tree.strings, machine),
            recovery: 0,
            truncation: None,
            source: None,
        };
        file.content = self.tree.open_files.insert(open);
        file.set_open(true);
        file
    }

    /// Opens a closed file, to be written on.
    pub(crate) fn open_file(&mut self, handle: u32, holder: &str, machine: &str) {
        self.change(handle, |ns| {
            let file = ns.tree.inode(handle).clone();
            *ns.tree.inodes.get_mut(handle) = ns.opened(file, holder, machine);
        });
        self.derive_open(handle);
    }

    /// Enters an open file into the leases and its last block among those being written.
    pub(crate) fn derive_open(&mut self, handle: u32) {
        let inode = self.tree.inode(handle);
        let open = self.tree.open_files.get(inode.content);
        let id = inode.id();
        let holder = self.tree.strings.shared(open.holder);
        match self.leases.get_mut(holder) {
            Some(files) => {
                files.insert(id);
            }
            None => {
                self.leases.insert(holder.clone(), BTreeSet::from([id]));
            }
        }
        if open.truncation.is_some() {
            self.truncations.insert(id);
        }
        if open.last_block != NONE {
            let stored = self.tree.blocks.stored(open.last_block);
            if !stored.committed {
                self.open_blocks.insert(stored.block.id, id);
            }
        }
    }

    fn forget_lease(&mut self, handle: u32) {
        let inode = self.tree.inode(handle);
        let holder = self.tree.strings.shared(self.tree.open_files.get(inode.content).holder);
        if let Some(files) = self.leases.get_mut(holder) {
            files.remove(&inode.id());
            if files.is_empty() {
                self.leases.remove(holder);
            }
        }
    }

    /// Closes a file as it is.
    pub(crate) fn close_file(&mut self, handle: u32) {
        self.forget_lease(handle);
        self.truncations.remove(&self.tree.inode(handle).id());
        let last = self.tree.last_block(handle);
        if last != NONE {
            self.open_blocks.remove(&self.tree.blocks.stored(last).block.id);
        }
        self.change(handle, |ns| {
            let open = ns.tree.inode(handle).content;
            let OpenFile { last_block, holder, machine, .. } = ns.tree.open_files.get(open).clone();
            ns.strings.release(&mut ns.tree.strings, holder);
            ns.strings.release(&mut ns.tree.strings, machine);
            ns.tree.open_files.remove(open);
            let inode = ns.tree.inodes.get_mut(handle);
            inode.content = last_block;
            inode.set_open(false);
        });
    }

    /// Hands an open file to another holder, with the stamp of the recovery that is now running.
    pub(crate) fn reassign(&mut self, handle: u32, holder: &str, recovery: GenerationStamp) {
        self.forget_lease(handle);
        self.change(handle, |ns| {
            let open = ns.tree.inode(handle).content;
            let new = ns.strings.acquire(&mut ns.tree.strings, holder);
            let slot = ns.tree.open_files.get_mut(open);
            let old = std::mem::replace(&mut slot.holder, new);
            slot.recovery = recovery.0;
            ns.strings.release(&mut ns.tree.strings, old);
        });
        self.derive_open(handle);
        self.note_stamp(recovery);
    }

    /// Has the last block of an open file cut to `length` bytes by the recovery of that stamp; `None`: that is over.
    pub(crate) fn set_truncation(&mut self, handle: u32, recovery: GenerationStamp, length: Option<u64>) {
        self.change(handle, |ns| {
            let open = ns.tree.inode(handle).content;
            let slot = ns.tree.open_files.get_mut(open);
            (slot.recovery, slot.truncation) = (recovery.0, length);
        });
        let id = self.tree.inode(handle).id();
        match length {
            Some(_) => self.truncations.insert(id),
            None => self.truncations.remove(&id),
        };
        self.note_stamp(recovery);
    }

    /// The last block of an open file is to get its bytes from this one.
    pub(crate) fn set_source(&mut self, handle: u32, source: Block) {
        self.change(handle, |ns| {
            let open = ns.tree.inode(handle).content;
            ns.tree.open_files.get_mut(open).source = Some(source);
        });
    }

    /// The last block of an open file has its bytes, or never will: what it was to get them from may go, unless a
    /// snapshot has it.
    pub(crate) fn end_copying(&mut self, handle: u32, changes: &mut Vec<BlockChange>) {
        let inode = self.tree.inode(handle);
        let (id, open) = (inode.id(), inode.content);
        let Some(source) = self.tree.open_files.get(open).source else { return };
        self.change(handle, |ns| ns.tree.open_files.get_mut(open).source = None);
        self.let_go(id, source, changes);
    }

    pub(crate) fn note_stamp(&mut self, stamp: GenerationStamp) {
        let counters = &mut self.tree.counters;
        counters.last_stamp = counters.last_stamp.max(stamp);
    }

    /// Adds a block to an open file.
    pub(crate) fn append_block(&mut self, handle: u32, stored: Stored) {
        let id = self.tree.inode(handle).id();
        let last = self.tree.last_block(handle);
        let new = self.tree.blocks.append(last, stored);
        self.tree.sum = self.tree.sum.wrapping_add(block_digest(id, stored));
        self.set_last_block(handle, new);
        self.tree.counters.note_block(stored.block.id);
        self.note_stamp(stored.block.generation_stamp);
        if !stored.committed {
            self.open_blocks.insert(stored.block.id, id);
        }
    }

    fn set_last_block(&mut self, handle: u32, last: u32) {
        let inode = self.tree.inode(handle);
        if inode.is_open() {
            let open = inode.content;
            self.tree.open_files.get_mut(open).last_block = last;
        } else {
            self.tree.inodes.get_mut(handle).content = last;
        }
    }

    /// Takes the last block of a file away.
    pub(crate) fn remove_last_block(&mut self, handle: u32, changes: &mut Vec<BlockChange>) {
        let id = self.tree.inode(handle).id();
        let last = self.tree.last_block(handle);
        let stored = self.tree.blocks.stored(last);
        if !self.tree.snapshots.records.is_empty() {
            self.keep_blocks(handle, self.tree.length_of(handle) - stored.block.length);
        }
        self.tree.sum = self.tree.sum.wrapping_sub(block_digest(id, stored));
        self.open_blocks.remove(&stored.block.id);
        let last = self.tree.blocks.remove_last(last);
        self.set_last_block(handle, last);
        self.let_go(id, stored.block, changes);
    }

    /// Takes the blocks behind the first `kept` away.
    pub(crate) fn cut_blocks(&mut self, handle: u32, kept: u64, changes: &mut Vec<BlockChange>) {
        let id = self.tree.inode(handle).id();
        let last = self.tree.last_block(handle);
        let bytes =
            self.tree.blocks.iterate(last).take(kept as usize).map(|stored| stored.block.length).sum();
        self.keep_blocks(handle, bytes);
        let tree = &mut self.tree;
        let sum = &mut tree.sum;
        let mut gone = Vec::new();
        let last = tree.blocks.cut(last, kept, |stored| {
            *sum = sum.wrapping_sub(block_digest(id, stored));
            gone.push(stored.block);
        });
        self.set_last_block(handle, last);
        gone.into_iter().for_each(|block| self.let_go(id, block, changes));
    }

    /// Hands all blocks of a closed file to another closed file, behind those that it has.
    pub(crate) fn move_blocks(&mut self, from: u32, to: u32, changes: &mut Vec<BlockChange>) {
        let (from_id, to_id) = (self.tree.inode(from).id(), self.tree.inode(to).id());
        let replication = |ns: &Self, file| ns.tree.attributes_of(file).replication;
        let (before, after) = (replication(self, from), replication(self, to));
        let mut sum = self.tree.sum;
        for stored in self.tree.blocks_of(from) {
            sum = sum.wrapping_sub(block_digest(from_id, stored)).wrapping_add(block_digest(to_id, stored));
            if self.is_foreign(stored.block.id) {
                continue;
            }
            changes.push(BlockChange::Moved { block: stored.block.id, inode: to_id });
            if before != after {
                let block = stored.block.id;
                changes.push(BlockChange::ReplicationChanged { block, from: before, to: after });
            }
        }
        self.tree.sum = sum;
        let last = self.tree.blocks.join(self.tree.last_block(to), self.tree.last_block(from));
        self.set_last_block(from, NONE);
        self.set_last_block(to, last);
    }

    /// Replaces what is known of the last block of a file: its stamp, its length, whether that is final.
    pub(crate) fn set_last(&mut self, handle: u32, stored: Stored) {
        let id: InodeId = self.tree.inode(handle).id();
        let last = self.tree.last_block(handle);
        let old = self.tree.blocks.stored(last);
        assert!(old.block.id == stored.block.id, "a block keeps its id");
        let difference = block_digest(id, stored).wrapping_sub(block_digest(id, old));
        self.tree.sum = self.tree.sum.wrapping_add(difference);
        self.tree.blocks.set_stored(last, stored);
        self.note_stamp(stored.block.generation_stamp);
        if stored.committed {
            self.open_blocks.remove(&stored.block.id);
        } else {
            self.open_blocks.insert(stored.block.id, id);
        }
    }
}

/// A change of an inode's attributes. A field that is `None` stays as it is.
#[derive(Default)]
pub(crate) struct AttributeChange<'a> {
    pub owner: Option<&'a str>,
    pub group: Option<&'a str>,
    pub mode: Option<u16>,
    pub replication: Option<u16>,
    /// `Some(None)` takes the list away.
    pub acl: Option<Option<&'a Arc<Acl>>>,
    pub storage_policy: Option<u8>,
}
