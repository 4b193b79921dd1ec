//! However often a client repeats a call, it is carried out once.

use crate::{cluster::client::CallKey, truth::Broken};
use base::Sn;
use std::collections::BTreeMap;

/// The entry `sn`, which is `key`'s, has committed.
///
/// # Errors
/// The call had committed before, as another entry.
pub fn check(effects: &mut BTreeMap<CallKey, Sn>, key: CallKey, sn: Sn) -> Result<(), Broken> {
    match effects.insert(key, sn) {
        Some(before) => Err(format!(
            "each call has one effect: call {} of client {} committed as {before} and as {sn}",
            key.call, key.client
        )),
        None => Ok(()),
    }
}
