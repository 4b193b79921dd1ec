//! The amounts that an edit adds to the usage of the directories that have a quota.
//!
//! Each kind of edit says what it charges (`Operation::charge`), with the help of what is here. The charges stand in
//! the edit: `apply` adds them and never walks upwards. Whether the quotas have room for them is checked as HDFS
//! checks it.

pub(crate) mod ledger;
pub(crate) mod moving;
pub(crate) mod past;

use crate::{
    Context, Namespace, SnapshotId,
    codec::record_fields,
    operation::Operation,
    quota::{Amounts, replicated},
    snapshots::AFTER_ALL,
    store::{NONE, block_list::Stored},
    usage::block_bytes,
};
use base::{Block, FsError, InodeId, StoragePolicy};
use ledger::Ledger;

/// The change of one directory's usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    pub directory: InodeId,
    pub amounts: Amounts,
}

record_fields! { Charge { directory, amounts } }

/// The charges, the amounts that snapshots keep of inodes which are moved out of their directory, and the error of
/// the quota that would be exceeded.
pub(crate) type Found = (Vec<Charge>, Vec<(InodeId, Amounts)>, Option<FsError>);

/// The charges of an edit on the state that it was planned on, and the quota that they would exceed, if any.
pub(crate) fn of(ns: &Namespace, ctx: &Context<'_>, edit: &impl Operation) -> Found {
    let mut ledger = Ledger::new(ns, ctx);
    if ns.tree.quotas.is_empty() {
        edit.keep(ns, &mut ledger)
    } else {
        edit.charge(ns, &mut ledger)
    }
    ledger.finish()
}

/// Another group than the root group charges no directories.
pub(crate) fn add_directories(ledger: &mut Ledger<'_>, ns: &Namespace, parent: u32, count: usize) {
    if !ns.directory_amounts().is_zero() {
        add_inodes(ledger, parent, count);
    }
}

/// One after the other, so that the first one too many is refused with the count that HDFS names.
pub(crate) fn add_inodes(ledger: &mut Ledger<'_>, parent: u32, count: usize) {
    for _ in 0..count {
        ledger.verify(parent, Amounts::ONE_INODE, None);
        ledger.charge(parent, Amounts::ONE_INODE);
    }
}

/// Takes the amounts of an unlinked file or subtree off the usage. If a snapshot sees it, it counts on as it is until
/// it is swept away.
pub(crate) fn delete(ns: &Namespace, ledger: &mut Ledger<'_>, target: u32) {
    let parent = ns.tree.inode(target).parent;
    if !ledger.is_charged(parent) {
        return;
    }
    let policy = ns.tree.policy_of(target);
    let mut difference = Amounts::default();
    if let Some(died) = seen_by(ns, target) {
        if ns.tree.snapshots.records.is_empty() {
            return;
        }
        difference = ledger.amounts(target, policy, died, true);
    }
    difference -= ledger.amounts(target, policy, AFTER_ALL, false);
    ledger.charge(parent, difference);
}

/// Bytes with the replication and under the policy of a file; a snapshot may want more replicas.
pub(crate) fn in_file(ns: &Namespace, file: u32, bytes: i64) -> Amounts {
    replicated(bytes, ns.held_replication(file, AFTER_ALL, &[]), ns.tree.policy_of(file))
}

/// The amounts for which HDFS requires room before it lets a file be written on, cut or joined. If no policy is set,
/// the room must be on the media of the default policy, although the bytes are then charged to no medium.
pub(crate) fn wanted(ns: &Namespace, file: u32, bytes: i64) -> Amounts {
    wanted_with(ns, file, bytes, ns.held_replication(file, AFTER_ALL, &[]))
}

pub(crate) fn wanted_with(ns: &Namespace, file: u32, bytes: i64, replication: u16) -> Amounts {
    replicated(bytes, replication, StoragePolicy::in_force(ns.tree.policy_of(file)).id)
}

/// The last snapshot that sees the current entry of an inode.
fn seen_by(ns: &Namespace, target: u32) -> Option<SnapshotId> {
    let cover = ns.cover(ns.tree.inode(target).parent);
    cover.filter(|cover| ns.birth_of(target) < *cover)
}

/// The last block of a file becomes this one.
fn change_last(ns: &Namespace, ledger: &mut Ledger<'_>, file: u32, after: Option<Stored>) {
    let last = ns.tree.last_block(file);
    if last == NONE {
        return;
    }
    let stored = ns.tree.blocks.stored(last);
    let block_size = ns.tree.attributes_of(file).block_size;
    let bytes = match after {
        Some(after) => block_bytes(after, block_size),
        None => ns.bytes_in_past(file, ns.tree.length_of(file) - stored.block.length, stored),
    };
    let bytes = bytes - block_bytes(stored, block_size);
    // It may be a file that only snapshots have.
    let replication = ns.held_replication(file, ns.died(file), &[]);
    ledger.charge(ns.counted_in(file), replicated(bytes, replication, ns.policy_in_force(file)));
}

/// The last block's length is final: what was reserved beyond it is given back.
pub(crate) fn commit_last(ns: &Namespace, ledger: &mut Ledger<'_>, file: u32, committed: Option<Block>) {
    if let Some(block) = committed {
        change_last(ns, ledger, file, Some(Stored { block, committed: true }));
    }
}

pub(crate) fn drop_last(ns: &Namespace, ledger: &mut Ledger<'_>, file: u32) {
    change_last(ns, ledger, file, None);
}

/// A last block that was finished is to be written on: it counts as a full one again, and so much more.
pub(crate) fn rest_of_last(ns: &Namespace, file: u32) -> i64 {
    match ns.tree.last_block(file) {
        NONE => 0,
        last => {
            ns.tree.attributes_of(file).block_size as i64 - ns.tree.blocks.stored(last).block.length as i64
        }
    }
}

/// The blocks behind the last one that stays are gone, unless a snapshot has them; that one, if it is cut, counts as a
/// full one until it is. A copy of it counts beside the one that the snapshot keeps.
pub(crate) fn truncate(ns: &Namespace, ledger: &mut Ledger<'_>, file: u32, kept: u64, cut: CutBlock) {
    let block_size = ns.tree.attributes_of(file).block_size;
    let (mut difference, mut offset) = (0, 0);
    for (at, stored) in (1..).zip(ns.tree.blocks_of(file)) {
        let before = block_bytes(stored, block_size);
        difference += match cut {
            _ if at > kept => ns.bytes_in_past(file, offset, stored) - before,
            CutBlock::InPlace if at == kept => block_size as i64 - before,
            CutBlock::Copied if at == kept => {
                block_size as i64 + ns.bytes_in_past(file, offset, stored) - before
            }
            _ => 0,
        };
        offset += stored.block.length;
    }
    let parent = ns.tree.inode(file).parent;
    ledger.verify(parent, wanted(ns, file, difference), None);
    ledger.charge(parent, in_file(ns, file, difference));
}

/// How the block is cut in which a file is to end.
#[derive(Clone, Copy)]
pub(crate) enum CutBlock {
    None,
    InPlace,
    Copied,
}
