//! Equal entries applied give equal state.

use crate::history::History;
use base::{LogPoint, TxId};

/// A namespace has come to `id` with this digest.
pub fn check(history: &History, id: TxId, digest: u64) {
    if let Some((point, known)) = history.states.get(&id.sn)
        && point.id == id
    {
        assert_eq!(*known, digest, "equal state at equal sn: after entry {id} the digests differ");
    }
}

/// A log holds this entry.
pub fn check_point(history: &History, point: LogPoint) {
    if let Some((known, _)) = history.states.get(&point.id.sn)
        && point.id.sn <= history.acknowledged
    {
        assert_eq!(*known, point, "an acknowledged entry never changes");
    }
}
