//! Creates a file and opens it for writing.
//!
//! Missing directories are made if the client asks, with the permission of the one they enter. An existing file is
//! replaced if the flags say so: it is removed and the new one is another inode. Otherwise the answer depends on
//! whether a client is writing it, since clients wait for a dying writer's lease.

use crate::{
    BlockFacts, Context, Limits, Namespace, Reply,
    access::{Access, WRITE},
    acl::{
        Acl,
        inherit::{self, Modes},
    },
    charge::{self, ledger::Ledger},
    codec::record_fields,
    edit::{Edit, Planned, heirs::Heirs},
    entry_limits,
    footprint::Marks,
    lease,
    operation::{Applying, Operation},
    ops::release_lease::{self, Freeing},
    ops::{
        mkdirs::{self, MkdirsEdit, NewDirectory},
        set_erasure_coding, set_storage_policy,
    },
    path::Path,
    plannable::plannable,
    reserved,
    resolve::{Purpose, Resolved, resolve},
    store::{attributes::AttributeValues, inode::Inode},
};
use base::{FsError, FsResult, InodeId, POLICY_UNSPECIFIED, StoragePolicy};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// The client's umask is already applied.
    pub permission: u16,
    /// The permission without it, from clients that know of inherited ACLs.
    pub unmasked: Option<u16>,
    /// The client's name for itself: the holder of the lease.
    pub holder: String,
    pub client_machine: String,
    /// Bits of Hadoop's `CreateFlagProto`; see [`flag`].
    pub flags: u32,
    pub create_parent: bool,
    pub replication: u32,
    pub block_size: u64,
    /// The name of the file's own storage policy; `None` or empty for its directory's.
    pub storage_policy: Option<String>,
    /// The name of an erasure coding policy; `None` or empty for none.
    pub erasure_coding: Option<String>,
}

/// Hadoop's `CreateFlagProto`.
pub mod flag {
    pub const CREATE: u32 = 0x01;
    pub const OVERWRITE: u32 = 0x02;
    pub const APPEND: u32 = 0x04;
    pub const LAZY_PERSIST: u32 = 0x10;
    pub const NEW_BLOCK: u32 = 0x20;
    pub const NO_LOCAL_WRITE: u32 = 0x40;
    pub const SHOULD_REPLICATE: u32 = 0x80;
    pub const IGNORE_CLIENT_LOCALITY: u32 = 0x100;
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateEdit {
    pub parent: InodeId,
    /// Directories to be made in `parent`, from the outermost; the file enters the innermost.
    pub missing: Vec<NewDirectory>,
    /// The file of this name that goes away.
    pub replaced: Option<InodeId>,
    pub id: InodeId,
    pub name: Box<str>,
    pub owner: Arc<str>,
    pub group: Arc<str>,
    pub mode: u16,
    /// Inherited; see [`Heirs`].
    pub acl: Option<Arc<Acl>>,
    pub replication: u16,
    pub block_size: u64,
    pub holder: Box<str>,
    pub machine: Box<str>,
    /// The id of the file's own storage policy; 0: it has none.
    pub storage_policy: u8,
}

record_fields! { CreateEdit {
    parent, missing, replaced, id, name, owner, group, mode, replication, block_size, holder, machine
} acl; later { storage_policy } }

impl Heirs for CreateEdit {
    fn acls(&mut self) -> Vec<&mut Option<Arc<Acl>>> {
        let missing = self.missing.iter_mut().map(|directory| &mut directory.acl);
        missing.chain([&mut self.acl]).collect()
    }

