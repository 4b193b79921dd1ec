//! Access control lists beside the permission bits.
//!
//! An inode with a list keeps here what its nine bits cannot say: the named users and groups with the owning
//! group's own entry, and a directory's default entries, which its new children inherit. The owner's entry,
//! the mask and the entry of others stay in the bits, where the group's bits hold the mask then. HDFS splits
//! a list in the same way (`AclStorage`).

pub(crate) mod inherit;
pub(crate) mod storage;
pub(crate) mod transform;

use crate::{
    codec::{DecodeError, Field, Reader, Writer},
    store::strings::TEXT_BYTES_MAX,
};
use std::{fmt, sync::Arc};

/// Entries of one scope; the same in HDFS, where it cannot be configured either.
pub(crate) const ENTRIES_MAX: usize = 32;

/// Whether an entry governs access to the inode itself, or is inherited by children that will be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Scope {
    Access = 0,
    Default = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    User = 0,
    Group = 1,
    Mask = 2,
    Other = 3,
}

/// An entry of an access control list. The order of entries is that of their keys: scope, kind, name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclEntry {
    pub scope: Scope,
    pub kind: Kind,
    /// None: the owner or the owning group, and always so for a mask and for others. Never empty.
    pub name: Option<Arc<str>>,
    /// Bits: 4 read, 2 write, 1 execute.
    pub permission: u8,
}

impl AclEntry {
    pub(crate) fn new(scope: Scope, kind: Kind, name: Option<Arc<str>>, permission: u8) -> Self {
        Self { scope, kind, name, permission: permission & 7 }
    }

    pub(crate) fn unnamed(scope: Scope, kind: Kind, permission: u8) -> Self {
        Self::new(scope, kind, None, permission)
    }

    /// The key of an entry. No list has two entries of one key.
    pub(crate) fn key(&self) -> (Scope, Kind, Option<&str>) {
        (self.scope, self.kind, self.name.as_deref())
    }
}

/// Hadoop's `AclEntry` prints itself like this, and error texts quote it.
impl fmt::Display for AclEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scope == Scope::Default {
            f.write_str("default:")?;
        }
        let kind = match self.kind {
            Kind::User => "user",
            Kind::Group => "group",
            Kind::Mask => "mask",
            Kind::Other => "other",
        };
        let bit = |mask: u8, letter: char| if self.permission & mask != 0 { letter } else { '-' };
        let name = self.name.as_deref().unwrap_or_default();
        write!(f, "{kind}:{name}:{}{}{}", bit(4, 'r'), bit(2, 'w'), bit(1, 'x'))
    }
}

/// The entries that an inode has beside its permission bits. The list is never empty, and sorted by key.
///
/// Access entries: the owning group's with any named ones, or none: then there is no mask. Default entries: a
/// whole list with owner, group and others, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    entries: Vec<AclEntry>,
    /// The number of access entries; they come first.
    access_count: usize,
}

impl Acl {
    /// `None` unless the entries are what the type promises.
    pub(crate) fn new(entries: Vec<AclEntry>) -> Option<Self> {
        let access_count = entries.iter().take_while(|entry| entry.scope == Scope::Access).count();
        let acl = Self { entries, access_count };
        let (access, default) = (acl.access(), acl.default_entries());
        let is_ordered = acl.entries.is_sorted_by(|one, two| one.key() < two.key());
        let has = |entries: &[AclEntry], scope, kind| {
            entries.iter().any(|entry| entry.key() == (scope, kind, None))
        };
        let are_names_fit = acl.entries.iter().all(|entry| match (&entry.name, entry.kind) {
            (None, _) => true,
            (Some(name), Kind::User | Kind::Group) => !name.is_empty() && name.len() <= TEXT_BYTES_MAX,
            (Some(_), _) => false,
        });
        let is_access_fit = access.is_empty()
            || has(access, Scope::Access, Kind::Group)
                && access.iter().all(|entry| {
                    entry.kind == Kind::Group || entry.kind == Kind::User && entry.name.is_some()
                });
        let is_default_fit = default.is_empty()
            || [Kind::User, Kind::Group, Kind::Other]
                .into_iter()
                .all(|kind| has(default, Scope::Default, kind));
        let is_fit = !acl.entries.is_empty()
            && access.len() <= ENTRIES_MAX
            && default.len() <= ENTRIES_MAX
            && is_ordered
            && are_names_fit
            && is_access_fit
            && is_default_fit;
        is_fit.then_some(acl)
    }

