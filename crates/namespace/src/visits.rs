//! How far long walks have come.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counts the inodes that long walks visit while they plan an edit, so that others see that a plan which takes
/// seconds goes on. No plan and no edit rests on it. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub struct Visits(Arc<AtomicU64>);

impl Visits {
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
