//! What a member knows to have committed it never cuts off again (I3).
//!
//! Members that nobody relies on may hold a committed entry without knowing that it has committed, and may
//! cut it off at the word of an older active whose messages were late; they get it back before they count again.
//! That nobody who counts does so is for [`super::eligible_is_complete`].

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
