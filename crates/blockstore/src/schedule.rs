//! Streams take turns on a disk, in long runs.
//!
//! [`plan`] decides, and knows no file and no clock. [`turns`] is the thread of a volume that asks it; [`write_stream`] is what a
//! writer has of it, and [`read_stream`] what a reader has. `docs/decisions/2026-11-28-turns-on-a-disk.md` says why it is done so.

pub mod config;
pub mod plan;
pub mod read_stream;
pub mod stream_file;
pub mod turns;
pub mod write_stream;
