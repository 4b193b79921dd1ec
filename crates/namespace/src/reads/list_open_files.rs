//! The files that are being written, a page at a time in order of their ids.

use crate::{Context, Namespace, Sight, Walkable, path::is_within, readable::readable};
use base::{FsResult, InodeId};
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
    ops::Bound::{Excluded, Included, Unbounded},
    sync::Arc,
};

/// Asks for a page of the files that are being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The page has files with an id above this one.
    pub after: InodeId,
    /// The files are at or below it.
    pub directory: String,
    /// The size of a page.
    pub limit: usize,
    /// The files are among these; `None`: among all.
    pub among: Option<Arc<BTreeSet<InodeId>>>,
}

readable! {
    Request => Page, (directory) "listOpenFiles", |ns, ctx, req| req.walk(ns, ctx);
    fn sight(&self) -> Sight<'_> {
        Sight::Everything
    }
}

impl Walkable for Request {
    type Progress = Option<Look>;
    type Found = Page;

    fn step(&self, look: &mut Option<Look>, ns: &Namespace, ctx: &Context<'_>) -> FsResult<Option<Page>> {
        let look = look.get_or_insert_with(|| Look {
            among: self.among.clone(),
            ..Look::new(self.after, &self.directory, self.limit)
        });
        Ok(look.step(ns, ctx.limits.content_summary_step))
    }
}

/// A file that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    pub inode: InodeId,
    pub path: String,
    pub holder: String,
    pub machine: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub files: Vec<OpenFile>,
    pub has_more: bool,
}

/// A page that is looked for. It costs a walk over the leases, and takes steps: call [`Look::step`] until it answers. A
/// file that is opened, closed or recovered between two steps may be listed as it was before, or not.
pub struct Look {
    after: InodeId,
    directory: String,
    limit: usize,
    among: Option<Arc<BTreeSet<InodeId>>>,
    /// The holder whose files are being gathered, and the last of them.
    begun: Option<(Arc<str>, InodeId)>,
    is_gathered: bool,
    /// The files that were found and not looked at yet, the lowest id first.
    found: BinaryHeap<Reverse<InodeId>>,
    page: Page,
}

/// At most `limit` files with an id above `after`, those at or below `directory`, in one step. Deleted files that still
/// wait to be taken apart are not listed.
pub fn list(ns: &Namespace, after: InodeId, directory: &str, limit: usize) -> Page {
    let mut look = Look::new(after, directory, limit);
    loop {
        if let Some(page) = look.step(ns, usize::MAX) {
            return page;
        }
    }
}

impl Look {
    /// Looks for what [`list`] gives.
    pub fn new(after: InodeId, directory: &str, limit: usize) -> Self {
        Self {
            after,
            directory: directory.to_owned(),
            limit,
            among: None,
            begun: None,
            is_gathered: false,
            found: BinaryHeap::new(),
            page: Page::default(),
        }
    }

    /// Looks at about `count_max` holders and files. `None`: let others have their turn, go on.
    pub fn step(&mut self, ns: &Namespace, count_max: usize) -> Option<Page> {
        // A holder and one of its files, so that there is progress.
        let count_max = count_max.max(2);
        if !self.is_gathered {
            self.is_gathered = self.gather(ns, count_max);
            if !self.is_gathered {
                return None;
            }
        }
        for _ in 0..count_max {
            let Some(Reverse(inode)) = self.found.pop() else { return Some(std::mem::take(&mut self.page)) };
            let is_known = self.page.files.last().is_some_and(|last| last.inode == inode);
            let file =
                open_file(ns, inode).filter(|file| !is_known && is_within(&file.path, &self.directory));
            let Some(file) = file else { continue };
            if self.page.files.len() == self.limit {
                self.page.has_more = true;
                return Some(std::mem::take(&mut self.page));
            }
            self.page.files.push(file);
        }
        None
    }

    /// True once all holders were looked at.
    fn gather(&mut self, ns: &Namespace, count_max: usize) -> bool {
        let mut left = count_max;
        let begun = self.begun.take();
        let first = begun.as_ref().map_or("", |(holder, _)| holder);
        for (holder, files) in ns.leases.range::<str, _>((Included(first), Unbounded)) {
            let mut last = match &begun {
                Some((begun, last)) if begun == holder => *last,
                _ => self.after,
            };
            if left == 0 {
                self.begun = Some((holder.clone(), last));
                return false;
            }
            left -= 1;
            for inode in files.range((Excluded(last), Unbounded)) {
                if left == 0 {
                    self.begun = Some((holder.clone(), last));
                    return false;
                }
                left -= 1;
                if self.among.as_ref().is_none_or(|among| among.contains(inode)) {
                    self.found.push(Reverse(*inode));
                }
                last = *inode;
            }
        }
        true
    }
}

fn open_file(ns: &Namespace, inode: InodeId) -> Option<OpenFile> {
    let path = ns.path_of(inode)?;
    let (holder, machine) = ns.tree.writer_of(ns.handle(inode)?)?;
    Some(OpenFile { inode, path, holder: holder.to_owned(), machine: machine.to_owned() })
}
