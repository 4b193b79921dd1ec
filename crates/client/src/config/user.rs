//! The name of the user that the client claims to be.

use super::error::ConfigError;
use std::os::unix::fs::MetadataExt;

/// The environment variable by which Hadoop's clients choose a name where names are believed.
const VARIABLE: &str = "HADOOP_USER_NAME";

/// The user of `HADOOP_USER_NAME`, or of the operating system.
pub fn of_environment() -> Result<String, ConfigError> {
    match std::env::var(VARIABLE) {
        Ok(name) if !name.is_empty() => Ok(name),
        _ => of_system(),
    }
}

/// The user that runs this process.
pub fn of_system() -> Result<String, ConfigError> {
    let refuse = |reason: String| ConfigError { place: "user".into(), reason };
    let uid = std::fs::metadata("/proc/self")
        .map_err(|error| refuse(format!("cannot tell who runs this process: {error}; set {VARIABLE}")))?
        .uid();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    named
        .or_else(|| std::env::var("USER").ok().filter(|name| !name.is_empty()))
        .ok_or_else(|| refuse(format!("user id {uid} has no name on this machine; set {VARIABLE}")))
}
