//! The id of an inode is given to one call only, even if the entry that gave it was cut off.

use crate::{cluster::client::CallKey, truth::Broken};
use std::collections::BTreeMap;

/// # Errors
/// The inode id was given to another call before.
pub fn check(inodes: &mut BTreeMap<u64, CallKey>, inode: u64, key: CallKey) -> Result<(), Broken> {
    match inodes.insert(inode, key) {
        Some(before) if before != key => {
            Err(format!("ids are never used again: inode {inode} was made for {before:?} and for {key:?}"))
        }
        _ => Ok(()),
    }
}
