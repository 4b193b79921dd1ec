//! Takes back the last block of a file that is being written, after its pipeline could not be set up.

use crate::{
    Context, Namespace, Reply,
    charge::{self, ledger::Ledger},
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    lease,
    operation::{Applying, Operation},
    plannable::plannable,
    store::NONE,
};
use base::{Block, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub holder: String,
    /// The block pool that the client names, for the sentence in safe mode. Nothing is checked against it.
    pub pool: String,
    /// Only its id counts.
    pub block: Block,
    /// 0 from clients that do not know it.
    pub inode: InodeId,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AbandonBlockEdit {
    pub inode: InodeId,
}

record_fields! { AbandonBlockEdit { inode } }

/// A block that is not the last one is gone already: nothing happens, as in HDFS.
///
/// # Errors
/// The caller does not write the file: see [`crate::ops`].
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<AbandonBlockEdit>> {
    let found = lease::find(ns, ctx, &req.path, req.inode)?;
    let file = lease::check(ns, &found, &req.holder)?;
    let last = ns.tree.last_block(file);
    if last == NONE || ns.tree.blocks.stored(last).block.id != req.block.id {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let edit = AbandonBlockEdit { inode: ns.tree.inode(file).id() };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

plannable! { Request by plan => Planned<AbandonBlockEdit>, (path; pool, block) "Cannot abandon block {pool}:{block} for file{path}" }

impl Operation for AbandonBlockEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.blocks(self.inode);
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.inode);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        charge::drop_last(ns, ledger, ns.expect(self.inode));
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let file = ns.expect(self.inode);
        ns.remove_last_block(file, applying.changes);
        Reply::Unit
    }
}
