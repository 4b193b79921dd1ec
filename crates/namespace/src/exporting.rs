//! Files leave this group and come to it: what becomes of their inodes and blocks. See [`crate::exports`].

use crate::{
    BlockChange, Namespace,
    exports::{Export, FileImage, export_digest},
    outbox::{Join, Order},
    store::{
        NONE,
        attributes::AttributeValues,
        block_list::{Stored, block_digest},
        inode::{Inode, XATTRS},
    },
    xattr::Xattrs,
};
use base::{Block, BlockId, GroupId, InodeId, InodeOrigin};
use std::{collections::BTreeSet, sync::Arc};

impl Namespace {
    /// Whether the block lies in the pool of another group.
    pub fn is_foreign(&self, block: BlockId) -> bool {
        block.pool_number() != self.tree.counters.group_number() && !self.tree.directory_log.is_unused()
    }

    /// The group that has the pool of a block.
    pub fn group_of_pool(block: BlockId) -> GroupId {
        GroupId(GroupId::ROOT.0 + u32::from(block.pool_number()))
    }

    /// The group in which a file lives that was here before. `None`: this group knows of no such file.
    pub fn exported_to(&self, file: InodeId) -> Option<GroupId> {
        self.tree.exports.get(&file).map(|export| export.to)
    }

    /// How many files this group has exported.
    pub fn exported_files(&self) -> u64 {
        self.tree.exports.len() as u64
    }

    /// The file as it is, with everything that its home knows of it. It must be closed.
    pub(crate) fn file_image(&self, file: u32) -> FileImage {
        let inode = self.tree.inode(file);
        let attributes = self.tree.attributes_of(file);
        FileImage {
            inode: inode.id(),
            owner: attributes.owner.into(),
            group: attributes.group.into(),
            mode: attributes.mode,
            replication: attributes.replication,
            block_size: attributes.block_size,
            storage_policy: attributes.storage_policy,
            acl: attributes.acl.cloned(),
            xattrs: self.tree.xattrs_of(file).map_or_else(Vec::new, |xattrs| xattrs.all().to_vec()),
            modified: inode.modified(),
            accessed: inode.accessed(),
            blocks: self.tree.blocks_of(file).map(|stored| stored.block).collect(),
        }
    }

    /// Whether this group made the file, which it always knows where to find.
    fn has_made(&self, file: InodeId) -> bool {
        matches!(file.origin(), InodeOrigin::Group { number, .. } if u16::from(number) == self.tree.counters.group_number())
    }

    /// A closed file leaves its directory: it lives in another group from here on.
    pub(crate) fn export(&mut self, file: u32, to: GroupId) {
        self.unlink(file);
        let id = self.tree.inode(file).id();
        let (own, foreign): (Vec<Stored>, Vec<Stored>) =
            self.tree.blocks_of(file).partition(|stored| !self.is_foreign(stored.block.id));
        if own.is_empty() && !self.has_made(id) {
            self.take_blocks(file);
            return self.remove_record(file, &mut Vec::new());
        }
        if !foreign.is_empty() {
            self.take_blocks(file);
            self.put_blocks(file, &own);
        }
        if self.tree.inode(file).has(XATTRS) {
            self.set_xattrs(file, None);
        }
        self.rename_inode(file, NONE, b"");
        self.set_export(id, Some(Export { to, handle: file }));
    }

    /// A file that lived in another group lives here from here on.
    pub(crate) fn import(
        &mut self,
        image: &FileImage,
        directory: u32,
        name: &[u8],
        changes: &mut Vec<BlockChange>,
    ) {
        let before = self.tree.exports.get(&image.inode).map(|export| export.handle);
        let replication = before.map(|export| self.block_replication(export));
        if let Some(export) = before {
            let kept: BTreeSet<BlockId> = image.blocks.iter().map(|block| block.id).collect();
            let blocks = self.take_blocks(export);
            // There are none: a file with orders under way about its blocks does not move.
            let gone = blocks.iter().filter(|stored| !kept.contains(&stored.block.id));
            changes.extend(gone.map(|stored| BlockChange::Removed(stored.block)));
            self.set_export(image.inode, None);
            self.remove_record(export, &mut Vec::new());
        }
        let attributes = self.acquire_attributes(AttributeValues {
            owner: &image.owner,
            group: &image.group,
            mode: image.mode,
            replication: image.replication,
            storage_policy: image.storage_policy,
            block_size: image.block_size,
            acl: image.acl.as_ref(),
        });
        let inode = Inode::file(image.inode, attributes, image.modified, image.accessed);
        let file = self.insert_child(directory, inode, name);
        if let Some(xattrs) = Xattrs::new(image.xattrs.clone()) {
            self.set_xattrs(file, Some(Arc::new(xattrs)));
        }
        let blocks: Vec<Stored> =
            image.blocks.iter().map(|block| Stored { block: *block, committed: true }).collect();
        self.put_blocks(file, &blocks);
        let (from, to) = (replication.unwrap_or(image.replication), image.replication);
        if from != to {
            let own = image.blocks.iter().filter(|block| !self.is_foreign(block.id));
            changes.extend(own.map(|block| BlockChange::ReplicationChanged { block: block.id, from, to }));
        }
    }

