//! A data server that an operator is told to switch off has no last good replica: each finished block that a file has has another one elsewhere.

use crate::truth::Broken;
use base::Block;

/// The active calls `server` decommissioned or in maintenance. It has a good replica of the finished `block`, and `elsewhere` others are on the
/// disks of other data servers.
///
/// # Errors
/// There is no other.
pub fn check(server: usize, block: &Block, elsewhere: usize) -> Result<(), Broken> {
    if elsewhere == 0 {
        return Err(format!(
            "servers that may go have no last replica: data server {server} may be switched off, and has the only good one of {block}"
        ));
    }
    Ok(())
}
