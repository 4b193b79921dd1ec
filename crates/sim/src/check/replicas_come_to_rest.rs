//! Once all faults are over the active knows the replicas of every file's blocks, there are as many as are wanted, and the
//! replicas of deleted files are gone.

use crate::truth::Broken;
use base::Block;

/// `known`: the data servers on which the active takes a replica to be; `holders`: those that have one.
///
/// # Errors
/// They differ, or there is none though none was lost.
pub fn known(block: &Block, known: &[usize], holders: &[usize], was_lost: bool) -> Result<(), Broken> {
    if known != holders {
        return Err(format!(
            "live blocks are known in the end: {block} is on {holders:?}, and the active believes on {known:?}"
        ));
    }
    if holders.is_empty() && !was_lost {
        return Err(format!("live blocks have replicas in the end: {block} has none"));
    }
    Ok(())
}

/// # Errors
/// There are fewer replicas than could be made.
pub fn enough(block: &Block, holders: &[usize], wanted: usize) -> Result<(), Broken> {
    if !holders.is_empty() && holders.len() < wanted {
        return Err(format!(
            "live blocks have their replicas in the end: {block} is on {holders:?} and shall be on {wanted}"
        ));
    }
    Ok(())
}

/// # Errors
/// A replica is there that nobody needs.
pub fn gone(server: usize, block: &Block, may_stay: bool) -> Result<(), Broken> {
    if may_stay {
        return Ok(());
    }
    Err(format!("deleted files leave no replicas: data server {server} has one of {block} in the end"))
}
