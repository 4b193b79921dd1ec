//! Reads sections 7 to 9 back. All that they name must be there.

use super::{
    Section,
    read::{Image, Result},
};
use crate::{
    SnapshotId,
    codec::{Field, Reader},
    ops::sweep::Place,
    quota::Amounts,
    snapshots::{BEFORE_ALL, PER_DIRECTORY_MAX, PastEntry, PastInode, SNAPSHOT_ID_LIMIT, Taken},
    store::{
        NONE,
        block_list::RECORD_LENGTH_LIMIT,
        inode::{BORN, NAMED, SNAPSHOTTABLE, TIME_LIMIT_MS},
    },
};
use base::{InodeId, Timestamp};
use std::sync::Arc;

/// No directory is that deep: paths have at most 1,000 names, and few deleted ones lie below each other.
const DEPTH_MAX: usize = 100_000;

impl Image<'_> {
    fn snapshot(&mut self) -> Result<SnapshotId> {
        let last = u64::from(self.ns.tree.snapshots.last.0);
        self.below(last + 1, "snapshot id").map(|id| SnapshotId(id as u32))
    }

    fn known(&mut self, what: &str) -> Result<(InodeId, u32)> {
        let id = InodeId(self.number()?);
        match self.ns.handle(id) {
            Some(handle) => Ok((id, handle)),
            None => Err(self.malformed(format!("inode {id} has {what} and is not there"))),
        }
    }

    fn bytes(&mut self, limit: u64, what: &str) -> Result<Vec<u8>> {
        let length = self.below(limit, what)?;
        (0..length).map(|_| self.byte()).collect()
    }

    fn text_of(&self, bytes: Vec<u8>) -> Result<String> {
        let text = String::from_utf8(bytes).ok();
        let text = text.filter(|text| !text.is_empty() && !text.contains(['/', '\0']));
        text.ok_or_else(|| self.malformed("a name is not UTF-8, or no name"))
    }

    pub(super) fn snapshots(&mut self) -> Result<()> {
        self.section = Section::Snapshots;
        let last = self.below(u64::from(SNAPSHOT_ID_LIMIT), "snapshot id")? as u32;
        self.ns.tree.snapshots.last = SnapshotId(last);
        for _ in 0..self.number()? {
            let (inode, handle) = self.known("snapshots")?;
            let record = self.ns.tree.inode(handle);
            if record.is_file() || record.has(SNAPSHOTTABLE) {
                return Err(self.malformed(format!("inode {inode} cannot have snapshots, or has them twice")));
            }
            self.ns.tree.inodes.get_mut(handle).set_flag(SNAPSHOTTABLE, true);
            self.ns.tree.snapshots.add_root(inode);
            let mut before = BEFORE_ALL;
            for _ in 0..self.below(PER_DIRECTORY_MAX as u64 + 1, "number of snapshots")? {
                let id = self.snapshot()?;
                let name = self.bytes(256, "length of a name")?;
                let name: Arc<str> = self.text_of(name)?.into();
                let modified = Timestamp::from_ms(self.below(TIME_LIMIT_MS, "time")?);
                let root = self.ns.tree.snapshots.roots.get(&inode);
                if id <= before || root.is_some_and(|root| root.find(&name).is_some()) {
                    return Err(self.malformed(format!("snapshot {id:?} of inode {inode} is there twice")));
                }
                before = id;
                self.ns.tree.snapshots.take(inode, Taken { id, name, modified });
            }
        }
        for _ in 0..self.number()? {
            let inode = InodeId(self.number()?);
            self.ns.tree.snapshots.unsearched.push_back(inode);
        }
        let flags = self.byte()?;
        if flags > 3 {
            return Err(self.malformed(format!("flags {flags} of a sweep")));
        }
        self.ns.tree.snapshots.sweep_again = flags & 2 != 0;
        if flags & 1 != 0 {
            let place = self.place()?;
            if Place::of(&place.cursor()) != place {
                return Err(self.malformed(format!("a sweep stands at {place:?}")));
            }
            self.ns.tree.snapshots.sweep = Some(place.cursor());
        }
        Ok(())
    }

    /// Reads a place that is written as in an edit.
    fn place(&mut self) -> Result<Place> {
        let mut bytes = Vec::new();
        // Table and inode, then a name of the length that stands before it, then a snapshot.
        for _ in 0..2 {
            self.copy_number(&mut bytes)?;
        }
        let length = self.copy_number(&mut bytes)?;
        if length > 255 {
            return Err(self.malformed("a sweep stands at a name of more than 255 bytes"));
        }
        for _ in 0..length {
            bytes.push(self.byte()?);
        }
        self.copy_number(&mut bytes)?;
        Place::decode(&mut Reader::new(&bytes)).map_err(|error| self.malformed(error.to_string()))
    }

    fn copy_number(&mut self, bytes: &mut Vec<u8>) -> Result<u64> {
        let number = self.number()?;
        crate::codec::Writer(bytes).number(number);
        Ok(number)
    }

    pub(super) fn past(&mut self) -> Result<()> {
        self.section = Section::Past;
        for _ in 0..self.number()? {
            let top = self.subtree()?;
            let id = self.ns.tree.inode(top).id();
            self.ns.tree.snapshots.kept.insert(id, top);
        }
        for _ in 0..self.number()? {
            self.record()?;
        }
        for _ in 0..self.number()? {
            self.entry()?;
        }
        for _ in 0..self.number()? {
            let (inode, handle) = self.known("a birth")?;
            let born = self.snapshot()?;
            let record = self.ns.tree.inodes.get_mut(handle);
            if record.parent == NONE || record.has(BORN) {
                return Err(self.malformed(format!("the entry of inode {inode} has no birth, or two")));
            }
            record.set_flag(BORN, true);
            self.ns.tree.snapshots.set_birth(inode, born);
        }
        let kept: Vec<(InodeId, u32)> =
            self.ns.tree.snapshots.kept.iter().map(|(id, handle)| (*id, *handle)).collect();
        for (id, handle) in kept {
            if !self.ns.tree.inode(handle).has(NAMED) {
                return Err(self.malformed(format!("inode {id} is kept, and nothing names it")));
            }
            // An inode that counts where it was deleted from must not be its own ancestor.
            let up = std::iter::successors(Some(handle), |at| {
                Some(self.ns.counted_in(*at)).filter(|above| *above != NONE)
            });
            if up.take(DEPTH_MAX).count() == DEPTH_MAX {
                return Err(self.malformed(format!("inode {id} was deleted from what is below it")));
            }
        }
        Ok(())
    }

    fn record(&mut self) -> Result<()> {
        let (inode, handle) = self.known("a record")?;
        let key = self.snapshot()?;
        let attributes = self.attributes()?;
        let modified = Timestamp::from_ms(self.below(TIME_LIMIT_MS, "time")?);
        let accessed = Timestamp::from_ms(self.below(TIME_LIMIT_MS, "time")?);
        let size = self.below(1 << 62, "size")?;
        let mut blocks = None;
        let count = self.number()?;
        if count > 0 {
            let mut list = Vec::new();
            for _ in 1..count {
                let stored = self.block()?;
                self.check_below(stored.block.length, RECORD_LENGTH_LIMIT, "length of a block")?;
                list.push(stored);
            }
            blocks = Some(list.into());
        }
        let xattrs = self.xattr_list()?;
        let is_directory = self.ns.tree.inode(handle).is_directory();
        if (is_directory && blocks.is_some()) || self.ns.tree.snapshots.records.contains_key(&(inode, key)) {
            return Err(self.malformed(format!("the record of inode {inode} for {key:?} is wrong, or twice")));
        }
        let past = PastInode { attributes, modified, accessed, size, blocks, xattrs, limits: None };
        let tree = &mut self.ns.tree;
        tree.snapshots.add_record(&tree.attributes, (inode, key), past);
        Ok(())
    }

    pub(super) fn past_limits(&mut self) -> Result<()> {
        self.section = Section::Limits;
        for _ in 0..self.number()? {
            let (inode, handle) = self.known("limits")?;
            let key = (inode, self.snapshot()?);
            let limits = Some(Arc::new(self.amounts()?));
            let tree = &mut self.ns.tree;
            let record = tree.snapshots.remove_record(&tree.attributes, key);
            let Some(past) = record.filter(|past| past.limits.is_none() && tree.inode(handle).is_directory())
            else {
                return Err(
                    self.malformed(format!("inode {inode} has no record for {key:?}, or limits twice"))
                );
            };
            tree.snapshots.add_record(&tree.attributes, key, PastInode { limits, ..(*past).clone() });
        }
        Ok(())
    }

    fn charged(&mut self) -> Result<Option<Arc<Amounts>>> {
        match self.byte()? {
            0 => return Ok(None),
            1 => {}
            other => return Err(self.malformed(format!("{other} is neither false nor true"))),
        }
        Ok(Some(Arc::new(self.amounts()?)))
    }

    fn entry(&mut self) -> Result<()> {
        let (directory, handle) = self.known("an entry")?;
        let name = self.bytes(256, "length of a name")?;
        let name = self.text_of(name)?;
        let died = self.snapshot()?;
        let (inode, named) = self.known("a name in the past")?;
        let born = self.snapshot()?;
        let key = (directory, Arc::from(name.as_bytes()), died);
        let is_twice = self.ns.tree.snapshots.entries.contains_key(&key);
        if self.ns.tree.inode(handle).is_file() || born >= died || is_twice {
            return Err(
                self.malformed(format!("entry {name:?} of inode {directory} is wrong, or there twice"))
            );
        }
        let charged = self.charged()?;
        self.ns.tree.snapshots.add_entry(key, PastEntry { inode, born, charged });
        self.ns.tree.inodes.get_mut(named).set_flag(NAMED, true);
        Ok(())
    }
}
