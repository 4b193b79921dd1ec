//! The operations that change the tree, one file each: what it promises, `Request`, the edit, `plan` and
//! `apply`.
//!
//! Some failures are common to the plans, and their own lists name them in short:
//!
//! - *The path cannot be resolved*: it is no absolute path ([`base::FsError::InvalidPath`]), names an inode by a number
//!   that nothing has ([`base::FsError::NotFound`]), leads through a file or through a directory that the caller may not
//!   search ([`base::FsError::AccessDenied`]), or leads into a snapshot ([`base::FsError::SnapshotReadOnly`]). A path for
//!   something new may have no colon, and fails with [`base::FsError::ParentNotDirectory`] if it leads through a file.
//! - *The caller may not* do something, is not the owner or not the superuser, or the directory *is protected*:
//!   [`base::FsError::AccessDenied`].
//! - Something *does not exist*, or *is not a file*: [`base::FsError::NotFound`].
//! - *The caller does not write the file*: the file does not exist or is deleted ([`base::FsError::NotFound`]), is not
//!   open or is another client's ([`base::FsError::LeaseExpired`]), or is being truncated ([`base::FsError::Io`]). A file
//!   that the request names by its inode is found wherever it is now; the path counts for the others.
//! - *The file is being written*, by another client or by this one: [`base::FsError::RecoveryInProgress`] if it is being
//!   recovered, or shall be because its writer is silent for too long; else [`base::FsError::AlreadyBeingCreated`].
//! - *There is no room*: a name is too long ([`base::FsError::ComponentTooLong`]), the directory has as many entries as it
//!   may ([`base::FsError::DirectoryFull`]), the tree has as many objects as it may, or no inode id is left
//!   ([`base::FsError::Io`]).
//! - *A quota has no room* ([`base::FsError::NamespaceQuotaExceeded`], [`base::FsError::SpaceQuotaExceeded`],
//!   [`base::FsError::TypeQuotaExceeded`]). Edits that the service makes of itself do not fail for that.

pub mod abandon_block;
pub mod add_block;
pub mod add_group;
pub mod allot;
pub mod allow_deletions;
pub mod allow_snapshot;
pub mod append;
pub mod carry_out;
pub mod cleanup;
pub mod commit_block_synchronization;
pub mod complete;
pub mod concat;
pub mod create;
pub mod create_snapshot;
pub mod delete;
pub mod delete_snapshot;
pub mod fsync;
pub mod give_slots;
pub mod mkdirs;
pub mod move_file;
pub mod note_answer;
pub mod note_carried_out;
pub mod order_server;
pub mod ordered;
pub mod raise_level;
pub mod recover_lease;
pub mod relay;
pub mod release_lease;
pub mod rename;
pub mod rename2;
pub mod rename_snapshot;
pub mod satisfy_storage_policy;
pub mod set_acl;
pub mod set_erasure_coding;
pub mod set_owner;
pub mod set_permission;
pub mod set_quota;
pub mod set_replication;
pub mod set_storage_policy;
pub mod set_times;
pub mod set_xattrs;
pub mod sweep;
pub mod truncate;
pub mod truncate_copy;
pub mod update_block_for_pipeline;
pub mod update_pipeline;

use crate::{
    Reply, edit,
    footprint::{Mark, Marks},
    kinds::{kinds, requests},
    operation::Operation,
    step,
};
use base::{CopyOfCall, directory_log::Point};

/// An edit of the journal, or one of the kind that an operation plans.
pub type Edit<B = Body> = edit::Edit<B>;

/// The decision of a plan, with an edit of this kind.
pub type Planned<B = Body> = edit::Planned<B>;

/// The next step of a request, with edits of the journal.
pub type Step = step::Step<Edit>;

// The other numbers up to 63 are free, for keys and tokens among others.
kinds! {
    1 => Mkdirs(mkdirs::MkdirsEdit),
    2 => Create(create::CreateEdit),
    3 => AddBlock(add_block::AddBlockEdit),
    4 => AbandonBlock(abandon_block::AbandonBlockEdit),
    5 => Complete(complete::CompleteEdit),
    6 => Rename(rename::RenameEdit),
    7 => Delete(delete::DeleteEdit),
    8 => Cleanup(cleanup::CleanupEdit),
    9 => SetPermission(set_permission::SetPermissionEdit),
    10 => SetOwner(set_owner::SetOwnerEdit),
    11 => SetTimes(set_times::SetTimesEdit),
    12 => SetReplication(set_replication::SetReplicationEdit),
    13 => Fsync(fsync::FsyncEdit),
    14 => NewStamp(update_block_for_pipeline::NewStampEdit),
    15 => UpdatePipeline(update_pipeline::UpdatePipelineEdit),
    16 => StartRecovery(release_lease::StartRecoveryEdit),
    17 => FinishRecovery(commit_block_synchronization::FinishRecoveryEdit),
    18 => Append(append::AppendEdit),
    19 => Truncate(truncate::TruncateEdit),
    20 => Concat(concat::ConcatEdit),
    21 => SetAcl(set_acl::SetAclEdit),
    22 => SetXattrs(set_xattrs::SetXattrsEdit),
    23 => SetQuota(set_quota::SetQuotaEdit),
    24 => SetStoragePolicy(set_storage_policy::SetStoragePolicyEdit),
    25 => SetSnapshottable(allow_snapshot::SetSnapshottableEdit),
    26 => CreateSnapshot(create_snapshot::CreateSnapshotEdit),
    27 => RenameSnapshot(rename_snapshot::RenameSnapshotEdit),
    28 => DeleteSnapshot(delete_snapshot::DeleteSnapshotEdit),
    29 => Sweep(sweep::SweepEdit),
    31 => TruncateCopy(truncate_copy::TruncateCopyEdit),
    38 => AllowDeletions(allow_deletions::AllowDeletionsEdit),
    39 => RaiseLevel(raise_level::RaiseLevelEdit),
    40 => NoteAnswer(note_answer::NoteAnswerEdit),
    41 => Relay(relay::RelayEdit<Body>),
    42 => Ordered(ordered::OrderedEdit<Body>),
    43 => AddGroup(add_group::AddGroupEdit),
    44 => GiveSlots(give_slots::GiveSlotsEdit),
    45 => MoveFile(move_file::MoveFileEdit),
    46 => CarryOut(carry_out::CarryOutEdit),
    47 => NoteCarriedOut(note_carried_out::NoteCarriedOutEdit),
    48 => Allot(allot::AllotEdit),
    49 => OrderServer(order_server::OrderServerEdit),
}

