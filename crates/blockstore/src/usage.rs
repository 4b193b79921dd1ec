//! Who is at the files of a volume: it can be given away when nobody is.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The number of those who are at a volume's files.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    count: AtomicUsize,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct VolumeUse {
    uses: Arc<Uses>,
}

impl Uses {
    pub fn enter(this: &Arc<Self>) -> VolumeUse {
        this.count.fetch_add(1, Ordering::SeqCst);
        VolumeUse { uses: this.clone() }
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

impl Drop for VolumeUse {
    fn drop(&mut self) {
        self.uses.count.fetch_sub(1, Ordering::SeqCst);
    }
}
