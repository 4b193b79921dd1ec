//! The name of a volume within a running store.

/// A volume's place among the opened ones; stays the same while the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeIndex(pub u16);