    /// The file lives in this group now, as seen by a group that may have an export of it.
    pub(crate) fn note_where(&mut self, file: InodeId, group: GroupId) {
        if let Some(export) = self.tree.exports.get(&file).copied() {
            self.set_export(file, Some(Export { to: group, ..export }));
        }
    }

    /// An export ends, with its blocks.
    pub(crate) fn end_export(&mut self, file: InodeId, changes: &mut Vec<BlockChange>) {
        let export = self.expect(file);
        let blocks = self.take_blocks(export);
        changes.extend(blocks.into_iter().map(|stored| BlockChange::Removed(stored.block)));
        self.set_export(file, None);
        self.remove_record(export, &mut Vec::new());
    }

    /// Blocks of an export go. An export without blocks of a file that another group made is of no use.
    pub(crate) fn free_blocks(&mut self, file: InodeId, gone: &[BlockId], changes: &mut Vec<BlockChange>) {
        let export = self.expect(file);
        let gone: BTreeSet<BlockId> = gone.iter().copied().collect();
        let (gone, kept): (Vec<Stored>, Vec<Stored>) =
            self.take_blocks(export).into_iter().partition(|stored| gone.contains(&stored.block.id));
        let is_over = kept.is_empty() && !self.has_made(file);
        self.put_blocks(export, &kept);
        changes.extend(gone.into_iter().map(|stored| BlockChange::Removed(stored.block)));
        if is_over {
            self.end_export(file, changes);
        }
    }

    /// The blocks of a file become blocks of another one in this group, and the file, which is in no directory's list, goes. The groups that have
    /// exports of it are told.
    pub(crate) fn join_files(&mut self, source: u32, target: u32, changes: &mut Vec<BlockChange>) {
        let groups = self.groups_with_exports(source);
        if !groups.is_empty() {
            let attributes = self.tree.attributes_of(target);
            let join = Join {
                file: self.tree.inode(target).id(),
                sources: vec![self.tree.inode(source).id()],
                replication: attributes.replication,
                storage_policy: attributes.storage_policy,
            };
            groups.into_iter().for_each(|group| self.give_order(group, Order::Join(join.clone())));
        }
        self.move_blocks(source, target, changes);
        self.remove_record(source, changes);
    }

    /// The part of the order that can be carried out here: files that this group has not exported to `of` are left out, and entered in `unknown`.
    pub(crate) fn fitting_join(&self, of: GroupId, join: &Join, unknown: &mut Vec<InodeId>) -> Option<Join> {
        let is_free = self.handle(join.file).is_none();
        if !is_free && self.exported_to(join.file) != Some(of) {
            unknown.push(join.file);
            return None;
        }
        let mut seen = BTreeSet::from([join.file]);
        let (sources, others): (Vec<InodeId>, Vec<InodeId>) = join
            .sources
            .iter()
            .partition(|source| self.exported_to(**source) == Some(of) && seen.insert(**source));
        unknown.extend(others);
        (!sources.is_empty()).then(|| Join { sources, ..join.clone() })
    }

    /// Exports end, and their blocks are those of another file from then on, which lives in group `to`.
    pub(crate) fn join_exports(&mut self, join: &Join, to: GroupId, changes: &mut Vec<BlockChange>) {
        for source in &join.sources {
            let from = self.expect(*source);
            // A file without blocks here has no export, unless this group has made it.
            if self.tree.last_block(from) != NONE {
                let export = self.tree.exports.get(&join.file).map(|export| export.handle);
                let export = export.unwrap_or_else(|| self.begin_export(join, from, to));
                self.move_blocks(from, export, changes);
            }
            self.set_export(*source, None);
            self.remove_record(from, &mut Vec::new());
        }
    }

