//! The status of a file or directory, as callers get it.

use base::{Block, InodeId, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Directory,
    File,
}

/// Everything that Hadoop's `HdfsFileStatusProto` carries, borrowed from the tree where it is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStatus<'ns> {
    pub id: InodeId,
    pub kind: FileKind,
    /// The last component; empty for the root. `getFileInfo` of HDFS sends an empty path, a listing this name.
    pub name: &'ns [u8],
    /// Bytes; 0 for a directory.
    pub length: u64,
    /// The nine permission bits and the sticky bit (`0o1000`).
    pub permission: u16,
    pub owner: &'ns str,
    pub group: &'ns str,
    pub modified: Timestamp,
    pub accessed: Timestamp,
    /// 0 for a directory.
    pub replication: u16,
    /// The preferred block size; 0 for a directory.
    pub block_size: u64,
    /// Children of a directory; 0 for a file.
    pub children_count: u32,
    /// Its own, or that of the closest ancestor that has one; 0: nobody has.
    pub storage_policy: u8,
    /// Whether snapshots of the directory may be made.
    pub snapshottable: bool,
    /// Whether there is an ACL beside the permission bits.
    pub has_acl: bool,
    /// Whether the file is open for writing.
    pub under_construction: bool,
}

impl FileStatus<'_> {
    pub fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }
}

/// A block within its file; where its replicas are, `blocks` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBlock {
    pub block: Block,
    /// Where in the file the block begins.
    pub offset: u64,
    /// Whether the length is final. Only the last block of a file under construction may not be committed.
    pub committed: bool,
}

/// Hadoop's `LocatedBlocks`, without locations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBlocks {
    pub inode: InodeId,
    /// Bytes of the file, an uncommitted last block included.
    pub length: u64,
    pub under_construction: bool,
    /// The blocks that overlap the range asked for.
    pub blocks: Vec<FileBlock>,
    /// The last block of the file, whether or not in the range; `None` for a file without blocks.
    pub last: Option<FileBlock>,
    /// The blocks are those of a snapshot: the last one counts as complete, whatever state the file is in.
    pub is_past: bool,
    /// The access time is older than the precision allows: plan [`crate::ops::set_times::plan_access`].
    pub wants_access_time: bool,
}
