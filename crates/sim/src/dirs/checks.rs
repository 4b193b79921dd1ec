//! What must always hold, as the searches and the simulation ask it.

use super::{
    history::History,
    sites::{Record, RootLog, digest},
    tree::{Tree, home},
};
use crate::truth::Broken;
use base::{GroupId, Moment};
use dirlog::{Dix, Entry, Home};
use std::collections::{BTreeMap, BTreeSet};

/// S1, S2 and S8: a name has one inode, the tree is attached and acyclic, and files are at their home only.
pub fn trees_are_sound(group: GroupId, tree: &Tree, homes: u8) -> Result<(), Broken> {
    tree.is_sound().map_err(|rule| format!("{rule}, in group {group}"))?;
    match tree.files.keys().find(|(dir, _)| home(*dir, homes) != group) {
        Some((dir, _)) => {
            Err(format!("a directory has one home: group {group} has a file of directory {dir}"))
        }
        None => Ok(()),
    }
}

/// S3: what all groups hold is equal at equal `dix`.
pub fn directories_are_equal(dix: Dix, tree: &Tree, digests: &BTreeMap<Dix, u64>) -> Result<(), Broken> {
    match digests.get(&dix) {
        Some(expected) if *expected == digest(tree) => Ok(()),
        _ => Err(format!("directories are equal at equal dix: not at {dix}")),
    }
}

/// One half of S4: only that is applied which has committed in the root group.
pub fn visible_is_committed(entry: &Entry, log: &RootLog) -> Result<(), Broken> {
    if log.entries(log.committed).any(|one| one.dix == entry.dix && one.payload == entry.payload) {
        return Ok(());
    }
    Err(format!("visible implies committed: {} is applied and not committed", entry.dix))
}

/// S4: what is visible has committed, and everyone who may be serving has received it.
pub fn visible_is_committed_and_received(
    now: Moment,
    visible: Dix,
    log: &RootLog,
    homes: &[&Home],
) -> Result<(), Broken> {
    let end = log.end(log.committed);
    if visible > end {
        return Err(format!("visible implies committed: {visible}, and {end} has committed"));
    }
    match homes.iter().find(|home| home.may_evaluate(now) && home.last_received() < visible) {
        Some(home) => Err(format!(
            "visible implies received: group {} serves, and has received {} of {visible}",
            home.group(),
            home.last_received()
        )),
        None => Ok(()),
    }
}

/// S9, as far as ordered operations go: a call has one entry.
pub fn ordered_calls_have_one_entry(log: &RootLog) -> Result<(), Broken> {
    let mut calls = BTreeSet::new();
    for record in &log.records {
        if let Record::Dir { entry, call } = record
            && !calls.insert(*call)
        {
            return Err(format!("a call has one effect: {} is the second entry of call {call}", entry.dix));
        }
    }
    Ok(())
}

/// S11: one order of all calls explains all answers.
pub fn histories_are_linearizable(history: &History, outset: &Tree) -> Result<(), Broken> {
    if history.is_linearizable(outset) {
        return Ok(());
    }
    Err(format!("histories are linearizable:\n{}", history.tell(outset)))
}
