//! Quotas that three groups share: what is refused, in which words, and what is used are as in a namespace of one group.

mod common;

use base::{Block, FsError, FsResult, GroupId, InodeId, StorageType};
use common::{
    ALL_FINISHED, Dice, World,
    cluster::{Cluster, GROUPS},
};
use namespace::{Amounts, Context, Namespace, Reply, ops, ops::set_quota::KEEP, reads::get_file_info};

/// Stories of the random play; with 3,000 it was played once.
const ROUNDS: u64 = 30;

const MIB: i64 = 1 << 20;

/// A namespace of three groups, and the same in one group.
struct Both {
    cluster: Cluster,
    one: World,
    retries: u64,
    /// The calls so far, for people.
    calls: Vec<String>,
}

fn mkdirs(path: &str) -> ops::mkdirs::Request {
    ops::mkdirs::Request { path: path.into(), permission: 0o755, unmasked: None, create_parent: true }
}

fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

impl Both {
    fn new(seed: u64) -> Self {
        Self { cluster: Cluster::new(seed), one: World::new(seed), retries: 0, calls: Vec::new() }
    }

    fn is_directory(&self, path: &str) -> bool {
        let root = self.cluster.root();
        let status = get_file_info::get(&root.ns, &root.context(None), path);
        status.is_ok_and(|status| status.is_some_and(|it| it.kind == namespace::FileKind::Directory))
    }

    /// Both have this end. A call that is to be tried again is not carried out in the one.
    fn same(
        &mut self,
        found: FsResult<Reply>,
        alone: impl FnOnce(&mut World) -> FsResult<Reply>,
    ) -> FsResult<Reply> {
        if let Err(FsError::Retry(_)) = found {
            self.retries += 1;
            return found;
        }
        let alone = alone(&mut self.one);
        assert_eq!(found, alone, "{:?}", self.calls.last());
        found
    }

    fn mkdirs(&mut self, path: &str) -> FsResult<Reply> {
        let found = self.cluster.at_root(|ns, ctx| ops::mkdirs::plan(ns, ctx, &mkdirs(path)));
        self.same(found, |one| one.mkdirs(path, true).map(Reply::Bool))
    }

    fn set_quota(&mut self, path: &str, inodes: i64, bytes: i64) -> FsResult<Reply> {
        self.set(ops::set_quota::Request { path: path.into(), inodes, bytes, storage_type: None })
    }

    fn set_type_quota(&mut self, path: &str, kind: StorageType, bytes: i64) -> FsResult<Reply> {
        let storage_type = Some(kind);
        self.set(ops::set_quota::Request { path: path.into(), inodes: KEEP, bytes, storage_type })
    }

    fn set(&mut self, request: ops::set_quota::Request) -> FsResult<Reply> {
        let found = self.cluster.at_root(|ns, ctx| ops::set_quota::plan(ns, ctx, &request));
        self.same(found, |one| one.run(|ns, ctx| ops::set_quota::plan(ns, ctx, &request)))
    }

    fn set_storage_policy(&mut self, path: &str, policy: Option<&str>) -> FsResult<Reply> {
        let request = ops::set_storage_policy::Request { path: path.into(), policy: policy.map(Into::into) };
        let plan = |ns: &Namespace, ctx: &Context<'_>| ops::set_storage_policy::plan(ns, ctx, &request);
        let found = match self.is_directory(path) {
            true => self.cluster.at_root(plan),
            false => self.cluster.at(self.cluster.home(parent(path)), plan),
        };
        self.same(found, |one| one.set_storage_policy(path, policy))
    }

    /// A file with blocks of these lengths. One that is refused on the way is deleted again.
    fn write(&mut self, path: &str, lengths: &[u64]) -> FsResult<()> {
        let home = self.cluster.home(parent(path));
        let request = self.cluster.world(home).create_request(path, common::HOLDER);
        let found =
            self.cluster.at(home, |ns, ctx| ops::create::plan(ns, ctx, &request)).map(|_| Reply::Unit);
        self.same(found, |one| one.create(path, false).map(|_| Reply::Unit))?;
        self.go_on(home, path, lengths, None, None)
    }

