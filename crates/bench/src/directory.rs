//! The directory in which a bench works, and which it removes in the end.

use anyhow::{Context, ensure};
use std::path::Path;

/// Whether nothing is lost if this directory is removed: it is empty, or not there.
pub fn is_empty(dir: &Path) -> anyhow::Result<bool> {
    let read = || anyhow::Ok(dir.read_dir()?.next().transpose()?.is_none());
    Ok(!dir.exists() || read().with_context(|| format!("looking into {}", dir.display()))?)
}

pub fn must_be_empty(dir: &Path) -> anyhow::Result<()> {
    ensure!(is_empty(dir)?, "{} is not empty: name a new directory", dir.display());
    Ok(())
}
