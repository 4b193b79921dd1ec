//! The words to the scanners of a volume while they run.

use super::plan::{Name, SUSPECT_COUNT_MAX};
use parking_lot::{Condvar, Mutex};
use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

/// Shared by the threads of a volume and those who speak to them.
#[derive(Debug, Default)]
pub(super) struct Signal {
    told: Mutex<Told>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Told {
    is_stopped: bool,
    /// Threads that run.
    running: usize,
    suspects: Vec<Name>,
}

impl Signal {
    pub fn stop(&self) {
        self.told.lock().is_stopped = true;
        self.wake.notify_all();
    }

    /// Starts a scanner's thread. It counts as running until its work has ended.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(self: &Arc<Self>, name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.told.lock().running += 1;
        let running = Running(self.clone());
        std::thread::Builder::new().name(name).spawn(move || {
            let _running = running;
            work();
        })?;
        Ok(())
    }

    /// Waits until all threads have ended, or until that moment. Returns whether they have ended.
    pub fn wait_ended(&self, until: Instant) -> bool {
        let mut told = self.told.lock();
        while told.running > 0 {
            if self.wake.wait_until(&mut told, until).timed_out() {
                break;
            }
        }
        told.running == 0
    }

    pub fn is_stopped(&self) -> bool {
        self.told.lock().is_stopped
    }

    /// Nobody takes them where the block scanner is off: then the first ones stay, which is little.
    pub fn suspect(&self, replica: Name) {
        let mut told = self.told.lock();
        if told.suspects.len() < SUSPECT_COUNT_MAX && !told.suspects.contains(&replica) {
            told.suspects.push(replica);
        }
    }

    pub fn take_suspects(&self) -> Vec<Name> {
        std::mem::take(&mut self.told.lock().suspects)
    }

    /// Waits so long, or until the scanners are to end. Returns whether the scanners go on.
    pub fn wait(&self, ms: u64) -> bool {
        let until = Instant::now() + Duration::from_millis(ms);
        let mut told = self.told.lock();
        while !told.is_stopped {
            if self.wake.wait_until(&mut told, until).timed_out() {
                break;
            }
        }
        !told.is_stopped
    }
}

/// A thread that runs: see [`Signal::start`].
struct Running(Arc<Signal>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.told.lock().running -= 1;
        self.0.wake.notify_all();
    }
}
