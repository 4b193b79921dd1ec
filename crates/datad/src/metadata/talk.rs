//! What was said last between this server and a metadata server, for those who look at its pages.

use base::Moment;
use parking_lot::Mutex;
use std::sync::Arc;

/// Nothing, until it happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Talk {
    /// The pool of the metadata server, since the first handshake.
    pub pool: Option<Arc<str>>,
    /// Whether it says that it is active.
    pub is_active: Option<bool>,
    /// Whether it says that this server is slow.
    pub calls_slow: bool,
    pub heartbeat_sent: Option<Moment>,
    pub heartbeat_answered: Option<Moment>,
    /// When a full block report was last taken.
    pub reported: Option<Moment>,
    /// The size of the largest message of such a report.
    pub report_bytes_max: u64,
}

/// One actor writes it, and pages read it.
pub type SharedTalk = Arc<Mutex<Talk>>;
