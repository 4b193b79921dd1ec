//! At no true time do two members hold a lease that lets them answer reads.

use crate::truth::Broken;
use base::MemberId;

/// # Errors
/// Two members or more serve under a lease.
pub fn check(holders: &[MemberId]) -> Result<(), Broken> {
    if holders.len() > 1 {
        return Err(format!("leases have one holder: members {holders:?} all serve under a lease"));
    }
    Ok(())
}
