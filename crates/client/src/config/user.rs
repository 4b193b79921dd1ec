//! The name of the user that the client claims to be.

use super::error::ConfigError;
use env::users::{self, Nameless};

/// The user of `HADOOP_USER_NAME`, or of the operating system.
pub fn of_environment() -> Result<String, ConfigError> {
    users::of_process().map_err(refused)
}

/// The user that runs this process.
pub fn of_system() -> Result<String, ConfigError> {
    users::of_system().map_err(refused)
}

fn refused(nameless: Nameless) -> ConfigError {
    ConfigError { place: "user".into(), reason: nameless.to_string() }
}
