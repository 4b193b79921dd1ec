//! The home of what a path names, for people.

use crate::{
    Context, Namespace,
    access::Access,
    resolve::{Purpose, resolve},
    slots::Slots,
};
use base::{FsResult, GroupId, InodeId};

/// The directory that a path names, or the deepest one on its way, and the group that has the files of this directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeOfPath {
    pub directory: String,
    pub id: InodeId,
    pub slot: u16,
    pub home: GroupId,
    /// Whether the path names the directory itself.
    pub is_directory: bool,
}

impl Namespace {
    /// Tells the home of what a path names. Nothing need be there: the files of other homes are not in this tree.
    ///
    /// # Errors
    /// The path cannot be resolved (see [`crate::reads`]).
    pub fn home_of_path(&self, ctx: &Context<'_>, path: &str) -> FsResult<HomeOfPath> {
        let resolved = resolve(self, ctx, &Access::new(ctx), path, Purpose::Read)?;
        let target = resolved.target.filter(|target| self.tree.inode(*target).is_directory());
        let (directory, depth) = match target {
            Some(directory) => (directory, resolved.path.depth()),
            None => (resolved.ancestor, resolved.ancestor_depth),
        };
        let id = self.tree.inode(directory).id();
        Ok(HomeOfPath {
            directory: resolved.path.prefix(depth).to_owned(),
            id,
            slot: Slots::slot_of(id),
            home: self.home_of(id),
            is_directory: target.is_some(),
        })
    }
}
