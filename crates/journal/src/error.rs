//! An error per phase. Each names the file and the offset, what was expected and found, and what to do.

use base::{Epoch, LogPoint, Sn, TxId, UnknownLevel};
use std::{io, path::PathBuf};
use thiserror::Error;

/// `format` failed: nothing usable was made.
#[derive(Debug, Error)]
pub enum FormatError {
    /// Choose another directory, or remove what is there by hand.
    #[error("{} is not empty: a store is never made over existing files", .directory.display())]
    NotEmpty { directory: PathBuf },
    /// Fix the request.
    #[error("cluster id must be 1 to 255 bytes, this one has {length}")]
    ClusterId { length: usize },
    /// Look at the disk.
    #[error("cannot write {}", .file.display())]
    Io { file: PathBuf, source: io::Error },
}

/// `open` failed: the store was not changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Format it first, or fix the directory's name.
    #[error("{} holds no store; make one with `clover meta format`", .directory.display())]
    NotFormatted { directory: PathBuf },
    /// Stop the other process.
    #[error("{} is in use by another process", .directory.display())]
    InUse { directory: PathBuf },
    /// Use a newer program.
    #[error("{} has format version {found}; this program reads up to {supported}. Nothing was changed. Use the release that wrote \
         it, or a newer one", .file.display())]
    Version { file: PathBuf, found: u32, supported: u32 },
    /// Use a newer program.
    #[error("{} says that {unknown}. Nothing was changed", .file.display())]
    Level { file: PathBuf, unknown: UnknownLevel },
    /// Rebuild this member from another, or restore both state files together with the journal.
    #[error("neither copy of the member's state can be read: {first}; {second}. Rebuild this member")]
    StateDamaged { first: String, second: String },
    /// The disk failed under this store. Check or replace the disk; then accept the store, or rebuild the member.
    #[error(
        "{} is not trusted since an earlier failure: {note}. Check the disk; then `clover meta accept-disk` \
         takes the store as it is", .directory.display()
    )]
    Untrusted { directory: PathBuf, note: String },
    /// Look at what was put aside before, and drop it or make room.
    #[error(
        "{} is to be put aside, and {kept} earlier ones are kept there: {needed} bytes are needed to renew it, {free} \
         are free. It waits until there is room. `clover meta aside list` shows them; make room, or drop one with `clover meta aside drop`",
        .directory.display()
    )]
    NoRoomAside { directory: PathBuf, needed: u64, free: u64, kept: usize },
    /// A person or program has put something there: move it away.
    #[error(
        "a store is to be put aside or put back, and {} is there already. Nothing was written over: move it out of the way",
        .file.display()
    )]
    AsideExists { file: PathBuf },
    /// Give the order again.
    #[error(
        "what was put aside of {} as {number} was being put back when that was interrupted: `clover meta aside restore {number} \
         --yes` goes on with it", .directory.display()
    )]
    Restoring { directory: PathBuf, number: u64 },
    /// Look at the list.
    #[error("nothing with number {number} was put aside in {}: `clover meta aside list`", .directory.display())]
    NothingAside { directory: PathBuf, number: u64 },
    /// Fix the settings.
    #[error("{what}")]
    Settings { what: String },
    /// Look at the disk.
    #[error("cannot read or change {}", .file.display())]
    Io { file: PathBuf, source: io::Error },
}

/// Recovery failed: nothing was truncated or removed.
#[derive(Debug, Error)]
pub enum RecoverError {
    /// Repair this place from another member's copy, or rebuild the member. Never truncated automatically.
    #[error("{} is damaged at offset {offset}: expected {expected}, found {found}. {remedy}", .file.display())]
    Damaged { file: PathBuf, offset: u64, expected: String, found: String, remedy: &'static str },
    /// Use the program that wrote it, or a newer one. This is no damage: nothing may be given up for it.
    #[error(
        "{} has a format that this program does not know: {what}. Nothing was changed. Use the release that wrote it, or a \
         newer one", .file.display()
    )]
    Version { file: PathBuf, what: String },
    /// The entry is intact but the state machine cannot read it: report a bug, or use a newer program.
    #[error("entry {id} in {} at offset {offset} cannot be applied", .file.display())]
    Apply { file: PathBuf, offset: u64, id: TxId, source: Box<dyn std::error::Error + Send + Sync> },
    /// Look at the disk.
    #[error("cannot read or write {}", .file.display())]
    Io { file: PathBuf, source: io::Error },
}

