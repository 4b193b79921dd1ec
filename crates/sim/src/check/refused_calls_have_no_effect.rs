//! A client that was told that its call has changed nothing goes on. No late copy of the call changes anything then, at the
//! process that has told it.
//!
//! After a takeover a late copy may be carried out (docs/protocol/calls.md says when), and that is not checked.

use crate::{cluster::client::CallKey, truth::Broken};
use base::MemberLife;

/// `planner` carries out a call that `refuser` has refused, if any.
///
/// # Errors
/// They are one process.
pub fn check(refuser: Option<&MemberLife>, call: CallKey, planner: MemberLife) -> Result<(), Broken> {
    if refuser == Some(&planner) {
        return Err(format!(
            "refused calls have no effect: member {} has refused call {} of client {}, and carries it out now",
            planner.store.member, call.call, call.client
        ));
    }
    Ok(())
}
