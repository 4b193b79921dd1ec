//! The way from a member to the one thread that changes its namespace.

use super::Followed;
use group::Proposal;

/// The writer's queue, as a member sees it. Nothing here blocks. Once the server is stopping nothing is taken any more.
pub trait Writer: Send + Sync {
    /// Has the group's decisions applied, in the order of these calls.
    fn follow(&self, followed: Followed);
    /// Has an entry appended that another member suggests, if this member serves by then.
    fn append(&self, suggested: Proposal);
    /// Runs this between two turns, where tree and log agree. False if it never will, because the server is stopping.
    fn between(&self, run: Box<dyn FnOnce() + Send>) -> bool;
}
