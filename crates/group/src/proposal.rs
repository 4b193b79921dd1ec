//! An entry that has no number yet.

use base::EntryKind;
use bytes::Bytes;

/// An entry to be appended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proposal {
    pub kind: EntryKind,
    pub payload: Bytes,
}
