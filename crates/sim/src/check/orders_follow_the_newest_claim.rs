//! A data server that has heard of a newer active carries out no order of an older one.

use crate::truth::Broken;

/// An order given in epoch `ordered` is carried out by a process that has heard a member of epoch `heard` call itself active.
///
/// # Errors
/// The order is older.
pub fn check(server: usize, ordered: u64, heard: u64) -> Result<(), Broken> {
    if ordered < heard {
        return Err(format!(
            "orders follow the newest claim: data server {server} obeys epoch {ordered}, and has heard of epoch {heard}"
        ));
    }
    Ok(())
}
