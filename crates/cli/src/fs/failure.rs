//! The failures of a command, in the words that Hadoop's shell uses.

use crate::target;
use std::fmt;

/// Why one argument could not be dealt with. The command goes on with the next one.
#[derive(Debug)]
pub enum Failure {
    /// Something is wrong with a path: `` `/a': No such file or directory ``.
    Path {
        operation: Option<&'static str>,
        path: String,
        target: Option<String>,
        reason: String,
    },
    Client(client::Error),
    /// A file of this machine.
    Local {
        path: String,
        error: std::io::Error,
    },
    /// The standard output could not be written.
    Output(std::io::Error),
    Other(String),
    /// The command line makes no sense: say so, and how it is meant.
    Usage(String),
}

pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn path(path: &str, reason: &str) -> Self {
        Self::Path { operation: None, path: path.to_owned(), target: None, reason: reason.to_owned() }
    }

    pub fn not_found(path: &str) -> Self {
        Self::path(path, "No such file or directory")
    }

    pub fn is_directory(path: &str) -> Self {
        Self::path(path, "Is a directory")
    }

    pub fn not_directory(path: &str) -> Self {
        Self::path(path, "Is not a directory")
    }

    pub fn exists(path: &str) -> Self {
        Self::path(path, "File exists")
    }

    /// The failure of an operation about which the file system says only that it was not done.
    pub fn unexplained(path: &str) -> Self {
        Self::path(path, "Input/output error")
    }

    /// The failure [`not_found`](Self::not_found), which also names the whole path `full` if `path` is only a part of
    /// it.
    pub fn not_found_in_full(path: &str, full: &str) -> Self {
        if path == full {
            return Self::not_found(path);
        }
        Self::path(path, &format!("No such file or directory: `{full}'"))
    }

    pub fn local(path: impl AsRef<std::path::Path>, error: std::io::Error) -> Self {
        Self::Local { path: path.as_ref().display().to_string(), error }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { operation, path, target, reason } => {
                if let Some(operation) = operation {
                    write!(f, "{operation} ")?;
                }
                write!(f, "`{path}'")?;
                if let Some(target) = target {
                    write!(f, " to `{target}'")?;
                }
                write!(f, ": {reason}")
            }
            Self::Client(error @ client::Error::Unreachable { .. }) => {
                write!(f, "{error}. {}", target::remedy(error).unwrap_or_default())
            }
            Self::Client(error) => {
                // One line is what scripts expect.
                let text = error.to_string();
                f.write_str(text.lines().next().unwrap_or("unknown error"))
            }
            Self::Local { path, error } => match error.kind() {
                std::io::ErrorKind::NotFound => write!(f, "`{path}': No such file or directory"),
                std::io::ErrorKind::PermissionDenied => write!(f, "`{path}': Permission denied"),
                _ => write!(f, "`{path}': {}", plain(error)),
            },
            Self::Output(error) => write!(f, "writing the output: {}", plain(error)),
            Self::Other(text) | Self::Usage(text) => f.write_str(text),
        }
    }
}

/// The system's text without its error number: `No space left on device`.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Self {
        Self::Client(error)
    }
}

impl From<client::ConfigError> for Failure {
    fn from(error: client::ConfigError) -> Self {
        Self::Client(error.into())
    }
}
