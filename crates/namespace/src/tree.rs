//! The tree itself: everything that an image holds, in pages that a clone shares.

use crate::{
    FileKind, FileStatus, GroupLevel, UnknownReplicas,
    digest::Digester,
    directory_log::DirectoryLog,
    exports::Export,
    outbox::Post,
    quota::Quota,
    retry::Ring,
    server_orders::ServerOrders,
    shares::Share,
    snapshots::Snapshots,
    store::{
        Arena, NONE,
        attributes::{AttributeArena, AttributeValues},
        block_list::{Blocks, Stored},
        children,
        heap::Heap,
        inode::{Inode, SNAPSHOTTABLE, XATTRS},
        open_file::OpenFiles,
        shared_map::SharedMap,
        strings::Strings,
    },
    xattr::Xattrs,
};
use base::{BlockId, FsError, FsResult, GenerationStamp, GroupId, InodeId, InodeOrigin, Timestamp, TxId};
use std::{collections::VecDeque, sync::Arc};

/// A clone stays as it is: it costs a reference count a page.
#[derive(Clone)]
pub(crate) struct Tree {
    pub inodes: Arena<Inode>,
    pub names: Heap,
    pub children: Heap,
    pub blocks: Blocks,
    pub attributes: AttributeArena,
    pub strings: Strings,
    pub open_files: OpenFiles,
    /// The extended attributes of the inodes whose records say that they have any.
    pub xattrs: SharedMap<InodeId, Arc<Xattrs>>,
    pub root: u32,
    /// Deleted subtrees, the oldest first.
    pub orphans: VecDeque<u32>,
    /// The quotas of the directories that have one.
    pub quotas: SharedMap<InodeId, Quota>,
    /// How several groups share these quotas.
    pub shares: SharedMap<InodeId, Share>,
    /// How many inodes, now or in a snapshot's records, have a storage policy of their own. Derived.
    pub policies: u64,
    pub retry: Ring,
    pub snapshots: Snapshots,
    pub counters: Counters,
    pub unknown: UnknownReplicas,
    pub level: GroupLevel,
    pub server_orders: ServerOrders,
    pub directory_log: DirectoryLog,
    /// The files of which this group has an export.
    pub exports: SharedMap<InodeId, Export>,
    pub post: Post,
    /// The sum of the digests of all inodes, blocks, quotas and shares of these.
    pub sum: u64,
}

/// Numbers that edits only ever raise, and the counts that go with the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    pub applied: TxId,
    pub last_inode: InodeId,
    /// The counter of directories that have a slot in their id. Only the root group makes such.
    pub last_directory: u64,
    pub last_block: BlockId,
    pub last_stamp: GenerationStamp,
    /// Journal time: follows the times in the edits, and neither goes back nor jumps.
    pub time: Timestamp,
    pub files: u64,
    pub directories: u64,
}

impl Counters {
    /// Those of a group whose tree is empty.
    pub fn of_group(group: GroupId) -> Self {
        let number = group.number();
        let last_inode = match group {
            GroupId::ROOT => InodeId::ROOT,
            _ => InodeId::of_group(number, 0),
        };
        Self {
            applied: TxId::default(),
            last_inode,
            last_directory: 0,
            last_block: BlockId::of_pool(number.into(), BlockId::LAST_RESERVED.0),
            last_stamp: GenerationStamp::LAST_RESERVED,
            time: Timestamp::default(),
            files: 0,
            directories: 0,
        }
    }

    /// The number in ids of the group that holds this tree.
    pub fn group_number(&self) -> u16 {
        self.last_block.pool_number()
    }

    /// Whether a group can have come to these, as far as the ids tell.
    pub fn are_possible(&self) -> bool {
        let has_stray_bits =
            self.last_block != BlockId::of_pool(self.group_number(), self.last_block.pool_count());
        self.is_own(self.last_inode) && !has_stray_bits
    }

    /// Whether the inode was made by the group that holds this tree.
    pub fn is_own(&self, id: InodeId) -> bool {
        matches!(id.origin(), InodeOrigin::Group { number, .. } if u16::from(number) == self.group_number())
    }

