//! Names the place of a configuration that cannot be used.

use std::path::Path;
use thiserror::Error;

/// A configuration file or value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {reason}")]
pub struct ConfigError {
    /// The file and, where known, the line; or the command line or the environment, if the value came from there.
    pub place: String,
    pub reason: String,
}

impl ConfigError {
    /// `line` is counted from 1; 0 is the file as a whole.
    pub fn at(file: &Path, line: u32, reason: impl Into<String>) -> Self {
        let place = match line {
            0 => file.display().to_string(),
            line => format!("{}:{line}", file.display()),
        };
        Self { place, reason: reason.into() }
    }
}
