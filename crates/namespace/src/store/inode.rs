//! The record of an inode: 36 bytes, the same for files and directories.

use super::arena::{NONE, Slot};
use base::{InodeId, Timestamp};

/// All times are below it.
pub(crate) const TIME_LIMIT_MS: u64 = 1 << 48;

const DIRECTORY: u8 = 1;
const OPEN: u8 = 2;
/// The tree's table has extended attributes of the inode.
pub(crate) const XATTRS: u8 = 4;
/// Snapshots of the directory may be made; see [`crate::snapshots`].
pub(crate) const SNAPSHOTTABLE: u8 = 16;
/// Past entries name the inode.
pub(crate) const NAMED: u8 = 32;
/// The birth of the inode's entry is noted.
pub(crate) const BORN: u8 = 64;
const QUOTA: u8 = 8;

/// ```text
/// id u48 | name length u8 | flags u8 | parent u32 | name u32 | attributes u32 | content u32
/// | modified u48 | accessed u48 (file) or children count u32 (directory)
/// ```
#[derive(Clone)]
pub(crate) struct Inode {
    id_low: u32,
    id_high: u16,
    name_length: u8,
    flags: u8,
    /// `NONE` for the root, and for a deleted subtree that waits to be taken apart.
    pub parent: u32,
    name: u32,
    pub attributes: u32,
    /// Directory: the root of the tree of its children. Closed file: its last block. Open file: its
    /// [`super::open_file::OpenFile`].
    pub content: u32,
    modified: [u16; 3],
    accessed: [u16; 3],
}

impl Default for Inode {
    fn default() -> Self {
        Self {
            id_low: 0,
            id_high: 0,
            name_length: 0,
            flags: 0,
            parent: NONE,
            name: NONE,
            attributes: NONE,
            content: NONE,
            modified: [0; 3],
            accessed: [0; 3],
        }
    }
}

impl Slot for Inode {
    fn next_free(&self) -> u32 {
        self.parent
    }
    fn set_next_free(&mut self, next: u32) {
        self.parent = next;
    }
}

fn pack(value: u64) -> [u16; 3] {
    let value = value.min(TIME_LIMIT_MS - 1);
    [value as u16, (value >> 16) as u16, (value >> 32) as u16]
}

fn unpack(value: [u16; 3]) -> u64 {
    u64::from(value[0]) | u64::from(value[1]) << 16 | u64::from(value[2]) << 32
}

impl Inode {
    pub fn directory(id: InodeId, attributes: u32, modified: Timestamp) -> Self {
        Self { flags: DIRECTORY, attributes, ..Self::file(id, attributes, modified, Timestamp::default()) }
    }

    pub fn file(id: InodeId, attributes: u32, modified: Timestamp, accessed: Timestamp) -> Self {
        assert!(id.0 < InodeId::LIMIT, "inode id {id} needs more than 48 bits");
        Self {
            id_low: id.0 as u32,
            id_high: (id.0 >> 32) as u16,
            attributes,
            modified: pack(modified.ms),
            accessed: pack(accessed.ms),
            ..Self::default()
        }
    }

    #[inline]
    pub fn id(&self) -> InodeId {
        InodeId(u64::from(self.id_low) | u64::from(self.id_high) << 32)
    }

    #[inline]
    pub fn is_directory(&self) -> bool {
        self.flags & DIRECTORY != 0
    }

    pub fn is_file(&self) -> bool {
        !self.is_directory()
    }

    /// A file that is being written.
    pub fn is_open(&self) -> bool {
        self.flags & OPEN != 0
    }

    pub fn set_open(&mut self, open: bool) {
        self.set_flag(OPEN, open);
    }

    /// Whether the side table of this flag has something about the inode.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub fn set_flag(&mut self, flag: u8, set: bool) {
        self.flags = if set { self.flags | flag } else { self.flags & !flag };
    }

    /// A directory that has a quota, which is in the table of quotas.
    #[inline]
    pub fn has_quota(&self) -> bool {
        self.has(QUOTA)
    }

    pub fn set_has_quota(&mut self, has_quota: bool) {
        self.set_flag(QUOTA, has_quota);
    }

    /// Handle and length in the heap of names.
    #[inline]
    pub fn name(&self) -> (u32, usize) {
        (self.name, self.name_length as usize)
    }

    pub fn set_name(&mut self, handle: u32, length: usize) {
        assert!(length <= 255, "a name of {length} bytes");
        self.name = handle;
        self.name_length = length as u8;
    }

    pub fn modified(&self) -> Timestamp {
        Timestamp::from_ms(unpack(self.modified))
    }

    pub fn set_modified(&mut self, time: Timestamp) {
        self.modified = pack(time.ms);
    }

    /// 0 for a directory: HDFS keeps no access times for them either, unless told to.
    pub fn accessed(&self) -> Timestamp {
        if self.is_directory() { Timestamp::default() } else { Timestamp::from_ms(unpack(self.accessed)) }
    }

    pub fn set_accessed(&mut self, time: Timestamp) {
        assert!(self.is_file(), "a directory keeps no access time");
        self.accessed = pack(time.ms);
    }

    pub fn children_count(&self) -> u32 {
        if self.is_directory() { unpack(self.accessed) as u32 } else { 0 }
    }

    pub fn set_children_count(&mut self, count: u32) {
        assert!(self.is_directory(), "a file has no children");
        self.accessed = pack(u64::from(count));
    }
}

const _: () = assert!(size_of::<Inode>() == 36);
