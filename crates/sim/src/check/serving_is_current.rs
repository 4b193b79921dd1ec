//! A read that the coordinator confirms sees all that committed before it began (I7, by way of the view).

use crate::{
    host::Host,
    truth::{Broken, Truth},
};
use base::Epoch;
use group::Role;

/// A member that serves in the epoch that the coordinator still has would have its read confirmed now: what it
/// calls committed must be all that has.
///
/// # Errors
/// The member would answer reads, and does not know or hold the last committed entry.
pub fn check(truth: &Truth, host: &Host, epoch: Epoch) -> Result<(), Broken> {
    let Some(member) = &host.member else { return Ok(()) };
    if *member.role() == (Role::Serving { epoch }) && member.committed() < truth.last() {
        return Err(format!(
            "reads see what committed before: member {} serves epoch {epoch}, knows {} and misses {}",
            host.store.member,
            member.committed(),
            truth.last()
        ));
    }
    // Below the minimum a member does not know what has committed, but holds it, and answers about the rest only.
    if *member.role() == (Role::Reading { epoch })
        && host.disk.point(truth.last()) != truth.point(truth.last())
        && truth.last() > host.disk.start.id.sn
    {
        return Err(format!(
            "reads see what committed before: member {} answers below the minimum in epoch {epoch}, and lacks {}",
            host.store.member,
            truth.last()
        ));
    }
    Ok(())
}
