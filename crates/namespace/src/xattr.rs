//! Extended attributes: names with bytes that clients hang onto files and directories.
//!
//! Few inodes have any. Theirs are in a table of their own by inode id, and a flag in the inode's record says
//! that there is something to look up: an inode without them costs nothing.

use crate::{
    codec::{DecodeError, Field, Reader, Writer},
    digest::Digester,
};
use std::{fmt, sync::Arc};

/// HDFS's hard limit: no setting lets name and value together have more bytes.
pub(crate) const BYTES_MAX: u64 = 32 * 1024;

/// The namespace of an attribute's name. Users and superusers see the first two; the file system keeps the others for
/// itself, but for what is said in [`crate::ops::set_xattrs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Space {
    User = 0,
    Trusted = 1,
    Security = 2,
    System = 3,
    Raw = 4,
}

impl Space {
    pub const ALL: [Self; 5] = [Self::User, Self::Trusted, Self::Security, Self::System, Self::Raw];

    /// The text before the dot.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Trusted => "trusted",
            Self::Security => "security",
            Self::System => "system",
            Self::Raw => "raw",
        }
    }

    /// Whether attributes of this namespace count against the limit of an inode.
    pub(crate) fn is_counted(self) -> bool {
        matches!(self, Self::User | Self::Trusted)
    }
}

/// A name, and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct XattrName {
    pub space: Space,
    /// The name without its prefix.
    pub name: Box<str>,
}

impl XattrName {
    /// A file that has this one cannot be read by superusers, and will never lose it.
    pub(crate) fn is_unreadable_by_superuser(&self) -> bool {
        self.space == Space::Security && &*self.name == UNREADABLE_BY_SUPERUSER
    }
}

/// In the namespace `security`.
const UNREADABLE_BY_SUPERUSER: &str = "hdfs.unreadable.by.superuser";

impl fmt::Display for XattrName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.space.prefix(), self.name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xattr {
    pub name: XattrName,
    pub value: Box<[u8]>,
}

/// All extended attributes of an inode: never empty, in the order of names, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xattrs(Vec<Xattr>);

impl Xattrs {
    /// `None` unless they are what the type promises.
    pub(crate) fn new(xattrs: Vec<Xattr>) -> Option<Self> {
        let is_fit = !xattrs.is_empty() && xattrs.is_sorted_by(|one, two| one.name < two.name);
        is_fit.then_some(Self(xattrs))
    }

    pub fn all(&self) -> &[Xattr] {
        &self.0
    }

    pub(crate) fn get(&self, name: &XattrName) -> Option<&Xattr> {
        self.0.binary_search_by(|xattr| xattr.name.cmp(name)).ok().map(|at| &self.0[at])
    }

    /// The attributes after a change: those in `set` replace others of the same name, and `removed` are left out.
    pub(crate) fn changed(before: Option<&Self>, set: &[Xattr], removed: &[XattrName]) -> Option<Arc<Self>> {
        let keeps =
            |xattr: &&Xattr| !removed.contains(&xattr.name) && set.iter().all(|new| new.name != xattr.name);
        let kept = before.iter().flat_map(|before| &before.0).filter(keeps);
        let mut xattrs: Vec<Xattr> = kept.chain(set).cloned().collect();
        xattrs.sort_by(|one, two| one.name.cmp(&two.name));
        xattrs.dedup_by(|one, two| one.name == two.name);
        Self::new(xattrs).map(Arc::new)
    }

    pub(crate) fn digest(&self, digester: &mut Digester) {
        for xattr in &self.0 {
            digester.number(xattr.name.space as u64);
            digester.bytes(xattr.name.name.as_bytes());
            digester.bytes(&xattr.value);
        }
    }

    /// An estimate of the bytes that the attributes take in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|xattr| size_of::<Xattr>() + xattr.name.name.len() + xattr.value.len()).sum()
    }
}

impl Field for Space {
    fn encode(&self, out: &mut Writer<'_>) {
        out.byte(*self as u8);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let byte = input.byte()?;
        Self::ALL.get(usize::from(byte)).copied().ok_or_else(|| input.malformed("no namespace of attributes"))
    }
}

impl Field for XattrName {
    fn encode(&self, out: &mut Writer<'_>) {
        self.space.encode(out);
        self.name.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let name = Self { space: Field::decode(input)?, name: Field::decode(input)? };
        if name.name.len() as u64 > BYTES_MAX {
            return Err(input.malformed("an attribute's name of more than 32 KiB"));
        }
        Ok(name)
    }
}

impl Field for Xattr {
    fn encode(&self, out: &mut Writer<'_>) {
        self.name.encode(out);
        self.value.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let xattr = Self { name: Field::decode(input)?, value: Field::decode(input)? };
        if xattr.value.len() as u64 > BYTES_MAX {
            return Err(input.malformed("an attribute's value of more than 32 KiB"));
        }
        Ok(xattr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(space: Space, name: &str) -> XattrName {
        XattrName { space, name: name.into() }
    }

    fn xattr(text: &str, value: &[u8]) -> Xattr {
        Xattr { name: name(Space::User, text), value: value.into() }
    }

    #[test]
    fn names_are_written_with_their_prefix() {
        assert_eq!(name(Space::Trusted, "a.b").to_string(), "trusted.a.b");
    }

    #[test]
    fn a_change_replaces_adds_and_removes() {
        let before = Xattrs::new(vec![xattr("a", b"1"), xattr("c", b"3")]);
        let after = Xattrs::changed(
            before.as_ref(),
            &[xattr("b", b"2"), xattr("a", b"one")],
            &[name(Space::User, "c")],
        );
        assert_eq!(after.as_deref(), Xattrs::new(vec![xattr("a", b"one"), xattr("b", b"2")]).as_ref());
        assert_eq!(
            Xattrs::changed(before.as_ref(), &[], &[name(Space::User, "x")]).as_deref(),
            before.as_ref()
        );
        let none = Xattrs::changed(before.as_ref(), &[], &[name(Space::User, "a"), name(Space::User, "c")]);
        assert_eq!(none, None);
    }
}