    /// Makes an export, still without blocks, of a file that has got those of this one.
    fn begin_export(&mut self, join: &Join, like: u32, to: GroupId) -> u32 {
        let (modified, accessed) = (self.tree.inode(like).modified(), self.tree.inode(like).accessed());
        let attributes = self.tree.attributes_of(like);
        let (owner, group) = (Box::<str>::from(attributes.owner), Box::<str>::from(attributes.group));
        let (mode, block_size) = (attributes.mode, attributes.block_size);
        let attributes = self.acquire_attributes(AttributeValues {
            owner: &owner,
            group: &group,
            mode,
            replication: join.replication,
            storage_policy: join.storage_policy,
            block_size,
            acl: None,
        });
        let export = self.insert_inode(Inode::file(join.file, attributes, modified, accessed), b"");
        self.set_export(join.file, Some(Export { to, handle: export }));
        export
    }

    /// Whether the export ends with this order, because it has no other blocks.
    pub(crate) fn would_end(&self, order: &Order) -> bool {
        let Order::FreeBlocks { file, blocks } = order else { return false };
        let Some(export) = self.handle(*file).filter(|_| !self.has_made(*file)) else { return false };
        self.tree.blocks_of(export).all(|stored| blocks.contains(&stored.block.id))
    }

    /// The file has lost this block, of which replicas may go. Its group is told if it is a foreign one.
    pub(crate) fn block_is_gone(&mut self, file: InodeId, block: Block, changes: &mut Vec<BlockChange>) {
        if self.is_foreign(block.id) {
            let order = Order::FreeBlocks { file, blocks: vec![block.id] };
            self.give_order(Self::group_of_pool(block.id), order);
        } else {
            changes.push(BlockChange::Removed(block));
        }
    }

    /// The groups that have an export of a file which is here: those with blocks of it, and the one that made it.
    pub(crate) fn groups_with_exports(&self, file: u32) -> BTreeSet<GroupId> {
        if self.tree.directory_log.is_unused() {
            return BTreeSet::new();
        }
        let maker = match self.tree.inode(file).id().origin() {
            InodeOrigin::Group { number, .. } => Some(GroupId(GroupId::ROOT.0 + u32::from(number))),
            InodeOrigin::Slot { .. } => None,
        };
        let foreign = self.tree.blocks_of(file).map(|stored| stored.block.id);
        let foreign = foreign.filter(|block| self.is_foreign(*block)).map(Self::group_of_pool);
        maker.filter(|maker| *maker != self.group()).into_iter().chain(foreign).collect()
    }

    /// Enters an export, or takes it out.
    pub(crate) fn set_export(&mut self, file: InodeId, export: Option<Export>) {
        let before = match export {
            Some(export) => {
                self.tree.sum = self.tree.sum.wrapping_add(export_digest(file, export.to));
                self.tree.exports.insert(file, export)
            }
            None => self.tree.exports.remove(&file),
        };
        if let Some(before) = before {
            self.tree.sum = self.tree.sum.wrapping_sub(export_digest(file, before.to));
        }
    }

    /// Takes all blocks out of a closed file, and tells nobody.
    fn take_blocks(&mut self, file: u32) -> Vec<Stored> {
        let id = self.tree.inode(file).id();
        let last = self.tree.inode(file).content;
        let blocks: Vec<Stored> = self.tree.blocks.iterate(last).collect();
        for stored in &blocks {
            self.tree.sum = self.tree.sum.wrapping_sub(block_digest(id, *stored));
        }
        self.tree.blocks.remove_all(last);
        self.tree.inodes.get_mut(file).content = NONE;
        blocks
    }

    /// Gives blocks to a closed file that has none.
    fn put_blocks(&mut self, file: u32, blocks: &[Stored]) {
        let id = self.tree.inode(file).id();
        let mut last = NONE;
        for stored in blocks {
            last = self.tree.blocks.append(last, *stored);
            self.tree.sum = self.tree.sum.wrapping_add(block_digest(id, *stored));
        }
        self.tree.inodes.get_mut(file).content = last;
    }
}
