//! The mode and the list that a new inode gets from the default list of the directory that it enters.

use super::{
    Acl, AclEntry, Kind, Scope,
    storage::{Stored, split},
};
use crate::access::MODE_MASK;
use base::FsResult;

/// The permission that a client asks for a new inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modes {
    /// The mode after the client's umask.
    pub masked: u16,
    /// The mode before the umask; a client that knows of inherited lists sends it.
    pub unmasked: Option<u16>,
}

impl Modes {
    /// The modes to use: `unmasked` counts only if `dfs.namenode.posix.acl.inheritance.enabled` is on.
    pub fn new(masked: u16, unmasked: Option<u16>, posix_inheritance: bool) -> Self {
        let unmasked = unmasked.filter(|_| posix_inheritance).map(|mode| mode & MODE_MASK);
        Self { masked: masked & MODE_MASK, unmasked }
    }

    /// The modes for the missing directories above: their maker may enter and write them, and none is sticky. Only
    /// the masked mode changes, so where a list is inherited, it may still lock its maker out, as in HDFS.
    pub fn of_ancestor(self) -> Self {
        Self { masked: self.masked & 0o777 | 0o300, unmasked: self.unmasked }
    }
}

/// Bits and list of a child of a directory with this list. Without default entries the umask has its effect;
/// with them they take its place, unless the client sent nothing else than what the umask left.
pub(crate) fn inherit(parent: Option<&Acl>, modes: Modes, is_directory: bool) -> FsResult<Stored> {
    let default = parent.map_or(&[][..], Acl::default_entries);
    if default.is_empty() {
        return Ok((modes.masked, None));
    }
    let mode = modes.unmasked.unwrap_or(modes.masked);
    let bits = |shift: u16| (mode >> shift) as u8 & 7;
    let is_minimal = default.len() == 3;
    let access = default.iter().map(|entry| {
        // The bits asked for take away from owner, others and whatever stands for the group.
        let allowed = match entry.kind {
            Kind::User if entry.name.is_none() => bits(6),
            Kind::Group if is_minimal => bits(3),
            Kind::Mask => bits(3),
            Kind::Other => bits(0),
            _ => 7,
        };
        AclEntry { scope: Scope::Access, permission: entry.permission & allowed, ..entry.clone() }
    });
    let handed_on = if is_directory { default } else { &[][..] };
    let whole: Vec<AclEntry> = access.chain(handed_on.iter().cloned()).collect();
    split(&whole, mode, is_directory, "")
}
