//! Snapshots of directories: the tables that hold the past beside the current tree.
//!
//! A snapshot is a number, a name and a time in the list of its *root*, the snapshottable directory: making one
//! touches nothing else. Before an inode that it shows is changed, its former state is kept in side tables:
//!
//! - **Records**: an inode as it was. The record of inode *x* with key *k* shows *x* in the snapshots after the
//!   next lower key of *x*, up to *k*; snapshots after the highest key see *x* as it is now.
//! - **Entries** of directories by their lifetimes. A current entry is seen by the snapshots after it was *born*:
//!   that is noted only where an earlier snapshot includes the directory. An entry that was taken away is kept
//!   with the last snapshot that sees it, in which it *died*: snapshots after its birth, up to that.
//!
//! Numbers rise over all directories and are never used again, so the order of events is the order of numbers. A
//! record or entry whose interval holds no living snapshot that sees it is swept away ([`crate::ops::sweep`]).
//!
//! An inode lives while an entry names it, current or past. An inode that only past entries name is in no directory:
//! it is *kept*, with the subtree that it had. Nothing is copied when a subtree is moved or deleted.
//!
//! [`cover`] answers which snapshots see an inode, [`keep`] is how changes preserve, [`view`] how the past is read,
//! [`count`] how much of it counts against quotas.
//! A tree without snapshots pays for empty tables.

pub(crate) mod count;
pub(crate) mod cover;
pub(crate) mod diff;
pub(crate) mod keep;
pub(crate) mod view;

use crate::{
    SnapshotId,
    digest::Digester,
    quota::Amounts,
    store::block_list::block_digest,
    store::{attributes::AttributeArena, block_list::Stored, shared_map::SharedMap},
    xattr::Xattrs,
};
use base::{InodeId, Timestamp};
use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

/// Snapshots of one directory at most: HDFS's `SNAPSHOT_QUOTA_DEFAULT`.
pub(crate) const PER_DIRECTORY_MAX: usize = 1 << 16;
/// One more than the highest number: HDFS counts in 28 bits.
pub(crate) const SNAPSHOT_ID_LIMIT: u32 = 1 << 28;

/// Before all snapshots: numbers begin at 1.
pub(crate) const BEFORE_ALL: SnapshotId = SnapshotId(0);
/// After all snapshots.
pub(crate) const AFTER_ALL: SnapshotId = SnapshotId(u32::MAX);

/// One snapshot of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub id: SnapshotId,
    pub name: Arc<str>,
    /// When it was made or renamed: the modification time of its root.
    pub modified: Timestamp,
}

/// A snapshottable directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Root {
    /// The snapshots, sorted by number.
    taken: Vec<Taken>,
    by_name: BTreeMap<Arc<str>, SnapshotId>,
}

impl Root {
    pub fn len(&self) -> usize {
        self.taken.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Taken> {
        self.taken.iter()
    }

    /// The snapshots after `name`, sorted by name.
    pub fn after_name(&self, name: &str) -> impl Iterator<Item = &Taken> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = if name.is_empty() { Unbounded } else { Excluded(name) };
        self.by_name.range::<str, _>((from, Unbounded)).filter_map(|(_, id)| self.get(*id))
    }

    pub fn find(&self, name: &str) -> Option<&Taken> {
        self.get(*self.by_name.get(name)?)
    }

    pub fn get(&self, id: SnapshotId) -> Option<&Taken> {
        let at = self.taken.binary_search_by_key(&id, |taken| taken.id).ok()?;
        self.taken.get(at)
    }

    /// The latest after `low` and no later than `high`.
    pub fn latest(&self, low: SnapshotId, high: SnapshotId) -> Option<SnapshotId> {
        let end = self.taken.partition_point(|taken| taken.id <= high);
        self.taken[..end].last().map(|taken| taken.id).filter(|id| *id > low)
    }

    fn push(&mut self, taken: Taken) {
        self.by_name.insert(taken.name.clone(), taken.id);
        self.taken.push(taken);
    }

    fn remove(&mut self, id: SnapshotId) -> Option<Taken> {
        let at = self.taken.binary_search_by_key(&id, |taken| taken.id).ok()?;
        let taken = self.taken.remove(at);
        self.by_name.remove(&taken.name);
        Some(taken)
    }
}

