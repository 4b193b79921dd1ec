//! What all parts of a data server share.

use crate::{config::DataConfig, identity::Identity, reporter::Reporter};
use blockstore::BlockStore;
use env::Env;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// One for a server, behind an `Arc`.
pub struct State {
    pub env: Env,
    pub config: DataConfig,
    pub store: Arc<BlockStore>,
    pub reporter: Reporter,
    pub identity: Identity,
    transfers: AtomicUsize,
}

impl State {
    pub(crate) fn new(env: Env, config: DataConfig, store: Arc<BlockStore>, identity: Identity) -> Self {
        Self { env, config, store, reporter: Reporter::default(), identity, transfers: AtomicUsize::new(0) }
    }

    /// Counts one transfer connection in, until the guard is dropped; `None` when there are as many as the
    /// configuration allows.
    pub fn admit_transfer(self: &Arc<Self>) -> Option<TransferGuard> {
        let admitted = self
            .transfers
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
                (count < self.config.transfer_count_max).then_some(count + 1)
            })
            .is_ok();
        admitted.then(|| TransferGuard { state: self.clone() })
    }

    /// Transfer connections under way, for heartbeats.
    pub fn transfer_count(&self) -> usize {
        self.transfers.load(Ordering::Acquire)
    }
}

/// See [`State::admit_transfer`].
pub struct TransferGuard {
    state: Arc<State>,
}

impl Drop for TransferGuard {
    fn drop(&mut self) {
        self.state.transfers.fetch_sub(1, Ordering::AcqRel);
    }
}
