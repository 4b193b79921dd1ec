//! One partition of the tree.

use crate::{
    Reply, RetryLookup, SnapshotId, UnknownReplicas,
    level::GroupLevel,
    outbox::Order,
    quota::Amounts,
    retry::RetryIndex,
    server_orders::ServerOrders,
    store::{
        attributes::{AttributeIndex, AttributeValues},
        index::InodeIndex,
        inode::Inode,
        names::NameIndex,
        strings::StringIndex,
    },
    tree::{Counters, Tree},
    visits::Visits,
};
use base::{Block, BlockId, CallOrigin, GenerationStamp, GroupId, InodeId, Level, Timestamp, TxId};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// See the crate's documentation. All fields but the tree are derived from it.
pub struct Namespace {
    pub(crate) tree: Tree,
    pub(crate) index: InodeIndex,
    pub(crate) names: NameIndex,
    pub(crate) strings: StringIndex,
    pub(crate) attributes: AttributeIndex,
    pub(crate) retry: RetryIndex,
    /// The files that each holder has open. When holders last renewed is known to the active alone.
    pub(crate) leases: BTreeMap<Arc<str>, BTreeSet<InodeId>>,
    /// The files of the blocks that are being written.
    pub(crate) open_blocks: BTreeMap<BlockId, InodeId>,
    /// The files that are being truncated inside their last block.
    pub(crate) truncations: BTreeSet<InodeId>,
    /// The files and directories with the note of [`crate::ops::satisfy_storage_policy`].
    pub(crate) satisfying: BTreeSet<InodeId>,
    /// The inodes that the edit being applied preserves; see [`crate::preserve`].
    pub(crate) preserving: Vec<(InodeId, SnapshotId)>,
    /// What the edit being applied has other groups do; see [`crate::outbox`].
    pub(crate) orders: BTreeMap<GroupId, Vec<Order>>,
    /// The preserved inodes that go on to count in quotas, with the amounts.
    pub(crate) keeping: Vec<(InodeId, Amounts)>,
    /// An estimate of the attributes' bytes, without the table's own.
    pub(crate) xattr_bytes: usize,
    pub(crate) visits: Visits,
}

/// News for `blocks` after an edit was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockChange {
    /// A new last block, of length 0 and not committed.
    Allocated {
        block: Block,
        inode: InodeId,
        replication: u16,
    },
    /// The block's length is final; its replicas are now expected to be finished with exactly it.
    Committed {
        block: Block,
    },
    /// The file was closed: the block is complete as far as the namespace is concerned.
    Completed {
        block: Block,
    },
    /// The stamp of a block being written rose (pipeline recovery or block recovery), perhaps with a length.
    Restamped {
        block: Block,
    },
    /// A finished block is written again or to be cut, with the stamp and the length that it has.
    Reopened {
        block: Block,
    },
    /// The block belongs to another file now.
    Moved {
        block: BlockId,
        inode: InodeId,
    },
    ReplicationChanged {
        block: BlockId,
        from: u16,
        to: u16,
    },
    Removed(Block),
    /// Other ids were skipped, or deletions are held back or allowed from here on.
    UnknownReplicas(UnknownReplicas),
}

impl BlockChange {
    /// Whether replicas may be deleted because of this change: the block is gone, shall have fewer replicas, or is
    /// unknown. A deleted replica does not come back, so the block map is told of such a change only when the edit
    /// has committed. All other changes are told at once: a block that is written on has its replicas as before.
    ///
    /// A rise of the wanted number waits as well: told before an earlier fall, it would be undone by that.
    pub fn may_cost_replicas(&self) -> bool {
        match self {
            Self::Removed(_) | Self::ReplicationChanged { .. } | Self::UnknownReplicas(_) => true,
            Self::Allocated { .. }
            | Self::Committed { .. }
            | Self::Completed { .. }
            | Self::Restamped { .. }
            | Self::Reopened { .. }
            | Self::Moved { .. } => false,
        }
    }
}

