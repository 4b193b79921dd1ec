//! The users of a volume's files are counted. A volume without users can be given away.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The number of users of a volume's files.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    count: AtomicUsize,
}

/// One user, until this value is dropped.
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
