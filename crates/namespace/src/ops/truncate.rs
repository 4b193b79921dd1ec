//! Cuts a file to a shorter length.
//!
//! At the end of a block that is done at once: the blocks behind it go away. Inside a block the data servers have to
//! cut their replicas. The file is open until they have, under the name of the client that asked, and the block goes
//! through a recovery to the new length, which [`super::commit_block_synchronization`] ends. Should that lead to
//! nothing it is begun again by [`super::release_lease`].
//!
//! A block that a snapshot shows is not cut but copied: see [`super::truncate_copy`].

use crate::{
    BlockFacts, Context, Namespace, Reply,
    access::{Access, WRITE},
    charge::{self, CutBlock, ledger::Ledger},
    codec::record_fields,
    edit::Edit,
    entry_limits,
    footprint::Marks,
    lease,
    operation::{Applying, Operation},
    ops::release_lease::{self, Freeing},
    ops::{
        append,
        truncate_copy::{self, Cut, TruncateCopyEdit},
        update_block_for_pipeline::next_stamp,
    },
    plannable::plannable,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// Bytes; clients send a signed number.
    pub length: i64,
    /// The client's name for itself: the holder of the lease while a block is cut.
    pub holder: String,
    pub client_machine: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TruncateEdit {
    pub inode: InodeId,
    /// How many blocks stay, the one that is cut included.
    pub kept: u64,
    /// `None`: the new length is the end of a block.
    pub cut: Option<Cut>,
}

record_fields! { TruncateEdit { inode, kept, cut } }

/// The decision of [`plan`].
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Apply it: the file has its new length then, and the answer is true.
    AtOnce(Edit<TruncateEdit>),
    /// Apply it, then have the data servers cut the block. The answer is false.
    Cut(Edit<TruncateEdit>, Cutting),
    /// As [`Plan::Cut`], of a block that a snapshot shows.
    Copy(Edit<TruncateCopyEdit>, Cutting),
    /// The file has that length, or its last block is being cut to it already.
    NoChange(Reply),
}

/// A file of which the last block is to be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cutting {
    pub inode: InodeId,
    /// The client that asked for it: its lease begins anew.
    pub holder: Box<str>,
}

/// Refuses a negative length, whatever state the server is in.
///
/// # Errors
/// [`FsError::InvalidArgument`] if the length is negative.
pub fn check_length(length: i64) -> FsResult<u64> {
    u64::try_from(length)
        .map_err(|_| FsError::InvalidArgument(format!("Cannot truncate to a negative file size: {length}.")))
}

/// After `RecoveryInProgress` the file is taken from its writer.
///
/// # Errors
/// In the order of HDFS's `FSDirTruncateOp`: the length is negative or a name is too long
/// ([`FsError::InvalidArgument`]), the path cannot be resolved (see [`crate::ops`]), the caller may not write it, it is
/// not a file, its policy is LAZY_PERSIST ([`FsError::Unsupported`]), it is being truncated to another length
/// ([`FsError::AlreadyBeingCreated`]) or written, it is shorter than the length ([`FsError::InvalidArgument`]), or a
/// quota has no room for a copied block.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Plan> {
    let wanted = check_length(req.length)?;
    entry_limits::check_text("name of the client", &req.holder)?;
    entry_limits::check_text("name of the client's machine", &req.client_machine)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    access.check_target(ns, &resolved, WRITE)?;
    let file = resolved.file(ns)?;
    let path = resolved.path.as_str();
    if append::is_lazy_persist(ns, file) {
        return Err(FsError::Unsupported(format!("Cannot truncate lazy persist file {path}")));
    }
    let inode = ns.tree.inode(file).id();
    let length = ns.tree.length_of(file);
    let client = (&*req.holder, &*req.client_machine);
    if let Some((block, _, cut)) = ns.truncation_of(inode) {
        if length - block.length + cut == wanted {
            return Ok(Plan::NoChange(Reply::Bool(false)));
        }
        let why = format!("{path} is being truncated.");
        let text = lease::refusal("TRUNCATE_FILE", path, client, &why);
        return Err(FsError::AlreadyBeingCreated(text));
    }
    lease::check_free(ns, ctx, file, path, "TRUNCATE_FILE", client)?;
    if length == wanted {
        return Ok(Plan::NoChange(Reply::Bool(true)));
    }
    if length < wanted {
        return Err(FsError::InvalidArgument(format!(
            "Cannot truncate to a larger file size. Current size: {length}, truncate size: {wanted}."
        )));
    }
    let (mut kept, mut end, mut begin) = (0, 0, 0);
    let mut cut_block = None;
    for stored in ns.tree.blocks_of(file) {
        if end >= wanted {
            break;
        }
        cut_block = Some(stored.block.id);
        begin = end;
        end += stored.block.length;
        kept += 1;
    }
    if end == wanted {
        let edit = TruncateEdit { inode, kept, cut: None };
        return Ok(Plan::AtOnce(Edit::plan(ns, ctx, edit)?));
    }
    if cut_block.is_some_and(|block| ns.is_foreign(block)) {
        return Err(FsError::Unsupported(format!(
            "Cannot truncate {path} to {wanted} bytes: the block there was written in another group of metadata servers, before the file was \
             renamed; only the end of such a block is possible yet."
        )));
    }
    let cut = Cut {
        holder: req.holder.as_str().into(),
        machine: req.client_machine.as_str().into(),
        stamp: next_stamp(ns)?,
        length: wanted - begin,
    };
    let cutting = Cutting { inode, holder: cut.holder.clone() };
    // Bytes of a block that a snapshot shows must not be cut off its replicas.
    if ns.is_block_in_past(file, begin) {
        let edit = truncate_copy::planned(ns, file, kept, cut)?;
        return Ok(Plan::Copy(Edit::plan(ns, ctx, edit)?, cutting));
    }
    let edit = TruncateEdit { inode, kept, cut: Some(cut) };
    Ok(Plan::Cut(Edit::plan(ns, ctx, edit)?, cutting))
}

/// The plan of a request that may have to take the file from another writer first.
fn plan_freed(
    ns: &Namespace,
    ctx: &Context<'_>,
    req: &Request,
    facts: &dyn BlockFacts,
) -> FsResult<Freeing<Plan>> {
    release_lease::free(plan(ns, ctx, req), ns, ctx, &req.path, facts)
}

plannable! { Request by plan_freed with facts => Freeing<Plan>, (path) "Cannot truncate for {path}" }

impl Operation for TruncateEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Bool(self.cut.is_none()))
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.blocks(self.inode);
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.inode);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        let cut = if self.cut.is_some() { CutBlock::InPlace } else { CutBlock::None };
        charge::truncate(ns, ledger, ns.expect(self.inode), self.kept, cut);
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let file = ns.expect(self.inode);
        ns.cut_blocks(file, self.kept, applying.changes);
        ns.set_modified(file, applying.time);
        if let Some(cut) = &self.cut {
            ns.open_file(file, &cut.holder, &cut.machine);
            append::reopen_last(ns, file, applying.changes);
            ns.set_truncation(file, cut.stamp, Some(cut.length));
        }
        Reply::Bool(self.cut.is_none())
    }
}
