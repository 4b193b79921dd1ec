//! Access control lists, in the words of `getfacl` and `setfacl`.

use crate::{Error, FileSystem, Result};
use base::FsError;
use proto::hdfs::{
    self as p,
    acl_entry_proto::{AclEntryScopeProto, AclEntryTypeProto},
};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclKind {
    User,
    Group,
    Mask,
    Other,
}

/// One entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclEntry {
    /// The entry is part of the default list, which new children of the directory inherit. It gives no access to the
    /// directory itself.
    pub is_default: bool,
    pub kind: AclKind,
    /// `None` in an entry for the owner or for the owning group.
    pub name: Option<String>,
    /// Bits: 4 read, 2 write, 1 execute.
    pub permission: u8,
}

/// The access control list of a file or directory, as the server tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclStatus {
    pub owner: String,
    pub group: String,
    pub mode: u16,
    /// The entries beside the permission bits. The entries of the owner and of others, and the mask, are not among
    /// them: the bits tell those.
    pub entries: Vec<AclEntry>,
}

/// The three letters of a permission.
pub fn symbol(permission: u8) -> String {
    [(4, 'r'), (2, 'w'), (1, 'x')]
        .map(|(bit, letter)| if permission & bit != 0 { letter } else { '-' })
        .iter()
        .collect()
}

impl fmt::Display for AclEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = if self.is_default { "default:" } else { "" };
        let kind = match self.kind {
            AclKind::User => "user",
            AclKind::Group => "group",
            AclKind::Mask => "mask",
            AclKind::Other => "other",
        };
        let name = self.name.as_deref().unwrap_or_default();
        write!(f, "{scope}{kind}:{name}:{}", symbol(self.permission))
    }
}

impl AclEntry {
    /// Reads entries between commas, such as `user:ann:rw-,default:group::r-x`; those of a removal have no
    /// permission. Complaints are Hadoop's.
    ///
    /// # Errors
    /// [`Error::Fs`] with [`FsError::InvalidArgument`] for an entry that is none: an unknown type or scope, letters
    /// that are no permission, or a permission where none is wanted. The text is Hadoop's.
    pub fn parse_list(text: &str, with_permission: bool) -> Result<Vec<Self>> {
        text.split(',')
            .filter(|part| !part.is_empty())
            .map(|part| Self::parse(part, with_permission))
            .collect()
    }

    fn parse(text: &str, with_permission: bool) -> Result<Self> {
        let invalid = |what: &str| Error::Fs(FsError::InvalidArgument(format!("{what}{text}")));
        let nonsense = || invalid("Invalid <aclSpec> : ");
        // Java's `split` drops empty parts at the end.
        let mut parts: Vec<&str> = text.split(':').collect();
        while parts.last().is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
        let mut parts = parts.into_iter().peekable();
        let is_default = parts.next_if_eq(&"default").is_some();
        let kind = match parts.next().ok_or_else(nonsense)?.to_ascii_lowercase().as_str() {
            "user" => AclKind::User,
            "group" => AclKind::Group,
            "mask" => AclKind::Mask,
            "other" => AclKind::Other,
            _ => return Err(invalid("Invalid type of acl in <aclSpec> :")),
        };
        let name = parts.next().filter(|name| !name.is_empty()).map(str::to_owned);
        let permission = match with_permission {
            false => 0,
            true => parse_symbol(parts.next().ok_or_else(nonsense)?)
                .ok_or_else(|| invalid("Invalid permission in <aclSpec> : "))?,
        };
        match parts.next() {
            None => Ok(Self { is_default, kind, name, permission }),
            Some(_) => Err(nonsense()),
        }
    }

    fn from_wire(wire: p::AclEntryProto) -> Self {
        Self {
            is_default: wire.scope() == AclEntryScopeProto::Default,
            kind: match wire.r#type() {
                AclEntryTypeProto::User => AclKind::User,
                AclEntryTypeProto::Group => AclKind::Group,
                AclEntryTypeProto::Mask => AclKind::Mask,
                AclEntryTypeProto::Other => AclKind::Other,
            },
            permission: wire.permissions as u8 & 7,
            name: wire.name.filter(|name| !name.is_empty()),
        }
    }

    fn to_wire(&self) -> p::AclEntryProto {
        let scope = if self.is_default { AclEntryScopeProto::Default } else { AclEntryScopeProto::Access };
        let kind = match self.kind {
            AclKind::User => AclEntryTypeProto::User,
            AclKind::Group => AclEntryTypeProto::Group,
            AclKind::Mask => AclEntryTypeProto::Mask,
            AclKind::Other => AclEntryTypeProto::Other,
        };
        p::AclEntryProto {
            r#type: kind as i32,
            scope: scope as i32,
            permissions: i32::from(self.permission & 7),
            name: self.name.clone(),
        }
    }
}

fn parse_symbol(text: &str) -> Option<u8> {
    (0..8).find(|permission| symbol(*permission) == text)
}

impl AclStatus {
    /// The whole list: the bits' own entries with those beside them, the default ones last.
    pub fn whole(&self) -> Vec<AclEntry> {
        let of_bits = |kind, shift: u16| AclEntry {
            is_default: false,
            kind,
            name: None,
            permission: (self.mode >> shift) as u8 & 7,
        };
        let (default, access): (Vec<_>, Vec<_>) =
            self.entries.iter().cloned().partition(|entry| entry.is_default);
        // With entries beside them the group's bits are the mask.
        let group = if access.is_empty() { AclKind::Group } else { AclKind::Mask };
        let mut whole = vec![of_bits(AclKind::User, 6)];
        whole.extend(access);
        whole.extend([of_bits(group, 3), of_bits(AclKind::Other, 0)]);
        whole.extend(default);
        whole
    }
}

