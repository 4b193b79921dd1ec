//! I/O threads, some for each volume, so that a slow disk holds up nobody but itself.

use crate::store::VolumeIndex;

pub struct VolumeThreads {
    _todo: (),
}

impl VolumeThreads {
    /// Runs `job` on a thread of `volume`. Jobs of one `lane` (a block id, say) run in the order of
    /// submission; completion is the job's own business (it may send on a channel).
    pub fn submit(&self, volume: VolumeIndex, lane: u64, job: impl FnOnce() + Send + 'static) {
        let _ = (volume, lane, job);
        todo!()
    }

    /// The same on any volume's thread: for work that will choose its volume.
    pub fn submit_any(&self, lane: u64, job: impl FnOnce() + Send + 'static) {
        let _ = (lane, job);
        todo!()
    }
}
