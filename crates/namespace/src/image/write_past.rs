//! Sections 7 to 9: the snapshots, and what they see that is no more. A tree that never had any has none of them.

use super::{Section, write::Image};
use crate::{codec::Field, ops::sweep::Place};
use std::io;

impl Image<'_> {
    pub(super) fn snapshots(&mut self) {
        let tree = self.tree;
        let snapshots = &tree.snapshots;
        if snapshots.is_unused() {
            return;
        }
        let mut out = self.out();
        out.byte(Section::Snapshots as u8);
        out.number(u64::from(snapshots.last.0));
        out.number(snapshots.roots.len() as u64);
        for (inode, root) in snapshots.roots.iter() {
            out.number(inode.0);
            out.number(root.len() as u64);
            for taken in root.iter() {
                out.number(u64::from(taken.id.0));
                out.bytes(taken.name.as_bytes());
                out.number(taken.modified.ms);
            }
        }
        out.number(snapshots.unsearched.len() as u64);
        snapshots.unsearched.iter().for_each(|inode| out.number(inode.0));
        out.byte(u8::from(snapshots.sweep.is_some()) | u8::from(snapshots.sweep_again) << 1);
        if let Some(cursor) = &snapshots.sweep {
            Place::of(cursor).encode(&mut out);
        }
    }

    pub(super) fn past(&mut self) -> io::Result<()> {
        let tree = self.tree;
        let snapshots = &tree.snapshots;
        if snapshots.is_unused() {
            return Ok(());
        }
        self.out().byte(Section::Past as u8);
        // Found without the index, which is not part of the tree that is written.
        let mut kept = snapshots.kept.iter().map(|(_, handle)| *handle);
        self.out().number(snapshots.kept.len() as u64);
        kept.try_for_each(|top| self.subtree(top))?;
        self.out().number(snapshots.records.len() as u64);
        for ((inode, key), past) in snapshots.records.iter() {
            self.out().number(inode.0);
            self.out().number(u64::from(key.0));
            self.attributes(past.attributes);
            self.out().number(past.modified.ms);
            self.out().number(past.accessed.ms);
            self.out().number(past.size);
            // 0: the blocks are the first ones of the file as it is.
            self.out().number(past.blocks.as_ref().map_or(0, |blocks| blocks.len() as u64 + 1));
            for stored in past.blocks.iter().flat_map(|blocks| blocks.iter()) {
                self.block(*stored);
            }
            self.xattr_list(past.xattrs.as_deref());
            self.flush_full()?;
        }
        self.out().number(snapshots.entries.len() as u64);
        for ((directory, name, died), entry) in snapshots.entries.iter() {
            let mut out = self.out();
            out.number(directory.0);
            out.bytes(name);
            out.number(u64::from(died.0));
            out.number(entry.inode.0);
            out.number(u64::from(entry.born.0));
            out.byte(u8::from(entry.charged.is_some()));
            for number in entry.charged.iter().flat_map(|charged| charged.numbers()) {
                self.signed(number);
            }
            self.flush_full()?;
        }
        self.out().number(snapshots.births.len() as u64);
        for (inode, born) in snapshots.births.iter() {
            self.out().number(inode.0);
            self.out().number(u64::from(born.0));
            self.flush_full()?;
        }
        Ok(())
    }
    /// Writes the limits in records of directories that had a quota.
    pub(super) fn past_limits(&mut self) -> io::Result<()> {
        let tree = self.tree;
        let records = &tree.snapshots.records;
        let limited = || records.iter().filter_map(|(key, past)| Some((*key, past.limits.as_deref()?)));
        let count = limited().count();
        if count == 0 {
            return Ok(());
        }
        self.out().byte(Section::Limits as u8);
        self.out().number(count as u64);
        for ((inode, key), limits) in limited() {
            self.out().number(inode.0);
            self.out().number(u64::from(key.0));
            limits.numbers().for_each(|number| self.signed(number));
            self.flush_full()?;
        }
        Ok(())
    }
}
