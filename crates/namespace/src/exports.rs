//! Files that live in another group than the one that made them, or that has their blocks.
//!
//! A file that moves to another home keeps its id and its blocks: the blocks stay in the pool in which they were written. The group that it leaves keeps an
//! *export* of it: an inode outside of the tree, with those blocks of the file that are in the group's own pool. So the group's data servers, images and
//! restarts know what these blocks are for, and replicas are looked after as before. In the file's new home these are *foreign* blocks: they
//! stand in the file, and the home's own block map does not know them.
//!
//! The group that made a file always has an export of it while the file lives elsewhere, even without blocks: who knows the file by its id alone asks there.
//! Every export names the group in which the file lives now. Exports end by orders of that group: see [`crate::outbox`].

use crate::{
    acl::Acl,
    codec::{DecodeError, Field, Reader, Writer},
    digest::Digester,
    quota::{Amounts, replicated},
    xattr::{Xattr, Xattrs},
};
use base::{Block, GroupId, InodeId, InodeOrigin, Timestamp};
use std::sync::Arc;

/// A file with more blocks than this stays in its home: its image would not fit into an entry of the directory log.
pub const BLOCKS_MAX: usize = 1_000_000;

/// What is left of a file that lives elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Export {
    /// The group in which the file lives.
    pub to: GroupId,
    /// Its inode, which hangs nowhere.
    pub handle: u32,
}

/// A whole file, as its home has it. It is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileImage {
    pub inode: InodeId,
    pub owner: Box<str>,
    pub group: Box<str>,
    pub mode: u16,
    pub replication: u16,
    pub block_size: u64,
    pub storage_policy: u8,
    pub acl: Option<Arc<Acl>>,
    pub xattrs: Vec<Xattr>,
    pub modified: Timestamp,
    pub accessed: Timestamp,
    pub blocks: Vec<Block>,
}

impl FileImage {
    /// What the file counts for where this policy is in force.
    pub(crate) fn amounts(&self, policy: u8) -> Amounts {
        let bytes = self.blocks.iter().map(|block| block.length as i64).fold(0, i64::wrapping_add);
        Amounts { inodes: 1, ..replicated(bytes, self.replication, policy) }
    }
}

impl Field for FileImage {
    fn encode(&self, out: &mut Writer<'_>) {
        self.inode.encode(out);
        self.owner.encode(out);
        self.group.encode(out);
        self.mode.encode(out);
        self.replication.encode(out);
        self.block_size.encode(out);
        self.storage_policy.encode(out);
        self.acl.encode(out);
        self.xattrs.encode(out);
        self.modified.encode(out);
        self.accessed.encode(out);
        self.blocks.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let image = Self {
            inode: Field::decode(input)?,
            owner: Field::decode(input)?,
            group: Field::decode(input)?,
            mode: input.number_below(1 << 12, "a mode of more than 12 bits")? as u16,
            replication: Field::decode(input)?,
            block_size: Field::decode(input)?,
            storage_policy: Field::decode(input)?,
            acl: Field::decode(input)?,
            xattrs: Field::decode(input)?,
            modified: Field::decode(input)?,
            accessed: Field::decode(input)?,
            blocks: Field::decode(input)?,
        };
        let is_sound = matches!(image.inode.origin(), InodeOrigin::Group { .. })
            && image.blocks.len() <= BLOCKS_MAX
            && (image.xattrs.is_empty() || Xattrs::new(image.xattrs.clone()).is_some());
        match is_sound {
            true => Ok(image),
            false => Err(input.malformed("a file that no group has")),
        }
    }
}

pub(crate) fn export_digest(file: InodeId, group: GroupId) -> u64 {
    let mut digester = Digester::new(b'x');
    digester.number(file.0);
    digester.number(group.0.into());
    digester.finish()
}
