//! The names of the cluster that this server belongs to.

pub mod text;

use crate::peers::Secret;
use base::Level;
use std::sync::Arc;

/// The names of this cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub cluster_id: String,
    pub namespace_id: u32,
    pub block_pool: Arc<str>,
    pub created_ms: u64,
    /// The level that its group began at.
    pub first_level: Level,
    /// The secret that its members prove to each other. A cluster made by an early version has none.
    pub secret: Option<Secret>,
}
