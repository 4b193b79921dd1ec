//! Whether a caller may do something with every directory below one. A large subtree is looked at in slices.

use super::{ALL, Access};
use crate::{
    Context, Namespace,
    looks::{Answer, Denial, Question},
    resolve::Resolved,
};
use base::{FsError, FsResult, InodeId};

/// A check under way. An inode that changes between two slices may be checked as it was before or as it is after.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SubtreeCheck {
    top: InodeId,
    /// The path of the top, as the caller wrote it.
    path: String,
    action: u8,
    ignore_empty: bool,
    /// Directories that are still to be looked at; empty from the start where nothing is to be checked.
    stack: Vec<InodeId>,
    /// The directory that is being looked at.
    begun: Option<Begun>,
    /// Directories that would be denied, if another group had files there: some file, or one of another user.
    elsewhere: Vec<InodeId>,
}

#[derive(Clone, Debug, PartialEq)]
struct Begun {
    directory: InodeId,
    /// The last child that was looked at; empty before the first.
    after: Vec<u8>,
    below: Vec<InodeId>,
}

impl SubtreeCheck {
    pub fn new(
        ns: &Namespace,
        access: &Access<'_>,
        resolved: &Resolved<'_>,
        action: u8,
        ignore_empty: bool,
    ) -> Self {
        let is_free = !access.enabled || access.is_superuser;
        let target = resolved.target.map(|target| ns.tree.inode(target));
        let top = target.filter(|target| !is_free && target.is_directory()).map(|target| target.id());
        Self {
            top: top.unwrap_or(InodeId::ROOT),
            path: resolved.path.as_str().to_owned(),
            action,
            ignore_empty,
            stack: top.into_iter().collect(),
            begun: None,
            elsewhere: Vec::new(),
        }
    }

    /// A check whether everything is allowed in all directories that are not empty, from this one down.
    pub fn of_all_rights(top: InodeId) -> Self {
        let (path, stack, elsewhere) = (String::new(), vec![top], Vec::new());
        Self { top, path, action: ALL, ignore_empty: true, stack, begun: None, elsewhere }
    }

    /// Whether the caller has all rights in what is to be checked: known from a look, or found by one.
    ///
    /// # Errors
    /// The first denial. If a look has to come first the answer is of no use.
    pub fn all_rights(self, ns: &Namespace, ctx: &Context<'_>) -> Result<(), Denial> {
        let Some(top) = self.top() else { return Ok(()) };
        let mut check = Self::of_all_rights(top);
        let mut look = |count_max| check.rights(ns, &Access::new(ctx), count_max);
        let answer = match ctx.looks {
            Some(looks) => looks.answer(Question::Rights(top), look),
            None => look(usize::MAX),
        };
        match answer {
            Some(Answer::Rights(rights)) => Self::ask_homes(ns, ctx, &rights?),
            _ => Ok(()),
        }
    }

    /// What this tree cannot deny, because others have the files.
    fn ask_homes(ns: &Namespace, ctx: &Context<'_>, directories: &[InodeId]) -> Result<(), Denial> {
        let access = Access::new(ctx);
        for id in directories {
            let Some(directory) = ns.handle(*id) else { continue };
            if !access.may(ns, directory, ALL) {
                if ctx.has_files(ns, directory) {
                    return Err(Denial::OfDirectory(*id));
                }
            } else if ctx.has_files_of_others(ns, directory) {
                return Err(Denial::ByStickyElsewhere(*id));
            }
        }
        Ok(())
    }

    /// Looks at `count_max` inodes at most. `None` while some are left.
    pub fn rights(&mut self, ns: &Namespace, access: &Access<'_>, count_max: usize) -> Option<Answer> {
        match self.look(ns, access, count_max) {
            Ok(is_over) => is_over.then(|| Answer::Rights(Ok(self.elsewhere.as_slice().into()))),
            Err(denial) => Some(Answer::Rights(Err(denial))),
        }
    }

    /// The directory from which on it checks; `None` if nothing is to be checked.
    fn top(&self) -> Option<InodeId> {
        (!self.stack.is_empty() || self.begun.is_some()).then_some(self.top)
    }

