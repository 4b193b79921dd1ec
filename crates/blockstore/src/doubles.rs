//! Two volumes may have a finished replica of the same block: the store removes one of the two.
//!
//! A crash leaves such a pair in the midst of a move. A disk that is put back may bring one, if its blocks were copied to another
//! disk of this server meanwhile. One of the two is the replica from the beginning; the other one's files are removed as soon as
//! the replica was read and found whole, and not before. (Hadoop: `dfs.datanode.duplicate.replica.deletion`, which removes
//! them unread.)

use crate::{
    layout::Place,
    map::{Record, Settled},
    pool::PoolStore,
    scanner::take_up::{TakenUp, Unknown},
};
use base::BlockId;
use std::time::Duration;

/// Replicas are read at this rate, so that clients have most of the disk.
const BYTES_PER_SECOND: u64 = 32 << 20;

/// The pause before another look at a block whose replica in use is being changed.
const PAUSE: Duration = Duration::from_secs(1);

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

/// The outcome of one look at a double.
enum Met {
    Removed,
    /// It stays: the replica in use is not sound, or the double's volume is lost.
    Kept,
    /// The replica in use is being changed: the double is looked at again.
    Later,
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
            let mut left = doubles;
            let mut removed = 0;
            while !left.is_empty() && !store.volumes.is_closed() {
                left.retain(|double| {
                    let met = store.remove_double(*double);
                    removed += usize::from(matches!(met, Met::Removed));
                    matches!(met, Met::Later)
                });
                if !left.is_empty() {
                    std::thread::sleep(PAUSE);
                }
            }
            tracing::info!(removed, "second replicas are removed");
        });
        if let Err(error) = started {
            tracing::error!(%error, "second replicas are not removed: no thread can be started; the next start tries again");
        }
    }

    fn remove_double(&self, double: Double) -> Met {
        let Double { id, settled } = double;
        if !self.volume(settled.volume).is_alive() {
            return Met::Kept;
        }
        let kept = match self.record(id) {
            Ok(Record::Finalized(kept)) => kept,
            Ok(Record::Waiting(_) | Record::Active(_)) => return Met::Later,
            // The replica in use was deleted, or is lost. The metadata server hears of this one, and decides.
            Err(_) => return self.take_up_double(double),
        };
        if kept.volume == settled.volume || kept.block(id) < settled.block(id) {
            return Met::Kept;
        }
        let looked = self.look(id, kept, 0, &mut |bytes| self.goes_on(bytes, &[kept, settled]));
        let is_same =
            |record: Option<&Record>| matches!(record, Some(Record::Finalized(now)) if *now == kept);
        if let Err(why) = looked {
            if !is_same(self.record(id).ok().as_ref()) {
                return Met::Later;
            }
            tracing::warn!(block = %kept.block(id), ?why, "both replicas are kept: the one in use could not be read to its end");
            return Met::Kept;
        }
        {
            let mut map = self.state.map.write();
            // While it is said to be on its way nobody makes or moves a replica of the block to where the double is.
            if !is_same(map.records.get(&id)) || map.removing.contains(&id) || !map.moving.insert(id) {
                return Met::Later;
            }
        }
        self.remove_record(settled.block(id), Record::Finalized(settled));
        self.state.map.write().moving.remove(&id);
        Met::Removed
    }

    fn take_up_double(&self, Double { id, settled }: Double) -> Met {
        let stamp = settled.generation_stamp;
        let directory = self.paths(settled.volume).directory(Place::Finalized, id);
        let found = Unknown { id, stamp, directory: &directory };
        match self.take_up(settled.volume, found, &mut |bytes| self.goes_on(bytes, &[settled])) {
            TakenUp::Known => Met::Later,
            TakenUp::Yes(_) | TakenUp::No(_) | TakenUp::Stopped => Met::Kept,
        }
    }

    /// Waits as the rate wants it. `false` if the store or one of these volumes is not in use any more.
    fn goes_on(&self, bytes: u64, of: &[Settled]) -> bool {
        std::thread::sleep(Duration::from_micros(bytes.saturating_mul(1_000_000) / BYTES_PER_SECOND));
        of.iter().all(|settled| self.volume(settled.volume).is_alive()) && !self.volumes.is_closed()
    }
}
