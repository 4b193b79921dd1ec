//! The end of a running server.

/// Why a running server can go on no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The process had better end: the reason, and what to do.
    Failed(String),
    /// The state in memory differs from the one on the disk: the server is to be started again.
    Restart(String),
}
