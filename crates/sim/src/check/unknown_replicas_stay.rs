//! A replica of a block that no file has may be what a loss has left: it stays where the log says so.

use crate::{cluster::data::needed::NeededBlocks, truth::Broken};
use base::BlockId;

/// A member orders a data server to delete a replica of a block that no file has.
///
/// # Errors
/// The block was not removed by an entry, and deletions are held back since a loss, or no entry has ever given out its id.
pub fn check(truth: &NeededBlocks, id: BlockId, server: usize) -> Result<(), Broken> {
    if truth.removed.contains(&id) {
        return Ok(());
    }
    let reason = match () {
        () if truth.are_deletions_held() => "deletions are held back since a loss",
        () if truth.is_skipped(id) => "no entry that is left has given out its id",
        () => return Ok(()),
    };
    Err(format!("unknown replicas stay: data server {server} is told to delete {id:?}, though {reason}"))
}
