//! Closes files whose writer has been silent for longer than the hard limit.

use crate::{BlockFacts, Context, Edit, Namespace};
use base::{Block, InodeId};

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nobody is writing the file.
    Closed,
    Edit(Edit),
    /// Replicas of this block have still to be reported.
    Waiting(Block),
}

/// One file of an expired holder; see [`crate::Renewals::take_hard_expired`] and [`Namespace::files_of`].
pub fn plan(ns: &Namespace, ctx: &Context<'_>, inode: InodeId, facts: &dyn BlockFacts) -> Plan {
    let _ = (ns, ctx, inode, facts);
    todo!()
}
