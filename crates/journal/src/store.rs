//! Making and opening a store's directory.

use crate::{FormatError, Identity, OpenError, Recovery, Settings};
use env::Env;
use std::path::Path;

/// Makes a store in a directory that is empty or does not exist. Returns the new store's uuid.
pub fn format(_env: &Env, _directory: &Path, _identity: &Identity) -> Result<[u8; 16], FormatError> {
    todo!()
}

/// Opens a store: takes its lock, reads the member's state, and counts this start (boot + 1, durable).
pub fn open(_env: &Env, _directory: &Path, _settings: Settings) -> Result<Recovery, OpenError> {
    todo!()
}
