//! The result of a round.

use std::time::Duration;

/// What a round has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    pub blocks: u64,
    pub bytes: u64,
    /// Moves that failed.
    pub failed: u64,
    pub took: Duration,
}