    /// Whether an inode of this id can be in the tree: the root, one that this group has made, a directory that the root group has, or a file that
    /// has moved here.
    pub fn knows_inode(&self, id: InodeId, is_directory: bool) -> bool {
        let is_followed = is_directory
            && self.group_number() != GroupId::ROOT.number().into()
            && matches!(id.origin(), InodeOrigin::Group { number: 0, .. } | InodeOrigin::Slot { .. });
        let is_own = match id.origin() {
            // Whether its slot and its number were given out is checked where those are known.
            InodeOrigin::Slot { .. } => is_directory,
            InodeOrigin::Group { .. } => self.is_own(id) && id <= self.last_inode,
        };
        let has_moved = !is_directory && !self.is_own(id) && matches!(id.origin(), InodeOrigin::Group { .. });
        id == InodeId::ROOT || is_own || is_followed || has_moved
    }

    /// The id of the inode that is made after `offset` others of the same edit.
    pub fn next_inode(&self, offset: usize) -> FsResult<InodeId> {
        let next = InodeId(self.last_inode.0 + 1 + offset as u64);
        match self.is_own(next) {
            true => Ok(next),
            false => Err(FsError::Io("There are no inode ids left".into())),
        }
    }

    /// Takes note of an inode that was made. The ids of other groups come from counters of their own.
    pub fn note_inode(&mut self, id: InodeId) {
        match id.origin() {
            InodeOrigin::Slot { count, .. } if self.group_number() == GroupId::ROOT.number().into() => {
                self.last_directory = self.last_directory.max(count);
            }
            _ if self.is_own(id) => self.last_inode = self.last_inode.max(id),
            _ => {}
        }
    }

    /// The id of the directory in this slot that is made after `offset` others of the same edit.
    pub fn next_directory(&self, slot: u16, offset: usize) -> FsResult<InodeId> {
        match self.last_directory + 1 + offset as u64 {
            InodeId::DIRECTORY_COUNT_LIMIT.. => {
                Err(FsError::Io("There are no ids of directories left".into()))
            }
            count => Ok(InodeId::of_slot(slot, count)),
        }
    }

    /// Leaves out so many ids of directories, if any has been given out. Where none are left, [`Self::next_directory`] says so.
    pub fn skip_directories(&mut self, count: u64) {
        if self.last_directory > 0 {
            self.last_directory = (self.last_directory + count).min(InodeId::DIRECTORY_COUNT_LIMIT - 1);
        }
    }

    /// Leaves out so many ids. Where none are left, [`Self::next_inode`] says so.
    pub fn skip_inodes(&mut self, count: u64) {
        let left = InodeId::GROUP_COUNT_LIMIT - 1 - self.last_inode.0 % InodeId::GROUP_COUNT_LIMIT;
        self.last_inode = InodeId(self.last_inode.0 + count.min(left));
    }

    /// The id of the next block.
    pub fn next_block(&self) -> FsResult<BlockId> {
        match self.last_block.pool_count() + 1 {
            BlockId::POOL_COUNT_LIMIT => Err(FsError::Io("There are no block ids left".into())),
            _ => Ok(BlockId(self.last_block.0 + 1)),
        }
    }

    /// Takes note of a block that was added to a file. Those of other groups' pools come from counters of their own.
    pub fn note_block(&mut self, id: BlockId) {
        if id.pool_number() == self.group_number() {
            self.last_block = self.last_block.max(id);
        }
    }

    /// Leaves out so many ids of blocks. Where none are left, [`Self::next_block`] says so.
    pub fn skip_blocks(&mut self, count: u64) {
        let left = BlockId::POOL_COUNT_LIMIT - 1 - self.last_block.pool_count();
        self.last_block = BlockId(self.last_block.0 + count.min(left));
    }
}

impl Tree {
    pub fn new() -> Self {
        Self {
            inodes: Arena::new(),
            names: Heap::new(),
            children: Heap::new(),
            blocks: Blocks::new(),
            attributes: AttributeArena::new(),
            strings: Strings::new(),
            open_files: OpenFiles::new(),
            xattrs: SharedMap::default(),
            root: NONE,
            orphans: VecDeque::new(),
            quotas: SharedMap::default(),
            shares: SharedMap::default(),
            policies: 0,
            retry: Ring::default(),
            snapshots: Snapshots::default(),
            counters: Counters::of_group(GroupId::ROOT),
            unknown: UnknownReplicas::default(),
            level: GroupLevel::default(),
            server_orders: ServerOrders::default(),
            directory_log: DirectoryLog::default(),
            exports: SharedMap::default(),
            post: Post::default(),
            sum: 0,
        }
    }

