//! I/O threads, some for each volume, so that a slow disk holds up only its own work.

use crate::volume::VolumeIndex;
use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, Sender, channel},
};

type Job = Box<dyn FnOnce() + Send>;

/// The queues are not bounded here. The submitter bounds its own work under way: one packet or a few of each
/// connection, and connections are counted.
pub struct VolumeThreads {
    volumes: Vec<Lanes>,
    /// Belongs to no volume: see [`VolumeThreads::submit_office`].
    office: Sender<Job>,
}

struct Lanes {
    foreground: Vec<Sender<Job>>,
    /// Removals and other work that no caller waits for.
    background: Sender<Job>,
}

impl VolumeThreads {
    pub(crate) fn start(volume_count: usize, threads_per_volume: usize) -> io::Result<Self> {
        let mut volumes = Vec::with_capacity(volume_count);
        for volume in 0..volume_count {
            let foreground = (0..threads_per_volume.max(1))
                .map(|thread| start_thread(format!("volume-{volume}-{thread}")))
                .collect::<io::Result<_>>()?;
            let background = start_thread(format!("volume-{volume}-bg"))?;
            volumes.push(Lanes { foreground, background });
        }
        Ok(Self { volumes, office: start_thread("volume-office".into())? })
    }

    /// Runs `job` on a thread of `volume`. Jobs of one `lane` (a block id, say) run in the order of
    /// submission; completion is the job's own business (it may send on a channel).
    pub fn submit(&self, volume: VolumeIndex, lane: u64, job: impl FnOnce() + Send + 'static) {
        let lanes = &self.volumes[volume.0 as usize].foreground;
        // A thread ends only with the store, which the submitter holds.
        let _ = lanes[(lane % lanes.len() as u64) as usize].send(Box::new(job));
    }

    /// Runs a job on a thread of any volume, for work that has yet to choose its volume. Otherwise like
    /// [`VolumeThreads::submit`].
    pub fn submit_any(&self, lane: u64, job: impl FnOnce() + Send + 'static) {
        // The quotient picks the volume, so that the remainder still spreads over its threads.
        let volume = lane / 7 % self.volumes.len() as u64;
        self.submit(VolumeIndex(volume as u16), lane, job);
    }

    /// Submits work that asks about all volumes (reports, figures) and must not wait behind a disk that hangs.
    pub fn submit_office(&self, job: impl FnOnce() + Send + 'static) {
        let _ = self.office.send(Box::new(job));
    }

    pub(crate) fn submit_background(&self, volume: VolumeIndex, job: impl FnOnce() + Send + 'static) {
        let _ = self.volumes[volume.0 as usize].background.send(Box::new(job));
    }
}

fn start_thread(name: String) -> io::Result<Sender<Job>> {
    let (sender, jobs) = channel();
    std::thread::Builder::new().name(name).spawn(move || work(&jobs))?;
    Ok(sender)
}

/// Until the store is dropped. A job that panics is a bug of its own, not the end of its volume.
fn work(jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("a job on a volume's thread panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_keeps_its_order_and_survives_a_panic() {
        let threads = VolumeThreads::start(2, 3).unwrap();
        let (sender, results) = channel();
        threads.submit(VolumeIndex(1), 7, || panic!("one bad job"));
        for number in 0..100 {
            let sender = sender.clone();
            threads.submit(VolumeIndex(1), 7, move || sender.send(number).unwrap());
        }
        drop(sender);
        assert_eq!(results.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    }
}
