//! What an edit adds to the usage of the directories that have a quota.
//!
//! The charges are worked out from the edit's body in one place, and stand in the edit: `apply` adds them and
//! never walks upwards. Here as well is checked, as HDFS checks it, whether the quotas have room for them.
//!
//! What changes only the state of an open block (a flush, a new stamp) charges nothing: the block counts as a
//! full one until its length is final.

mod ledger;
mod moving;

use crate::{
    Namespace,
    edit::{Body, codec::record_fields},
    ops,
    quota::Amounts,
    store::{NONE, block_list::Stored},
    usage::{block_bytes, replicated},
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

/// Charges, what snapshots keep of what leaves its directory, and the quota that would be exceeded.
pub(crate) type Found = (Vec<Charge>, Vec<(InodeId, Amounts)>, Option<FsError>);

/// The charges of an edit on the state that it was planned on, and the quota that they would exceed, if any.
pub(crate) fn of(ns: &Namespace, body: &Body) -> Found {
    if ns.tree.quotas.is_empty() {
        return Found::default();
    }
    let mut ledger = Ledger::new(&ns.tree);
    match body {
        Body::Mkdirs(edit) => add_inodes(&mut ledger, ns.expect(edit.parent), edit.directories.len()),
        Body::Create(edit) => create(ns, &mut ledger, edit),
        Body::AddBlock(edit) => {
            let file = ns.expect(edit.inode);
            commit_last(ns, &mut ledger, file, edit.committed);
            let allocated = open_block(ns, file);
            let parent = ns.tree.inode(file).parent;
            ledger.verify(parent, allocated, None);
            ledger.charge(parent, allocated);
        }
        Body::AbandonBlock(edit) => drop_last(ns, &mut ledger, ns.expect(edit.inode)),
        Body::Complete(edit) => {
            let file = ns.expect(edit.inode);
            commit_last(ns, &mut ledger, file, edit.committed);
            if edit.drop_last {
                drop_last(ns, &mut ledger, file);
            }
        }
        Body::FinishRecovery(edit) => match edit.block {
            None => drop_last(ns, &mut ledger, ns.expect(edit.inode)),
            // Without closing the block stays open.
            Some(block) if edit.close => commit_last(ns, &mut ledger, ns.expect(edit.inode), Some(block)),
            Some(_) => {}
        },
        Body::Append(edit) => {
            let file = ns.expect(edit.inode);
            let more = rest_of_last(ns, file);
            let parent = ns.tree.inode(file).parent;
            // As in HDFS there must be room for it even where the next block is a new one.
            ledger.verify(parent, wanted(ns, file, more), None);
            if edit.reopens_block {
                ledger.charge(parent, in_file(ns, file, more));
            }
        }
        Body::Truncate(edit) => truncate(ns, &mut ledger, edit.inode, edit.kept, edit.cut.is_some()),
        // The block that is copied is the snapshots' from here on, and the copy counts as a full one until it is done.
        Body::TruncateCopy(edit) => truncate(ns, &mut ledger, edit.inode, edit.kept, true),
        Body::Concat(edit) => concat(ns, &mut ledger, edit),
        Body::Rename(edit) => moving::rename(ns, &mut ledger, edit),
        Body::Delete(edit) => delete(ns, &mut ledger, ns.expect(edit.inode)),
        Body::SetReplication(edit) => {
            let file = ns.expect(edit.inode);
            let (bytes, policy) = (ns.tree.file_bytes(file), ns.tree.policy_of(file));
            let mut difference = replicated(bytes, edit.replication, policy);
            difference -= replicated(bytes, ns.tree.attributes_of(file).replication, policy);
            let parent = ns.tree.inode(file).parent;
            if difference.bytes > 0 {
                ledger.verify(parent, difference, None);
            }
            ledger.charge(parent, difference);
        }
        // HDFS lets anybody set a policy, whatever the quotas by storage type say.
        Body::SetStoragePolicy(edit) => moving::set_policy(ns, &mut ledger, edit),
        // What is taken apart was uncharged when it was unlinked; a quota that is set brings its usage with it.
        Body::Cleanup(_) | Body::SetQuota(_) => {}
        Body::Sweep(edit) => sweep(ns, &mut ledger, edit),
        Body::SetSnapshottable(_)
        | Body::CreateSnapshot(_)
        | Body::RenameSnapshot(_)
        | Body::DeleteSnapshot(_) => {}
        Body::SetPermission(_)
        | Body::SetAcl(_)
        | Body::SetXattrs(_)
        | Body::SetOwner(_)
        | Body::SetTimes(_)
        | Body::Fsync(_)
        | Body::NewStamp(_)
        | Body::UpdatePipeline(_)
        | Body::StartRecovery(_) => {}
    }
    ledger.finish()
}

/// One after the other, so that the first one too many is refused with the count that HDFS names.
fn add_inodes(ledger: &mut Ledger<'_>, parent: u32, count: usize) {
    for _ in 0..count {
        ledger.verify(parent, Amounts::ONE_INODE, None);
        ledger.charge(parent, Amounts::ONE_INODE);
    }
}

fn create(ns: &Namespace, ledger: &mut Ledger<'_>, edit: &ops::create::CreateEdit) {
    let parent = ns.expect(edit.parent);
    if let Some(replaced) = edit.replaced {
        delete(ns, ledger, ns.expect(replaced));
    }
    add_inodes(ledger, parent, edit.missing.len() + 1);
}

/// What an unlinked file or subtree no longer counts for: all but what a snapshot has of it. That counts on until
/// the entry which the snapshot sees it by is swept away.
fn delete(ns: &Namespace, ledger: &mut Ledger<'_>, target: u32) {
    let parent = ns.tree.inode(target).parent;
    if ledger.is_charged(parent) {
        let mut difference = keep(ns, ledger, target);
        difference -= ns.tree.subtree_amounts(target, ns.tree.policy_of(target), false);
        ledger.charge(parent, difference);
    }
}

/// What counts on, as the last snapshot has it that sees it, when something leaves its directory.
fn keep(ns: &Namespace, ledger: &mut Ledger<'_>, target: u32) -> Amounts {
    let cover = ns.cover(ns.tree.inode(target).parent);
    let Some(cover) = cover.filter(|cover| ns.birth_of(target) < *cover) else { return Amounts::default() };
    let amounts = ns.amounts_at(target, cover);
    ledger.keep(ns.tree.inode(target).id(), amounts);
    amounts
}

/// What was deleted or moved out no longer counts. Directories that are only kept are charged no more.
fn sweep(ns: &Namespace, ledger: &mut Ledger<'_>, edit: &ops::sweep::SweepEdit) {
    for entry in &edit.entries {
        let charged = ns.tree.snapshots.entries.get(&entry.key()).and_then(|entry| entry.charged.as_ref());
        let directory = ns.expect(entry.directory);
        if let Some(charged) = charged.filter(|_| ns.tree.is_attached(directory)) {
            ledger.charge(directory, -**charged);
        }
    }
}

/// Bytes with the replication and under the policy of a file.
fn in_file(ns: &Namespace, file: u32, bytes: i64) -> Amounts {
    replicated(bytes, ns.tree.attributes_of(file).replication, ns.tree.policy_of(file))
}

/// What HDFS asks room for before it lets a file be written on, cut or joined: where no policy is set, on the
/// media of the default one, although what it counts in the end is on none.
fn wanted(ns: &Namespace, file: u32, bytes: i64) -> Amounts {
    wanted_with(ns, file, bytes, ns.tree.attributes_of(file).replication)
}

fn wanted_with(ns: &Namespace, file: u32, bytes: i64, replication: u16) -> Amounts {
    replicated(bytes, replication, StoragePolicy::in_force(ns.tree.policy_of(file)).id)
}

/// A block of full size at the end of a file.
fn open_block(ns: &Namespace, file: u32) -> Amounts {
    in_file(ns, file, ns.tree.attributes_of(file).block_size as i64)
}

/// The last block of a file becomes this one.
fn change_last(ns: &Namespace, ledger: &mut Ledger<'_>, file: u32, after: Option<Stored>) {
    let last = ns.tree.last_block(file);
    if last == NONE {
        return;
    }
    let block_size = ns.tree.attributes_of(file).block_size;
    let bytes = |stored: Stored| block_bytes(stored, block_size);
    let difference = after.map_or(0, bytes) - bytes(ns.tree.blocks.stored(last));
    ledger.charge(ns.tree.inode(file).parent, in_file(ns, file, difference));
}

/// The last block's length is final: what was reserved beyond it is given back.
fn commit_last(ns: &Namespace, ledger: &mut Ledger<'_>, file: u32, committed: Option<Block>) {
    if let Some(block) = committed {
        change_last(ns, ledger, file, Some(Stored { block, committed: true }));
    }
}

fn drop_last(ns: &Namespace, ledger: &mut Ledger<'_>, file: u32) {
    change_last(ns, ledger, file, None);
}

/// A last block that was finished is to be written on: it counts as a full one again, and so much more.
fn rest_of_last(ns: &Namespace, file: u32) -> i64 {
    match ns.tree.last_block(file) {
        NONE => 0,
        last => {
            ns.tree.attributes_of(file).block_size as i64 - ns.tree.blocks.stored(last).block.length as i64
        }
    }
}

/// The blocks behind the last one that stays are gone; that one, if it is cut, counts as a full one until it is.
fn truncate(ns: &Namespace, ledger: &mut Ledger<'_>, inode: InodeId, kept: u64, is_cut: bool) {
    let file = ns.expect(inode);
    let block_size = ns.tree.attributes_of(file).block_size;
    let mut difference = 0;
    for (at, stored) in (1..).zip(ns.tree.blocks_of(file)) {
        let before = block_bytes(stored, block_size);
        if at > kept {
            difference -= before;
        } else if at == kept && is_cut {
            difference += block_size as i64 - before;
        }
    }
    let parent = ns.tree.inode(file).parent;
    ledger.verify(parent, wanted(ns, file, difference), None);
    ledger.charge(parent, in_file(ns, file, difference));
}

/// The sources' blocks take over the replication and the policy of the target. As in HDFS there must be room for
/// the former only, on the media of the policies that they come from.
fn concat(ns: &Namespace, ledger: &mut Ledger<'_>, edit: &ops::concat::ConcatEdit) {
    let target = ns.expect(edit.target);
    let replication = ns.tree.attributes_of(target).replication;
    let (mut difference, mut needed) = (Amounts::default(), Amounts::default());
    for source in &edit.sources {
        let source = ns.expect(*source);
        let bytes = ns.tree.file_bytes(source);
        difference += in_file(ns, target, bytes);
        difference -= ns.tree.file_amounts(source, ns.tree.policy_of(source));
        needed += wanted_with(ns, source, bytes, replication);
        needed -= wanted(ns, source, bytes);
        needed -= Amounts::ONE_INODE;
    }
    let parent = ns.tree.inode(target).parent;
    ledger.verify(parent, needed, None);
    ledger.charge(parent, difference);
}