/// The effects of an edit, besides the change of the tree.
#[derive(Debug, Default, PartialEq)]
pub struct Applied {
    pub reply: Reply,
    /// The changes of blocks, in the order in which they happened.
    pub block_changes: Vec<BlockChange>,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub files: u64,
    pub directories: u64,
    pub blocks: u64,
    pub files_under_construction: u64,
    /// Deleted subtrees that [`crate::ops::cleanup`] has still to take apart.
    pub orphans: u64,
    pub retry_entries: u64,
    pub snapshottable_directories: u64,
    pub snapshots: u64,
}

/// Allocated bytes, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub inodes: usize,
    pub names: usize,
    pub children: usize,
    pub blocks: usize,
    pub index: usize,
    /// Interned combinations with their ACLs, and extended attributes.
    pub attributes: usize,
    /// An estimate, because leases live in ordered maps.
    pub leases: usize,
    pub retry_cache: usize,
    pub snapshots: usize,
    pub quotas: usize,
}

impl Namespace {
    /// An empty tree whose root belongs to `owner:group`. `seed` keys the hash tables of this process: it
    /// reaches no edit, digest or image. The other arguments must be the same on all members.
    pub fn new(seed: u64, owner: &str, group: &str, now: Timestamp) -> Self {
        let mut ns = Self::empty(seed);
        let values = AttributeValues {
            owner,
            group,
            mode: 0o755,
            replication: 0,
            storage_policy: 0,
            block_size: 0,
            acl: None,
        };
        let attributes = ns.acquire_attributes(values);
        ns.tree.root = ns.insert_inode(Inode::directory(InodeId::ROOT, attributes, now), b"");
        ns
    }

    /// The new tree of another group than the root group: its ids are that group's.
    pub fn of_group(mut self, group: GroupId) -> Self {
        self.tree.counters = Counters {
            files: self.tree.counters.files,
            directories: self.tree.counters.directories,
            ..Counters::of_group(group)
        };
        self
    }

    /// The group that holds this tree, by the ids that it gives out.
    pub fn group(&self) -> GroupId {
        GroupId(GroupId::ROOT.0 + u32::from(self.tree.counters.group_number()))
    }

    /// A new tree of a group that begins at this level. All members must be given the same.
    pub fn beginning_at(mut self, level: Level) -> Self {
        if level > Level::FIRST {
            let release = level.release().unwrap_or_default().into();
            self.tree.level = GroupLevel { level, release, ..GroupLevel::default() };
        }
        self
    }

    /// The group's level, which says which formats may be written.
    pub fn group_level(&self) -> &GroupLevel {
        &self.tree.level
    }

    /// The orders that take data servers out of service. The copy stays as it is.
    pub fn server_orders(&self) -> ServerOrders {
        self.tree.server_orders.clone()
    }

    /// Nothing, not even a root.
    pub(crate) fn empty(seed: u64) -> Self {
        Self {
            tree: Tree::new(),
            index: InodeIndex::new(seed),
            names: NameIndex::new(seed),
            strings: StringIndex::new(seed),
            attributes: AttributeIndex::new(seed),
            retry: RetryIndex::new(seed),
            leases: BTreeMap::new(),
            open_blocks: BTreeMap::new(),
            truncations: BTreeSet::new(),
            satisfying: BTreeSet::new(),
            preserving: Vec::new(),
            orders: BTreeMap::new(),
            keeping: Vec::new(),
            xattr_bytes: 0,
            visits: Visits::default(),
        }
    }

    /// The last edit applied; `TxId::default()` before the first.
    pub fn applied(&self) -> TxId {
        self.tree.counters.applied
    }

    /// Notes that the journal went on to `at` with an entry that was no edit.
    pub fn skip_to(&mut self, at: TxId) {
        self.tree.counters.applied = at;
    }

    /// To be asked before planning a call that changes something.
    pub fn retry_lookup(&self, origin: &CallOrigin, fingerprint: u64) -> RetryLookup {
        self.retry.lookup(&self.tree.retry, origin.client_id, origin.call_id, fingerprint)
    }

    /// How [`Namespace::digest`] is made. To be raised when a release digests, or applies, anything otherwise than the one before:
    /// its members are compared with others of the same form only.
    pub const DIGEST_FORM: u32 = 1;

