//! Histories are linearizable (I7).
//!
//! The group's log is one order of all changes, so a history fits if each answer rests on a committed prefix of
//! it that holds everything which any call answered before this one began rested on. That is checked here for
//! every answer, instead of looking for an order.

use crate::{
    cluster::client::Pending,
    truth::{Broken, Truth},
};
use base::LogPoint;

/// # Errors
/// The answer rests on less than the caller had seen before, or on an entry that has not committed.
pub fn check(truth: &Truth, call: &Pending, rests_on: LogPoint) -> Result<(), Broken> {
    let name = || format!("call {} of client {} ({:?})", call.key.call, call.key.client, call.request);
    if rests_on.id.sn < call.floor {
        return Err(format!(
            "reads see what committed before: {} began after an answer that rested on {}, and rests on {}",
            name(),
            call.floor,
            rests_on.id
        ));
    }
    if rests_on.id.sn.0 > 0 && truth.point(rests_on.id.sn) != Some(rests_on) {
        return Err(format!(
            "answers rest on what has committed: {} rests on {}, and {:?} has committed there",
            name(),
            rests_on.id,
            truth.point(rests_on.id.sn).map(|point| point.id.to_string())
        ));
    }
    Ok(())
}
