//! The whole tree as bytes; see `docs/format/namespace-image.md`.
//!
//! Inodes are written in the order of a walk from the root, so that no index of another record is ever read
//! and no cycle can be written down. The digest at the end says whether what was read is what was there.

mod read;
mod read_exports;
mod read_past;
mod read_server_orders;
mod read_shares;
mod slots_seen;
mod write;
mod write_past;

use crate::{Namespace, tree::Tree};
use base::{TxId, UnknownLevel};
use std::io;

/// Followed by the version.
const MAGIC: &[u8; 7] = b"clovrNS";
/// Version 1 had no sections between the retry cache and the end.
const VERSION: u8 = 2;

/// The version of the section about unknown replicas.
const UNKNOWN_VERSION: u8 = 1;
/// The version of the section about the group's level.
const LEVEL_VERSION: u8 = 1;
/// The versions of the section about the directory log: the place alone, or all of it.
const DIRECTORY_LOG_PLACE: u8 = 1;
const DIRECTORY_LOG: u8 = 2;
/// The version of the section about files that live in other groups, and of what those groups are told.
const EXPORTS_VERSION: u8 = 1;
/// The version of the section about the quotas that several groups share.
const SHARES_VERSION: u8 = 1;
/// The version of the section about orders for data servers.
const SERVER_ORDERS_VERSION: u8 = 1;

const FLAG_DIRECTORY: u8 = 1;
const FLAG_OPEN: u8 = 2;

/// Beside the length that a truncation leaves: the block whose bytes these are follows.
const HAS_SOURCE: u64 = 1 << 63;

/// The first byte of each section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Section {
    Counters = 1,
    Tree = 2,
    Orphans = 3,
    Retry = 4,
    Xattrs = 5,
    Quotas = 6,
    Snapshots = 7,
    Past = 8,
    Limits = 9,
    Unknown = 10,
    Level = 11,
    DirectoryLog = 12,
    Exports = 13,
    Shares = 14,
    ServerOrders = 15,
    End = 255,
}

impl Section {
    fn name(self) -> &'static str {
        match self {
            Section::Counters => "counters",
            Section::Tree => "tree",
            Section::Orphans => "orphans",
            Section::Retry => "retry cache",
            Section::Quotas => "quotas",
            Section::DirectoryLog => "directory log",
            Section::Exports => "exports",
            Section::Shares => "shares of quotas",
            Section::ServerOrders => "orders for data servers",
            Section::Snapshots => "snapshots",
            Section::Past => "past",
            Section::Limits => "limits in the past",
            Section::Unknown => "unknown replicas",
            Section::Level => "level",
            Section::Xattrs => "extended attributes",
            Section::End => "end",
        }
    }
}

/// The values of the record before, from which differences are taken.
#[derive(Default)]
struct Previous {
    inode: u64,
    modified: u64,
    block: u64,
    stamp: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("reading the image failed")]
    Read(#[from] io::Error),
    /// A later release has written it.
    #[error("the namespace in the image has version {found}, and up to {known} is known")]
    Version { found: u8, known: u8 },
    /// A later release has raised the group's level.
    #[error(transparent)]
    Level(#[from] UnknownLevel),
    #[error("image section {section}: {what}")]
    Malformed { section: &'static str, what: String },
}

/// A tree as it was at one moment, in memory: an image is written from it. It shares the pages that did not change since then.
pub struct FrozenTree {
    tree: Tree,
}

impl FrozenTree {
    pub(crate) fn new(tree: Tree) -> Self {
        Self { tree }
    }

    /// The last edit that it contains.
    pub fn applied(&self) -> TxId {
        self.tree.counters.applied
    }

    pub fn digest(&self) -> u64 {
        self.tree.digest()
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Hands out the image piece by piece. Equal trees give equal bytes on every member.
    ///
    /// # Errors
    /// The error of `sink`.
    pub fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        write::write(&self.tree, sink)
    }
}

impl Namespace {
    /// The tree as it is now, to be written by another thread while this one goes on.
    pub fn freeze(&self) -> FrozenTree {
        FrozenTree::new(self.tree.clone())
    }
}