    /// Whether calls come so fast that the retry cache does not hold those of the last ten minutes, at this pace.
    pub fn outruns_retry_cache(&self) -> bool {
        self.tree.retry.is_outrun(self.tree.counters.time)
    }

    /// For how long a call is remembered by the retry cache, at least; ten minutes where it has room for more.
    pub fn retry_window_ms(&self) -> u64 {
        self.tree.retry.window_ms(self.tree.counters.time)
    }

    /// Equal on all members that applied the same edits.
    pub fn digest(&self) -> u64 {
        self.tree.digest()
    }

    /// A digest like [`Namespace::digest`], of the inodes and blocks alone.
    pub fn content_digest(&self) -> u64 {
        self.tree.sum
    }

    /// From here on `told` is called for each inode that a long walk visits, on the thread that walks.
    pub fn tell_visits(&mut self, told: fn()) {
        self.visits = Visits::tell(told);
    }

    pub fn counts(&self) -> Counts {
        let counters = &self.tree.counters;
        Counts {
            // Exports are other groups' files.
            files: counters.files - self.exported_files(),
            directories: counters.directories,
            blocks: u64::from(self.tree.blocks.live()),
            files_under_construction: u64::from(self.tree.open_files.live()),
            orphans: self.tree.orphans.len() as u64,
            retry_entries: self.tree.retry.len(),
            snapshottable_directories: self.tree.snapshots.roots.len() as u64,
            snapshots: u64::from(self.tree.snapshots.living),
        }
    }

    pub fn memory(&self) -> Memory {
        let tree = &self.tree;
        let lease_bytes = |files: &BTreeSet<InodeId>| 96 + files.len() * 40;
        Memory {
            inodes: tree.inodes.bytes(),
            names: tree.names.bytes() + self.names.bytes(),
            children: tree.children.bytes(),
            blocks: tree.blocks.bytes(),
            index: self.index.bytes(),
            attributes: tree.attributes.bytes()
                + tree.strings.bytes()
                + self.attributes.bytes()
                + self.strings.bytes()
                + tree.xattrs.bytes()
                + self.xattr_bytes,
            leases: tree.open_files.bytes() + self.leases.values().map(lease_bytes).sum::<usize>(),
            retry_cache: tree.retry.bytes() + self.retry.bytes(),
            snapshots: tree.snapshots.bytes(),
            quotas: tree.quotas.bytes(),
        }
    }

    /// The holders of leases in order of their names, with the number of files that each has open.
    pub fn leases(&self) -> impl Iterator<Item = (&str, usize)> {
        self.leases.iter().map(|(holder, files)| (&**holder, files.len()))
    }

    /// The files that a holder has open, in order of their ids.
    pub fn files_of(&self, holder: &str) -> Vec<InodeId> {
        self.leases.get(holder).map(|files| files.iter().copied().collect()).unwrap_or_default()
    }

    /// All blocks of this group's pool, to fill `blocks` after an image was read: block, file, replication, and
    /// whether the block is committed. Those of files that live in another group are among them. Blocks of a deleted subtree count until it has been taken apart.
    pub fn for_each_block(&self, visit: &mut dyn FnMut(Block, InodeId, u16, bool)) {
        let orphans = self.tree.orphans.iter().copied();
        let kept = self.tree.snapshots.kept.iter().map(|(_, handle)| *handle);
        let exports = self.tree.exports.iter().map(|(_, export)| export.handle);
        let tops = std::iter::once(self.tree.root).chain(orphans).chain(kept).chain(exports);
        let mut stack: Vec<u32> = tops.collect();
        while let Some(handle) = stack.pop() {
            let inode = self.tree.inode(handle);
            if inode.is_directory() {
                stack.extend(self.tree.children_of(handle, 0));
                continue;
            }
            let replication = self.block_replication(handle);
            for stored in self.tree.blocks_of(handle).filter(|stored| !self.is_foreign(stored.block.id)) {
                visit(stored.block, inode.id(), replication, stored.committed);
            }
            let source = self.source_of(handle);
            if let Some(source) = source.filter(|source| !self.is_listed_in_past(inode.id(), *source)) {
                visit(source, inode.id(), replication, true);
            }
        }
        self.for_each_past_block(visit);
    }