    fn append(&mut self, path: &str, lengths: &[u64]) -> FsResult<()> {
        let home = self.cluster.home(parent(path));
        let request = ops::append::Request {
            path: path.into(),
            holder: common::HOLDER.into(),
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

    fn go_on(
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
                holder: common::HOLDER.into(),
                previous: last,
                inode: InodeId(0),
            };
            let found =
                self.cluster.at(home, |ns, ctx| ops::add_block::plan(ns, ctx, &request, &ALL_FINISHED));
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
        let (holder, path) = (common::HOLDER.to_owned(), path.to_owned());
        let request = ops::complete::Request { path: path.clone(), holder, last, inode: InodeId(0) };
        let found = self.cluster.at(home, |ns, ctx| ops::complete::plan(ns, ctx, &request, &ALL_FINISHED));
        assert_eq!(found, Ok(Reply::Bool(true)));
        self.one.complete(&path, InodeId(0), last_alone);
        refused
    }

    fn rename(&mut self, source: &str, destination: &str, overwrite: Option<bool>) -> FsResult<Reply> {
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

    fn delete(&mut self, path: &str) -> FsResult<Reply> {
        let request = ops::delete::Request { path: path.into(), recursive: true };
        let plan = |ns: &Namespace, ctx: &Context<'_>| ops::delete::plan(ns, ctx, &request);
        let found = match self.is_directory(path) {
            true => self.cluster.at_root(plan),
            false => self.cluster.at(self.cluster.home(parent(path)), plan),
        };
        self.same(found, |one| one.delete(path, true).map(Reply::Bool))
    }

    fn set_replication(&mut self, path: &str, replication: u32) -> FsResult<Reply> {
        let found = self.cluster.set_replication(path, replication);
        self.same(found, |one| one.set_replication(path, replication).map(Reply::Bool))
    }

    fn concat(&mut self, target: &str, sources: &[String]) -> FsResult<Reply> {
        let found = self.cluster.concat(target, sources);
        self.same(found, |one| one.concat(target, sources))
    }

    /// All groups together use what the one uses, and no group more than its allowance.
    fn check(&mut self, directories: &[String]) {
        for directory in directories.iter().filter(|directory| self.one.quota(directory).is_some()) {
            let alone = self.one.quota(directory).unwrap();
            let mut used = Amounts::default();
            for world in self.cluster.groups.values() {
                let quota = world.quota(directory).unwrap_or_else(|| panic!("{directory} has no quota"));
                assert_eq!(quota.limits, alone.limits);
                used += quota.used;
            }
            assert_eq!(used, alone.used, "{directory}");
        }
        let digest = self.cluster.root().ns.directories_digest();
        for world in self.cluster.groups.values() {
            world.ns.check_consistency().unwrap();
            assert_eq!(world.ns.directories_digest(), digest);
        }
    }
}

/// A directory of each home below this one.
fn of_each_home(both: &mut Both, above: &str) -> Vec<String> {
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

/// The last name that fits may be in any group, and the next one is refused in all of them.
#[test]
fn what_one_group_leaves_another_may_use_to_the_last_name() {
    let mut both = Both::new(1);
    both.mkdirs("/q").unwrap();
    let directories = of_each_home(&mut both, "/q");
    both.set_quota("/q", 14, KEEP).unwrap();
    for file in 0..10 {
        let path = format!("{}/f{file}", directories[file % 3]);
        both.write(&path, &[]).unwrap();
    }
    for directory in &directories {
        let refused = both.write(&format!("{directory}/one-more"), &[]).unwrap_err().to_string();
        assert!(refused.ends_with("of directory /q is exceeded: quota=14 file count=15"), "{refused}");
        let refused = both.mkdirs(&format!("{directory}/one-more")).unwrap_err().to_string();
        assert!(refused.ends_with("of directory /q is exceeded: quota=14 file count=15"), "{refused}");
    }
    both.delete(&format!("{}/f0", directories[0])).unwrap();
    // What the first group has freed serves the third.
    both.write(&format!("{}/one-more", directories[2]), &[]).unwrap();
    both.write(&format!("{}/two-more", directories[1]), &[]).unwrap_err();
    both.check(&["/q".to_owned()]);
}

/// A group asks for an allowance a few times, and not for each of its files.
#[test]
fn a_group_that_has_an_allowance_asks_nobody() {
    let mut both = Both::new(2);
    both.mkdirs("/q").unwrap();
    let directories = of_each_home(&mut both, "/q");
    both.set_quota("/q", 100_000, 100_000 * MIB).unwrap();
    let before = both.cluster.allotted;
    for file in 0..300 {
        both.write(&format!("{}/f{file}", directories[file % 3]), &[5]).unwrap();
    }
    let asked = both.cluster.allotted - before;
    assert!(asked < 10, "asked {asked} times for 300 files");
    both.check(&["/q".to_owned()]);
}

/// A rename to where another policy holds is not refused by a quota that is above both directories, and counts there. The other groups must not go on with what they
/// were allowed before.
#[test]
fn bytes_that_come_to_a_medium_unasked_leave_the_others_less() {
    let mut both = Both::new(3);
    both.mkdirs("/q").unwrap();
    let homes = of_each_home(&mut both, "/q");
    // Two directories of the second group, and one of the third.
    let (plain, third) = (homes[1].clone(), homes[2].clone());
    let second = both.cluster.home(&plain);
    let hot = (0..).map(|number| format!("/q/e{number}")).find(|path| {
        both.mkdirs(path).unwrap();
        both.cluster.home(path) == second
    });
    let hot = hot.unwrap();
    for directory in [&hot, &third] {
        both.set_storage_policy(directory, Some("HOT")).unwrap();
    }
    both.set_type_quota("/q", StorageType::Disk, 4 * MIB).unwrap();
    both.write(&format!("{third}/small"), &[10]).unwrap();
    both.write(&format!("{plain}/f"), &[900_000]).unwrap();
    both.rename(&format!("{plain}/f"), &format!("{hot}/f"), None).unwrap();
    let refused = both.write(&format!("{third}/more"), &[10]).unwrap_err();
    assert!(matches!(refused, FsError::TypeQuotaExceeded(_)), "{refused}");
    // Two of the three replicas that it is to have are too many.
    both.set_replication(&format!("{hot}/f"), 1).unwrap();
    both.write(&format!("{third}/again"), &[10]).unwrap();
    both.check(&["/q".to_owned()]);
}

#[test]
fn random_changes_are_refused_as_in_one_group() {
    let (mut refused, mut retries, mut allotted) = (0, 0, 0);
    for seed in 0..ROUNDS {
        let mut dice = Dice(seed);
        let mut both = Both::new(seed);
        let mut directories = vec!["/q".to_owned(), "/q/s".to_owned(), "/f".to_owned()];
        for directory in &directories {
            both.mkdirs(directory).unwrap();
        }
        for above in ["/q", "/q/s", "/f"] {
            directories.extend(of_each_home(&mut both, above));
        }
        let pick = |dice: &mut Dice, of: &[String]| of[dice.below(of.len() as u64) as usize].clone();
        for _ in 0..250 {
            let directory = pick(&mut dice, &directories);
            let other = pick(&mut dice, &directories);
            let (inner, outer) = (dice.below(3), dice.below(3));
            let (file, target) = (format!("{directory}/f{inner}"), format!("{other}/f{outer}"));
            let lengths: Vec<u64> = (0..dice.below(3)).map(|_| 1 + dice.below(300_000)).collect();
            let overwrite = [None, Some(true), Some(false)][dice.below(3) as usize];
            let kind = dice.below(23);
            both.calls.push(format!("seed {seed}, kind {kind}: {directory} {file} {target} {overwrite:?}"));
            if kind == 19 {
                both.cluster.deliver(&mut dice);
                if dice.below(4) == 0 {
                    let group = GROUPS[dice.below(3) as usize];
                    both.cluster.world(group).restart_from_image();
                }
                continue;
            }
            if (12..14).contains(&kind) {
                drop(both.mkdirs(&directory));
                continue;
            }
            if !both.is_directory(&directory) || !both.is_directory(parent(&directory)) {
                continue;
            }
            let found = match kind {
                0..=3 => both.write(&file, &lengths).map(|()| Reply::Unit),
                4..=6 if both.is_directory(&other) => both.rename(&file, &target, overwrite),
                7 => both.delete(&file),
                8 => both.set_replication(&file, 1 + dice.below(6) as u32),
                9 if both.cluster.see(&file).is_some() && !lengths.is_empty() => {
                    both.append(&file, &lengths).map(|()| Reply::Unit)
                }
                10 | 11 if directory.len() > 4 && both.is_directory(parent(&other)) => {
                    both.rename(&directory, &other, overwrite)
                }
                20..23 => {
                    let sources: Vec<String> = (0..3)
                        .filter(|name| *name != inner)
                        .map(|name| format!("{directory}/f{name}"))
                        .filter(|path| both.cluster.see(path).is_some())
                        .collect();
                    both.concat(&file, &sources)
                }
                14 | 15 => {
                    let inodes = [KEEP, 4 + dice.below(20) as i64][dice.below(2) as usize];
                    let bytes = [KEEP, 3 * MIB + dice.below(4 << 20) as i64][dice.below(2) as usize];
                    both.set_quota(&directory, inodes, bytes)
                }
                16 => both.set_quota(&directory, ops::set_quota::CLEAR, ops::set_quota::CLEAR),
                17 => {
                    both.set_type_quota(&directory, StorageType::Disk, 3 * MIB + dice.below(4 << 20) as i64)
                }
                18 => {
                    both.set_storage_policy(&directory, [None, Some("HOT"), Some("ALL_SSD")][inner as usize])
                }
                _ => continue,
            };
            let is_refused = matches!(
                found,
                Err(FsError::NamespaceQuotaExceeded(_)
                    | FsError::SpaceQuotaExceeded(_)
                    | FsError::TypeQuotaExceeded(_))
            );
            refused += u64::from(is_refused);
            both.check(&directories);
        }
        while both.cluster.deliver(&mut dice) {}
        both.check(&directories);
        retries += both.retries;
        allotted += both.cluster.allotted;
        for group in GROUPS {
            both.cluster.world(group).restart_from_image();
        }
        both.cluster.groups[&GroupId::ROOT].check_replay();
    }
    assert!(
        refused > ROUNDS * 5 && allotted > ROUNDS * 10,
        "{refused} refused, {allotted} allotted, {retries} later"
    );
}
