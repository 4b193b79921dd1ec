//! A read that the coordinator confirms sees all that committed before it began (I7, by way of the view).

use crate::{
    host::Host,
    truth::{Broken, Truth},
};
use base::Epoch;
use group::Role;

/// A member that serves in the epoch that the coordinator still has would have its read confirmed now: what it
/// calls committed must be all that has.
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
    Ok(())
}