    /// The blocks that only snapshots have.
    fn for_each_past_block(&self, visit: &mut dyn FnMut(Block, InodeId, u16, bool)) {
        let mut visited = BTreeSet::new();
        for ((inode, _), past) in self.tree.snapshots.records.iter() {
            let (Some(blocks), Some(file)) = (&past.blocks, self.handle(*inode)) else { continue };
            for stored in blocks.iter() {
                let is_current = self.tree.blocks_of(file).any(|other| other.block.id == stored.block.id);
                let is_own = !self.is_foreign(stored.block.id);
                if is_own && !is_current && visited.insert(stored.block.id) {
                    visit(stored.block, *inode, self.block_replication(file), stored.committed);
                }
            }
        }
    }

    /// Whether nothing is kept for snapshots. For tests.
    pub fn is_past_empty(&self) -> bool {
        let snapshots = &self.tree.snapshots;
        snapshots.records.is_empty()
            && snapshots.entries.is_empty()
            && snapshots.births.is_empty()
            && snapshots.kept.is_empty()
    }

    /// Whether [`crate::ops::cleanup`] has something left to do.
    pub fn has_background_work(&self) -> bool {
        !self.tree.orphans.is_empty() || self.tree.snapshots.has_work()
    }

    /// The files that are being truncated inside their last block, in order of their ids.
    pub fn truncations(&self) -> impl Iterator<Item = InodeId> {
        self.truncations.iter().copied()
    }

    /// Whether a file is being written or truncated.
    pub fn is_open(&self, inode: InodeId) -> bool {
        self.handle(inode).is_some_and(|file| self.tree.inode(file).is_open())
    }

    /// The block that is being cut for a file, the stamp of the recovery that cuts it, and to how many bytes.
    pub fn truncation_of(&self, inode: InodeId) -> Option<(Block, GenerationStamp, u64)> {
        let file = self.handle(inode).filter(|file| self.tree.inode(*file).is_open())?;
        let open = self.tree.open_files.get(self.tree.inode(file).content);
        let length = open.truncation?;
        let block = self.tree.blocks.stored(open.last_block).block;
        Some((block, GenerationStamp(open.recovery), length))
    }

    /// The block whose first bytes become the last block of a file that is being truncated; `None` if that block is
    /// cut itself.
    pub fn truncation_source_of(&self, inode: InodeId) -> Option<Block> {
        self.handle(inode).and_then(|file| self.source_of(file))
    }

    pub(crate) fn source_of(&self, file: u32) -> Option<Block> {
        let inode = self.tree.inode(file);
        if inode.is_open() { self.tree.open_files.get(inode.content).source } else { None }
    }

    /// Whether any file or directory has a storage policy of its own.
    pub fn has_storage_policies(&self) -> bool {
        self.tree.policies > 0
    }

    /// The storage policy in force for a file or directory; 0 if none is set, or it is gone.
    pub fn storage_policy_of(&self, inode: InodeId) -> u8 {
        self.handle(inode).map_or(0, |handle| self.tree.policy_of(handle))
    }

    /// The block size that a file was made with, in bytes; `None` if there is no such file.
    pub fn block_size_of(&self, inode: InodeId) -> Option<u64> {
        let size = self.tree.attributes_of(self.handle(inode)?).block_size;
        (size > 0).then_some(size)
    }

    /// The file that a block being written belongs to.
    pub fn file_of_open_block(&self, block: BlockId) -> Option<InodeId> {
        self.open_blocks.get(&block).copied()
    }

    /// The path of an inode; `None` if it is not (or no longer) in the tree.
    pub fn path_of(&self, inode: InodeId) -> Option<String> {
        let handle = self.handle(inode)?;
        self.tree.is_attached(handle).then(|| self.tree.path_of(handle))
    }

    pub(crate) fn handle(&self, inode: InodeId) -> Option<u32> {
        self.index.find(&self.tree.inodes, inode)
    }

    /// The handle of an inode that an edit names. The handle of an inode that must be there, since the edit was
    /// planned on this state.
    pub(crate) fn expect(&self, inode: InodeId) -> u32 {
        self.handle(inode).unwrap_or_else(|| panic!("an edit names inode {inode}, which is not there"))
    }
}
