//! The amounts that an edit adds to the usage of the directories that have a quota.
//!
//! The charges are worked out from the edit's body in one place, and stand in the edit: `apply` adds them and
//! never walks upwards. Here as well is checked, as HDFS checks it, whether the quotas have room for them.
//!
//! An edit that changes only the state of an open block (a flush, a new stamp) charges nothing: the block counts as a
//! full one until its length is final.

mod ledger;
mod moving;
mod past;

use crate::{
    Namespace, SnapshotId,
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

/// The charges, the amounts that snapshots keep of inodes which are moved out of their directory, and the error of
/// the quota that would be exceeded.
pub(crate) type Found = (Vec<Charge>, Vec<(InodeId, Amounts)>, Option<FsError>);

/// The charges of an edit on the state that it was planned on, and the quota that they would exceed, if any.
pub(crate) fn of(ns: &Namespace, body: &Body) -> Found {
    let mut ledger = Ledger::new(ns);
    if ns.tree.quotas.is_empty() {
        // The amount that a snapshot keeps of it is noted all the same, since it counts if a quota is set later.
        if let Body::Rename(edit) = body {
            moving::keep_moved(ns, &mut ledger, edit);
        }
        return ledger.finish();
    }
    match body {
        Body::Mkdirs(edit) => add_inodes(&mut ledger, ns.expect(edit.parent), edit.directories.len()),
        Body::Create(edit) => create(ns, &mut ledger, edit),
        Body::AddBlock(edit) => {
            let file = ns.expect(edit.inode);
            commit_last(ns, &mut ledger, file, edit.committed);
            let attributes = ns.tree.attributes_of(file);
            let room =
                |replication| replicated(attributes.block_size as i64, replication, ns.tree.policy_of(file));
            let parent = ns.tree.inode(file).parent;
            ledger.verify(parent, room(attributes.replication), None);
            ledger.charge(parent, room(ns.held_replication(file, true, &[])));
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
        Body::Truncate(edit) => {
            let cut = if edit.cut.is_some() { CutBlock::InPlace } else { CutBlock::None };
            truncate(ns, &mut ledger, edit.inode, edit.kept, cut);
        }
        Body::TruncateCopy(edit) => truncate(ns, &mut ledger, edit.inode, edit.kept, CutBlock::Copied),
        Body::Concat(edit) => concat(ns, &mut ledger, edit),
        Body::Rename(edit) => moving::rename(ns, &mut ledger, edit),
        Body::Delete(edit) => delete(ns, &mut ledger, ns.expect(edit.inode)),
        Body::SetReplication(edit) => set_replication(ns, &mut ledger, edit),
        // HDFS lets anybody set a policy, whatever the quotas by storage type say.
        Body::SetStoragePolicy(edit) => moving::set_policy(ns, &mut ledger, edit),
        // An inode that is taken apart was uncharged when it was unlinked; a quota that is set brings its usage with
        // it.
        Body::Cleanup(_) | Body::SetQuota(_) => {}
        Body::Sweep(edit) => past::sweep(ns, &mut ledger, edit),
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
        | Body::StartRecovery(_)
        | Body::AllowDeletions(_)
        | Body::RaiseLevel(_) => {}
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

/// Takes the amounts of an unlinked file or subtree off the usage. If a snapshot sees it, it counts on as it is until
/// it is swept away.
fn delete(ns: &Namespace, ledger: &mut Ledger<'_>, target: u32) {
    let parent = ns.tree.inode(target).parent;
    if !ledger.is_charged(parent) {
        return;
    }
    let policy = ns.tree.policy_of(target);
    let mut difference = Amounts::default();
    if seen_by(ns, target).is_some() {
        if ns.tree.snapshots.records.is_empty() {
            return;
        }
        difference = ns.subtree_amounts(target, policy, false, true);
    }
    difference -= ns.subtree_amounts(target, policy, true, false);
    ledger.charge(parent, difference);
}

/// Bytes with the replication and under the policy of a file; a snapshot may want more replicas.
fn in_file(ns: &Namespace, file: u32, bytes: i64) -> Amounts {
    replicated(bytes, ns.held_replication(file, true, &[]), ns.tree.policy_of(file))
}

/// The amounts for which HDFS requires room before it lets a file be written on, cut or joined. If no policy is set,
/// the room must be on the media of the default policy, although the bytes are then charged to no medium.
fn wanted(ns: &Namespace, file: u32, bytes: i64) -> Amounts {
    wanted_with(ns, file, bytes, ns.held_replication(file, true, &[]))
}

fn wanted_with(ns: &Namespace, file: u32, bytes: i64, replication: u16) -> Amounts {
    replicated(bytes, replication, StoragePolicy::in_force(ns.tree.policy_of(file)).id)
}

/// The last snapshot that sees the current entry of an inode.
fn seen_by(ns: &Namespace, target: u32) -> Option<SnapshotId> {
    let cover = ns.cover(ns.tree.inode(target).parent);
    cover.filter(|cover| ns.birth_of(target) < *cover)
}

/// As HDFS does, this requires room for the new replication beyond the highest one that was wanted before.
fn set_replication(ns: &Namespace, ledger: &mut Ledger<'_>, edit: &ops::set_replication::SetReplicationEdit) {
    let file = ns.expect(edit.inode);
    let (bytes, policy) = (ns.held_bytes(file, &[]), ns.tree.policy_of(file));
    let before = ns.held_replication(file, true, &[]);
    // A snapshot that sees the file as it is goes on wanting what that wants.
    let after = edit.replication.max(match ns.cover(file) {
        Some(cover) if ns.tree.snapshots.record_at(edit.inode, cover).is_none() => before,
        _ => ns.replication_in_past(file),
    });
    let mut difference = replicated(bytes, after, policy);
    difference -= replicated(bytes, before, policy);
    let parent = ns.tree.inode(file).parent;
    if difference.bytes > 0 {
        ledger.verify(parent, difference, None);
    }
    ledger.charge(parent, difference);
}

/// The last block of a file becomes this one.
fn change_last(ns: &Namespace, ledger: &mut Ledger<'_>, file: u32, after: Option<Stored>) {
    let last = ns.tree.last_block(file);
    if last == NONE {
        return;
    }
    let stored = ns.tree.blocks.stored(last);
    if after.is_none() && is_kept(ns, file, ns.tree.length_of(file) - stored.block.length, stored) {
        return;
    }
    let block_size = ns.tree.attributes_of(file).block_size;
    let bytes = after.map_or(0, |after| block_bytes(after, block_size)) - block_bytes(stored, block_size);
    // It may be a file that only snapshots have.
    let replication = ns.held_replication(file, ns.tree.is_attached(file), &[]);
    ledger.charge(ns.counted_in(file), replicated(bytes, replication, ns.policy_in_force(file)));
}

/// Whether a block that a file loses stays for a snapshot.
fn is_kept(ns: &Namespace, file: u32, offset: u64, stored: Stored) -> bool {
    let id = ns.tree.inode(file).id();
    ns.is_block_in_past(file, offset) || ns.is_listed_in_past(id, stored.block)
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

/// The blocks behind the last one that stays are gone, unless a snapshot has them; that one, if it is cut, counts as a
/// full one until it is. A copy of it counts beside the one that the snapshot keeps.
fn truncate(ns: &Namespace, ledger: &mut Ledger<'_>, inode: InodeId, kept: u64, cut: CutBlock) {
    let file = ns.expect(inode);
    let block_size = ns.tree.attributes_of(file).block_size;
    let (mut difference, mut offset) = (0, 0);
    for (at, stored) in (1..).zip(ns.tree.blocks_of(file)) {
        let before = block_bytes(stored, block_size);
        if at > kept && !is_kept(ns, file, offset, stored) {
            difference -= before;
        } else if at == kept {
            difference += match cut {
                CutBlock::None => 0,
                CutBlock::InPlace => block_size as i64 - before,
                CutBlock::Copied => block_size as i64,
            };
        }
        offset += stored.block.length;
    }
    let parent = ns.tree.inode(file).parent;
    ledger.verify(parent, wanted(ns, file, difference), None);
    ledger.charge(parent, in_file(ns, file, difference));
}

/// How the block is cut in which a file is to end.
#[derive(Clone, Copy)]
enum CutBlock {
    None,
    InPlace,
    Copied,
}

/// The sources' blocks take over the replication and the policy of the target. As in HDFS, room is required only for
/// the change of replication, on the media of the sources' policies.
fn concat(ns: &Namespace, ledger: &mut Ledger<'_>, edit: &ops::concat::ConcatEdit) {
    let target = ns.expect(edit.target);
    let replication = ns.held_replication(target, true, &[]);
    let (mut difference, mut needed) = (Amounts::default(), Amounts::default());
    for source in &edit.sources {
        let source = ns.expect(*source);
        let bytes = ns.tree.file_bytes(source);
        difference += in_file(ns, target, bytes);
        difference -= ns.file_amounts(source, ns.tree.policy_of(source), true);
        needed += wanted_with(ns, source, bytes, replication);
        needed -= wanted_with(ns, source, bytes, ns.tree.attributes_of(source).replication);
        needed -= Amounts::ONE_INODE;
    }
    let parent = ns.tree.inode(target).parent;
    ledger.verify(parent, needed, None);
    ledger.charge(parent, difference);
}
