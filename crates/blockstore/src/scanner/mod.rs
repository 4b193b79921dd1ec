//! The scanners: one reads all replicas again and again, the other compares directories with memory.
//!
//! Each living volume has a thread for each of the two. They only look, and tell the pool's observer what they find;
//! [`crate::Observer`] says what becomes of it. The block scanner is in [`worker`]: [`plan`] decides what is scanned next,
//! [`check`] reads it, [`cursor`] keeps how far a round has come. The directory scanner is in [`directories`]: [`compare`] finds
//! the differences, and [`take_up`] makes replicas of block files that nobody knew.
//!
//! A thread may hang with its disk. Nobody waits for it, at the end neither; it holds no lock while it reads.

pub(crate) mod check;
mod compare;
pub mod cursor;
mod directories;
pub mod figures;
pub mod plan;
mod signal;
pub(crate) mod take_up;
mod worker;

use crate::{store::BlockStore, volume::VolumeIndex};
use base::BlockId;
use figures::ScanFigures;
use parking_lot::Mutex;
use signal::Signal;
use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long the end of a server waits for cursors to be kept.
const STOP_PATIENCE: Duration = Duration::from_millis(500);

/// The settings of both scanners: how often and how fast they read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanConfig {
    /// All replicas of a volume are read once in so long (`dfs.datanode.scan.period.hours`); 0 for never.
    pub block_period_ms: u64,
    /// At most so much is read of a volume (`dfs.block.scanner.volume.bytes.per.second`); 0 for nothing.
    pub block_bytes_per_second: u64,
    /// How often the cursor is kept (`dfs.block.scanner.cursor.save.interval.ms`).
    pub cursor_interval_ms: u64,
    /// The directories are compared with memory this often (`dfs.datanode.directoryscan.interval`); 0 for never.
    pub directory_interval_ms: u64,
    /// Of each second, so long may be used for that (`dfs.datanode.directoryscan.throttle.limit.ms.per.sec`): 1 to 1000.
    pub directory_ms_per_second: u64,
}

impl Default for ScanConfig {
    /// Hadoop's defaults.
    fn default() -> Self {
        Self {
            block_period_ms: 504 * 3_600 * 1_000,
            block_bytes_per_second: 1 << 20,
            cursor_interval_ms: 10 * 60 * 1_000,
            directory_interval_ms: 6 * 3_600 * 1_000,
            directory_ms_per_second: 1_000,
        }
    }
}

/// The scanners of a store. They end when this is dropped, or with [`Scanners::stop`].
#[derive(Debug)]
pub struct Scanners {
    /// By volume.
    signals: Mutex<Vec<Arc<Signal>>>,
    figures: Arc<ScanFigures>,
    config: ScanConfig,
}

impl Scanners {
    /// Starts those that the configuration asks for, on each volume. Pools are scanned as soon as they are served.
    ///
    /// # Errors
    /// The system cannot start the threads.
    pub fn start(store: &Arc<BlockStore>, config: &ScanConfig) -> io::Result<Self> {
        let figures = Arc::<ScanFigures>::default();
        let scanners = Self { signals: Mutex::default(), figures, config: config.clone() };
        scanners.follow(store)?;
        Ok(scanners)
    }

    /// Starts the scanners of volumes that have come, and ends those of volumes that are gone.
    ///
    /// # Errors
    /// The system cannot start the threads.
    pub fn follow(&self, store: &Arc<BlockStore>) -> io::Result<()> {
        let (config, figures) = (&self.config, &self.figures);
        let mut signals = self.signals.lock();
        for (volume, signal) in store.volumes.iter().zip(&*signals) {
            if !volume.is_alive() {
                signal.stop();
            }
        }
        for volume in store.volumes.iter().skip(signals.len()) {
            let signal = Arc::<Signal>::default();
            signals.push(signal.clone());
            if config.block_period_ms > 0 && config.block_bytes_per_second > 0 {
                worker::start(store.clone(), volume.index, config, signal.clone(), figures.clone())?;
            }
            if config.directory_interval_ms > 0 {
                directories::start(store.clone(), volume.index, config, signal, figures.clone())?;
            }
        }
        Ok(())
    }

    /// Has a replica scanned soon, because somebody could not read it. One that is scanned already, or was a short while
    /// ago, is left out.
    pub fn suspect(&self, pool: &Arc<str>, volume: VolumeIndex, id: BlockId) {
        if let Some(signal) = self.signals.lock().get(usize::from(volume.0)) {
            signal.suspect((pool.clone(), id));
        }
    }

    pub fn figures(&self) -> &ScanFigures {
        &self.figures
    }

    /// Ends the scanners. They have a moment to keep their cursors; a disk that hangs is not waited for.
    pub fn stop(&self) {
        self.say_stop();
        let until = Instant::now() + STOP_PATIENCE;
        for signal in self.signals.lock().iter() {
            signal.wait_ended(until);
        }
    }

    fn say_stop(&self) {
        for signal in self.signals.lock().iter() {
            signal.stop();
        }
    }
}

impl Drop for Scanners {
    fn drop(&mut self) {
        self.say_stop();
    }
}
