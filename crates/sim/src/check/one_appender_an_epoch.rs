//! The entries of an epoch are all made by one member (I1, seen on the disks).

use crate::truth::{Broken, Truth};
use base::{Entry, MemberId};

/// `maker` has made this entry itself.
///
/// # Errors
/// Another member has made entries in the epoch.
pub fn check(truth: &mut Truth, maker: MemberId, entry: &Entry) -> Result<(), Broken> {
    let appender = *truth.appenders.entry(entry.id.epoch).or_insert(maker);
    if appender != maker {
        return Err(format!(
            "one appender an epoch: {appender} and {maker} both made entries like {}",
            entry.id
        ));
    }
    Ok(())
}
