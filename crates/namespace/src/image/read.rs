//! An image read back. Nothing is allocated on the word of a count; every name, id and number is checked.

use super::{
    DIRECTORY_LOG, DIRECTORY_LOG_PLACE, FLAG_DIRECTORY, FLAG_OPEN, HAS_SOURCE, ImageError, LEVEL_VERSION,
    MAGIC, Previous, Section, UNKNOWN_VERSION, VERSION, slots_seen::SlotsSeen,
};
use crate::{
    GroupLevel, Namespace, UnknownReplicas,
    acl::{self, Acl},
    codec::{self, Field},
    directory_log::{ENTRY_BYTES_LIMIT, Kept},
    edit::plain,
    quota::{Amounts, Quota},
    retry::Origin,
    retry::Record,
    shares::Share,
    slots::Slots,
    store::block_list::block_digest,
    store::strings::TEXT_BYTES_MAX,
    store::{
        NONE,
        attributes::AttributeValues,
        block_list::{RECORD_LENGTH_LIMIT, Stored},
        children,
        inode::{Inode, TIME_LIMIT_MS},
        open_file::OpenFile,
        strings::Strings,
    },
    together::{ONE_BY_ONE, Together},
    tree::Counters,
    unknown::RANGES_MAX,
    xattr::{self, Space, Xattr, XattrName, Xattrs},
};
use base::{
    Block, BlockId, CallId, Chain, ClientId, Epoch, GenerationStamp, GroupId, InodeId, Sn, Timestamp, TxId,
    UnknownLevel,
    directory_log::{Dix, Entry, Point},
    level::RELEASE_BYTES_MAX,
};
use std::{cmp::Ordering, io, sync::Arc};

impl Namespace {
    /// Reads an image. `source` must end where the image ends, after at most `size` bytes.
    ///
    /// # Errors
    /// [`ImageError::Read`] if `source` failed, [`ImageError::Malformed`] if it ended too early or what the bytes say
    /// contradicts itself, [`ImageError::Version`] or [`ImageError::Level`] if a later release wrote the image.
    pub fn read_image(seed: u64, source: &mut dyn io::Read, size: u64) -> Result<Self> {
        Self::read_image_with(seed, source, size, ONE_BY_ONE)
    }

    /// As [`Namespace::read_image`], for a caller with several threads. The result does not depend on them.
    ///
    /// # Errors
    /// Those of [`Namespace::read_image`].
    pub fn read_image_with(
        seed: u64,
        source: &mut dyn io::Read,
        size: u64,
        together: Together<'_>,
    ) -> Result<Self> {
        let mut image = Image {
            source: Source { source, left: size, buffer: vec![0; 256 * 1024], at: 0, end: 0 },
            section: Section::Counters,
            version: 0,
            ns: Namespace::empty(seed),
            texts: Vec::new(),
            attributes: Vec::new(),
            xattrs: Vec::new(),
            before: Previous::default(),
            quotas: Vec::new(),
            shares: Vec::new(),
            name: Vec::new(),
            slots: SlotsSeen::default(),
            has_moved_files: false,
            is_indexed: false,
        };
        image.read(together)?;
        Ok(image.ns)
    }
}

/// Bytes that come one piece after the other.
struct Source<'a> {
    source: &'a mut dyn io::Read,
    left: u64,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
}

impl Source<'_> {
    pub(super) fn byte(&mut self) -> io::Result<u8> {
        if self.at == self.end {
            self.fill()?;
        }
        self.at += 1;
        Ok(self.buffer[self.at - 1])
    }

    fn fill(&mut self) -> io::Result<()> {
        let length = self.left.min(self.buffer.len() as u64) as usize;
        let read = if length == 0 { 0 } else { self.source.read(&mut self.buffer[..length])? };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        (self.at, self.end) = (0, read);
        Ok(())
    }

    fn is_at_end(&mut self) -> io::Result<bool> {
        if self.at < self.end {
            return Ok(false);
        }
        match self.fill() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(true),
            other => other.map(|()| false),
        }
    }
}

