//! Which state of a backup is meant, and which entry that is.

use base::{
    Sn,
    directory_log::{Dix, Point},
};
use journal::archive::{ArchiveError, Span};
use thiserror::Error;

/// The state that is to be restored or looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The end of all that was archived.
    End,
    Entry(Sn),
    /// Milliseconds since 1970.
    Time(u64),
    /// The group has just come to this place in the directory log: see [`super::places`].
    Place(Dix),
}

/// The entry that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub span: Span,
    pub at: Sn,
    /// The time of the last edit up to it.
    pub last_ms: Option<u64>,
    /// The first edit that is left out.
    pub next: Option<(Sn, u64)>,
    /// The last entry behind it that carries a time which was asked for: clocks have gone back.
    pub straggler: Option<(Sn, u64)>,
    /// With this entry the group has come to this place in the directory log, if a place was asked for.
    pub place: Option<Point>,
}

#[derive(Debug, Error)]
pub enum TargetError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(
        "the backup holds nothing yet: it was interrupted before its image was whole. The same order goes on with it"
    )]
    Empty,
    /// The backup does not have that state. If a time was asked for, the error tells the nearest times that it has.
    #[error("it is not in the backup: {why}")]
    Outside {
        why: String,
        before: Option<Sn>,
        after: Option<Sn>,
        latest_ms: Option<u64>,
        earliest_ms: Option<u64>,
    },
    #[error("entry {at} cannot be applied: {what}. Was the backup made by a later release?")]
    Apply { at: Sn, what: String },
}
