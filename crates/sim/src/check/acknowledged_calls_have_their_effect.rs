//! A call whose change was acknowledged has committed: no acknowledged edit is lost.

use crate::{
    cluster::{
        client::{CallKey, Pending},
        request::Answer,
    },
    truth::Broken,
};
use base::Sn;
use std::collections::BTreeMap;

/// # Errors
/// The call was answered, and its entry has not committed.
pub fn check(effects: &BTreeMap<CallKey, Sn>, call: &Pending, answer: &Answer) -> Result<(), Broken> {
    if !effects.contains_key(&call.key) {
        return Err(format!(
            "acknowledged calls have their effect: call {} of client {} ({:?}) was answered {answer:?} and has not \
             committed",
            call.key.call, call.key.client, call.request
        ));
    }
    Ok(())
}