/// An inode as some snapshots see it.
#[derive(Clone, Debug)]
pub(crate) struct PastInode {
    /// A use of its own of a combination in the attributes.
    pub attributes: u32,
    pub modified: Timestamp,
    pub accessed: Timestamp,
    /// The length of a file, the number of children of a directory.
    pub size: u64,
    /// The blocks of a file, if it no longer begins with them.
    pub blocks: Option<Arc<[Stored]>>,
    pub xattrs: Option<Arc<Xattrs>>,
    /// The limits of a directory that had a quota.
    pub limits: Option<Arc<Amounts>>,
}

pub(crate) type RecordKey = (InodeId, SnapshotId);

/// Directory, name, and the last snapshot that sees the entry.
pub(crate) type EntryKey = (InodeId, Arc<[u8]>, SnapshotId);

/// An entry that a directory had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PastEntry {
    pub inode: InodeId,
    /// Snapshots up to this one do not see it.
    pub born: SnapshotId,
    /// The amounts for which an inode that was moved away counts in the directory's quotas. `None` for a deleted
    /// inode, which counts as it is.
    pub charged: Option<Arc<Amounts>>,
}

/// How far a sweep over the tables has come: to be continued behind this key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cursor {
    Records(InodeId, SnapshotId),
    Entries(InodeId, Arc<[u8]>, SnapshotId),
    Births(InodeId),
}

impl Cursor {
    pub const START: Cursor = Cursor::Records(InodeId(0), BEFORE_ALL);
}

/// The side tables. All but `named`, `kept` and `sum` stand in the image.
#[derive(Clone)]
pub(crate) struct Snapshots {
    /// The highest number given so far.
    pub last: SnapshotId,
    /// How many there are.
    pub living: u32,
    pub roots: SharedMap<InodeId, Arc<Root>>,
    pub records: SharedMap<RecordKey, Arc<PastInode>>,
    pub entries: SharedMap<EntryKey, PastEntry>,
    /// The latest snapshot that does not see the current entry of an inode, where there is one.
    pub births: SharedMap<InodeId, SnapshotId>,
    /// The past entries that name an inode.
    pub named: SharedMap<InodeId, Arc<Vec<EntryKey>>>,
    /// Inodes that hang nowhere and that past entries name, with their handles.
    pub kept: SharedMap<InodeId, u32>,
    /// Kept subtrees to be searched for inodes that no snapshot sees.
    pub unsearched: VecDeque<InodeId>,
    pub sweep: Option<Cursor>,
    /// Another sweep is to follow the one that is under way.
    pub sweep_again: bool,
    /// The sum of the digests of all that is in the tables.
    pub sum: u64,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self {
            last: BEFORE_ALL,
            living: 0,
            roots: SharedMap::default(),
            records: SharedMap::default(),
            entries: SharedMap::default(),
            births: SharedMap::default(),
            named: SharedMap::default(),
            kept: SharedMap::default(),
            unsearched: VecDeque::new(),
            sweep: None,
            sweep_again: false,
            sum: 0,
        }
    }
}

impl Snapshots {
    /// Nothing was ever snapshottable, or all of it is gone.
    pub fn is_unused(&self) -> bool {
        self.roots.is_empty()
            && self.records.is_empty()
            && self.entries.is_empty()
            && self.births.is_empty()
            && self.last == BEFORE_ALL
            && self.sweep.is_none()
            && self.unsearched.is_empty()
    }

    pub fn bytes(&self) -> usize {
        let record = size_of::<PastInode>() + 16;
        let root = |root: &Arc<Root>| 64 + root.len() * 160;
        let names: usize = self.entries.iter().map(|((_, name, _), _)| name.len() + 16).sum();
        self.roots.iter().map(|(_, one)| root(one)).sum::<usize>()
            + self.roots.bytes()
            + self.records.bytes()
            + self.records.len() * record
            + self.entries.bytes()
            + names
            + self.births.bytes()
            + self.named.bytes()
            + self.entries.len() * (size_of::<EntryKey>() + 8)
            + self.kept.bytes()
    }

    /// The records of an inode, in the order of their keys.
    pub fn records_of(
        &self,
        inode: InodeId,
    ) -> impl DoubleEndedIterator<Item = (SnapshotId, &Arc<PastInode>)> {
        self.records.range((inode, BEFORE_ALL)..=(inode, AFTER_ALL)).map(|((_, key), past)| (*key, past))
    }

