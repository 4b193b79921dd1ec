//! Members that have applied equal entries have equal state.

use crate::truth::Broken;
use base::LogPoint;
use std::collections::BTreeMap;

/// A member has applied all entries up to `at`, and its state has this digest.
///
/// # Errors
/// A member has come to another state at this entry.
pub fn check(digests: &mut BTreeMap<LogPoint, u64>, at: LogPoint, digest: u64) -> Result<(), Broken> {
    let known = *digests.entry(at).or_insert(digest);
    if known != digest {
        return Err(format!("members are equal at equal sn: after {} there are two states", at.id));
    }
    Ok(())
}
