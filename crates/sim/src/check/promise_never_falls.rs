//! A member never takes back a promise, not even by a crash (I6).

use crate::{
    host::Host,
    truth::{Broken, Truth},
};

/// # Errors
/// The member's durable promise is lower than one it had made.
pub fn check(truth: &mut Truth, host: &Host) -> Result<(), Broken> {
    let highest = truth.promises.get(&host.store.member).copied().unwrap_or_default();
    let promised = host.disk.promised;
    if promised < highest && !truth.ignores_promises {
        return Err(format!(
            "a promise never falls: member {} had promised {highest} and knows of {promised} only",
            host.store.member
        ));
    }
    truth.promises.insert(host.store.member, promised);
    Ok(())
}
