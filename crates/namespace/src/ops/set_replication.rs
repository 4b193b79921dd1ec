//! Changes how many replicas a file should have. For a path that is not a file, the answer is false.
//!
//! The service does the same with a deleted file that snapshots keep, once all that see how many it wanted in the end are
//! gone: see [`super::sweep`].

use crate::{
    Context, Namespace, Reply,
    access::{Access, WRITE},
    change::AttributeChange,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    ops::create,
    plannable::plannable,
    quota::replicated,
    resolve::{Purpose, resolve},
    snapshots::AFTER_ALL,
};
use base::{FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub replication: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetReplicationEdit {
    pub inode: InodeId,
    pub replication: u16,
}

record_fields! { SetReplicationEdit { inode, replication } }

/// # Errors
/// [`base::FsError::Io`] if the replication is not allowed. The path cannot be resolved, or the caller may not write the file
/// (see [`crate::ops`]); or a quota has no room. For a directory, or where nothing is, the answer is false instead.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<SetReplicationEdit>> {
    create::check_replication(ctx, &req.path, req.replication, None)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    access.check_target(ns, &resolved, WRITE)?;
    let Some(target) = resolved.target.filter(|target| ns.tree.inode(*target).is_file()) else {
        return Ok(Planned::NoChange(Reply::Bool(false)));
    };
    let replication = req.replication as u16;
    if ns.tree.attributes_of(target).replication == replication {
        return Ok(Planned::NoChange(Reply::Bool(true)));
    }
    let edit = SetReplicationEdit { inode: ns.tree.inode(target).id(), replication };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

plannable! { Request by plan => Planned<SetReplicationEdit>, (path) "Cannot set replication for {path}" }

impl Operation for SetReplicationEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Bool(true))
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.blocks(self.inode);
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.inode);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        let file = ns.expect(self.inode);
        let died = ns.died(file);
        let (bytes, policy) = (ns.held_bytes(file), ns.policy_in_force(file));
        let before = ns.held_replication(file, died, &[]);
        if died != AFTER_ALL {
            let after = ns.replication_with(self.replication, file, died, &[]);
            let mut difference = replicated(bytes, after, policy);
            difference -= replicated(bytes, before, policy);
            return ledger.charge(ns.counted_in(file), difference);
        }
        // A snapshot that sees the file as it is goes on wanting what that wants.
        let after = self.replication.max(match ns.cover(file) {
            Some(cover) if ns.tree.snapshots.record_at(self.inode, cover).is_none() => before,
            _ => ns.replication_in_past(file),
        });
        let mut difference = replicated(bytes, after, policy);
        difference -= replicated(bytes, before, policy);
        let parent = ns.tree.inode(file).parent;
        // As in HDFS, room is required for the new replication beyond the highest one that was wanted before.
        if difference.bytes > 0 {
            ledger.verify(parent, difference, None);
        }
        ledger.charge(parent, difference);
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let target = ns.expect(self.inode);
        let from = ns.block_replication(target);
        let change = AttributeChange { replication: Some(self.replication), ..AttributeChange::default() };
        ns.set_attributes(target, change);
        ns.tell_replication(target, from, applying.changes);
        Reply::Bool(true)
    }
}
