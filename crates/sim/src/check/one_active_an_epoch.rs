//! An epoch has one active at most (I1).

use crate::truth::Broken;
use base::{Epoch, MemberId};

/// # Errors
/// Two members lead in the epoch.
pub fn check(leader: MemberId, member: MemberId, epoch: Epoch) -> Result<(), Broken> {
    if leader != member {
        return Err(format!("one active an epoch: {leader} and {member} both lead in epoch {epoch}"));
    }
    Ok(())
}
