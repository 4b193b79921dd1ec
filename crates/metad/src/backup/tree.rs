//! The tree of a group that serves, for a program beside it.

use super::{BackupError, Group, Operator, Options, TargetError, Until, rebuild, run};
use env::Env;
use journal::archive::{ArchiveError, Backup};
use namespace::Namespace;
use std::path::Path;
use thiserror::Error;
use tokio::runtime::Handle;

#[derive(Debug, Error)]
pub enum TreeError {
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// The tree of a group with all that had committed when this began. It is fetched as a backup is, into `directory`, which does not exist
/// before and is the caller's to remove. Blocks until it is here.
///
/// # Errors
/// Those of [`run`]; [`TreeError::Archive`] and [`TreeError::Target`] if what was fetched cannot be read again.
pub fn tree_of_now(
    env: &Env,
    directory: &Path,
    group: Group,
    runtime: &Handle,
    operator: &mut dyn Operator,
) -> Result<Namespace, TreeError> {
    run(env, directory, group, runtime, Options::default(), operator)?;
    let backup = Backup::open(env.disk.clone(), directory)?;
    Ok(rebuild(&backup, Until::End, env.random.next_u64())?.namespace)
}
