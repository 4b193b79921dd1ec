//! A member never cuts off an entry that it knows to have committed (I3).
//!
//! A member that is not in sync may hold a committed entry without knowing that it has committed, and may cut it off
//! at the word of an older active whose messages were late; it gets the entry back before it counts again.
//! [`super::eligible_is_complete`] checks that no member that counts does so.

use crate::{
    host::Host,
    truth::{Broken, Truth},
};
use base::Entry;

/// # Errors
/// The member knows that the entry has committed, and cuts it off.
pub fn check(truth: &Truth, host: &Host, cut: &Entry) -> Result<(), Broken> {
    let is_known = host.member.as_ref().is_some_and(|member| member.committed() >= cut.id.sn);
    if is_known && !truth.is_unclean {
        return Err(format!(
            "committed entries are never cut: member {} knows that {} has committed and cuts it off",
            host.store.member, cut.id
        ));
    }
    Ok(())
}
