//! Sets the times of a file or directory. A directory keeps no access time.

use crate::{
    Context, Namespace, Reply,
    access::{Access, WRITE},
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    plannable::plannable,
    resolve::{Purpose, resolve},
    store::inode::TIME_LIMIT_MS,
};
use base::{FsError, FsResult, InodeId, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// Milliseconds; -1 leaves the time as it is.
    pub modified: i64,
    pub accessed: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetTimesEdit {
    pub inode: InodeId,
    pub modified: Option<Timestamp>,
    /// The new access time; for a file only.
    pub accessed: Option<Timestamp>,
}

record_fields! { SetTimesEdit { inode, modified, accessed } }

/// # Errors
/// The path cannot be resolved or does not exist, or the caller may not write it (see [`crate::ops`]);
/// [`FsError::InvalidArgument`] if a time is out of range.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<SetTimesEdit>> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    access.check_target(ns, &resolved, WRITE)?;
    let Some(target) = resolved.target else {
        return Err(FsError::NotFound(format!("File/Directory {} does not exist.", resolved.path.as_str())));
    };
    let modified = time(req.modified)?;
    let inode = ns.tree.inode(target);
    let accessed = time(req.accessed)?.filter(|_| inode.is_file());
    if modified.is_none() && accessed.is_none() {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let edit = SetTimesEdit { inode: inode.id(), modified, accessed };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

fn time(ms: i64) -> FsResult<Option<Timestamp>> {
    match u64::try_from(ms) {
        Ok(ms) if ms < TIME_LIMIT_MS => Ok(Some(Timestamp::from_ms(ms))),
        Err(_) if ms == -1 => Ok(None),
        _ => Err(FsError::InvalidArgument(format!(
            "Time {ms} is out of range: -1 leaves it as it is, else 0 to {} ms",
            TIME_LIMIT_MS - 1
        ))),
    }
}

/// Records that a file was read now; see [`crate::FileBlocks::wants_access_time`]. Nothing happens if it is
/// gone, or if another read was recorded meanwhile.
pub fn plan_access(ns: &Namespace, ctx: &Context<'_>, inode: InodeId) -> Planned<SetTimesEdit> {
    let is_here = ns.exported_to(inode).is_none();
    let file =
        ns.handle(inode).map(|handle| ns.tree.inode(handle)).filter(|inode| is_here && inode.is_file());
    let precision = ctx.limits.access_time_precision_ms;
    if file.is_none_or(|file| precision == 0 || ctx.now.ms <= file.accessed().ms + precision) {
        return Planned::NoChange(Reply::Unit);
    }
    // A read is not a change that its caller asked for: it needs no place in the retry cache.
    let edit = SetTimesEdit { inode, modified: None, accessed: Some(ctx.now) };
    Planned::Edit(Edit::of_service(ns, ctx, edit))
}

plannable! { Request by plan => Planned<SetTimesEdit>, (path) "Cannot set times {path}" }

impl Operation for SetTimesEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.status(self.inode);
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.inode);
    }

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {}

    fn followed(&self, ns: &Namespace) -> Option<Self> {
        ns.has_directory(self.inode).then(|| self.clone())
    }

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        let target = ns.expect(self.inode);
        ns.change(target, |ns| {
            let inode = ns.tree.inodes.get_mut(target);
            if let Some(modified) = self.modified {
                inode.set_modified(modified);
            }
            if let Some(accessed) = self.accessed {
                inode.set_accessed(accessed);
            }
        });
        Reply::Unit
    }
}
