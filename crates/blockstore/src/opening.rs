//! Who opens which pool: one after another, or several at once.

use crate::error::OpenError;
use parking_lot::{Mutex, MutexGuard};
use std::{collections::HashMap, sync::Arc};

/// The number of pools that one server serves: more groups than a cluster has by far, and little memory for each.
pub const POOL_COUNT_MAX: usize = 64;

/// The turns of those who open pools. Nobody waits for these locks but a metadata server whose pool is not served yet.
#[derive(Default)]
pub(crate) struct Opening {
    /// A lock for each pool that is served or being opened, so that one is opened once.
    turns: Mutex<HashMap<Arc<str>, Arc<Mutex<()>>>>,
    formatting: Mutex<()>,
}

impl Opening {
    /// The lock of a pool.
    ///
    /// # Errors
    /// [`OpenError::TooManyPools`] if as many other pools are served, or being opened, as are possible.
    pub fn turn_of(&self, pool: &Arc<str>) -> Result<Arc<Mutex<()>>, OpenError> {
        let mut turns = self.turns.lock();
        if !turns.contains_key(pool) && turns.len() >= POOL_COUNT_MAX {
            return Err(too_many_pools(pool));
        }
        Ok(turns.entry(pool.clone()).or_default().clone())
    }

    /// Held while volumes are given what they lack for a pool.
    pub fn formatting(&self) -> MutexGuard<'_, ()> {
        self.formatting.lock()
    }

    /// Forgets a pool that could not be opened, unless another is about to try.
    pub fn give_up(&self, pool: &Arc<str>, turn: Arc<Mutex<()>>) {
        let mut turns = self.turns.lock();
        // This one, and the one in the map. Others come by under the map's lock only.
        if Arc::strong_count(&turn) <= 2 {
            turns.remove(pool);
        }
    }
}

pub(crate) fn too_many_pools(pool: &str) -> OpenError {
    OpenError::TooManyPools { pool: pool.into(), count_max: POOL_COUNT_MAX }
}
