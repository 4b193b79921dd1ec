//! A committed entry is durable on as many members as the group's minimum says (I9).

use crate::{
    host::Host,
    truth::{Broken, Truth},
};
use base::GroupView;

/// # Errors
/// The last committed entry is durable on fewer members than the view asks for.
pub fn check(truth: &Truth, hosts: &[&Host], view: &GroupView) -> Result<(), Broken> {
    let Some(last) = truth.committed.last() else { return Ok(()) };
    // A minimum that was raised binds what commits from then on.
    if view.in_sync.len() < view.in_sync_min as usize {
        return Ok(());
    }
    let copies = hosts.iter().filter(|host| host.disk.holds_durably(*last)).count();
    if copies < view.in_sync_min as usize {
        return Err(format!(
            "committed entries have enough copies: {} is durable on {copies} of the {} members it needs",
            last.id, view.in_sync_min
        ));
    }
    Ok(())
}