fn to_wire(entries: &[AclEntry]) -> Vec<p::AclEntryProto> {
    entries.iter().map(AclEntry::to_wire).collect()
}

impl FileSystem {
    /// # Errors
    /// There is no such path, this user may not reach it, or access control lists are switched off ([`FsError::Acl`]);
    /// or the call fails: see [`FileSystem::call`].
    pub async fn acl_status(&self, path: &str) -> Result<AclStatus> {
        let request = p::GetAclStatusRequestProto { src: path.to_owned() };
        let response: p::GetAclStatusResponseProto = self.call("getAclStatus", &request).await?;
        let status = response.result;
        Ok(AclStatus {
            owner: status.owner,
            group: status.group,
            mode: status.permission.map_or(0, |permission| permission.perm & 0o7777) as u16,
            entries: status.entries.into_iter().map(AclEntry::from_wire).collect(),
        })
    }

    /// Replaces the entries of the scopes that are named.
    ///
    /// # Errors
    /// There is no such path, this user does not own it, or the list is invalid or too long ([`FsError::Acl`]); or the
    /// call fails: see [`FileSystem::call`].
    pub async fn set_acl(&self, path: &str, entries: &[AclEntry]) -> Result<()> {
        let request = p::SetAclRequestProto { src: path.to_owned(), acl_spec: to_wire(entries) };
        let _: p::SetAclResponseProto = self.call("setAcl", &request).await?;
        Ok(())
    }

    /// Adds entries, or gives those that are there another permission.
    ///
    /// # Errors
    /// Those of [`FileSystem::set_acl`].
    pub async fn modify_acl(&self, path: &str, entries: &[AclEntry]) -> Result<()> {
        let request = p::ModifyAclEntriesRequestProto { src: path.to_owned(), acl_spec: to_wire(entries) };
        let _: p::ModifyAclEntriesResponseProto = self.call("modifyAclEntries", &request).await?;
        Ok(())
    }

    /// Takes entries away; their permissions mean nothing.
    ///
    /// # Errors
    /// Those of [`FileSystem::set_acl`].
    pub async fn remove_acl_entries(&self, path: &str, entries: &[AclEntry]) -> Result<()> {
        let request = p::RemoveAclEntriesRequestProto { src: path.to_owned(), acl_spec: to_wire(entries) };
        let _: p::RemoveAclEntriesResponseProto = self.call("removeAclEntries", &request).await?;
        Ok(())
    }

    /// # Errors
    /// There is no such path, or this user does not own it; or the call fails: see [`FileSystem::call`].
    pub async fn remove_default_acl(&self, path: &str) -> Result<()> {
        let request = p::RemoveDefaultAclRequestProto { src: path.to_owned() };
        let _: p::RemoveDefaultAclResponseProto = self.call("removeDefaultAcl", &request).await?;
        Ok(())
    }

    /// Leaves the permission bits alone.
    ///
    /// # Errors
    /// There is no such path, or this user does not own it; or the call fails: see [`FileSystem::call`].
    pub async fn remove_acl(&self, path: &str) -> Result<()> {
        let request = p::RemoveAclRequestProto { src: path.to_owned() };
        let _: p::RemoveAclResponseProto = self.call("removeAcl", &request).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str, with_permission: bool) -> String {
        match AclEntry::parse_list(text, with_permission) {
            Ok(entries) => entries.iter().map(AclEntry::to_string).collect::<Vec<_>>().join(","),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn entries_are_read_as_hadoop_reads_them() {
        for text in ["user:ann:rw-", "default:group::r-x,mask::--x,other::---", "default:user:ann:rwx"] {
            assert_eq!(again(text, true), text);
        }
        assert_eq!(again("USER:ann:r--,", true), "user:ann:r--");
        assert_eq!(again("user:ann,mask,default:group", false), "user:ann:---,mask::---,default:group::---");
        assert_eq!(again("user:ann", true), "Invalid <aclSpec> : user:ann");
        assert_eq!(again("default", true), "Invalid <aclSpec> : default");
        assert_eq!(again("::", true), "Invalid <aclSpec> : ::");
        assert_eq!(again("people:ann:r--", true), "Invalid type of acl in <aclSpec> :people:ann:r--");
        assert_eq!(again("user:ann:r", true), "Invalid permission in <aclSpec> : user:ann:r");
        assert_eq!(again("user:ann:rwx", false), "Invalid <aclSpec> : user:ann:rwx");
    }

    #[test]
    fn the_bits_are_part_of_the_whole_list() -> Result<()> {
        let mut status = AclStatus { owner: "o".into(), group: "g".into(), mode: 0o754, entries: Vec::new() };
        let whole =
            |status: &AclStatus| status.whole().iter().map(AclEntry::to_string).collect::<Vec<_>>().join(",");
        assert_eq!(whole(&status), "user::rwx,group::r-x,other::r--");
        status.entries = AclEntry::parse_list("user:ann:rwx,group::r--,default:user::rwx", true)?;
        assert_eq!(
            whole(&status),
            "user::rwx,user:ann:rwx,group::r--,mask::r-x,other::r--,default:user::rwx"
        );
        Ok(())
    }
}
