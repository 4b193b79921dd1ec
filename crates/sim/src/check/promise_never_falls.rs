//! A member never takes back a promise, not even by a crash (I6).

use crate::{
    host::Host,
    truth::{Broken, Truth},
};

pub fn check(truth: &mut Truth, host: &Host) -> Result<(), Broken> {
    let highest = truth.promises.entry(host.store.member).or_default();
    let promised = host.disk.promised;
    if promised < *highest {
        return Err(format!(
            "a promise never falls: member {} had promised {highest} and knows of {promised} only",
            host.store.member
        ));
    }
    *highest = promised;
    Ok(())
}
