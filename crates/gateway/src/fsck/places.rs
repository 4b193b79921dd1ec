//! How many checks of the file system are under way at once.

use crate::error::{Refusal, Result};
use std::{sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Checks at once. Each keeps the metadata server busy with listings, and further ones make none of them faster.
const CHECKS_MAX: usize = 4;
/// How long a check waits for another one to end.
const PLACE_WAIT: Duration = Duration::from_secs(10);

/// The places of checks that are under way.
pub struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CHECKS_MAX)))
    }
}

impl Places {
    /// # Errors
    /// None has become free.
    pub async fn take(&self) -> Result<OwnedSemaphorePermit> {
        match tokio::time::timeout(PLACE_WAIT, self.0.clone().acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(Refusal::busy(format!(
                "{CHECKS_MAX} checks of the file system are under way here, which are as many as there may be; try again"
            ))),
        }
    }
}
