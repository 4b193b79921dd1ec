//! What has committed is never cut off a log again (I3).

use crate::{
    host::Host,
    truth::{Broken, Truth},
};
use base::Entry;

pub fn check(truth: &Truth, host: &Host, cut: &Entry) -> Result<(), Broken> {
    if !truth.is_unclean && truth.point(cut.id.sn) == Some(cut.point()) {
        return Err(format!(
            "committed entries are never cut: member {} has cut off {}",
            host.store.member, cut.id
        ));
    }
    Ok(())
}
