//! A mark: what an entry changes, a hold keeps still, or a call has seen.

use std::fmt;

/// The kinds of things that a mark may stand for. The machines only compare them; planners agree on what each covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkKind {
    /// One name in one directory: whether there is something, and what.
    Name,
    /// All names of subdirectories in one directory, as a listing tells them.
    Names,
    /// The way through a directory: its rights, quotas and snapshots, on which everything below rests.
    Passage,
    /// The facts of one inode.
    Inode,
    /// The files of one directory: whether there are any.
    Files,
    /// What a directory, and all below it, counts for in the quotas above.
    Contents,
}

impl MarkKind {
    /// The kind with this number, which is its place among them. Entries in logs and messages carry it.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Name,
            1 => Self::Names,
            2 => Self::Passage,
            3 => Self::Inode,
            4 => Self::Files,
            5 => Self::Contents,
            _ => return None,
        })
    }
}

/// A thing that is told apart from others by its kind and key.
///
/// The key is made by planners, for example of a directory's id and the hash of a name. Two things with one key only wait for each other
/// without need.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    pub kind: MarkKind,
    pub key: u128,
}

impl Mark {
    pub const fn new(kind: MarkKind, key: u128) -> Self {
        Self { kind, key }
    }

    /// Whether two sets have a mark in common.
    pub fn any_common(one: &[Mark], other: &[Mark]) -> bool {
        one.iter().any(|mark| other.contains(mark))
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            MarkKind::Name => "name",
            MarkKind::Names => "names",
            MarkKind::Passage => "passage",
            MarkKind::Inode => "inode",
            MarkKind::Files => "files",
            MarkKind::Contents => "contents",
        };
        write!(f, "{kind}:{:x}", self.key)
    }
}
