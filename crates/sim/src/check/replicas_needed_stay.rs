//! An order never takes a replica that is needed: of a block that a file has, as many good ones stay as are wanted, and one in
//! any case.

use crate::truth::Broken;
use base::Block;

/// A data server has deleted its good replica of a block that a file has, and had when the order was given. `left` good ones
/// are on the disks of others; `least` is the smallest number that the file may have wanted of late.
///
/// # Errors
/// Fewer are left than are wanted, or none.
pub fn check(server: usize, block: &Block, left: usize, least: u16) -> Result<(), Broken> {
    if left == 0 {
        return Err(format!(
            "needed replicas stay: data server {server} was told to delete the last one of {block}"
        ));
    }
    if left < usize::from(least) {
        return Err(format!(
            "needed replicas stay: data server {server} was told to delete one of {block}, and {left} of the {least} \
             that are wanted are left"
        ));
    }
    Ok(())
}