    pub fn entries(&self) -> &[AclEntry] {
        &self.entries
    }

    /// The named users, the owning group, the named groups; empty if the bits say all about access.
    pub(crate) fn access(&self) -> &[AclEntry] {
        &self.entries[..self.access_count]
    }

    pub(crate) fn default_entries(&self) -> &[AclEntry] {
        &self.entries[self.access_count..]
    }
}

/// ```text
/// bit 0 scope | bits 1-2 kind | bits 3-5 permission | bit 6 named; then the name
/// ```
impl Field for AclEntry {
    fn encode(&self, out: &mut Writer<'_>) {
        let named = u8::from(self.name.is_some());
        out.byte(self.scope as u8 | (self.kind as u8) << 1 | self.permission << 3 | named << 6);
        if let Some(name) = &self.name {
            out.bytes(name.as_bytes());
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let byte = input.byte()?;
        let Some((mut entry, is_named)) = from_byte(byte) else {
            return Err(input.malformed("the first byte of an ACL entry"));
        };
        if is_named {
            entry.name = Some(Field::decode(input)?);
        }
        Ok(entry)
    }
}

/// An entry that lacks its name still, and whether it has one.
pub(crate) fn from_byte(byte: u8) -> Option<(AclEntry, bool)> {
    if byte >= 1 << 7 {
        return None;
    }
    let scope = if byte & 1 == 0 { Scope::Access } else { Scope::Default };
    let kind = [Kind::User, Kind::Group, Kind::Mask, Kind::Other][usize::from(byte >> 1 & 3)];
    Some((AclEntry::unnamed(scope, kind, byte >> 3), byte & 1 << 6 != 0))
}

impl Field for Arc<Acl> {
    fn encode(&self, out: &mut Writer<'_>) {
        self.entries.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let entries = Vec::decode(input)?;
        Acl::new(entries).map(Arc::new).ok_or_else(|| input.malformed("entries that make no ACL"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_printed_as_hadoop_prints_it() {
        let entry = AclEntry::new(Scope::Default, Kind::Mask, Some("x".into()), 5);
        assert_eq!(entry.to_string(), "default:mask:x:r-x");
        assert_eq!(AclEntry::unnamed(Scope::Access, Kind::Group, 2).to_string(), "group::-w-");
    }

    #[test]
    fn entries_that_make_no_acl_are_refused() {
        let named = |kind| AclEntry::new(Scope::Access, kind, Some("a".into()), 7);
        let group = || AclEntry::unnamed(Scope::Access, Kind::Group, 7);
        let default = |kind| AclEntry::unnamed(Scope::Default, kind, 7);
        assert!(Acl::new(Vec::new()).is_none());
        assert!(Acl::new(vec![named(Kind::User)]).is_none(), "the group's own entry is missing");
        assert!(Acl::new(vec![group(), named(Kind::User)]).is_none(), "out of order");
        assert!(Acl::new(vec![named(Kind::User), group(), group()]).is_none(), "twice");
        assert!(Acl::new(vec![default(Kind::User), default(Kind::Group)]).is_none());
        let others = AclEntry::new(Scope::Default, Kind::Other, Some("a".into()), 7);
        assert!(Acl::new(vec![default(Kind::User), default(Kind::Group), others]).is_none());
        assert!(Acl::new(vec![named(Kind::User), group()]).is_some());
        assert!(Acl::new(vec![group()]).is_some(), "the bits hold a mask");
        assert!(Acl::new([Kind::User, Kind::Group, Kind::Other].map(default).to_vec()).is_some());
    }
}
