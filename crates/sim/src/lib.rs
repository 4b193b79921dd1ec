//! Simulated worlds, checkers and replay.
//!
//! Machines and stores run here on a simulated disk, clock and randomness, in one thread, from one seed: the
//! same seed gives the same bytes. Production code contains nothing for it; everything comes in through `env`.
//! This crate must never be used by another, except by tests and fuzz targets.
//!
//! Start with [`scenario::lone_server`] for a server and its disk, [`scenario::cluster`] for whole groups on
//! virtual time, [`model`] for every order of events in a small group. A run that fails prints one line to paste:
//! `cargo run -p clover-sim -- replay <story> <seed>`.

pub mod check;
pub mod clock;
pub mod cluster;
pub mod dice;
pub mod dirs;
pub mod disk;
pub mod history;
pub mod host;
pub mod model;
pub mod random;
pub mod scenario;
pub mod server;
pub mod truth;
pub mod workload;

pub use clock::SimClock;
pub use dice::Dice;
pub use disk::{Fault, Loss, SimDisk};
pub use random::SimRandom;