    pub fn inode(&self, handle: u32) -> &Inode {
        self.inodes.get(handle)
    }

    pub fn name_of(&self, handle: u32) -> &[u8] {
        let (name, length) = self.inodes.get(handle).name();
        self.names.get(name, length)
    }

    pub fn attributes_of(&self, handle: u32) -> AttributeValues<'_> {
        self.attributes.values(self.inode(handle).attributes, &self.strings)
    }

    pub fn child(&self, directory: u32, name: &[u8]) -> Option<u32> {
        children::find(&self.children, self.inode(directory).content, |child| self.name_of(child).cmp(name))
    }

    /// The children from a rank on, in the order of their names' bytes.
    pub fn children_of(&self, directory: u32, rank: u32) -> children::Iter<'_> {
        children::iterate(&self.children, self.inode(directory).content, rank)
    }

    /// How many children do not come after `name`.
    pub fn rank_after(&self, directory: u32, name: &[u8]) -> u32 {
        let root = self.inode(directory).content;
        children::rank_after(&self.children, root, |child| self.name_of(child).cmp(name))
    }

    /// The last block of a file.
    pub fn last_block(&self, file: u32) -> u32 {
        let inode = self.inode(file);
        if inode.is_open() { self.open_files.get(inode.content).last_block } else { inode.content }
    }

    pub fn blocks_of(&self, file: u32) -> impl Iterator<Item = Stored> {
        self.blocks.iterate(self.last_block(file))
    }

    pub fn length_of(&self, file: u32) -> u64 {
        self.blocks_of(file).map(|stored| stored.block.length).sum()
    }

    /// The lease holder of a file, and the machine that it writes from; `None` for a closed file.
    pub fn writer_of(&self, file: u32) -> Option<(&str, &str)> {
        let inode = self.inode(file);
        inode.is_open().then(|| {
            let open = self.open_files.get(inode.content);
            (self.strings.text(open.holder), self.strings.text(open.machine))
        })
    }

    pub fn xattrs_of(&self, handle: u32) -> Option<&Arc<Xattrs>> {
        let inode = self.inode(handle);
        if inode.has(XATTRS) { self.xattrs.get(&inode.id()) } else { None }
    }

    /// Whether the inode hangs below the root, rather than in a deleted subtree.
    pub fn is_attached(&self, handle: u32) -> bool {
        let mut at = handle;
        while self.inode(at).parent != NONE {
            at = self.inode(at).parent;
        }
        at == self.root
    }

    /// The path of an inode that is attached, or of what is left of it.
    pub fn path_of(&self, handle: u32) -> String {
        let mut names = Vec::new();
        let mut at = handle;
        while self.inode(at).parent != NONE {
            names.push(self.name_of(at));
            at = self.inode(at).parent;
        }
        if names.is_empty() {
            return "/".into();
        }
        let mut path = String::new();
        for name in names.into_iter().rev() {
            path.push('/');
            path.push_str(&String::from_utf8_lossy(name));
        }
        path
    }

    pub fn status(&self, handle: u32) -> FileStatus<'_> {
        self.status_under(handle, self.policy_of(handle))
    }

    /// The status like [`Self::status`], with a storage policy in force that the caller knows already.
    pub fn status_under(&self, handle: u32, storage_policy: u8) -> FileStatus<'_> {
        let inode = self.inode(handle);
        let attributes = self.attributes_of(handle);
        let is_directory = inode.is_directory();
        FileStatus {
            id: inode.id(),
            kind: if is_directory { FileKind::Directory } else { FileKind::File },
            name: self.name_of(handle),
            length: if is_directory { 0 } else { self.length_of(handle) },
            permission: attributes.mode,
            owner: attributes.owner,
            group: attributes.group,
            modified: inode.modified(),
            accessed: inode.accessed(),
            replication: attributes.replication,
            block_size: attributes.block_size,
            children_count: inode.children_count(),
            storage_policy,
            snapshottable: handle == self.root || inode.has(SNAPSHOTTABLE),
            has_acl: attributes.acl.is_some(),
            under_construction: inode.is_open(),
        }
    }

    /// Digests everything about an inode but its blocks and children; those name it instead.
    pub fn inode_digest(&self, handle: u32) -> u64 {
        let inode = self.inode(handle);
        let mut digester = Digester::new(b'i');
        digester.number(inode.id().0);
        digester.number(if inode.parent == NONE { 0 } else { self.inode(inode.parent).id().0 });
        digester.bytes(self.name_of(handle));
        digester.number(self.attributes.get(inode.attributes).digest);
        digester.number(inode.modified().ms);
        digester.number(inode.accessed().ms);
        digester.number(u64::from(inode.is_directory()));
        if inode.is_open() {
            let open = self.open_files.get(inode.content);
            digester.bytes(self.strings.text(open.holder).as_bytes());
            digester.bytes(self.strings.text(open.machine).as_bytes());
            digester.number(open.recovery);
            // A file that is not being truncated keeps the digest that it had before this field existed.
            if let Some(length) = open.truncation {
                digester.number(length);
            }
            if let Some(source) = open.source {
                digester.number(source.id.0);
                digester.number(source.generation_stamp.0);
                digester.number(source.length);
            }
        }
        if let Some(xattrs) = self.xattrs_of(handle) {
            xattrs.digest(&mut digester);
        }
        digester.finish()
    }

    /// Equal on all members that applied the same edits.
    pub fn digest(&self) -> u64 {
        let Counters {
            applied,
            last_inode,
            last_directory,
            last_block,
            last_stamp,
            time,
            files,
            directories,
        } = self.counters;
        let mut digester = Digester::new(b't');
        let numbers = [
            self.sum,
            self.retry.digest(),
            applied.epoch.0,
            applied.sn.0,
            last_inode.0,
            last_block.0,
            last_stamp.0,
            time.ms,
            files,
            directories,
            u64::from(self.blocks.live()),
            u64::from(self.open_files.live()),
            self.orphans.len() as u64,
            self.orphans.front().map_or(0, |top| self.inode(*top).id().0),
        ];
        numbers.into_iter().for_each(|number| digester.number(number));
        if last_directory > 0 {
            digester.number(last_directory);
        }
        if !self.unknown.is_unused() {
            digester.number(self.unknown.digest());
        }
        if !self.level.is_first() {
            digester.number(self.level.digest());
        }
        if !self.directory_log.is_unused() {
            digester.number(self.directory_log.digest());
        }
        if !self.post.is_unused() {
            digester.number(self.post.digest());
        }
        if !self.server_orders.is_empty() {
            digester.number(self.server_orders.digest());
        }
        if !self.snapshots.is_unused() {
            let numbers = [
                self.snapshots.sum,
                u64::from(self.snapshots.last.0),
                self.snapshots.records.len() as u64,
                self.snapshots.entries.len() as u64,
                self.snapshots.work_digest(),
            ];
            numbers.into_iter().for_each(|number| digester.number(number));
        }
        digester.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_groups_own_ids_raise_its_counter() {
        let mut counters = Tree::new().counters;
        counters.note_inode(InodeId::of_group(3, 1 << 30));
        counters.note_inode(InodeId::of_slot(64, 1 << 30));
        assert_eq!(counters.next_inode(0), Ok(InodeId(InodeId::ROOT.0 + 1)));
        counters.note_inode(InodeId(20_000));
        assert_eq!(counters.next_inode(2), Ok(InodeId(20_003)));
    }

    #[test]
    fn a_counter_that_is_used_up_is_an_answer_and_no_foreign_id() {
        let mut counters = Tree::new().counters;
        counters.note_inode(InodeId(InodeId::GROUP_COUNT_LIMIT - 2));
        assert_eq!(counters.next_inode(0), Ok(InodeId(InodeId::GROUP_COUNT_LIMIT - 1)));
        assert!(counters.next_inode(1).is_err());
    }
}
