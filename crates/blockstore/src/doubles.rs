//! Two volumes may have a finished replica of the same block: one of them goes.
//!
//! A crash leaves such a pair in the midst of a move. A disk that is put back may bring one, if its blocks were copied to another
//! disk of this server meanwhile. One of the two is the replica from the beginning; the other one's files are removed as soon as
//! the replica was read and found whole, and not before. (Hadoop: `dfs.datanode.duplicate.replica.deletion`, which removes
//! them unread.)

use crate::{
    map::{Record, Settled},
    pool::PoolStore,
};
use base::BlockId;
use std::time::Duration;

/// Replicas are read at this rate, so that clients have most of the disk.
const BYTES_PER_SECOND: u64 = 32 << 20;

/// The finished replica of a block that is not the one in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Double {
    pub id: BlockId,
    pub settled: Settled,
}

impl Double {
    /// `None` for one that was never finished. It is left alone: an operator may want its bytes.
    pub fn of(id: BlockId, record: &Record) -> Option<Self> {
        match record {
            Record::Finalized(settled) => Some(Self { id, settled: *settled }),
            Record::Waiting(_) | Record::Active(_) => None,
        }
    }
}

impl PoolStore {
    /// Removes doubles on a thread of its own, which ends with the work, or when the store is closed.
    pub(crate) fn remove_doubles(&self, doubles: Vec<Double>) {
        if doubles.is_empty() {
            return;
        }
        tracing::warn!(
            count = doubles.len(),
            "blocks have two replicas here; one of each goes once the other was read"
        );
        let store = self.clone();
        let started = std::thread::Builder::new().name("doubles".into()).spawn(move || {
            let removed = doubles.into_iter().filter(|double| store.remove_double(*double)).count();
            tracing::info!(removed, "second replicas are removed");
        });
        if let Err(error) = started {
            tracing::error!(%error, "second replicas are not removed: no thread can be started; the next start tries again");
        }
    }

    /// Whether the double's files were removed.
    fn remove_double(&self, double: Double) -> bool {
        let Double { id, settled } = double;
        let Ok(Record::Finalized(kept)) = self.record(id) else { return false };
        if kept.volume == settled.volume || kept.block(id) < settled.block(id) {
            return false;
        }
        let mut go_on = |bytes: u64| {
            std::thread::sleep(Duration::from_micros(bytes.saturating_mul(1_000_000) / BYTES_PER_SECOND));
            let are_there =
                [kept.volume, settled.volume].iter().all(|volume| self.volume(*volume).is_alive());
            are_there && !self.volumes.is_closed()
        };
        if let Err(why) = self.look(id, kept, 0, &mut go_on) {
            tracing::warn!(block = %kept.block(id), ?why, "both replicas are kept: the one in use could not be read to its end");
            return false;
        }
        {
            let mut map = self.state.map.write();
            let is_same = matches!(map.records.get(&id), Some(Record::Finalized(now)) if *now == kept);
            // While it is said to be on its way nobody makes or moves a replica of the block to where the double is.
            if !is_same || map.removing.contains(&id) || !map.moving.insert(id) {
                return false;
            }
        }
        self.remove_record(settled.block(id), Record::Finalized(settled));
        self.state.map.write().moving.remove(&id);
        true
    }
}