pub(super) struct Image<'a> {
    source: Source<'a>,
    pub(super) section: Section,
    version: u8,
    pub(super) ns: Namespace,
    /// Handles by the numbers that the image gives.
    texts: Vec<Arc<str>>,
    attributes: Vec<u32>,
    xattrs: Vec<(InodeId, Arc<Xattrs>)>,
    before: Previous,
    quotas: Vec<(InodeId, Quota)>,
    pub(super) shares: Vec<(InodeId, Share)>,
    pub(super) name: Vec<u8>,
    slots: SlotsSeen,
    /// A file was read that another group made.
    has_moved_files: bool,
    /// Inodes are found by their ids: those of the tree as soon as all of it was read, later ones at once.
    is_indexed: bool,
}

pub(super) type Result<T> = std::result::Result<T, ImageError>;

impl Image<'_> {
    pub(super) fn malformed(&self, what: impl Into<String>) -> ImageError {
        ImageError::Malformed { section: self.section.name(), what: what.into() }
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.source.byte().map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.malformed("it ends too early"),
            _ => error.into(),
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(bytes)
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        codec::read_number(|| self.byte())?.ok_or_else(|| self.malformed(codec::NUMBER_TOO_LONG))
    }

    pub(super) fn below(&mut self, limit: u64, what: &str) -> Result<u64> {
        let number = self.number()?;
        self.check_below(number, limit, what)
    }

    pub(super) fn check_below(&self, number: u64, limit: u64, what: &str) -> Result<u64> {
        if number < limit {
            return Ok(number);
        }
        Err(self.malformed(format!("{what} {number} is not below {limit}")))
    }

    pub(super) fn signed(&mut self) -> Result<u64> {
        let number = self.number()?;
        Ok(number >> 1 ^ (number & 1).wrapping_neg())
    }

    pub(super) fn section(&mut self, section: Section) -> Result<()> {
        self.section = section;
        match self.byte()? {
            byte if byte == section as u8 => Ok(()),
            byte => Err(self.malformed(format!("section {byte} stands in its place"))),
        }
    }

    fn read(&mut self, together: Together<'_>) -> Result<()> {
        if &self.array::<7>()? != MAGIC {
            return Err(self.malformed("this is no namespace image"));
        }
        self.version = self.byte()?;
        if !(1..=VERSION).contains(&self.version) {
            return Err(ImageError::Version { found: self.version, known: VERSION });
        }
        self.counters()?;
        self.section(Section::Tree)?;
        let root = self.subtree()?;
        if self.ns.tree.inode(root).is_file() || self.ns.tree.inode(root).id() != InodeId::ROOT {
            return Err(self.malformed("it does not begin with the root"));
        }
        self.ns.tree.root = root;
        self.section(Section::Orphans)?;
        for _ in 0..self.number()? {
            let top = self.subtree()?;
            self.ns.tree.orphans.push_back(top);
        }
        if let Err(id) = self.ns.index.fill(&self.ns.tree.inodes, together) {
            return Err(self.malformed(format!("inode {id} is there twice")));
        }
        self.is_indexed = true;
        self.retry()?;
        self.rare()
    }

    /// Reads the sections that few trees have, each at most once and in the order of their numbers, and the end.
    fn rare(&mut self) -> Result<()> {
        let mut before = Section::Retry as u8;
        loop {
            let byte = self.byte()?;
            if byte <= before {
                return Err(self.malformed(format!("section {byte} follows section {before}")));
            }
            before = byte;
            match byte {
                byte if byte == Section::Xattrs as u8 && self.version > 1 => self.xattrs()?,
                byte if byte == Section::Quotas as u8 => self.quotas()?,
                byte if byte == Section::Snapshots as u8 => self.snapshots()?,
                byte if byte == Section::Past as u8 => self.past()?,
                byte if byte == Section::Limits as u8 => self.past_limits()?,
                byte if byte == Section::Unknown as u8 => self.unknown()?,
                byte if byte == Section::Level as u8 => self.level()?,
                byte if byte == Section::DirectoryLog as u8 => self.directory_log()?,
                byte if byte == Section::Exports as u8 => self.exports()?,
                byte if byte == Section::Shares as u8 => self.shares()?,
                byte if byte == Section::ServerOrders as u8 => self.server_orders()?,
                byte if byte == Section::End as u8 => return self.end(),
                byte => return Err(self.malformed(format!("section {byte} is not known"))),
            }
        }
    }

    fn unknown(&mut self) -> Result<()> {
        self.section = Section::Unknown;
        let version = self.byte()?;
        if version != UNKNOWN_VERSION {
            return Err(self.malformed(format!("version {version} is not known; {UNKNOWN_VERSION} is")));
        }
        let held_since = Some(Epoch(self.number()?)).filter(|epoch| *epoch != Epoch(0));
        let mut skipped = Vec::new();
        for _ in 0..self.below(RANGES_MAX as u64 + 1, "the number of ranges")? {
            skipped.push(BlockId(self.number()?)..=BlockId(self.number()?));
        }
        let last = self.ns.tree.counters.last_block;
        let lies_below = skipped.last().is_none_or(|range| *range.end() <= last);
        match UnknownReplicas::read(skipped, held_since).filter(|_| lies_below) {
            Some(unknown) => self.ns.tree.unknown = unknown,
            None => return Err(self.malformed("ranges of skipped ids that no member writes")),
        }
        Ok(())
    }

    fn level(&mut self) -> Result<()> {
        self.section = Section::Level;
        let version = self.byte()?;
        if version != LEVEL_VERSION {
            return Err(self.malformed(format!("version {version} is not known; {LEVEL_VERSION} is")));
        }
        let level = self.number()?;
        let mut release = Vec::new();
        for _ in 0..self.below(RELEASE_BYTES_MAX as u64 + 1, "length of a release's name")? {
            release.push(self.byte()?);
        }
        let since = TxId { epoch: Epoch(self.number()?), sn: Sn(self.number()?) };
        let at = Timestamp::from_ms(self.below(TIME_LIMIT_MS, "time")?);
        let read = String::from_utf8(release).ok();
        match read.and_then(|release| GroupLevel::read(level, &release, since, at)) {
            Some(known) if known.level.is_known() => self.ns.tree.level = known,
            Some(GroupLevel { level, release, .. }) => {
                return Err(UnknownLevel { level, release: release.to_string() }.into());
            }
            None => return Err(self.malformed("a level that no member writes")),
        }
        Ok(())
    }

    fn directory_log(&mut self) -> Result<()> {
        self.section = Section::DirectoryLog;
        let version = self.byte()?;
        if !matches!(version, DIRECTORY_LOG_PLACE | DIRECTORY_LOG) {
            return Err(self.malformed(format!("version {version} is not known; up to {DIRECTORY_LOG} is")));
        }
        let end = self.point()?;
        let is_root = self.ns.group() == GroupId::ROOT;
        if end.dix == Dix(0) || (is_root && version == DIRECTORY_LOG_PLACE) {
            return Err(self.malformed("a place in the directory log that no member writes"));
        }
        self.ns.tree.directory_log.end = end;
        if version == DIRECTORY_LOG_PLACE {
            return Ok(());
        }
        let mut last = GroupId::ROOT;
        for _ in 0..self.below(u64::from(GroupId::LAST.0), "number of groups")? {
            let group = GroupId(self.below(u64::from(GroupId::LAST.0) + 1, "number of a group")? as u32);
            if group <= last {
                return Err(self.malformed(format!("group {group} comes after group {last}")));
            }
            last = group;
            self.ns.tree.directory_log.groups.insert(group);
        }
        if last == GroupId::ROOT {
            return Err(self.malformed("a directory log that no group follows"));
        }
        self.slots(is_root)?;
        self.kept_entries(end, is_root)
    }

    fn slots(&mut self, is_root: bool) -> Result<()> {
        let last_directory = self.below(InodeId::DIRECTORY_COUNT_LIMIT, "counter of directories")?;
        let slots = u64::from(InodeId::SLOTS);
        let mut ranges = Vec::new();
        for _ in 0..self.below(slots, "number of ranges of slots")? {
            let first = self.below(slots, "slot")?;
            let count = self.below(slots + 1, "number of slots")?;
            let group = GroupId(self.below(u64::from(GroupId::LAST.0) + 1, "number of a group")? as u32);
            let end = u16::try_from(first + count).unwrap_or(u16::MAX);
            ranges.push((first as u16..end, group));
        }
        let log = &mut self.ns.tree.directory_log;
        let is_known = |group| group == GroupId::ROOT || log.groups.contains(&group);
        match Slots::of_ranges(&ranges, is_known) {
            Some(slots) if self.slots.are_given(&slots, last_directory, is_root) => log.slots = slots,
            _ => return Err(self.malformed("slots of directories that no member writes")),
        }
        self.ns.tree.counters.last_directory = last_directory;
        Ok(())
    }

    fn point(&mut self) -> Result<Point> {
        Ok(Point { dix: Dix(self.number()?), chain: Chain(self.number()?) })
    }

    fn kept_entries(&mut self, end: Point, is_root: bool) -> Result<()> {
        let base = self.point()?;
        let mut kept = Kept::behind(base, Dix(self.number()?));
        let mut at = base;
        let mut bytes = Vec::new();
        for _ in 0..self.number()? {
            let length = self.below(ENTRY_BYTES_LIMIT, "length of an entry")?;
            bytes.clear();
            for _ in 0..length {
                bytes.push(self.byte()?);
            }
            let mut input = codec::Reader::new(&bytes);
            let decoded = Entry::decode(&mut input).and_then(|entry| input.finish().map(|()| entry));
            let entry = decoded.map_err(|error| self.malformed(format!("an entry behind {at}: {error}")))?;
            if entry.dix != at.dix.next() || entry.previous_chain != at.chain {
                return Err(self.malformed(format!("entry {} does not follow {at}", entry.dix)));
            }
            at = entry.point();
            let takes_snapshot = plain::takes_snapshot(&entry.payload);
            kept.push(entry, takes_snapshot);
        }
        // Another group's tree says where it is, and keeps nothing.
        let is_whole = match is_root {
            true => at == end && kept.visible() < end.dix && kept.is_cut_like_others(),
            false => at == Point::default() && kept.visible() == Dix(0),
        };
        if !is_whole {
            return Err(self.malformed("a directory log that no member writes"));
        }
        self.ns.tree.directory_log.kept = kept;
        Ok(())
    }

    /// Some of the directories may come later, with what only snapshots have.
    fn quotas(&mut self) -> Result<()> {
        self.section = Section::Quotas;
        let mut last = InodeId(0);
        for _ in 0..self.number()? {
            let id = InodeId(self.below(InodeId::LIMIT, "inode id")?);
            if id <= last {
                return Err(self.malformed(format!("inode {id} comes after inode {last}")));
            }
            last = id;
            let (limits, used) = (self.amounts()?, self.amounts()?);
            self.quotas.push((id, Quota { limits, used }));
        }
        Ok(())
    }

    fn attach_quotas(&mut self) -> Result<()> {
        for (id, quota) in std::mem::take(&mut self.quotas) {
            let found = self.ns.handle(id).filter(|handle| self.ns.tree.inode(*handle).is_directory());
            let Some(directory) = found else {
                self.section = Section::Quotas;
                return Err(self.malformed(format!("inode {id} is no directory")));
            };
            self.ns.set_quota(directory, Some(quota));
        }
        Ok(())
    }

    pub(super) fn amounts(&mut self) -> Result<Amounts> {
        let mut amounts =
            Amounts { inodes: self.signed()? as i64, bytes: self.signed()? as i64, ..Amounts::default() };
        for amount in &mut amounts.by_type {
            *amount = self.signed()? as i64;
        }
        Ok(amounts)
    }

    fn counters(&mut self) -> Result<()> {
        self.section(Section::Counters)?;
        self.ns.tree.counters = Counters {
            applied: TxId { epoch: Epoch(self.number()?), sn: Sn(self.number()?) },
            last_directory: 0,
            last_inode: InodeId(self.below(InodeId::LIMIT, "inode id")?),
            last_block: BlockId(self.number()?),
            last_stamp: GenerationStamp(self.below(GenerationStamp::LIMIT, "generation stamp")?),
            time: Timestamp::from_ms(self.below(TIME_LIMIT_MS, "time")?),
            files: 0,
            directories: 0,
        };
        match self.ns.tree.counters.are_possible() {
            true => Ok(()),
            false => Err(self.malformed("counters that no group has")),
        }
    }

    /// Answers the topmost inode, which hangs nowhere.
    pub(super) fn subtree(&mut self) -> Result<u32> {
        let (top, count) = self.inode(NONE, NONE)?;
        // Directories with the last child read and the number of those to come.
        let mut stack = vec![(top, NONE, count)];
        while let Some((directory, last, left)) = stack.last_mut() {
            if *left == 0 {
                stack.pop();
                continue;
            }
            *left -= 1;
            let (child, count) = {
                let (directory, last) = (*directory, *last);
                self.inode(directory, last)?
            };
            *last = child;
            if count > 0 {
                stack.push((child, NONE, count));
            }
        }
        Ok(top)
    }

    /// Reads an inode into its directory, behind `last`; answers how many children it will have.
    pub(super) fn inode(&mut self, parent: u32, last: u32) -> Result<(u32, u32)> {
        let flags = self.byte()?;
        let is_directory = flags & FLAG_DIRECTORY != 0;
        let is_open = flags & FLAG_OPEN != 0;
        if flags & !(FLAG_DIRECTORY | FLAG_OPEN) != 0 || (is_directory && is_open) {
            return Err(self.malformed(format!("an inode has the flags {flags}")));
        }
        self.name(parent, last)?;
        let id = self.before.inode.wrapping_add(self.signed()?);
        let modified = self.before.modified.wrapping_add(self.signed()?);
        if !self.ns.tree.counters.knows_inode(InodeId(id), is_directory) {
            return Err(self.malformed(format!("inode id {id} was never given out")));
        }
        self.check_below(modified, TIME_LIMIT_MS, "time")?;
        (self.before.inode, self.before.modified) = (id, modified);
        let (id, modified) = (InodeId(id), Timestamp::from_ms(modified));
        self.has_moved_files |= !is_directory && !self.ns.tree.counters.is_own(id);
        self.slots.note(id);
        if self.is_indexed && self.ns.handle(id).is_some() {
            return Err(self.malformed(format!("inode {id} is there twice")));
        }
        let attributes = self.attributes()?;
        let mut children_count = 0;
        let mut inode = if is_directory {
            children_count = self.below(u64::from(NONE), "number of children")? as u32;
            Inode::directory(id, attributes, modified)
        } else {
            let accessed = modified.ms.wrapping_add(self.signed()?);
            self.check_below(accessed, TIME_LIMIT_MS, "time")?;
            let mut inode = Inode::file(id, attributes, modified, Timestamp::from_ms(accessed));
            inode.content = self.blocks(id, is_open)?;
            if is_open {
                inode.content = self.open_file(inode.content)?;
                inode.set_open(true);
            }
            inode
        };
        inode.parent = parent;
        let handle = self.enter(inode, parent);
        if is_open {
            self.ns.derive_open(handle);
        }
        Ok((handle, children_count))
    }

    /// The name goes behind the last one, so that no comparison is needed to find its place.
    fn enter(&mut self, inode: Inode, parent: u32) -> u32 {
        let handle = match self.is_indexed {
            true => self.ns.insert_inode(inode, &self.name),
            false => self.ns.insert_unindexed(inode, &self.name),
        };
        if parent != NONE {
            let tree = &mut self.ns.tree;
            let record = tree.inodes.get_mut(parent);
            record.set_children_count(record.children_count() + 1);
            record.content = children::insert(&mut tree.children, record.content, handle, |_| Ordering::Less);
        }
        handle
    }

    fn name(&mut self, parent: u32, last: u32) -> Result<()> {
        let length = self.below(256, "length of a name")?;
        self.name.clear();
        for _ in 0..length {
            let byte = self.byte()?;
            self.name.push(byte);
        }
        let is_text = std::str::from_utf8(&self.name).is_ok();
        let is_clean = !self.name.contains(&b'/') && !self.name.contains(&0);
        if !is_text || !is_clean || (parent != NONE && self.name.is_empty()) {
            return Err(self.malformed(format!("{:?} is no name", String::from_utf8_lossy(&self.name))));
        }
        if last != NONE && self.ns.tree.name_of(last) >= &self.name[..] {
            return Err(self.malformed(format!(
                "{:?} comes after {:?} in one directory",
                String::from_utf8_lossy(&self.name),
                String::from_utf8_lossy(self.ns.tree.name_of(last))
            )));
        }
        Ok(())
    }

    fn text(&mut self) -> Result<Arc<str>> {
        let number = self.below(self.texts.len() as u64 + 1, "number of a text")? as usize;
        if number < self.texts.len() {
            return Ok(self.texts[number].clone());
        }
        let text = self.new_text()?;
        self.texts.push(text);
        Ok(self.texts[number].clone())
    }

    fn new_text(&mut self) -> Result<Arc<str>> {
        let length = self.below(TEXT_BYTES_MAX as u64 + 1, "length of a text")?;
        let mut bytes = Vec::new();
        for _ in 0..length {
            bytes.push(self.byte()?);
        }
        let text = String::from_utf8(bytes).map_err(|_| self.malformed("a text is not UTF-8"))?;
        Ok(text.into())
    }

    pub(super) fn attributes(&mut self) -> Result<u32> {
        let number = self.below(self.attributes.len() as u64 + 1, "number of attributes")? as usize;
        if number < self.attributes.len() {
            let handle = self.attributes[number];
            self.ns.acquire_attributes_again(handle);
            return Ok(handle);
        }
        let (owner, group) = (self.text()?, self.text()?);
        let (mode, replication) = (self.below(1 << 12, "mode")?, self.below(1 << 16, "replication")?);
        let (block_size, storage_policy) = (self.number()?, self.byte()?);
        let acl = if self.version == 1 { None } else { self.acl()? };
        let values = AttributeValues {
            owner: &owner,
            group: &group,
            mode: mode as u16,
            replication: replication as u16,
            block_size,
            storage_policy,
            acl: acl.as_ref(),
        };
        let handle = self.ns.acquire_attributes(values);
        self.attributes.push(handle);
        Ok(handle)
    }

    fn acl(&mut self) -> Result<Option<Arc<Acl>>> {
        let count = self.below(2 * acl::ENTRIES_MAX as u64 + 1, "number of ACL entries")?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let byte = self.byte()?;
            let Some((mut entry, is_named)) = acl::from_byte(byte) else {
                return Err(self.malformed(format!("an ACL entry begins with {byte}")));
            };
            if is_named {
                entry.name = Some(self.new_text()?);
            }
            entries.push(entry);
        }
        if entries.is_empty() {
            return Ok(None);
        }
        match Acl::new(entries) {
            Some(acl) => Ok(Some(Arc::new(acl))),
            None => Err(self.malformed("entries that make no ACL")),
        }
    }

    /// Answers the last block.
    fn blocks(&mut self, file: InodeId, is_open: bool) -> Result<u32> {
        let mut last = NONE;
        let count = self.number()?;
        for at in 0..count {
            let stored = self.block()?;
            let may_be_open = is_open && at + 1 == count;
            if !stored.committed && !may_be_open {
                return Err(
                    self.malformed(format!("block {} is not committed, and not the last", stored.block.id))
                );
            }
            last = self.ns.tree.blocks.append(last, stored);
            self.ns.tree.sum = self.ns.tree.sum.wrapping_add(block_digest(file, stored));
        }
        Ok(last)
    }

    pub(super) fn block(&mut self) -> Result<Stored> {
        let id = self.before.block.wrapping_add(self.signed()?);
        let stamp = self.before.stamp.wrapping_add(self.signed()?);
        self.check_below(stamp, GenerationStamp::LIMIT, "generation stamp")?;
        (self.before.block, self.before.stamp) = (id, stamp);
        let length = self.number()?;
        let committed = length & 1 == 1;
        let length = self.check_below(length >> 1, RECORD_LENGTH_LIMIT, "length of a block")?;
        let (id, generation_stamp) = (BlockId(id), GenerationStamp(stamp));
        Ok(Stored { block: Block { id, generation_stamp, length }, committed })
    }

    fn open_file(&mut self, last_block: u32) -> Result<u32> {
        let (holder, machine) = (self.text()?, self.text()?);
        let recovery = self.below(GenerationStamp::LIMIT, "generation stamp")?;
        let (mut truncation, mut source) = (None, None);
        if self.version >= 2 {
            let length = self.number()?;
            let has_source = length & HAS_SOURCE != 0;
            let length = self.check_below(length & !HAS_SOURCE, RECORD_LENGTH_LIMIT, "length of a block")?;
            truncation = (length > 0).then_some(length);
            if has_source {
                let stored = self.block()?;
                if length == 0 || length >= stored.block.length {
                    return Err(self.malformed("a block is copied that is too short"));
                }
                source = Some(stored.block);
            }
        }
        let is_last_open = last_block != NONE && !self.ns.tree.blocks.stored(last_block).committed;
        if truncation.is_some() && !(is_last_open && recovery > 0) {
            return Err(self.malformed("a file is being truncated that has no block to cut"));
        }
        let strings: &mut Strings = &mut self.ns.tree.strings;
        let open = OpenFile {
            last_block,
            holder: self.ns.strings.acquire(strings, &holder),
            machine: self.ns.strings.acquire(strings, &machine),
            recovery,
            truncation,
            source,
        };
        Ok(self.ns.tree.open_files.insert(open))
    }

    fn retry(&mut self) -> Result<()> {
        self.section(Section::Retry)?;
        for _ in 0..self.number()? {
            let client = ClientId(self.array()?);
            let fingerprint = u64::from_le_bytes(self.array()?);
            let call = CallId(self.below(1 << 32, "call id")? as u32 as i32);
            let time = Timestamp::from_ms(self.number()?);
            let origin = Origin { client, call, fingerprint };
            let (kind, value) = (self.byte()?, self.number()?);
            let Some(record) = Record::from_parts(&origin, time, kind, value) else {
                return Err(self.malformed(format!("an answer of kind {kind}")));
            };
            self.ns.retry.insert(&mut self.ns.tree.retry, record);
        }
        Ok(())
    }

    fn xattrs(&mut self) -> Result<()> {
        self.section = Section::Xattrs;
        let mut inode = 0u64;
        for at in 0..self.number()? {
            let step = self.number()?;
            inode = inode.wrapping_add(step);
            if at > 0 && step == 0 {
                return Err(self.malformed(format!("inode {inode} is there twice")));
            }
            let Some(xattrs) = self.xattr_list()? else {
                return Err(self.malformed(format!("inode {inode} has no attributes")));
            };
            // Some of the inodes come later, with the snapshots that see them.
            self.xattrs.push((InodeId(inode), xattrs));
        }
        Ok(())
    }

    pub(super) fn xattr_list(&mut self) -> Result<Option<Arc<Xattrs>>> {
        let mut list = Vec::new();
        for _ in 0..self.number()? {
            list.push(self.xattr()?);
        }
        if list.is_empty() {
            return Ok(None);
        }
        match Xattrs::new(list) {
            Some(xattrs) => Ok(Some(Arc::new(xattrs))),
            None => Err(self.malformed("extended attributes are not in order")),
        }
    }

    /// Gives the attributes that were read to their inodes, once all of these are there.
    fn hand_out_xattrs(&mut self) -> Result<()> {
        self.section = Section::Xattrs;
        for (inode, xattrs) in std::mem::take(&mut self.xattrs) {
            match self.ns.handle(inode) {
                Some(handle) => self.ns.set_xattrs(handle, Some(xattrs)),
                None => return Err(self.malformed(format!("there is no inode {inode}"))),
            }
        }
        Ok(())
    }

    fn xattr(&mut self) -> Result<Xattr> {
        let space = self.below(Space::ALL.len() as u64, "namespace of attributes")?;
        let name = String::from_utf8(self.xattr_bytes("length of an attribute's name")?);
        let name = name.map_err(|_| self.malformed("an attribute's name is not UTF-8"))?;
        let name = XattrName { space: Space::ALL[space as usize], name: name.into() };
        Ok(Xattr { name, value: self.xattr_bytes("length of an attribute's value")?.into() })
    }

    fn xattr_bytes(&mut self, what: &str) -> Result<Vec<u8>> {
        let length = self.below(xattr::BYTES_MAX + 1, what)?;
        let mut bytes = Vec::new();
        for _ in 0..length {
            bytes.push(self.byte()?);
        }
        Ok(bytes)
    }

    fn end(&mut self) -> Result<()> {
        self.attach_quotas()?;
        self.attach_shares()?;
        self.hand_out_xattrs()?;
        self.section = Section::End;
        if !self.slots.are_empty() && !self.ns.tree.directory_log.slots.are_used() {
            return Err(self.malformed("directories have slots, and no group has any"));
        }
        if self.has_moved_files && self.ns.tree.directory_log.is_unused() {
            return Err(self.malformed("files of other groups, and there is one group"));
        }
        let digest = u64::from_le_bytes(self.array()?);
        if !self.source.is_at_end()? {
            return Err(self.malformed("bytes follow"));
        }
        if digest != self.ns.digest() {
            return Err(self.malformed("the digest of what was read is another"));
        }
        Ok(())
    }
}
