//! The last lines of a program's log, for pages that show them.

use crate::log_levels::Level;
use std::sync::Arc;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// In milliseconds since 1970.
    pub time_ms: u64,
    pub level: Level,
    /// The name of the log, as `metad::member`.
    pub log: String,
    pub text: String,
}

/// The lines that are kept, the oldest first.
pub type LogSource = Arc<dyn Fn() -> Vec<Arc<LogLine>> + Send + Sync>;
