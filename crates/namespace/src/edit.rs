//! The journal's words: what was decided, with nothing left to decide.

/// A fully resolved change. It contains no "now", no "next id" and no "current user".
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("edit ends after {0} bytes")]
    Truncated(usize),
    #[error("edit kind {0} is not known")]
    UnknownKind(u8),
    #[error("edit format version {0} is not known")]
    UnknownVersion(u8),
    #[error("edit at byte {offset}: {what}")]
    Malformed { offset: usize, what: &'static str },
}

impl Edit {
    /// Appends the edit's bytes; see `docs/format/edits.md`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let _ = out;
        todo!()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let _ = bytes;
        todo!()
    }
}
