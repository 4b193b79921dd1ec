//! The tree, walked from the root in the order of names: no handle and no hash order shows.

use super::{
    DIRECTORY_LOG, DIRECTORY_LOG_PLACE, EXPORTS_VERSION, FLAG_DIRECTORY, FLAG_OPEN, HAS_SOURCE,
    LEVEL_VERSION, MAGIC, SERVER_ORDERS_VERSION, SHARES_VERSION, Section, UNKNOWN_VERSION, VERSION,
};
use crate::{
    codec::{Field, Writer},
    store::{NONE, block_list::Stored},
    tree::Tree,
    xattr::Xattrs,
};
use base::{Block, BlockId, GenerationStamp, directory_log::Point};
use std::io;

/// Bytes that are gathered before they are handed out.
const PIECE: usize = 256 * 1024;

type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

pub(super) struct Image<'a> {
    pub(super) tree: &'a Tree,
    sink: Sink<'a>,
    buffer: Vec<u8>,
    /// The numbers of texts and attributes, by handle; `NONE`: not yet met.
    texts: Numbers,
    attributes: Numbers,
    before: super::Previous,
}

/// Numbers things in the order in which they are met.
#[derive(Default)]
struct Numbers {
    by_handle: Vec<u32>,
    next: u32,
}

impl Numbers {
    /// The number of a handle, and whether it is new.
    fn number(&mut self, handle: u32) -> (u32, bool) {
        let handle = handle as usize;
        if handle >= self.by_handle.len() {
            self.by_handle.resize(handle + 1, NONE);
        }
        if self.by_handle[handle] != NONE {
            return (self.by_handle[handle], false);
        }
        self.by_handle[handle] = self.next;
        self.next += 1;
        (self.next - 1, true)
    }
}

pub(super) fn write(tree: &Tree, sink: Sink<'_>) -> io::Result<()> {
    let mut image = Image {
        tree,
        sink,
        buffer: Vec::with_capacity(2 * PIECE),
        texts: Numbers::default(),
        attributes: Numbers::default(),
        before: super::Previous::default(),
    };
    image.buffer.extend_from_slice(MAGIC);
    image.buffer.push(VERSION);
    image.counters();
    image.out().byte(Section::Tree as u8);
    image.subtree(tree.root)?;
    image.out().byte(Section::Orphans as u8);
    image.out().number(tree.orphans.len() as u64);
    for top in &tree.orphans {
        image.subtree(*top)?;
    }
    image.retry()?;
    image.xattrs()?;
    image.quotas()?;
    image.snapshots();
    image.past()?;
    image.past_limits()?;
    image.unknown();
    image.level();
    image.directory_log()?;
    image.exports()?;
    image.shares()?;
    image.server_orders()?;
    image.out().byte(Section::End as u8);
    let digest = tree.digest();
    image.buffer.extend_from_slice(&digest.to_le_bytes());
    (image.sink)(&image.buffer)
}

