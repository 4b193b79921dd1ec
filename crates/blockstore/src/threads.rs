//! I/O threads, some for each volume, so that a slow disk holds up only its own work.

use crate::volume::VolumeIndex;
use parking_lot::RwLock;
use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, Sender, channel},
};

type Job = Box<dyn FnOnce() + Send>;

/// The queues are not bounded here. The submitter bounds its own work under way: one packet or a few of each
/// connection, and connections are counted.
pub struct VolumeThreads {
    volumes: RwLock<Running>,
    threads_per_volume: usize,
    /// Belongs to no volume: see [`VolumeThreads::submit_office`].
    office: Sender<Job>,
}

/// The threads of the volumes that are there.
#[derive(Default)]
struct Running {
    /// By volume; `None` for one that was removed.
    lanes: Vec<Option<Lanes>>,
    /// The volumes that have threads.
    volumes: Vec<usize>,
}

struct Lanes {
    foreground: Vec<Sender<Job>>,
    /// Removals and other work that no caller waits for.
    background: Sender<Job>,
}

impl VolumeThreads {
    pub(crate) fn start(volume_count: usize, threads_per_volume: usize) -> io::Result<Self> {
        let office = start_thread("volume-office".into())?;
        let threads = Self { volumes: RwLock::default(), threads_per_volume, office };
        for volume in 0..volume_count {
            threads.add(VolumeIndex(volume as u16))?;
        }
        Ok(threads)
    }

    /// Starts the threads of one more volume.
    pub(crate) fn add(&self, volume: VolumeIndex) -> io::Result<()> {
        let number = volume.0;
        let foreground = (0..self.threads_per_volume.max(1))
            .map(|thread| start_thread(format!("volume-{number}-{thread}")))
            .collect::<io::Result<_>>()?;
        let background = start_thread(format!("volume-{number}-bg"))?;
        let mut running = self.volumes.write();
        let place = usize::from(number);
        if running.lanes.len() <= place {
            running.lanes.resize_with(place + 1, || None);
        }
        running.lanes[place] = Some(Lanes { foreground, background });
        running.find_volumes();
        Ok(())
    }

    /// Lets the threads of a removed volume end, once they have done what was submitted. Jobs that come later run elsewhere, and
    /// find that their volume is lost.
    pub(crate) fn end(&self, volume: VolumeIndex) {
        let mut running = self.volumes.write();
        if let Some(lanes) = running.lanes.get_mut(usize::from(volume.0)) {
            *lanes = None;
        }
        running.find_volumes();
    }

    /// Runs `job` on a thread of `volume`. Jobs of one `lane` (a block id, say) run in the order of
    /// submission; completion is the job's own business (it may send on a channel).
    pub fn submit(&self, volume: VolumeIndex, lane: u64, job: impl FnOnce() + Send + 'static) {
        // A thread ends only with the store, which the submitter holds, or with its volume, which has no lanes then.
        let _ = match self.volumes.read().lanes_of(usize::from(volume.0)) {
            Some(Lanes { foreground, .. }) => {
                foreground[(lane % foreground.len() as u64) as usize].send(Box::new(job))
            }
            None => self.office.send(Box::new(job)),
        };
    }

    /// Runs a job on a thread of any volume, for work that has yet to choose its volume. Otherwise like
    /// [`VolumeThreads::submit`].
    pub fn submit_any(&self, lane: u64, job: impl FnOnce() + Send + 'static) {
        // The quotient picks the volume, so that the remainder still spreads over its threads.
        let volume = {
            let running = self.volumes.read();
            let count = running.volumes.len().max(1) as u64;
            running.volumes.get((lane / 7 % count) as usize).copied().unwrap_or_default()
        };
        self.submit(VolumeIndex(volume as u16), lane, job);
    }

    /// Submits work that asks about all volumes (reports, figures) and must not wait behind a disk that hangs.
    pub fn submit_office(&self, job: impl FnOnce() + Send + 'static) {
        let _ = self.office.send(Box::new(job));
    }

    pub(crate) fn submit_background(&self, volume: VolumeIndex, job: impl FnOnce() + Send + 'static) {
        let _ = match self.volumes.read().lanes_of(usize::from(volume.0)) {
            Some(lanes) => lanes.background.send(Box::new(job)),
            None => self.office.send(Box::new(job)),
        };
    }
}

impl Running {
    fn find_volumes(&mut self) {
        self.volumes = (0..self.lanes.len()).filter(|volume| self.lanes[*volume].is_some()).collect();
    }

    /// The lanes of a volume, or those of another one if it has none any more.
    fn lanes_of(&self, volume: usize) -> Option<&Lanes> {
        let own = self.lanes.get(volume).and_then(Option::as_ref);
        own.or_else(|| self.lanes[*self.volumes.first()?].as_ref())
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
