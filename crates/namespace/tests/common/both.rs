//! A namespace of three groups, and the same in one group: every call has to have the same end in both.

use super::{
    ALL_FINISHED, HOLDER, World,
    cluster::{Cluster, GROUPS},
};
use base::{Block, FsError, FsResult, GroupId, InodeId, StorageType};
use namespace::{
    Amounts, Context, FileKind, Namespace, Reply,
    homes::Intent,
    ops,
    ops::set_quota::KEEP,
    reads::{get_block_locations, get_file_info, get_listing},
};

/// A namespace of three groups, and the same in one group.
pub struct Both {
    pub cluster: Cluster,
    pub one: World,
    pub retries: u64,
    /// Files that did not move because a snapshot sees them.
    pub stayed: u64,
    /// The calls so far, for people.
    pub calls: Vec<String>,
    /// The call that is to come between an ask for another one and its answer.
    between: Option<Between>,
    /// Calls that have done so.
    pub came_between: u64,
}

#[derive(Clone, Debug)]
pub enum Between {
    Rename { source: String, destination: String },
    SetStoragePolicy { path: String, policy: Option<&'static str> },
}

pub fn mkdirs(path: &str) -> ops::mkdirs::Request {
    ops::mkdirs::Request { path: path.into(), permission: 0o755, unmasked: None, create_parent: true }
}

pub fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

impl Both {
    pub fn new(seed: u64) -> Self {
        let (cluster, one) = (Cluster::new(seed), World::new(seed));
        Self { cluster, one, retries: 0, stayed: 0, calls: Vec::new(), between: None, came_between: 0 }
    }

    pub fn is_directory(&self, path: &str) -> bool {
        let root = self.cluster.root();
        let status = get_file_info::get(&root.ns, &root.context(None), path);
        status.is_ok_and(|status| status.is_some_and(|it| it.kind == FileKind::Directory))
    }

    /// If the next call has homes asked, this one comes to the root group before their answers are used.
    pub fn let_between(&mut self, between: Between) {
        self.cluster.between = Some(match between.clone() {
            Between::Rename { source, destination } => {
                let request = ops::rename::Request { source, destination };
                Box::new(move |ns, ctx| Ok(ops::rename::plan(ns, ctx, &request)?.into()))
            }
            Between::SetStoragePolicy { path, policy } => {
                let request = ops::set_storage_policy::Request { path, policy: policy.map(Into::into) };
                Box::new(move |ns, ctx| Ok(ops::set_storage_policy::plan(ns, ctx, &request)?.into()))
            }
        });
        self.between = Some(between);
    }

    /// A call has come between. It is carried out in the one namespace as well, before the other one.
    pub fn has_come_between(&mut self) -> bool {
        let Some(found) = self.cluster.came_between.take() else { return false };
        self.came_between += 1;
        let between = self.between.take().unwrap();
        let alone = match &between {
            Between::Rename { source, destination } => self.one.rename(source, destination).map(Reply::Bool),
            Between::SetStoragePolicy { path, policy } => self.one.set_storage_policy(path, *policy),
        };
        assert_eq!(found, alone, "{between:?} within {:?}", self.calls.last());
        true
    }

    /// Whether a file goes from one home to another between these directories.
    pub fn are_apart(&self, source: &str, destination: &str) -> bool {
        self.is_directory(source)
            && self.is_directory(destination)
            && self.cluster.home(source) != self.cluster.home(destination)
    }

    /// Both have this end. A call that is to be tried again is not carried out in the one.
    pub fn same(
        &mut self,
        found: FsResult<Reply>,
        alone: impl FnOnce(&mut World) -> FsResult<Reply>,
    ) -> FsResult<Reply> {
        // What goes away meanwhile may come too late for a call that is refused.
        let is_late = self.has_come_between() && found.as_ref().is_err_and(is_of_quota);
        if is_late || matches!(found, Err(FsError::Retry(_))) {
            self.retries += 1;
            return found;
        }
        if matches!(&found, Err(FsError::Unsupported(why)) if why.contains("is in a snapshot")) {
            self.stayed += 1;
            return found;
        }
        let alone = alone(&mut self.one);
        assert_eq!(found, alone, "{:?}", self.calls.last());
        found
    }

    pub fn mkdirs(&mut self, path: &str) -> FsResult<Reply> {
        let found = self.cluster.at_root(|ns, ctx| ops::mkdirs::plan(ns, ctx, &mkdirs(path)));
        self.same(found, |one| one.mkdirs(path, true).map(Reply::Bool))
    }

    pub fn set_quota(&mut self, path: &str, inodes: i64, bytes: i64) -> FsResult<Reply> {
        self.set(ops::set_quota::Request { path: path.into(), inodes, bytes, storage_type: None })
    }

