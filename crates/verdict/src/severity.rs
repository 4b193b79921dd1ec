//! How much a condition matters.

use serde::Serialize;
use std::fmt;

/// How much a condition matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The cluster serves; redundancy, room or certainty is less than it should be.
    Warning,
    /// Clients cannot read or change something now.
    Error,
}

impl Severity {
    /// The word, as `warning`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
