//! The number of pieces that are being read for others.

use std::sync::atomic::AtomicUsize;

/// Reads under way.
#[derive(Debug, Default)]
pub struct Reads(pub(super) AtomicUsize);
