//! Opens a finished file to be written on.
//!
//! A last block that has room is written on: it is no longer finished from here on, and its writer asks for a new
//! generation stamp before it sends anything, or goes on under the one that it has. A full one, or one that the client wants to leave as it is, stays
//! finished, and the client asks for another block.

use crate::{
    BlockChange, BlockFacts, Context, Namespace, Reply,
    access::{Access, WRITE},
    charge::{self, ledger::Ledger},
    codec::record_fields,
    edit::{Edit, Planned},
    entry_limits,
    footprint::Marks,
    lease,
    operation::{Applying, Operation},
    ops::release_lease::{self, Freeing},
    plannable::plannable,
    resolve::{Purpose, resolve},
    store::{NONE, block_list::Stored},
};
use base::{FsError, FsResult, InodeId, StoragePolicy};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// The client's name for itself: the holder of the lease.
    pub holder: String,
    pub client_machine: String,
    /// Leave the last block as it is, whether or not it has room. Hadoop: `CreateFlag.NEW_BLOCK`.
    pub new_block: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AppendEdit {
    pub inode: InodeId,
    pub holder: Box<str>,
    pub machine: Box<str>,
    /// The last block is written on.
    pub reopens_block: bool,
}

record_fields! { AppendEdit { inode, holder, machine, reopens_block } }

/// The answer is [`Reply::Appended`]. After `RecoveryInProgress` the file is taken from its writer.
///
/// # Errors
/// In the order of HDFS's `FSDirAppendOp`: a name is too long ([`FsError::InvalidArgument`]), the path cannot be
/// resolved (see [`crate::ops`]) or is a directory ([`FsError::AlreadyExists`]), the caller may not write the file, it
/// does not exist, its policy is LAZY_PERSIST ([`FsError::Unsupported`]), it is being written, its last block is not
/// complete ([`FsError::Io`]), or a quota has no room.
pub fn plan(
    ns: &Namespace,
    ctx: &Context<'_>,
    req: &Request,
    facts: &dyn BlockFacts,
) -> FsResult<Planned<AppendEdit>> {
    entry_limits::check_text("name of the client", &req.holder)?;
    entry_limits::check_text("name of the client's machine", &req.client_machine)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    let path = resolved.path.as_str();
    if resolved.target.is_some_and(|target| ns.tree.inode(target).is_directory()) {
        return Err(FsError::AlreadyExists(format!(
            "Cannot append to directory {path}; already exists as a directory."
        )));
    }
    access.check_target(ns, &resolved, WRITE)?;
    let Some(file) = resolved.target else {
        return Err(FsError::NotFound(format!(
            "Failed to append to non-existent file {path} for client {}",
            req.client_machine
        )));
    };
    if is_lazy_persist(ns, file) {
        return Err(FsError::Unsupported(format!("Cannot append to lazy persist file {path}")));
    }
    lease::check_free(ns, ctx, file, path, "APPEND_FILE", (&req.holder, &req.client_machine))?;
    let last = ns.tree.last_block(file);
    let last = (last != NONE).then(|| ns.tree.blocks.stored(last).block);
    let own = last.filter(|last| !ns.is_foreign(last.id));
    if let Some(last) = own.filter(|last| !facts.is_complete(last)) {
        return Err(FsError::Io(format!(
            "append: lastBlock={last} of src={path} is not sufficiently replicated yet."
        )));
    }
    // Nobody writes on a block of another group's pool: the next one is new.
    let room = own.is_some_and(|last| last.length < ns.tree.attributes_of(file).block_size);
    let edit = AppendEdit {
        inode: ns.tree.inode(file).id(),
        holder: req.holder.as_str().into(),
        machine: req.client_machine.as_str().into(),
        reopens_block: room && !req.new_block,
    };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

/// Whether the policy in force for the file is LAZY_PERSIST, under which files are written once.
pub(crate) fn is_lazy_persist(ns: &Namespace, file: u32) -> bool {
    StoragePolicy::with_id(ns.tree.policy_of(file)).is_some_and(|policy| policy.name == "LAZY_PERSIST")
}

/// The plan of a request that may have to take the file from another writer first.
fn plan_freed(
    ns: &Namespace,
    ctx: &Context<'_>,
    req: &Request,
    facts: &dyn BlockFacts,
) -> FsResult<Freeing<Planned<AppendEdit>>> {
    release_lease::free(plan(ns, ctx, req, facts), ns, ctx, &req.path, facts)
}

plannable! { Request by plan_freed with facts => Freeing<Planned<AppendEdit>>, (path) "Cannot append to file{path}" }

impl Operation for AppendEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Appended(self.inode))
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.blocks(self.inode);
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.inode);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        let file = ns.expect(self.inode);
        let more = charge::rest_of_last(ns, file);
        let parent = ns.tree.inode(file).parent;
        // As in HDFS there must be room for it even where the next block is a new one.
        ledger.verify(parent, charge::wanted(ns, file, more), None);
        if self.reopens_block {
            ledger.charge(parent, charge::in_file(ns, file, more));
        }
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let file = ns.expect(self.inode);
        ns.open_file(file, &self.holder, &self.machine);
        if self.reopens_block {
            reopen_last(ns, file, applying.changes);
        }
        Reply::Appended(self.inode)
    }
}

/// The last block of an open file is no longer finished.
pub(crate) fn reopen_last(ns: &mut Namespace, file: u32, changes: &mut Vec<BlockChange>) {
    let block = ns.tree.blocks.stored(ns.tree.last_block(file)).block;
    ns.set_last(file, Stored { block, committed: false });
    changes.push(BlockChange::Reopened { block });
}
