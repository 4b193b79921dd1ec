//! Changes how many replicas a file should have. For a path that is not a file, the answer is false.

use crate::{
    BlockChange, Context, Edit, Namespace, Planned, Reply,
    access::{Access, WRITE},
    change::AttributeChange,
    edit::{Body, codec::record_fields},
    ops::create,
    resolve::{Purpose, resolve},
};
use base::{FsResult, InodeId};

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
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
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    create::check_replication(ctx, req.path, req.replication, None)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, req.path, Purpose::Other)?;
    access.check_target(ns, &resolved, WRITE)?;
    let Some(target) = resolved.target.filter(|target| ns.tree.inode(*target).is_file()) else {
        return Ok(Planned::NoChange(Reply::Bool(false)));
    };
    let replication = req.replication as u16;
    if ns.tree.attributes_of(target).replication == replication {
        return Ok(Planned::NoChange(Reply::Bool(true)));
    }
    let edit = SetReplicationEdit { inode: ns.tree.inode(target).id(), replication };
    Ok(Planned::Edit(Edit::plan(ns, ctx, Body::SetReplication(edit))?))
}

pub(crate) fn apply(ns: &mut Namespace, edit: &SetReplicationEdit, changes: &mut Vec<BlockChange>) -> Reply {
    let target = ns.expect(edit.inode);
    let from = ns.block_replication(target);
    let change = AttributeChange { replication: Some(edit.replication), ..AttributeChange::default() };
    ns.set_attributes(target, change);
    let to = ns.block_replication(target);
    let blocks = ns.tree.blocks_of(target);
    changes.extend(blocks.map(|stored| BlockChange::ReplicationChanged { block: stored.block.id, from, to }));
    Reply::Bool(true)
}