impl Image<'_> {
    pub(super) fn out(&mut self) -> Writer<'_> {
        Writer(&mut self.buffer)
    }

    pub(super) fn flush_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= PIECE {
            (self.sink)(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn counters(&mut self) {
        let counters = self.tree.counters;
        let numbers = [
            counters.applied.epoch.0,
            counters.applied.sn.0,
            counters.last_inode.0,
            counters.last_block.0,
            counters.last_stamp.0,
            counters.time.ms,
        ];
        let mut out = self.out();
        out.byte(Section::Counters as u8);
        numbers.into_iter().for_each(|number| out.number(number));
    }

    fn unknown(&mut self) {
        let unknown = &self.tree.unknown;
        if unknown.is_unused() {
            return;
        }
        let mut out = Writer(&mut self.buffer);
        out.byte(Section::Unknown as u8);
        out.byte(UNKNOWN_VERSION);
        out.number(unknown.held_since().map_or(0, |epoch| epoch.0));
        out.number(unknown.skipped().len() as u64);
        for range in unknown.skipped() {
            out.number(range.start().0);
            out.number(range.end().0);
        }
    }

    fn level(&mut self) {
        let level = &self.tree.level;
        if level.is_first() {
            return;
        }
        let mut out = Writer(&mut self.buffer);
        out.byte(Section::Level as u8);
        out.byte(LEVEL_VERSION);
        out.number(u64::from(level.level.0));
        level.release.encode(&mut out);
        for number in [level.since.epoch.0, level.since.sn.0, level.at.ms] {
            out.number(number);
        }
    }

    fn server_orders(&mut self) -> io::Result<()> {
        let orders = &self.tree.server_orders;
        if orders.is_empty() {
            return Ok(());
        }
        let mut out = Writer(&mut self.buffer);
        out.byte(Section::ServerOrders as u8);
        out.byte(SERVER_ORDERS_VERSION);
        out.number(orders.len() as u64);
        let mut bytes = Vec::new();
        for (server, order) in orders.iter() {
            bytes.clear();
            server.encode(&mut Writer(&mut bytes));
            order.encode(&mut Writer(&mut bytes));
            self.out().bytes(&bytes);
            self.flush_full()?;
        }
        Ok(())
    }

    fn directory_log(&mut self) -> io::Result<()> {
        let log = &self.tree.directory_log;
        if log.is_unused() {
            return Ok(());
        }
        let mut out = Writer(&mut self.buffer);
        out.byte(Section::DirectoryLog as u8);
        let put = |point: Point, out: &mut Writer<'_>| {
            out.number(point.dix.0);
            out.number(point.chain.0);
        };
        if log.groups.is_empty() {
            out.byte(DIRECTORY_LOG_PLACE);
            put(log.end, &mut out);
            return Ok(());
        }
        out.byte(DIRECTORY_LOG);
        put(log.end, &mut out);
        out.number(log.groups.len() as u64);
        log.groups.iter().for_each(|group| out.number(group.0.into()));
        out.number(self.tree.counters.last_directory);
        log.slots.encode(&mut out);
        put(log.kept.base(), &mut out);
        out.number(log.kept.visible().0);
        out.number(log.kept.len());
        let mut bytes = Vec::new();
        for entry in log.kept.iter() {
            bytes.clear();
            entry.encode(&mut Writer(&mut bytes));
            self.out().bytes(&bytes);
            self.flush_full()?;
        }
        Ok(())
    }

    /// Nothing where no file ever moved to another group.
    fn exports(&mut self) -> io::Result<()> {
        let tree = self.tree;
        if tree.exports.is_empty() && tree.post.is_unused() {
            return Ok(());
        }
        self.out().byte(Section::Exports as u8);
        self.out().byte(EXPORTS_VERSION);
        self.out().number(tree.exports.len() as u64);
        for (_, export) in tree.exports.iter() {
            self.out().number(export.to.0.into());
            self.inode(export.handle);
            self.flush_full()?;
        }
        for numbers in [&tree.post.sent, &tree.post.carried_out] {
            self.out().number(numbers.len() as u64);
            for (group, number) in numbers {
                self.out().number(group.0.into());
                self.out().number(*number);
            }
        }
        self.out().number(tree.post.waiting.len() as u64);
        for ((group, _), message) in tree.post.waiting.iter() {
            self.out().number(group.0.into());
            let bytes = message.to_bytes();
            self.out().bytes(&bytes);
            self.flush_full()?;
        }
        Ok(())
    }

    pub(super) fn subtree(&mut self, top: u32) -> io::Result<()> {
        let tree = self.tree;
        self.inode(top);
        if tree.inode(top).is_file() {
            return Ok(());
        }
        let mut stack = vec![tree.children_of(top, 0)];
        while let Some(children) = stack.last_mut() {
            let Some(child) = children.next() else {
                stack.pop();
                continue;
            };
            self.inode(child);
            self.flush_full()?;
            if tree.inode(child).children_count() > 0 {
                stack.push(tree.children_of(child, 0));
            }
        }
        Ok(())
    }

    pub(super) fn signed(&mut self, difference: i64) {
        self.out().number((difference << 1 ^ difference >> 63) as u64);
    }

    fn text(&mut self, handle: u32) {
        let (number, is_new) = self.texts.number(handle);
        self.out().number(u64::from(number));
        if is_new {
            let text = self.tree.strings.text(handle);
            self.out().bytes(text.as_bytes());
        }
    }

    pub(super) fn attributes(&mut self, handle: u32) {
        let (number, is_new) = self.attributes.number(handle);
        self.out().number(u64::from(number));
        if !is_new {
            return;
        }
        let slot = self.tree.attributes.get(handle);
        self.text(slot.owner);
        self.text(slot.group);
        let mut out = self.out();
        out.number(u64::from(slot.mode));
        out.number(u64::from(slot.replication));
        out.number(slot.block_size);
        out.byte(slot.storage_policy);
        let entries = slot.acl.as_ref().map_or(&[][..], |acl| acl.entries());
        out.number(entries.len() as u64);
        entries.iter().for_each(|entry| entry.encode(&mut out));
    }

    fn inode(&mut self, handle: u32) {
        let tree = self.tree;
        let inode = tree.inode(handle);
        let directory = if inode.is_directory() { FLAG_DIRECTORY } else { 0 };
        let open = if inode.is_open() { FLAG_OPEN } else { 0 };
        self.out().byte(directory | open);
        self.out().bytes(tree.name_of(handle));
        let (id, modified) = (inode.id().0, inode.modified().ms);
        self.signed(id.wrapping_sub(self.before.inode) as i64);
        self.signed(modified.wrapping_sub(self.before.modified) as i64);
        (self.before.inode, self.before.modified) = (id, modified);
        self.attributes(inode.attributes);
        if inode.is_directory() {
            let count = inode.children_count();
            self.out().number(u64::from(count));
            return;
        }
        self.signed(inode.accessed().ms.wrapping_sub(modified) as i64);
        let blocks = tree.blocks_of(handle).count() as u64;
        self.out().number(blocks);
        for stored in tree.blocks_of(handle) {
            self.block(stored);
        }
        if inode.is_open() {
            let open = tree.open_files.get(inode.content);
            self.text(open.holder);
            self.text(open.machine);
            self.out().number(open.recovery);
            let length = open.truncation.unwrap_or(0);
            match open.source {
                None => self.out().number(length),
                Some(block) => {
                    self.out().number(length | HAS_SOURCE);
                    self.block(Stored { block, committed: true });
                }
            }
        }
    }

    pub(super) fn block(&mut self, stored: Stored) {
        let Block { id: BlockId(id), generation_stamp: GenerationStamp(stamp), length } = stored.block;
        self.signed(id.wrapping_sub(self.before.block) as i64);
        self.signed(stamp.wrapping_sub(self.before.stamp) as i64);
        (self.before.block, self.before.stamp) = (id, stamp);
        self.out().number(length << 1 | u64::from(stored.committed));
    }

    pub(super) fn xattr_list(&mut self, xattrs: Option<&Xattrs>) {
        let all = xattrs.map_or(&[][..], Xattrs::all);
        let mut out = self.out();
        out.number(all.len() as u64);
        all.iter().for_each(|xattr| xattr.encode(&mut out));
    }

    /// Writes the extended attributes, sorted by inode id. Without any, the section is left out.
    fn xattrs(&mut self) -> io::Result<()> {
        let tree = self.tree;
        if tree.xattrs.is_empty() {
            return Ok(());
        }
        self.out().byte(Section::Xattrs as u8);
        self.out().number(tree.xattrs.len() as u64);
        let mut before = 0;
        for (inode, xattrs) in tree.xattrs.iter() {
            self.out().number(inode.0 - before);
            self.xattr_list(Some(xattrs));
            before = inode.0;
            self.flush_full()?;
        }
        Ok(())
    }

    /// Nothing where no directory has one.
    fn quotas(&mut self) -> io::Result<()> {
        let tree = self.tree;
        if tree.quotas.is_empty() {
            return Ok(());
        }
        self.out().byte(Section::Quotas as u8);
        self.out().number(tree.quotas.len() as u64);
        for (directory, quota) in tree.quotas.iter() {
            let mut out = self.out();
            directory.encode(&mut out);
            let numbers = quota.limits.numbers().chain(quota.used.numbers());
            numbers.for_each(|number| number.encode(&mut out));
            self.flush_full()?;
        }
        Ok(())
    }

    /// Nothing where no groups share a quota.
    fn shares(&mut self) -> io::Result<()> {
        let tree = self.tree;
        if tree.shares.is_empty() {
            return Ok(());
        }
        self.out().byte(Section::Shares as u8);
        self.out().byte(SHARES_VERSION);
        self.out().number(tree.shares.len() as u64);
        for (directory, share) in tree.shares.iter() {
            let mut bytes = Vec::new();
            share.encode(&mut Writer(&mut bytes));
            let mut out = self.out();
            directory.encode(&mut out);
            out.bytes(&bytes);
            self.flush_full()?;
        }
        Ok(())
    }

    fn retry(&mut self) -> io::Result<()> {
        let tree = self.tree;
        self.out().byte(Section::Retry as u8);
        self.out().number(tree.retry.len());
        for record in tree.retry.iterate() {
            let origin = record.origin();
            let (kind, value) = record.to_parts();
            self.buffer.extend_from_slice(&origin.client.0);
            self.buffer.extend_from_slice(&origin.fingerprint.to_le_bytes());
            let mut out = self.out();
            out.number(u64::from(origin.call.0 as u32));
            out.number(record.time().ms);
            out.byte(kind);
            out.number(value);
            self.flush_full()?;
        }
        Ok(())
    }
}
