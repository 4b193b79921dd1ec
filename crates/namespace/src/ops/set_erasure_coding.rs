//! Notes on a directory that its files are replicated as a whole, or takes the note away.
//!
//! Every file is, so nothing depends on the note; content summaries show it. As in HDFS the note is an extended
//! attribute that no client sees.

use crate::{
    Context, Namespace, Reply, SnapshotId,
    access::{Access, WRITE},
    edit::{Edit, Planned},
    ops::set_xattrs::SetXattrsEdit,
    plannable::plannable,
    resolve::{Purpose, resolve},
    store::NONE,
    xattr::{Space, Xattr, XattrName},
};
use base::{FsError, FsResult, POLICY_UNSPECIFIED};

/// Whole blocks: the one policy that every cluster has. Hadoop: `ErasureCodeConstants.REPLICATION_POLICY_NAME`.
pub const REPLICATION: &str = "replication";

/// Hadoop: `XATTR_ERASURECODING_POLICY`, in the namespace `system`.
const NAME: &str = "hdfs.erasurecoding.policy";

fn attribute() -> XattrName {
    XattrName { space: Space::System, name: NAME.into() }
}

/// The attribute's value, as Hadoop's `WritableUtils.writeString` writes it.
fn value() -> Box<[u8]> {
    let length = (REPLICATION.len() as u32).to_be_bytes();
    [&length, REPLICATION.as_bytes()].concat().into()
}

/// All other policies are disabled.
///
/// # Errors
/// [`FsError::InvalidArgument`] for each policy but replication.
pub(crate) fn check_enabled(name: &str) -> FsResult<()> {
    if name.eq_ignore_ascii_case(REPLICATION) {
        return Ok(());
    }
    Err(FsError::InvalidArgument(format!(
        "Policy '{name}' does not match any enabled erasure coding policies: []. An erasure coding policy can be \
         enabled by enableErasureCodingPolicy API."
    )))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// The name of a policy.
    pub policy: String,
}

/// The request to take the note of a policy away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub path: String,
}

/// # Errors
/// [`FsError::InvalidArgument`] if the policy is not replication, the only one that is enabled; [`FsError::Io`] if the
/// path is a file. The path cannot be resolved or does not exist, or the caller may not write the directory: see
/// [`crate::ops`].
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<SetXattrsEdit>> {
    let Request { path, policy } = req;
    check_enabled(policy)?;
    let directory = directory(ns, ctx, path, "Attempt to set an erasure coding policy for a file")?;
    if ns.is_replication_noted(directory) {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let set = vec![Xattr { name: attribute(), value: value() }];
    let edit = SetXattrsEdit { inode: ns.tree.inode(directory).id(), set, removed: Vec::new() };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

/// # Errors
/// [`FsError::NoErasureCoding`] if the directory has no note of its own; [`FsError::Io`] if the path is a file. The
/// path cannot be resolved or does not exist, or the caller may not write the directory: see [`crate::ops`].
pub fn plan_removal(ns: &Namespace, ctx: &Context<'_>, req: &Removal) -> FsResult<Planned<SetXattrsEdit>> {
    let directory = directory(ns, ctx, &req.path, "Cannot unset an erasure coding policy on a file")?;
    if !ns.is_replication_noted(directory) {
        return Err(FsError::NoErasureCoding(format!(
            "No erasure coding policy explicitly set on {}",
            ns.tree.path_of(directory)
        )));
    }
    let removed = vec![attribute()];
    let edit = SetXattrsEdit { inode: ns.tree.inode(directory).id(), set: Vec::new(), removed };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

fn directory(ns: &Namespace, ctx: &Context<'_>, path: &str, not_of_a_file: &str) -> FsResult<u32> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, path, Purpose::Other)?;
    access.check_target(ns, &resolved, WRITE)?;
    let path = resolved.path.as_str();
    match resolved.target {
        None => Err(FsError::NotFound(format!("Path not found: {path}"))),
        Some(target) if ns.tree.inode(target).is_file() => {
            Err(FsError::Io(format!("{not_of_a_file} {path}")))
        }
        Some(target) => Ok(target),
    }
}

impl Namespace {
    fn is_replication_noted(&self, directory: u32) -> bool {
        self.tree.xattrs_of(directory).is_some_and(|xattrs| xattrs.get(&attribute()).is_some())
    }

    /// Whether HDFS would find an extended attribute: a directory's storage policy is one there.
    pub(crate) fn has_any_xattr(&self, handle: u32) -> bool {
        let has_policy =
            || self.tree.inode(handle).is_directory() && self.tree.own_policy(handle) != POLICY_UNSPECIFIED;
        self.tree.xattrs_of(handle).is_some() || has_policy()
    }

    /// How content summaries name the policy of a file or directory: HDFS's `getErasureCodingPolicyName`, which
    /// looks no further than at the first directory upwards that has any extended attribute.
    pub(crate) fn erasure_coding_of(&self, handle: u32) -> &'static str {
        if self.tree.inode(handle).is_file() {
            return "Replicated";
        }
        let parent = |at: &u32| Some(self.tree.inode(*at).parent).filter(|parent| *parent != NONE);
        match std::iter::successors(Some(handle), parent).find(|at| self.has_any_xattr(*at)) {
            Some(at) if self.is_replication_noted(at) => REPLICATION,
            _ => "",
        }
    }

    /// The policy like [`Self::erasure_coding_of`], for an inode in a snapshot. The top has the note that it had then;
    /// an inode without a note inherits it from the directory where the snapshot shows it, wherever the inode is now.
    pub(crate) fn erasure_coding_at(
        &self,
        handle: u32,
        directory: u32,
        at: Option<SnapshotId>,
    ) -> &'static str {
        if at.is_none() || self.tree.inode(handle).is_file() {
            return self.erasure_coding_of(handle);
        }
        if !self.is_top_of(handle, at) {
            return self.erasure_coding_of(if self.has_any_xattr(handle) { handle } else { directory });
        }
        let xattrs = self.xattrs_at(handle, at);
        if xattrs.is_none() && self.attributes_at(handle, at).storage_policy == POLICY_UNSPECIFIED {
            return self.erasure_coding_of(handle);
        }
        let is_noted = xattrs.is_some_and(|xattrs| xattrs.get(&attribute()).is_some());
        if is_noted { REPLICATION } else { "" }
    }
}

plannable! { Request by plan => Planned<SetXattrsEdit>, (path) "Cannot set erasure coding policy on {path}" }
plannable! { Removal by plan_removal => Planned<SetXattrsEdit>, (path) "Cannot unset erasure coding policy on {path}" }
