//! Entries of one epoch and serial number are the same on all members, and so is all before them (I5).

use crate::{
    host::{Host, LogDisk},
    truth::Broken,
};
use base::Sn;

/// Entries looked at, from the end of the shorter log back.
const DEPTH: u64 = 4;

/// # Errors
/// Two members hold different entries under one name.
pub fn check(hosts: &[&Host]) -> Result<(), Broken> {
    for (index, one) in hosts.iter().enumerate() {
        for other in &hosts[index + 1..] {
            let end = one.disk.end_sn().min(other.disk.end_sn());
            for sn in (end.0.saturating_sub(DEPTH) + 1)..=end.0 {
                if are_different(&one.disk, &other.disk, sn.into()) {
                    return Err(format!(
                        "logs match: members {} and {} hold different entries {sn}",
                        one.store.member, other.store.member
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Whether both have an entry of this number and epoch, and not the same one. This is asked after each step, so the chains
/// are worked out only where one of the two has an image in the place of the entry.
fn are_different(one: &LogDisk, other: &LogDisk, sn: Sn) -> bool {
    if let (Some(a), Some(b)) = (one.entry(sn), other.entry(sn)) {
        let is_same = a.previous_chain == b.previous_chain && a.kind == b.kind && a.payload == b.payload;
        return a.id == b.id && !is_same;
    }
    match (one.point(sn), other.point(sn)) {
        (Some(a), Some(b)) => a.id == b.id && a.chain != b.chain,
        _ => false,
    }
}
