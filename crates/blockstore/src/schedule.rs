//! Streams take turns on a disk, in long runs: `docs/decisions/2026-11-28-turns-on-a-disk.md` says why.

pub mod plan;
