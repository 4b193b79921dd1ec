//! The only door to clock, disk and randomness, and to what the process may have of the system.
//!
//! Production and simulation differ here and nowhere else: a service takes an [`Env`] when it is built and
//! asks it for time, bytes and files. There is no global to reach for. Nothing here knows what is stored.

pub mod clock;
pub mod descriptors;
pub mod disk;
pub mod local_disk;
mod process;
pub mod program;
pub mod pulse;
pub mod random;
pub mod starvation;
pub mod threads;
pub mod users;

pub use clock::{Clock, SystemClock};
pub use descriptors::Descriptors;
pub use disk::{Disk, File, FileKind, Lock, OpenMode, WriteDone};
pub use local_disk::LocalDisk;
pub use process::ProcessFacts;
pub use random::{OsRandom, Random};
pub use starvation::Starvation;

use std::sync::Arc;

/// Everything a service may ask of the world. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    pub clock: Arc<dyn Clock>,
    pub disk: Arc<dyn Disk>,
    pub random: Arc<dyn Random>,
    /// The process's file descriptors, and how many of them connections may take.
    pub descriptors: Arc<Descriptors>,
}

impl Env {
    /// The real world.
    pub fn production() -> Self {
        Self {
            clock: Arc::new(SystemClock::new()),
            disk: Arc::new(LocalDisk::new()),
            random: Arc::new(OsRandom),
            descriptors: Arc::new(Descriptors::of_process()),
        }
    }
}
