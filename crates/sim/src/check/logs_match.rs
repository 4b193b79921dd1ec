//! Entries of one epoch and serial number are the same on all members, and so is all before them (I5).

use crate::{host::Host, truth::Broken};

/// Entries looked at, from the end of the shorter log back.
const DEPTH: u64 = 4;

/// # Errors
/// Two members hold different entries under one name.
pub fn check(hosts: &[&Host]) -> Result<(), Broken> {
    for (index, one) in hosts.iter().enumerate() {
        for other in &hosts[index + 1..] {
            let end = one.disk.end().id.sn.min(other.disk.end().id.sn);
            for sn in (end.0.saturating_sub(DEPTH) + 1)..=end.0 {
                if let (Some(a), Some(b)) = (one.disk.point(sn.into()), other.disk.point(sn.into()))
                    && a.id == b.id
                    && a.chain != b.chain
                {
                    return Err(format!(
                        "logs match: members {} and {} hold different entries {}",
                        one.store.member, other.store.member, a.id
                    ));
                }
            }
        }
    }
    Ok(())
}