    pub fn set_type_quota(&mut self, path: &str, kind: StorageType, bytes: i64) -> FsResult<Reply> {
        let storage_type = Some(kind);
        self.set(ops::set_quota::Request { path: path.into(), inodes: KEEP, bytes, storage_type })
    }

    pub fn set(&mut self, request: ops::set_quota::Request) -> FsResult<Reply> {
        let found = self.cluster.at_root(|ns, ctx| ops::set_quota::plan(ns, ctx, &request));
        self.same(found, |one| one.run(|ns, ctx| ops::set_quota::plan(ns, ctx, &request)))
    }

    pub fn set_storage_policy(&mut self, path: &str, policy: Option<&str>) -> FsResult<Reply> {
        let request = ops::set_storage_policy::Request { path: path.into(), policy: policy.map(Into::into) };
        let plan = |ns: &Namespace, ctx: &Context<'_>| ops::set_storage_policy::plan(ns, ctx, &request);
        let found = match self.is_directory(path) {
            true => self.cluster.at_root(plan),
            false => self.cluster.at(self.cluster.home(parent(path)), plan),
        };
        self.same(found, |one| one.set_storage_policy(path, policy))
    }

    /// A file with blocks of these lengths. One that is refused on the way is deleted again.
    pub fn write(&mut self, path: &str, lengths: &[u64]) -> FsResult<()> {
        let home = self.cluster.home(parent(path));
        let request = self.cluster.world(home).create_request(path, HOLDER);
        let found =
            self.cluster.at(home, |ns, ctx| ops::create::plan(ns, ctx, &request)).map(|_| Reply::Unit);
        self.same(found, |one| one.create(path, false).map(|_| Reply::Unit))?;
        self.go_on(home, path, lengths, None, None)
    }

    pub fn append(&mut self, path: &str, lengths: &[u64]) -> FsResult<()> {
        let home = self.cluster.home(parent(path));
        let request = ops::append::Request {
            path: path.into(),
            holder: HOLDER.into(),
            client_machine: "127.0.0.1".into(),
            new_block: true,
        };
        let found = self
            .cluster
            .at(home, |ns, ctx| ops::append::plan(ns, ctx, &request, &ALL_FINISHED))
            .map(|_| Reply::Unit);
        self.same(found, |one| one.append(path, true).map(|_| Reply::Unit))?;
        let own = |cluster: &mut Cluster| cluster.world(home).last_block(path);
        let last = own(&mut self.cluster).filter(|block| !self.cluster.groups[&home].ns.is_foreign(block.id));
        let last_alone = self.one.last_block(path);
        self.go_on(home, path, lengths, last, last_alone)
    }

