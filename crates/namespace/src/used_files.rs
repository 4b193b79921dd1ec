//! Which files are in use: a balancer moves their blocks last.

use crate::namespace::Namespace;
use base::{InodeId, Timestamp};

impl Namespace {
    /// Whether the file is being written, or was written or read after `time`. False for a file that is gone.
    pub fn is_used_since(&self, file: InodeId, time: Timestamp) -> bool {
        let Some(handle) = self.handle(file) else { return false };
        let inode = self.tree.inode(handle);
        inode.is_file() && (inode.is_open() || inode.modified() > time || inode.accessed() > time)
    }
}