    fn inherits(&self) -> bool {
        self.acl.is_some() || self.missing.iter().any(|directory| directory.acl.is_some())
    }
}

/// Refuses a path that no file can have, whatever state the server is in. HDFS looks at the path before it asks for
/// safe mode.
///
/// # Errors
/// [`FsError::Io`] if the path is too long or too deep; [`FsError::InvalidPath`] if it is no absolute path, has a colon
/// in a name, or is reserved.
pub fn check_path(path: &str, limits: &Limits) -> FsResult<()> {
    Path::check_length(path, "create", limits)?;
    reserved::check_creatable(path)?;
    Path::parse_new(path).map(|_| ())
}

/// # Errors
/// Those of [`check_path`]; the path cannot be resolved (see [`crate::ops`]). [`FsError::AlreadyExists`] if it is a
/// directory, or a file that is not to be replaced; that file is being written. [`FsError::NotFound`] if no file is
/// there and none is to be created, or its parent is missing and not to be made. The caller may not write the directory
/// above or the file. [`FsError::Io`] if the block size is too small or the replication is not allowed,
/// [`FsError::InvalidArgument`] if the block size is too large or a policy is unknown. There is no room, or a quota has
/// none.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<CreateEdit>> {
    check_path(&req.path, ctx.limits)?;
    for (what, text) in [
        ("name of the user", &*ctx.caller.user),
        ("name of the client", &req.holder),
        ("name of the client's machine", &req.client_machine),
    ] {
        entry_limits::check_text(what, text)?;
    }
    let erasure_coding = req.erasure_coding.as_deref().filter(|name| !name.is_empty());
    if erasure_coding.is_some() && req.flags & flag::SHOULD_REPLICATE != 0 {
        return Err(FsError::InvalidArgument(
            "SHOULD_REPLICATE flag and ecPolicyName are exclusive parameters. Set both is not allowed!"
                .into(),
        ));
    }
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Create)?;
    access.check_ancestor(ns, &resolved, WRITE)?;
    let overwrite = req.flags & flag::OVERWRITE != 0;
    match resolved.target {
        Some(target) if ns.tree.inode(target).is_directory() => {
            return Err(FsError::AlreadyExists(format!(
                "{} already exists as a directory",
                resolved.path.as_str()
            )));
        }
        Some(_) if overwrite => access.check_target(ns, &resolved, WRITE)?,
        Some(_) => {}
        None => {
            if !req.create_parent {
                resolved.check_parent_exists()?;
            }
            if req.flags & flag::CREATE == 0 {
                return Err(FsError::NotFound(format!("Can't overwrite non-existent {}", req.path)));
            }
        }
    }
    check_block_size(ctx, req.block_size)?;
    erasure_coding.map_or(Ok(()), set_erasure_coding::check_enabled)?;
    check_replication(ctx, &req.path, req.replication, Some(&req.client_machine))?;
    if let Some(target) = resolved.target.filter(|_| !overwrite) {
        return Err(exists_error(ns, ctx, req, target, resolved.path.as_str()));
    }
    entry_limits::check_objects(ns, ctx)?;
    let storage_policy = own_policy(ns, req, &resolved)?;
    let inherited = Modes::new(ns.tree.attributes_of(resolved.ancestor).mode, None, false).of_ancestor();
    let missing = match resolved.target {
        // It was measured when it was made, and makes room for its successor.
        Some(_) => Vec::new(),
        None => mkdirs::missing_ancestors(ns, ctx, &resolved, inherited)?,
    };
    let edit = CreateEdit { storage_policy, ..edit(ns, ctx, req, &resolved, missing)? };
    let body = edit;
    Ok(Planned::Edit(Edit::plan(ns, ctx, body)?))
}

fn edit(
    ns: &Namespace,
    ctx: &Context<'_>,
    req: &Request,
    resolved: &Resolved<'_>,
    missing: Vec<NewDirectory>,
) -> FsResult<CreateEdit> {
    let modes = Modes::new(req.permission, req.unmasked, ctx.limits.access.posix_acl_inheritance);
    let (mode, acl) = inherit::inherit(mkdirs::acl_of(ns, resolved.ancestor, &missing), modes, false)?;
    Ok(CreateEdit {
        parent: ns.tree.inode(resolved.ancestor).id(),
        replaced: resolved.target.map(|target| ns.tree.inode(target).id()),
        id: ns.tree.counters.next_inode(missing.len())?,
        missing,
        name: resolved.path.name().into(),
        owner: ctx.caller.user.clone(),
        group: mkdirs::group_of(ns, resolved.ancestor),
        mode,
        acl,
        replication: req.replication as u16,
        block_size: req.block_size,
        holder: req.holder.as_str().into(),
        machine: req.client_machine.as_str().into(),
        storage_policy: POLICY_UNSPECIFIED,
    })
}

/// The policy asked for; else one of the directory's that files keep for ever once they are created.
fn own_policy(ns: &Namespace, req: &Request, resolved: &Resolved<'_>) -> FsResult<u8> {
    let asked = req.storage_policy.as_deref().filter(|name| !name.is_empty());
    let asked =
        asked.map(set_storage_policy::named).transpose()?.map_or(POLICY_UNSPECIFIED, |found| found.id);
    if req.flags & flag::LAZY_PERSIST != 0 {
        return set_storage_policy::named("LAZY_PERSIST").map(|policy| policy.id);
    }
    if asked != POLICY_UNSPECIFIED {
        return Ok(asked);
    }
    let inherited = ns.tree.policy_of(resolved.ancestor);
    let is_kept = StoragePolicy::with_id(inherited).is_some_and(|policy| policy.is_copied_on_create);
    Ok(if is_kept { inherited } else { POLICY_UNSPECIFIED })
}