requests! {
    Mkdirs(mkdirs::Request),
    Create(create::Request),
    Append(append::Request),
    Truncate(truncate::Request),
    Fsync(fsync::Request),
    AddBlock(add_block::Request),
    AbandonBlock(abandon_block::Request),
    UpdateBlockForPipeline(update_block_for_pipeline::Request),
    UpdatePipeline(update_pipeline::Request),
    Complete(complete::Request),
    RecoverLease(recover_lease::Request),
    Rename(rename::Request),
    Rename2(rename2::Request),
    Delete(delete::Request),
    Concat(concat::Request),
    SetPermission(set_permission::Request),
    SetOwner(set_owner::Request),
    SetTimes(set_times::Request),
    SetReplication(set_replication::Request),
    SetAcl(set_acl::Request),
    SetXattr(set_xattrs::Request),
    RemoveXattr(set_xattrs::Removal),
    SetErasureCoding(set_erasure_coding::Request),
    UnsetErasureCoding(set_erasure_coding::Removal),
    SetStoragePolicy(set_storage_policy::Request),
    SatisfyStoragePolicy(satisfy_storage_policy::Request),
    SetQuota(set_quota::Request),
    AllowSnapshot(allow_snapshot::Request),
    DisallowSnapshot(allow_snapshot::Disallowing),
    CreateSnapshot(create_snapshot::Request),
    RenameSnapshot(rename_snapshot::Request),
    DeleteSnapshot(delete_snapshot::Request),
}

impl Edit {
    /// The answer to the call that made this edit, as [`crate::Applied::reply`] had it, for a call that is repeated after the
    /// retry cache has forgotten it. `None`: the call is planned anew, and recognises its own repetition from the tree.
    pub fn answer(&self) -> Option<Reply> {
        self.body.answer()
    }

    /// The copy of its call that was answered without any change, if that is what the edit notes.
    pub fn noted_copy(&self) -> Option<CopyOfCall> {
        match &self.body {
            Body::NoteAnswer(note) => Some(note.copy),
            _ => None,
        }
    }

    /// The entry of the directory log that the edit is, if it is one.
    pub fn directory_entry(&self) -> Option<&ordered::OrderedEdit<Body>> {
        match &self.body {
            Body::Ordered(ordered) => Some(ordered),
            _ => None,
        }
    }

    /// The place in the directory log to which a group has come with this edit. `None`: it stays where it is.
    pub fn comes_to(&self) -> Option<Point> {
        match &self.body {
            Body::Ordered(ordered) => Some(ordered.entry.point()),
            Body::Relay(relay) => Some(relay.point),
            _ => None,
        }
    }

    /// Adds the marks of what the edit changes. To be asked before it is applied, while what it removes is still there.
    pub fn footprint(&self, ns: &crate::Namespace, footprint: &mut Vec<Mark>) {
        self.body.mark(&mut Marks::new(ns, footprint));
    }

    /// Adds the marks of what the plan of the edit rests on: what it changes, and the names and passages of every directory up to the
    /// root of all that it changes. To be asked before it is applied.
    pub fn rests_on(&self, ns: &crate::Namespace, seen: &mut Vec<Mark>) {
        self.footprint(ns, seen);
        Mark::keep_ways(seen);
        self.body.changed(ns, &mut |inode| ns.seen_above(inode, seen));
    }
}

impl From<cleanup::Plan> for Edit {
    fn from(plan: cleanup::Plan) -> Self {
        match plan {
            cleanup::Plan::Cleanup(edit) => edit.into(),
            cleanup::Plan::Sweep(sweep::Plan::Sweep(edit)) => edit.into(),
            cleanup::Plan::Sweep(sweep::Plan::SetReplication(edit)) => edit.into(),
        }
    }
}

#[cfg(test)]
mod tests;
