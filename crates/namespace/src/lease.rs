//! Finding the file that a writer means, and whether it may still write it: HDFS's `checkLease`.

use crate::{
    Context, Namespace,
    access::Access,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult, InodeId};

/// A file found by the id that the client was given, or else by its path.
pub(crate) struct Found<'a> {
    pub handle: Option<u32>,
    path: &'a str,
    inode: InodeId,
}

/// The path is only looked at for clients that name no inode: a file that is renamed is still written.
pub(crate) fn find<'a>(
    ns: &Namespace,
    ctx: &Context<'_>,
    path: &'a str,
    inode: InodeId,
) -> FsResult<Found<'a>> {
    if inode.0 == 0 {
        let access = Access::new(ctx);
        let resolved = resolve(ns, ctx, &access, path, Purpose::Other)?;
        return Ok(Found { handle: resolved.target, path, inode });
    }
    let handle = ns.handle(inode);
    Ok(Found { handle, path, inode })
}

/// The handle of a file that `holder` has open.
///
/// # Errors
/// [`FsError::NotFound`] if the file does not exist or is deleted; [`FsError::LeaseExpired`] if it is a directory, is
/// not open, or is another client's; [`FsError::Io`] if it is being truncated.
pub(crate) fn check(ns: &Namespace, found: &Found<'_>, holder: &str) -> FsResult<u32> {
    let Some(handle) = found.handle else {
        return Err(FsError::NotFound(format!("File does not exist: {}", describe(ns, found, holder))));
    };
    let inode = ns.tree.inode(handle);
    if inode.is_directory() {
        return Err(FsError::LeaseExpired(format!(
            "INode is not a regular file: {}",
            describe(ns, found, holder)
        )));
    }
    if ns.truncations.contains(&inode.id()) {
        return Err(FsError::Io(format!("{} is being truncated.", describe(ns, found, holder))));
    }
    // In HDFS nothing closes it any more.
    if !ns.tree.is_attached(handle) {
        return Err(FsError::NotFound(format!("File is deleted: {}", describe(ns, found, holder))));
    }
    let Some((owner, _)) = ns.tree.writer_of(handle) else {
        return Err(FsError::LeaseExpired(format!(
            "File is not open for writing: {}",
            describe(ns, found, holder)
        )));
    };
    if owner != holder {
        return Err(FsError::LeaseExpired(format!(
            "Client (={holder}) is not the lease owner (={owner}: {}",
            describe(ns, found, holder)
        )));
    }
    Ok(handle)
}

fn describe(ns: &Namespace, found: &Found<'_>, holder: &str) -> String {
    let path = match found.handle {
        Some(handle) => ns.tree.path_of(handle),
        None => found.path.into(),
    };
    let lease = match ns.leases.get(holder) {
        Some(files) => format!("[Lease.  Holder: {holder}, pending creates: {}]", files.len()),
        None => format!("Holder {holder} does not have any open files."),
    };
    // A client that sent a number which no inode has sees that number again, with a sign as Java prints it.
    format!("{path} (inode {}) {lease}", found.inode.0 as i64)
}

/// Whether a file that shall be opened is free. `purpose` is Hadoop's name of the operation, as `APPEND_FILE`.
///
/// HDFS's `recoverLeaseInternal`: a file that somebody writes is refused. After `RecoveryInProgress` it is taken
/// from its writer: `ops/release_lease.rs`.
///
/// # Errors
/// [`FsError::AlreadyBeingCreated`] if `new_holder` itself or a living client writes the file;
/// [`FsError::RecoveryInProgress`] if its writer is silent for too long, or the file is being recovered.
pub(crate) fn check_free(
    ns: &Namespace,
    ctx: &Context<'_>,
    file: u32,
    path: &str,
    purpose: &str,
    (new_holder, new_machine): (&str, &str),
) -> FsResult<()> {
    let Some((holder, machine)) = ns.tree.writer_of(file) else { return Ok(()) };
    let failed = |why: String| refusal(purpose, path, (new_holder, new_machine), &why);
    if holder == new_holder {
        return Err(FsError::AlreadyBeingCreated(failed(format!(
            "{holder} is already the current lease holder."
        ))));
    }
    if ctx.renewals.is_some_and(|renewals| renewals.is_soft_expired(holder, ctx.moment)) {
        return Err(FsError::RecoveryInProgress(failed(
            "lease recovery is in progress. Try again later.".into(),
        )));
    }
    if ns.tree.open_files.get(ns.tree.inode(file).content).recovery != 0 {
        return Err(FsError::RecoveryInProgress(failed(format!(
            "another recovery is in progress by {holder} on {machine}"
        ))));
    }
    Err(FsError::AlreadyBeingCreated(failed(format!(
        "this file lease is currently owned by {holder} on {machine}"
    ))))
}

/// Hadoop's `RecoverLeaseOp.getExceptionMessage`.
pub(crate) fn refusal(purpose: &str, path: &str, (holder, machine): (&str, &str), why: &str) -> String {
    format!("Failed to {purpose} {path} for {holder} on {machine} because {why}")
}