    pub fn go_on(
        &mut self,
        home: GroupId,
        path: &str,
        lengths: &[u64],
        mut last: Option<Block>,
        mut last_alone: Option<Block>,
    ) -> FsResult<()> {
        let mut refused = Ok(());
        for length in lengths {
            let request = ops::add_block::Request {
                path: path.into(),
                holder: HOLDER.into(),
                previous: last,
                inode: InodeId(0),
            };
            let found =
                self.cluster.at(home, |ns, ctx| ops::add_block::plan(ns, ctx, &request, &ALL_FINISHED));
            if self.has_come_between()
                && let Some(error) = found.as_ref().err().filter(|error| is_of_quota(error))
            {
                refused = Err(error.clone());
                break;
            }
            let alone = self.one.try_add_block(path, last_alone);
            assert_eq!(found.as_ref().map(drop), alone.as_ref().map(drop), "{:?}", self.calls.last());
            match (found, alone) {
                (Ok(Reply::Block { block, .. }), Ok(block_alone)) => {
                    last = Some(Block { length: *length, ..block });
                    last_alone = Some(Block { length: *length, ..block_alone });
                }
                (Err(error), _) => {
                    refused = Err(error);
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        let (holder, path) = (HOLDER.to_owned(), path.to_owned());
        let request = ops::complete::Request { path: path.clone(), holder, last, inode: InodeId(0) };
        let found = self.cluster.at(home, |ns, ctx| ops::complete::plan(ns, ctx, &request, &ALL_FINISHED));
        assert_eq!(found, Ok(Reply::Bool(true)));
        self.one.complete(&path, InodeId(0), last_alone);
        refused
    }

    pub fn rename(&mut self, source: &str, destination: &str, overwrite: Option<bool>) -> FsResult<Reply> {
        let at_root = self.is_directory(source)
            || self.is_directory(destination)
            || self.cluster.home(parent(source)) != self.cluster.home(parent(destination));
        let group = if at_root { GroupId::ROOT } else { self.cluster.home(parent(source)) };
        let (from, to) = (source.to_owned(), destination.to_owned());
        let found = match overwrite {
            None => {
                let request = ops::rename::Request { source: from, destination: to };
                match at_root {
                    true => self.cluster.at_root(|ns, ctx| ops::rename::plan(ns, ctx, &request)),
                    false => self.cluster.at(group, |ns, ctx| ops::rename::plan(ns, ctx, &request)),
                }
            }
            Some(overwrite) => {
                let request =
                    ops::rename2::Request { source: from, destination: to, overwrite, to_trash: false };
                match at_root {
                    true => self.cluster.at_root(|ns, ctx| ops::rename2::plan(ns, ctx, &request)),
                    false => self.cluster.at(group, |ns, ctx| ops::rename2::plan(ns, ctx, &request)),
                }
            }
        };
        self.same(found, |one| match overwrite {
            None => one.rename(source, destination).map(Reply::Bool),
            Some(overwrite) => one.rename2(source, destination, overwrite),
        })
    }

    pub fn concat(&mut self, target: &str, sources: &[String]) -> FsResult<Reply> {
        let found = self.cluster.concat(target, sources);
        self.same(found, |one| one.concat(target, sources))
    }

    pub fn delete(&mut self, path: &str) -> FsResult<Reply> {
        let request = ops::delete::Request { path: path.into(), recursive: true };
        let plan = |ns: &Namespace, ctx: &Context<'_>| ops::delete::plan(ns, ctx, &request);
        let found = match self.is_directory(path) {
            true => self.cluster.at_root(plan),
            false => self.cluster.at(self.cluster.home(parent(path)), plan),
        };
        self.same(found, |one| one.delete(path, true).map(Reply::Bool))
    }

    pub fn set_replication(&mut self, path: &str, replication: u32) -> FsResult<Reply> {
        let found = self.cluster.set_replication(path, replication);
        self.same(found, |one| one.set_replication(path, replication).map(Reply::Bool))
    }

    /// Cuts a file. Where that has to be done inside a block the data servers have done it.
    pub fn truncate(&mut self, path: &str, length: u64) -> FsResult<Reply> {
        let home = self.cluster.home(parent(path));
        let request = ops::truncate::Request {
            path: path.into(),
            length: length as i64,
            holder: HOLDER.into(),
            client_machine: "127.0.0.1".into(),
        };
        let found = self.cluster.at(home, |ns, ctx| ops::truncate::plan(ns, ctx, &request));
        if matches!(&found, Err(FsError::Unsupported(why)) if why.contains("written in another group")) {
            return found;
        }
        let found = self.same(found, |one| one.truncate(path, length as i64).map(Reply::Bool))?;
        if found == Reply::Bool(false) {
            let commit = ops::commit_block_synchronization::plan;
            let cut = self.cluster.groups[&home].cut_to(path);
            self.cluster.at(home, |ns, ctx| commit(ns, ctx, &cut))?;
            let cut = self.one.cut_to(path);
            self.one.run(|ns, ctx| commit(ns, ctx, &cut))?;
        }
        Ok(found)
    }

    /// Joins a file to another one of its directory. Files that came from other homes are refused, which is not done in the one group.
    /// A new file in place of the one that has the path.
    pub fn overwrite(&mut self, path: &str, lengths: &[u64]) -> FsResult<()> {
        let home = self.cluster.home(parent(path));
        let mut request = self.cluster.world(home).create_request(path, HOLDER);
        request.flags |= ops::create::flag::OVERWRITE;
        let found =
            self.cluster.at(home, |ns, ctx| ops::create::plan(ns, ctx, &request)).map(|_| Reply::Unit);
        self.same(found, |one| one.create(path, true).map(|_| Reply::Unit))?;
        self.go_on(home, path, lengths, None, None)
    }

    pub fn allow_snapshot(&mut self, path: &str) -> FsResult<Reply> {
        let request = ops::allow_snapshot::Request { path: path.into() };
        let found = self.cluster.at_root(|ns, ctx| ops::allow_snapshot::plan(ns, ctx, &request));
        self.same(found, |one| one.allow_snapshot(path))
    }

    pub fn create_snapshot(&mut self, path: &str, name: &str) -> FsResult<Reply> {
        let request = ops::create_snapshot::Request { path: path.into(), name: name.into() };
        let found = self.cluster.at_root(|ns, ctx| ops::create_snapshot::plan(ns, ctx, &request));
        self.same(found, |one| one.create_snapshot(path, name))
    }

    pub fn delete_snapshot(&mut self, path: &str, name: &str) -> FsResult<Reply> {
        let request = ops::delete_snapshot::Request { path: path.into(), name: name.into() };
        let found = self.cluster.at_root(|ns, ctx| ops::delete_snapshot::plan(ns, ctx, &request));
        self.same(found, |one| one.delete_snapshot(path, name))
    }

    pub fn rename_snapshot(&mut self, path: &str, old: &str, new: &str) -> FsResult<Reply> {
        let request = ops::rename_snapshot::Request { path: path.into(), old: old.into(), new: new.into() };
        let found = self.cluster.at_root(|ns, ctx| ops::rename_snapshot::plan(ns, ctx, &request));
        self.same(found, |one| one.rename_snapshot(path, old, new))
    }

    pub fn set_permission(&mut self, path: &str, permission: u16) -> FsResult<Reply> {
        let request = ops::set_permission::Request { path: path.into(), permission };
        let plan = |ns: &Namespace, ctx: &Context<'_>| ops::set_permission::plan(ns, ctx, &request);
        let found = match self.is_directory(path) {
            true => self.cluster.at_root(plan),
            false => self.cluster.at(self.cluster.home(parent(path)), plan),
        };
        self.same(found, |one| one.set_permission(path, permission))
    }

    /// All that clients see below a path, now or in a snapshot: a line a file or directory. Each is told by the group that decides about it.
    pub fn see_below(&self, top: &str) -> [Vec<String>; 2] {
        let root = &self.cluster.root().ns;
        let of_cluster = see_below(top, |path| &self.cluster.groups[&root.decider(path, Intent::Look)]);
        [of_cluster, see_below(top, |_| &self.one)]
    }

    /// All groups together use what the one uses, and no group more than its allowance.
    pub fn check(&mut self, directories: &[String]) {
        for directory in directories.iter().filter(|directory| self.one.quota(directory).is_some()) {
            let alone = self.one.quota(directory).unwrap();
            let mut used = Amounts::default();
            for world in self.cluster.groups.values() {
                let quota = world.quota(directory).unwrap_or_else(|| panic!("{directory} has no quota"));
                assert_eq!(quota.limits, alone.limits);
                used += quota.used;
            }
            assert_eq!(used, alone.used, "{directory} after {:?}", self.calls.last());
        }
        let digest = self.cluster.root().ns.directories_digest();
        for world in self.cluster.groups.values() {
            world.ns.check_consistency().unwrap();
            assert_eq!(world.ns.directories_digest(), digest);
        }
    }
}

pub fn is_of_quota(error: &FsError) -> bool {
    matches!(
        error,
        FsError::NamespaceQuotaExceeded(_) | FsError::SpaceQuotaExceeded(_) | FsError::TypeQuotaExceeded(_)
    )
}

/// A directory of each home below this one.
pub fn of_each_home(both: &mut Both, above: &str) -> Vec<String> {
    let mut found: std::collections::BTreeMap<GroupId, String> = Default::default();
    for number in 0.. {
        if found.len() == GROUPS.len() {
            break;
        }
        let path = format!("{above}/d{number}");
        both.mkdirs(&path).unwrap();
        let home = both.cluster.home(&path);
        if let std::collections::btree_map::Entry::Vacant(place) = found.entry(home) {
            place.insert(path);
        } else {
            both.delete(&path).unwrap();
        }
    }
    found.into_values().collect()
}

fn see_below<'w>(top: &str, teller: impl Fn(&str) -> &'w World) -> Vec<String> {
    let mut lines = Vec::new();
    let mut stack = vec![top.to_owned()];
    while let Some(directory) = stack.pop() {
        let world = teller(&directory);
        let context = world.context(None);
        let listing = get_listing::get(&world.ns, &context, &directory, b"", false).unwrap();
        let listing = listing.unwrap_or_else(|| panic!("{directory} is not there"));
        for entry in &listing.entries {
            let path = format!("{directory}/{}", String::from_utf8_lossy(entry.name));
            let teller = teller(&path);
            let status = get_file_info::get(&teller.ns, &teller.context(None), &path).unwrap();
            let status = status.unwrap_or_else(|| panic!("{path} is listed"));
            let (mode, replication) = (status.permission, status.replication);
            if status.is_directory() {
                lines.push(format!("{path} {mode:o}"));
                stack.push(path);
                continue;
            }
            let context = teller.context(None);
            let blocks =
                get_block_locations::get(&teller.ns, &context, &path, 0, i64::MAX as u64).unwrap().blocks;
            let blocks: u64 = blocks.iter().map(|block| block.block.length).sum();
            lines.push(format!("{path} {mode:o} {} {blocks} {replication}", status.length));
        }
    }
    lines.sort();
    lines
}