fn check_block_size(ctx: &Context<'_>, size: u64) -> FsResult<()> {
    let limits = ctx.limits;
    if size > i64::MAX as u64 || size < limits.block_size_min {
        return Err(FsError::Io(format!(
            "Specified block size {} is less than configured minimum value \
             dfs.namenode.fs-limits.min-block-size={}",
            size as i64, limits.block_size_min
        )));
    }
    if size > limits.block_size_max {
        return Err(FsError::InvalidArgument(format!(
            "Specified block size {size} is greater than the greatest, {}",
            limits.block_size_max
        )));
    }
    Ok(())
}

/// HDFS's `verifyReplication`.
///
/// # Errors
/// [`FsError::Io`] if the replication is out of the limits.
pub(crate) fn check_replication(
    ctx: &Context<'_>,
    path: &str,
    replication: u32,
    machine: Option<&str>,
) -> FsResult<()> {
    let (min, max) = (ctx.limits.replication_min, ctx.limits.replication_max);
    // Clients send a signed number.
    let asked = replication as i32;
    let problem = if asked > i32::from(max) {
        format!("exceeds maximum of {max}")
    } else if asked < i32::from(min) {
        format!("is less than the required minimum of {min}")
    } else {
        return Ok(());
    };
    let machine = machine.map(|machine| format!(", clientName={machine}")).unwrap_or_default();
    Err(FsError::Io(format!("Requested replication factor of {asked} {problem} for {path}{machine}")))
}

/// The error for a file that is there and not to be replaced. After
/// `RecoveryInProgress` the file is taken from its writer.
fn exists_error(ns: &Namespace, ctx: &Context<'_>, req: &Request, target: u32, path: &str) -> FsError {
    match lease::check_free(ns, ctx, target, path, "CREATE_FILE", (&req.holder, &req.client_machine)) {
        Err(error) => error,
        Ok(()) => FsError::AlreadyExists(format!("{path} for client {} already exists", req.client_machine)),
    }
}

/// The decision on a request, as the tree is now.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Create(Freeing<Planned<CreateEdit>>),
    /// The missing directories are made first, by an edit of the service. Then the request is planned again. If it is refused
    /// then, the directories stay.
    Parents(Edit<MkdirsEdit>),
}

/// The plan of a request that may have to take the file from another writer first. Where several groups share the namespace, the file
/// is its group's own, and missing directories are made by an edit that all groups follow.
fn plan_steps(ns: &Namespace, ctx: &Context<'_>, req: &Request, facts: &dyn BlockFacts) -> FsResult<Plan> {
    match plan(ns, ctx, req) {
        Ok(Planned::Edit(Edit { body, .. })) if ns.is_shared() && !body.missing.is_empty() => {
            let CreateEdit { parent, missing: directories, owner, group, .. } = body;
            let edit = MkdirsEdit { parent, directories, owner, group };
            Ok(Plan::Parents(Edit::of_service(ns, ctx, edit)))
        }
        planned => release_lease::free(planned, ns, ctx, &req.path, facts).map(Plan::Create),
    }
}

plannable! { Request by plan_steps with facts => Plan, (path) "Cannot create file{path}" }

impl Operation for CreateEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Created(self.id))
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        let first = self.missing.first().map_or(&self.name, |directory| &directory.name);
        marks.entry(self.parent, first.as_bytes());
        self.replaced.into_iter().for_each(|replaced| marks.own_entry(replaced));
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.parent);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        let parent = ns.expect(self.parent);
        if let Some(replaced) = self.replaced {
            charge::delete(ns, ledger, ns.expect(replaced));
        }
        charge::add_inodes(ledger, parent, self.missing.len() + 1);
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let parent = ns.expect(self.parent);
        let parent =
            mkdirs::make_directories(ns, applying.time, parent, &self.missing, &self.owner, &self.group);
        if let Some(replaced) = self.replaced {
            let replaced = ns.expect(replaced);
            ns.unlink(replaced);
            ns.discard(replaced, true, applying.changes);
        }
        let attributes = ns.acquire_attributes(AttributeValues {
            owner: &self.owner,
            group: &self.group,
            mode: self.mode,
            replication: self.replication,
            storage_policy: self.storage_policy,
            block_size: self.block_size,
            acl: self.acl.as_ref(),
        });
        let inode = ns.opened(
            Inode::file(self.id, attributes, applying.time, applying.time),
            &self.holder,
            &self.machine,
        );
        let handle = ns.insert_child(parent, inode, self.name.as_bytes());
        ns.derive_open(handle);
        ns.set_modified(parent, applying.time);
        Reply::Created(self.id)
    }
}
