//! The watches on a tree, and which edits they notice.

use crate::{Edit, Namespace, looks::Watch, operation::Operation, ops::Body, store::NONE};
use base::InodeId;
use std::sync::{Arc, Weak};

/// The most watches at a time: every edit asks each whether it concerns it.
const WATCHES_MAX: usize = 64;

/// The watches on a tree. The holder of the tree tells them of every edit before it is applied. A watch that nobody holds any
/// more is forgotten.
#[derive(Debug, Default)]
pub struct Watches {
    set: Vec<Weak<Watch>>,
}

impl Watches {
    /// Sets a watch on a directory and all below it. `None` while too many are set.
    pub fn set(&mut self, top: InodeId) -> Option<Arc<Watch>> {
        self.spoil(|_| false);
        (self.set.len() < WATCHES_MAX).then(|| {
            let watch = Arc::new(Watch::new(top));
            self.set.push(Arc::downgrade(&watch));
            watch
        })
    }

    /// This edit is going to be applied to the tree.
    pub fn tell(&mut self, ns: &Namespace, edit: &Edit) {
        if !self.set.is_empty() {
            self.spoil(|watch| edit.may_change_below(ns, watch.top));
        }
    }

    /// Anything may be going to change.
    pub fn spoil_all(&mut self) {
        self.spoil(|_| true);
    }

    fn spoil(&mut self, is_spoilt: impl Fn(&Watch) -> bool) {
        self.set.retain(|watch| {
            let watch = watch.upgrade().filter(|watch| watch.is_intact());
            watch.is_some_and(|watch| match is_spoilt(&watch) {
                true => {
                    watch.spoil();
                    false
                }
                false => true,
            })
        });
    }
}

/// The watches end with their tree.
impl Drop for Watches {
    fn drop(&mut self) {
        self.spoil_all();
    }
}

impl Edit {
    /// Whether it may change the rights of something at or below a directory, or what that counts for. To be asked before it is
    /// applied. It answers yes where that is not known.
    fn may_change_below(&self, ns: &Namespace, top: InodeId) -> bool {
        match &self.body {
            Body::NoteAnswer(_)
            | Body::RaiseLevel(_)
            | Body::OrderServer(_)
            | Body::AllowDeletions(_)
            | Body::SetSnapshottable(_)
            | Body::RenameSnapshot(_)
            // The holder of a file has no rights by that, and its last block counts as a full one already.
            | Body::StartRecovery(_)
            // So it does under a new stamp.
            | Body::NewStamp(_) => return false,
            // Deleted subtrees hang nowhere. They count only if snapshots keep something of them.
            Body::Cleanup(_) if ns.tree.snapshots.entries.is_empty() => return false,
            _ => {}
        }
        let (mut names_any, mut is_below) = (false, false);
        self.body.changed(ns, &mut |inode| {
            names_any = true;
            is_below |= ns.counts_below(inode, top);
        });
        // A policy that changes above is charged to the quotas below, which count by media.
        let dues = self.dues.iter().flat_map(|dues| &dues.charges);
        is_below || !names_any || dues.into_iter().any(|charge| ns.counts_below(charge.directory, top))
    }
}

impl Namespace {
    /// Whether an inode counts in a directory or somewhere below it, or is that directory.
    fn counts_below(&self, inode: InodeId, top: InodeId) -> bool {
        let Some(mut at) = self.handle(inode) else { return true };
        while at != NONE {
            if self.tree.inode(at).id() == top {
                return true;
            }
            at = self.counted_in(at);
        }
        false
    }
}
