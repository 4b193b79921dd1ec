//! Cutting off the end of a log: entries that an active of a later epoch does not have.

use crate::{Journal, StateError};
use base::{Durable, LogPoint};

impl Journal {
    /// Cuts everything after this entry off the log, durably. Blocks; rare. A crash at any moment leaves the log
    /// as it was, or cut, or cut in part, never less than up to `after`. What has committed, or is in an image, is
    /// refused.
    ///
    /// Entries under way are written first; callbacks of appends must not wait for whoever calls this.
    pub fn cut(&self, after: LogPoint) -> Result<Durable, StateError> {
        Err(StateError::Cut { after, what: "not built yet".into() })
    }
}
