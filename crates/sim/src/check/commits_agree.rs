//! All members agree on the committed entries (I4).

use crate::truth::{Broken, Truth};
use base::{LogPoint, MemberId};

/// `member` says that `point` has committed.
///
/// # Errors
/// Another entry than `point` has committed in its place.
pub fn check(truth: &Truth, member: MemberId, point: LogPoint) -> Result<(), Broken> {
    match truth.point(point.id.sn) {
        Some(known) if known != point => {
            Err(format!("commits agree: {known} has committed, and member {member} commits {point}"))
        }
        _ => Ok(()),
    }
}
