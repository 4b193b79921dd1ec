//! Bringing a store back: image first, then the entries after it, then appends.

use crate::{ImageReader, Journal, MemberState, RecoverError};
use base::{Entry, LogPoint};
use std::{io, path::PathBuf};

/// Something that recovery met and could deal with. Worth a line in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub file: PathBuf,
    pub offset: u64,
    /// A sentence: what was there, what was expected, what was done.
    pub what: String,
}

/// What stands after recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The last entry of the log.
    pub end: LogPoint,
    /// Entries given to `apply`.
    pub replayed: u64,
    pub findings: Vec<Finding>,
}

/// An open store whose log has not been read yet.
pub struct Recovery {}

impl Recovery {
    pub fn state(&self) -> &MemberState {
        todo!()
    }

    /// Reads the newest image that can be read, and falls back to the one before it. `None`: there is no
    /// image, the log starts at its first entry. `read` may run more than once; what an earlier run built is
    /// void. An error from `read` counts as a damaged image.
    pub fn load_image<T>(
        &mut self,
        _read: impl FnMut(&mut ImageReader) -> io::Result<T>,
    ) -> Result<Option<(LogPoint, T)>, RecoverError> {
        todo!()
    }

    /// Gives every entry after the image to `apply`, in order, seals what was open, and opens the log for
    /// appends. An error from `apply` ends recovery.
    pub fn replay(
        self,
        _apply: impl FnMut(Entry) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<(Journal, Recovered), RecoverError> {
        todo!()
    }
}
