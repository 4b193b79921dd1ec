//! The sources of a client's settings: Hadoop's XML files, overrides, and the environment.
//!
//! [`Config`] is the bag of Hadoop's properties, later sources over earlier ones; [`Settings`] is what the
//! rest of the library works with, parsed and checked once.

mod error;
pub mod hadoop_xml;
pub mod high_availability;
pub mod quantity;
mod settings;
#[cfg(test)]
mod tests;
mod user;

pub use error::ConfigError;
pub use settings::Settings;

use hadoop_xml::Properties;
use std::path::Path;

/// The environment variable that names the directory of Hadoop's configuration files.
const DIRECTORY_VARIABLE: &str = "HADOOP_CONF_DIR";

/// The files of a client, in the order in which they are read.
const FILES: [&str; 2] = ["core-site.xml", "hdfs-site.xml"];

/// Hadoop's properties as this client sees them.
#[derive(Clone, Debug, Default)]
pub struct Config {
    properties: Properties,
}

impl Config {
    /// A configuration with nothing but defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The files of `HADOOP_CONF_DIR`, or nothing but defaults where it is not set.
    ///
    /// # Errors
    /// Those of [`Config::from_dir`].
    pub fn from_environment() -> Result<Self, ConfigError> {
        match std::env::var_os(DIRECTORY_VARIABLE) {
            Some(dir) if !dir.is_empty() => Self::from_dir(Path::new(&dir)),
            _ => Ok(Self::new()),
        }
    }

    /// `core-site.xml` and `hdfs-site.xml` of a directory; either may be missing, the directory may not.
    ///
    /// # Errors
    /// The error names the directory if it is not there, and else the file that cannot be read or is no valid
    /// configuration.
    pub fn from_dir(dir: &Path) -> Result<Self, ConfigError> {
        if !dir.is_dir() {
            return Err(ConfigError::at(dir, 0, "is not a directory with Hadoop configuration files"));
        }
        let mut config = Self::new();
        config.read_directory(dir)?;
        Ok(config)
    }

    /// Adds the files of a directory over what is there.
    ///
    /// # Errors
    /// The error names the file that cannot be read or is no valid configuration. A file that is not there is no error.
    pub fn read_directory(&mut self, dir: &Path) -> Result<(), ConfigError> {
        for name in FILES {
            let file = dir.join(name);
            // A file that cannot be looked at is no missing one: reading it says why.
            let is_missing = file.metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
            if !is_missing {
                self.properties.read_file(&file)?;
            }
        }
        Ok(())
    }

    /// Adds one more file over what is there.
    ///
    /// # Errors
    /// Those of [`Properties::read_file`](hadoop_xml::Properties::read_file).
    pub fn read_file(&mut self, file: &Path) -> Result<(), ConfigError> {
        self.properties.read_file(file)
    }

    /// Sets a property, also one that a file declares final, as `-D key=value` does.
    pub fn set(&mut self, key: &str, value: &str) {
        self.properties.set(key, value);
    }

    /// The names of all properties that are set, in their order.
    pub fn keys(&self) -> Vec<String> {
        self.properties.keys()
    }

    /// The property with its `${…}` filled in, or nothing when it is not set.
    pub fn get(&self, key: &str) -> Option<String> {
        self.properties.get(key)
    }

    /// The error to return when the value of `key` makes no sense; it says where the value came from.
    pub fn refuse(&self, key: &str, reason: &str) -> ConfigError {
        self.properties.refuse(key, reason)
    }

    /// The items of a comma-separated property.
    pub fn list(&self, key: &str) -> Vec<String> {
        let text = self.get(key).unwrap_or_default();
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }
}
