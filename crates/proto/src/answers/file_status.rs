//! `HdfsFileStatusProto`: what is said of a file or directory.

use super::{Put, Writer};
use crate::hdfs::hdfs_file_status_proto::{FileType, Flags};

/// ```text
///  1 fileType      2 path          3 length       4 permission { 1 perm }   5 owner       6 group
///  7 modification_time             8 access_time  10 block_replication      11 blocksize  12 locations
/// 13 fileId       14 childrenNum  16 storagePolicy                          18 flags
/// ```
///
/// Never sent: 9 symlink, 15 fileEncryptionInfo, 17 ecPolicy, 19 namespace.
#[derive(Clone, Copy, Debug)]
pub struct FileStatus<'a> {
    pub is_directory: bool,
    pub path: &'a [u8],
    pub length: u64,
    pub permission: u16,
    pub owner: &'a str,
    pub group: &'a str,
    /// Times in milliseconds.
    pub modified: u64,
    pub accessed: u64,
    pub replication: u16,
    pub block_size: u64,
    pub file_id: u64,
    pub children: u32,
    pub storage_policy: u8,
    pub has_acl: bool,
    pub snapshot_enabled: bool,
}

impl FileStatus<'_> {
    /// Bytes of a usual one beside its texts.
    const NUMBERS: usize = 58;

    #[inline]
    fn put_with(&self, out: &mut Writer, locations: impl FnOnce(&mut Writer)) {
        let file_type = if self.is_directory { FileType::IsDir } else { FileType::IsFile };
        let flag = |is_set: bool, flag: Flags| if is_set { flag as u64 } else { 0 };
        out.uint(1, file_type as u64);
        out.bytes(2, self.path);
        out.uint(3, self.length);
        out.nested(4, 3, |out| out.uint(1, self.permission.into()));
        out.text(5, self.owner);
        out.text(6, self.group);
        out.uint(7, self.modified);
        out.uint(8, self.accessed);
        out.uint(10, self.replication.into());
        out.uint(11, self.block_size);
        locations(out);
        out.uint(13, self.file_id);
        out.int(14, self.children as i32);
        out.uint(16, self.storage_policy.into());
        out.uint(18, flag(self.has_acl, Flags::HasAcl) | flag(self.snapshot_enabled, Flags::SnapshotEnabled));
    }
}

impl Put for FileStatus<'_> {
    #[inline]
    fn about(&self) -> usize {
        Self::NUMBERS + self.path.len() + self.owner.len() + self.group.len()
    }

    #[inline]
    fn put(self, out: &mut Writer) {
        self.put_with(out, |_| {});
    }
}

/// A status and where the blocks of the file are.
pub struct WithLocations<'a, L> {
    pub status: FileStatus<'a>,
    pub locations: Option<L>,
}

impl<L: Put> Put for WithLocations<'_, L> {
    #[inline]
    fn about(&self) -> usize {
        self.status.about()
            + self.locations.as_ref().map_or(0, |locations| Writer::FIELD_MAX + locations.about())
    }

    #[inline]
    fn put(self, out: &mut Writer) {
        self.status.put_with(out, |out| {
            if let Some(locations) = self.locations {
                out.message(12, locations);
            }
        });
    }
}