    /// How an inode was in a snapshot that sees it; `None`: as it is now.
    pub fn record_at(&self, inode: InodeId, at: SnapshotId) -> Option<&Arc<PastInode>> {
        self.records.range((inode, at)..=(inode, AFTER_ALL)).next().map(|(_, past)| past)
    }

    /// The key of the record before this one; [`BEFORE_ALL`] for the first.
    pub fn key_before(&self, inode: InodeId, key: SnapshotId) -> SnapshotId {
        let before = self.records.range((inode, BEFORE_ALL)..(inode, key)).next_back();
        before.map_or(BEFORE_ALL, |((_, key), _)| *key)
    }

    pub fn entries_of(&self, directory: InodeId) -> impl Iterator<Item = (&EntryKey, &PastEntry)> {
        self.entries_behind(directory, None)
    }

    /// The past entries of the directory behind this key.
    pub fn entries_behind<'a>(
        &'a self,
        directory: InodeId,
        key: Option<&EntryKey>,
    ) -> impl Iterator<Item = (&'a EntryKey, &'a PastEntry)> + use<'a> {
        let first = key.cloned().unwrap_or((directory, Arc::from(&b""[..]), BEFORE_ALL));
        let end: EntryKey = (InodeId(directory.0 + 1), Arc::from(&b""[..]), BEFORE_ALL);
        self.entries.range((Bound::Excluded(first), Bound::Excluded(end)))
    }

    pub fn has_entries(&self, directory: InodeId) -> bool {
        !self.entries.is_empty() && self.entries_of(directory).next().is_some()
    }

    pub fn request_sweep(&mut self) {
        if self.sweep.is_some() {
            self.sweep_again = true;
        } else if !(self.records.is_empty() && self.entries.is_empty() && self.births.is_empty()) {
            self.sweep = Some(Cursor::START);
        }
    }

    /// A digest of the work that [`crate::ops::sweep`] has to do.
    pub fn work_digest(&self) -> u64 {
        let mut digester = Digester::new(b'w');
        self.unsearched.iter().for_each(|inode| digester.number(inode.0));
        digester.number(u64::from(self.sweep_again));
        let (table, inode, name, snapshot) = match &self.sweep {
            None => return digester.finish(),
            Some(Cursor::Records(inode, key)) => (0, inode, &b""[..], key),
            Some(Cursor::Entries(inode, name, died)) => (1, inode, &**name, died),
            Some(Cursor::Births(inode)) => (2, inode, &b""[..], &BEFORE_ALL),
        };
        digester.number(table);
        digester.number(inode.0);
        digester.bytes(name);
        digester.number(u64::from(snapshot.0));
        digester.finish()
    }

    /// Whether [`crate::ops::sweep`] has something to do.
    pub fn has_work(&self) -> bool {
        self.sweep.is_some() || !self.unsearched.is_empty()
    }

    pub fn add_root(&mut self, inode: InodeId) {
        self.sum = self.sum.wrapping_add(root_digest(inode));
        self.roots.insert(inode, Arc::default());
    }

    /// Removes a directory from the snapshottable ones. It must have no snapshots.
    pub fn remove_root(&mut self, inode: InodeId) {
        if self.roots.remove(&inode).is_some() {
            self.sum = self.sum.wrapping_sub(root_digest(inode));
        }
    }

    pub fn take(&mut self, root: InodeId, taken: Taken) {
        self.last = self.last.max(taken.id);
        self.living += 1;
        self.sum = self.sum.wrapping_add(taken_digest(root, &taken));
        if let Some(root) = self.roots.get_mut(&root) {
            Arc::make_mut(root).push(taken);
        }
    }

    pub fn untake(&mut self, root: InodeId, id: SnapshotId) -> Option<Taken> {
        let taken = Arc::make_mut(self.roots.get_mut(&root)?).remove(id)?;
        self.living -= 1;
        self.sum = self.sum.wrapping_sub(taken_digest(root, &taken));
        Some(taken)
    }

    pub fn rename(&mut self, root: InodeId, id: SnapshotId, name: &str, modified: Timestamp) {
        let Some(taken) = self.untake(root, id) else { return };
        let renamed = Taken { name: name.into(), modified, ..taken };
        self.living += 1;
        self.sum = self.sum.wrapping_add(taken_digest(root, &renamed));
        if let Some(root) = self.roots.get_mut(&root) {
            let root = Arc::make_mut(root);
            root.by_name.insert(renamed.name.clone(), id);
            let at = root.taken.partition_point(|other| other.id < id);
            root.taken.insert(at, renamed);
        }
    }

    pub fn set_birth(&mut self, inode: InodeId, born: SnapshotId) {
        self.sum = self.sum.wrapping_add(birth_digest(inode, born));
        self.births.insert(inode, born);
    }

    pub fn remove_birth(&mut self, inode: InodeId) -> Option<SnapshotId> {
        let born = self.births.remove(&inode)?;
        self.sum = self.sum.wrapping_sub(birth_digest(inode, born));
        Some(born)
    }

    pub fn add_record(&mut self, attributes: &AttributeArena, key: RecordKey, past: PastInode) {
        self.sum = self.sum.wrapping_add(record_digest(attributes, key, &past));
        self.records.insert(key, Arc::new(past));
    }

    pub fn remove_record(&mut self, attributes: &AttributeArena, key: RecordKey) -> Option<Arc<PastInode>> {
        let past = self.records.remove(&key)?;
        self.sum = self.sum.wrapping_sub(record_digest(attributes, key, &past));
        Some(past)
    }

    /// Answers whether it is the first that names the inode.
    pub fn add_entry(&mut self, key: EntryKey, entry: PastEntry) -> bool {
        self.sum = self.sum.wrapping_add(entry_digest(&key, &entry));
        let inode = entry.inode;
        self.entries.insert(key.clone(), entry);
        match self.named.get_mut(&inode) {
            Some(names) => {
                let names = Arc::make_mut(names);
                let at = names.partition_point(|other| *other < key);
                names.insert(at, key);
                false
            }
            None => {
                self.named.insert(inode, Arc::new(vec![key]));
                true
            }
        }
    }

    /// Answers the entry, and whether it was the last that named its inode.
    pub fn remove_entry(&mut self, key: &EntryKey) -> Option<(PastEntry, bool)> {
        let entry = self.entries.remove(key)?;
        self.sum = self.sum.wrapping_sub(entry_digest(key, &entry));
        let names = Arc::make_mut(self.named.get_mut(&entry.inode)?);
        names.retain(|other| other != key);
        let is_last = names.is_empty();
        if is_last {
            self.named.remove(&entry.inode);
        }
        Some((entry, is_last))
    }
}

