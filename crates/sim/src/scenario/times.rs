//! The times that all stories share.

/// The faults end then, and the cluster has to come to itself.
pub const FAULTS_END_MS: u64 = 12_000;