/// A store whose disk had failed was not accepted: it is as before.
#[derive(Debug, Error)]
pub enum AcceptError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Recover(#[from] RecoverError),
}

/// `append` refused: nothing was taken.
#[derive(Debug, Error)]
pub enum AppendError {
    /// The journal has failed; this process cannot write any more.
    #[error("the journal refuses appends")]
    Failed(#[source] std::sync::Arc<Fault>),
    /// A bug in the caller.
    #[error("entry {id} does not follow the end of the log {end}")]
    OutOfOrder { id: TxId, end: TxId },
    /// Fix the request.
    #[error("entry of {bytes} bytes is over the limit of {limit}")]
    TooLarge { bytes: usize, limit: usize },
    /// The log was closed.
    #[error("the journal is closed")]
    Closed,
}

/// The first reason why a journal stopped for good. The disk may hold anything after `durable`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{operation} failed on {}: {reason}; durable up to {durable}", .file.display())]
pub struct Fault {
    pub operation: &'static str,
    pub file: PathBuf,
    pub reason: String,
    pub kind: io::ErrorKind,
    pub durable: Sn,
}

/// The member's state, or the place of its segments, could not be changed.
#[derive(Debug, Error)]
pub enum StateError {
    #[error("the journal refuses changes")]
    Failed(#[source] std::sync::Arc<Fault>),
    #[error("epoch {epoch} cannot be promised, {promised} already is")]
    PromiseGoesBack { epoch: Epoch, promised: Epoch },
    /// A bug in the caller, or corruption: stop, keep the evidence.
    #[error("the log cannot be cut off after {after}: {what}")]
    Cut { after: LogPoint, what: String },
    /// Look at the disk.
    #[error("cannot read or write {}", .file.display())]
    Io { file: PathBuf, source: io::Error },
}

/// Entries could not be read from the log.
#[derive(Debug, Error)]
pub enum ReadLogError {
    /// Get an image: this log begins later.
    #[error("entry {after} is not in the log any more, which begins after {first}")]
    Gone { after: Sn, first: Sn },
    /// Another try may help: the log is being cut, the entry is not durable yet, or the disk has failed. `disk` is the kind
    /// of the disk's error, if it was one.
    #[error("the log could not be read after entry {after}: {reason}")]
    Failed { after: Sn, reason: String, disk: Option<io::ErrorKind> },
}

/// A staged image cannot be used, or cannot be written.
#[derive(Debug, Error)]
pub enum StagingError {
    /// Write what is asked for.
    #[error("the next chunk is at {expected}, not at {found}")]
    Offset { expected: u64, found: u64 },
    /// Begin again, perhaps from another source.
    #[error("the staged image {} is not the one that was asked for: {what}", .file.display())]
    Verify { file: PathBuf, what: String },
    /// Drop the staged image: the log has gone on beyond it.
    #[error("the staged image is of {at}, this log has committed up to {committed}")]
    Outdated { at: Sn, committed: Sn },
    #[error(transparent)]
    State(#[from] StateError),
    /// Look at the disk.
    #[error("cannot read or write {}", .file.display())]
    Io { file: PathBuf, source: io::Error },
}

/// An image was not written; the store is as before.
#[derive(Debug, Error)]
pub enum ImageError {
    #[error("the journal refuses changes")]
    Failed(#[source] std::sync::Arc<Fault>),
    #[error("cannot read or write {}", .file.display())]
    Io { file: PathBuf, source: io::Error },
    /// The file does not read back as it was written: check the disk.
    #[error("image {} does not read back as written: {what}", .file.display())]
    Verify { file: PathBuf, what: String },
}