    /// Looks at `count_max` inodes at most. False while some are left.
    pub fn step(&mut self, ns: &Namespace, access: &Access<'_>, count_max: usize) -> FsResult<bool> {
        self.look(ns, access, count_max).map_err(|denial| self.error(ns, access, denial))
    }

    /// Looks like [`SubtreeCheck::step`].
    fn look(&mut self, ns: &Namespace, access: &Access<'_>, count_max: usize) -> Result<bool, Denial> {
        let mut left = count_max.max(1);
        loop {
            let mut begun = match self.begun.take() {
                Some(begun) => begun,
                None => {
                    if left == 0 {
                        return Ok(self.stack.is_empty());
                    }
                    ns.visits.add();
                    let Some(directory) = self.stack.pop() else { return Ok(true) };
                    left -= 1;
                    self.begin(ns, access, directory)?
                }
            };
            // A directory that is gone has nothing below it any more.
            let Some(directory) = ns.handle(begun.directory) else { continue };
            let is_checked = !(self.ignore_empty && ns.tree.inode(directory).children_count() == 0);
            let mut last: &[u8] = b"";
            for (name, child) in ns.children_at(directory, &begun.after, access.snapshot) {
                if left == 0 {
                    if !last.is_empty() {
                        begun.after = last.to_vec();
                    }
                    self.begun = Some(begun);
                    return Ok(false);
                }
                left -= 1;
                if is_checked && access.is_sticky_violated(ns, directory, child) {
                    let (parent, child) = (begun.directory, ns.tree.inode(child).id());
                    return Err(Denial::BySticky { parent, child });
                }
                let inode = ns.tree.inode(child);
                if inode.is_directory() {
                    begun.below.push(inode.id());
                }
                last = name;
            }
            self.stack.extend(begun.below);
        }
    }

    fn begin(&mut self, ns: &Namespace, access: &Access<'_>, id: InodeId) -> Result<Begun, Denial> {
        if let Some(directory) = ns.handle(id) {
            let is_empty = ns.tree.inode(directory).children_count() == 0;
            let is_free = is_empty && self.ignore_empty;
            if !is_free && !access.may(ns, directory, self.action) {
                return Err(Denial::OfDirectory(id));
            }
            let has_files_elsewhere = self.ignore_empty && ns.home_of(id) != ns.group();
            if has_files_elsewhere
                && ((is_free && !access.may(ns, directory, self.action))
                    || access.is_sticky_for_others(ns, directory))
            {
                self.elsewhere.push(id);
            }
        }
        Ok(Begun { directory: id, after: Vec::new(), below: Vec::new() })
    }

    /// Hadoop's words for a denial, on the tree as it was when that was found.
    pub fn error(&self, ns: &Namespace, access: &Access<'_>, denial: Denial) -> FsError {
        match denial {
            Denial::OfDirectory(id) => {
                let directory = ns.expect(id);
                access.denial(ns, directory, &ns.last_path_of(directory), self.action)
            }
            Denial::ByStickyElsewhere(id) => {
                let directory = ns.expect(id);
                access.sticky_denial_elsewhere(ns, directory, &ns.last_path_of(directory))
            }
            Denial::BySticky { parent, child } => {
                self.sticky_denial(ns, access, ns.expect(parent), ns.expect(child))
            }
        }
    }

    fn sticky_denial(&self, ns: &Namespace, access: &Access<'_>, directory: u32, child: u32) -> FsError {
        let path = |handle| {
            let top = ns.handle(self.top);
            let below =
                top.and_then(|top| ns.path_below_at(handle, top, access.snapshot)).unwrap_or_default();
            format!("{}/{}", self.path.trim_end_matches('/'), String::from_utf8_lossy(&below))
        };
        let (parent, path) = (path(directory), path(child));
        let parent = if parent.len() > 1 { parent.trim_end_matches('/') } else { &parent };
        // In a snapshot, too, HDFS tells the rights of now.
        access.at(None).sticky_denial(ns, directory, child, (parent, &path))
    }
}
