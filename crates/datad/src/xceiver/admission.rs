//! The admission of transfer connections, of which there are only so many at a time.

use crate::state::{State, TransferGuard};
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// A newcomer waits at most so long for a connection that gives up its place.
const PATIENCE: Duration = Duration::from_millis(50);

/// Between two looks at whether one has been closed.
const LOOK: Duration = Duration::from_millis(1);

/// Between two lines of the log.
const PERIOD: Duration = Duration::from_secs(1);

/// The refusals of one port.
#[derive(Default)]
pub struct Admission {
    told: Option<Instant>,
    untold: u64,
}

impl Admission {
    /// A place for a newcomer, if need be that of a connection that waits for an operation. `None`: the newcomer is to
    /// be closed at once.
    pub async fn admit(&self, state: &Arc<State>) -> Option<TransferGuard> {
        if let Some(place) = state.admit_transfer() {
            return Some(place);
        }
        if state.waiting.close_longest() > 0 {
            let begun = Instant::now();
            while begun.elapsed() < PATIENCE {
                tokio::time::sleep(LOOK).await;
                if let Some(place) = state.admit_transfer() {
                    return Some(place);
                }
            }
        }
        None
    }

    /// A newcomer was refused.
    pub fn tell_refusal(&mut self, state: &State, peer: impl fmt::Display) {
        self.untold += 1;
        if self.told.is_some_and(|told| told.elapsed() < PERIOD) {
            return;
        }
        tracing::warn!(
            %peer,
            count = state.transfer_count(),
            limit = state.config.transfer_count_max,
            descriptors_taken = state.env.descriptors.taken(),
            descriptors_limit = state.env.descriptors.connections_max(),
            refused = self.untold,
            "a transfer connection was closed at once: there are as many as allowed \
             (dfs.datanode.max.transfer.threads), or as file descriptors allow (ulimit -n, LimitNOFILE)"
        );
        (self.told, self.untold) = (Some(Instant::now()), 0);
    }
}
