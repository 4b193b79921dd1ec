//! The results of scrubbing.

use std::sync::atomic::AtomicU64;

/// The counts of the work since the start, for pages.
#[derive(Debug, Default)]
pub struct Counts {
    pub passes: AtomicU64,
    pub bytes: AtomicU64,
    /// Files found rotten, and those of them that were mended.
    pub rotten: AtomicU64,
    pub mended: AtomicU64,
    /// Files that the last pass could not mend.
    pub left: AtomicU64,
}
