//! The way to the coordinator that keeps the group's view.

use crate::config::CoordinatorConfig;
use coord::Coordinator;
use env::Env;
use std::{path::Path, sync::Arc};

/// Opens the coordinator that the configuration names. That of a lone server is the file `embedded`.
pub fn open_coordinator(
    env: &Env,
    config: &CoordinatorConfig,
    embedded: &Path,
) -> Result<Arc<dyn Coordinator>, coord::OpenError> {
    Ok(match config {
        CoordinatorConfig::Embedded => Arc::new(coord::Embedded::open(env, embedded)?),
        CoordinatorConfig::Shared(coordinator) => coordinator.clone(),
        CoordinatorConfig::ZooKeeper(config) => coord::ZooKeeper::connect(config.clone())?,
    })
}
