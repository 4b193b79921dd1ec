//! A whole list, as clients know it, in permission bits and what goes beside them, and back.

use super::{Acl, AclEntry, Kind, Scope};
use crate::access::STICKY;
use base::{FsError, FsResult};
use std::sync::Arc;

/// Bits and what is beside them.
pub(crate) type Stored = (u16, Option<Arc<Acl>>);

fn bits(mode: u16, shift: u16) -> u8 {
    (mode >> shift) as u8 & 7
}

fn mode_of(owner: &AclEntry, group: &AclEntry, others: &AclEntry, sticky: u16) -> u16 {
    u16::from(owner.permission) << 6
        | u16::from(group.permission) << 3
        | u16::from(others.permission)
        | sticky
}

/// The whole list of an inode: three entries at least, in the order of keys.
pub(crate) fn whole(mode: u16, acl: Option<&Acl>) -> Vec<AclEntry> {
    let (access, default) = acl.map_or((&[][..], &[][..]), |acl| (acl.access(), acl.default_entries()));
    let mut entries = vec![AclEntry::unnamed(Scope::Access, Kind::User, bits(mode, 6))];
    if access.is_empty() {
        entries.push(AclEntry::unnamed(Scope::Access, Kind::Group, bits(mode, 3)));
    } else {
        entries.extend_from_slice(access);
        entries.push(AclEntry::unnamed(Scope::Access, Kind::Mask, bits(mode, 3)));
    }
    entries.push(AclEntry::unnamed(Scope::Access, Kind::Other, bits(mode, 0)));
    entries.extend_from_slice(default);
    entries
}

/// The bits and the rest of a whole, valid list. `mode` gives the sticky bit.
///
/// # Errors
/// [`FsError::Acl`] if the list has default entries and is not a directory's.
pub(crate) fn split(whole: &[AclEntry], mode: u16, is_directory: bool, path: &str) -> FsResult<Stored> {
    let access_count = whole.iter().take_while(|entry| entry.scope == Scope::Access).count();
    let (access, default) = whole.split_at(access_count);
    if !default.is_empty() && !is_directory {
        return Err(FsError::Acl(format!(
            "Invalid ACL: only directories may have a default ACL. Path: {path}"
        )));
    }
    let beside = if access.len() == 3 { &[][..] } else { &access[1..access.len() - 2] };
    let entries: Vec<AclEntry> = beside.iter().chain(default).cloned().collect();
    let (owner, others) = (&access[0], &access[access.len() - 1]);
    let mode = mode_of(owner, &access[access.len() - 2], others, mode & STICKY);
    if entries.is_empty() {
        return Ok((mode, None));
    }
    let acl = Acl::new(entries).expect("what is beside the bits of a valid list is an ACL");
    Ok((mode, Some(Arc::new(acl))))
}

/// Without its list an inode's group gets back what its own entry granted, rather than the mask.
pub(crate) fn without_acl(mode: u16, acl: &Acl) -> u16 {
    let group = acl.access().iter().find(|entry| entry.key() == (Scope::Access, Kind::Group, None));
    group.map_or(mode, |group| mode & !0o070 | u16::from(group.permission) << 3)
}
