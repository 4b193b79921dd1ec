//! A member that may be elected holds every committed entry, durably (I2).

use crate::{
    host::Host,
    truth::{Broken, Truth},
};
use base::GroupView;

/// # Errors
/// A member that may be elected lacks the last committed entry.
pub fn check(truth: &Truth, hosts: &[&Host], view: &GroupView) -> Result<(), Broken> {
    let Some(last) = truth.committed.last() else { return Ok(()) };
    // A tail that may have rotted is looked at together with those of all the others.
    for host in hosts.iter().filter(|host| view.is_eligible(host.store) && !host.disk.is_suspect) {
        // The chain stands for all entries before.
        if !host.disk.holds_durably(*last) {
            return Err(format!(
                "eligible members are complete: member {} may be elected and lacks {}, its log ends at {}",
                host.store.member,
                last.id,
                host.disk.durable_end().id
            ));
        }
    }
    Ok(())
}