fn root_digest(inode: InodeId) -> u64 {
    let mut digester = Digester::new(b'R');
    digester.number(inode.0);
    digester.finish()
}

fn taken_digest(root: InodeId, taken: &Taken) -> u64 {
    let mut digester = Digester::new(b's');
    digester.number(root.0);
    digester.number(u64::from(taken.id.0));
    digester.bytes(taken.name.as_bytes());
    digester.number(taken.modified.ms);
    digester.finish()
}

fn birth_digest(inode: InodeId, born: SnapshotId) -> u64 {
    let mut digester = Digester::new(b'n');
    digester.number(inode.0);
    digester.number(u64::from(born.0));
    digester.finish()
}

pub(crate) fn record_digest(attributes: &AttributeArena, key: RecordKey, past: &PastInode) -> u64 {
    let mut digester = Digester::new(b'p');
    digester.number(key.0.0);
    digester.number(u64::from(key.1.0));
    digester.number(attributes.get(past.attributes).digest);
    digester.number(past.modified.ms);
    digester.number(past.accessed.ms);
    digester.number(past.size);
    if let Some(blocks) = &past.blocks {
        blocks.iter().for_each(|stored| digester.number(block_digest(key.0, *stored)));
    }
    if let Some(xattrs) = &past.xattrs {
        xattrs.digest(&mut digester);
    }
    if let Some(limits) = &past.limits {
        limits.numbers().for_each(|number| digester.number(number as u64));
    }
    digester.finish()
}

fn entry_digest(key: &EntryKey, entry: &PastEntry) -> u64 {
    let mut digester = Digester::new(b'e');
    digester.number(key.0.0);
    digester.bytes(&key.1);
    digester.number(u64::from(key.2.0));
    digester.number(entry.inode.0);
    digester.number(u64::from(entry.born.0));
    if let Some(charged) = &entry.charged {
        charged.numbers().for_each(|number| digester.number(number as u64));
    }
    digester.finish()
}
