//! Snapshots against the obvious: the whole tree, written down when the snapshot was made.

mod common;

use base::{Block, FsError, InodeId};
use common::{Dice, World};
use namespace::{
    Limits, Walkable,
    reads::{get_file_info, get_listing},
};
use std::collections::{BTreeMap, BTreeSet};

const ROOTS: [&str; 3] = ["/a", "/b", "/c/a"];

struct Run {
    world: World,
    dice: Dice,
    /// By root and name: what was to be seen when the snapshot was made.
    snapshots: BTreeMap<(String, String), Vec<String>>,
    names: u32,
    /// Truncations inside a block that a snapshot shows.
    copied: u32,
}

fn random_path(dice: &mut Dice) -> String {
    let depth = 1 + dice.below(4);
    (0..depth).map(|_| format!("/{}", ["a", "b", "c", "d"][dice.below(4) as usize])).collect()
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        world.limits = Limits { listing_max: 3, ..world.limits };
        for root in ROOTS {
            assert_eq!(world.mkdirs(root, true), Ok(true));
            assert!(world.allow_snapshot(root).is_ok());
        }
        // After each round the usage that they are charged is compared with the inodes that are there.
        for charged in ["/", "/a", "/c"] {
            assert!(world.set_quota(charged, 1 << 40, 1 << 60).is_ok());
        }
        Self { world, dice: Dice(seed), snapshots: BTreeMap::new(), names: 0, copied: 0 }
    }

    fn path(&mut self) -> String {
        random_path(&mut self.dice)
    }

    fn write(&mut self) {
        let holder = common::HOLDER;
        let files = self.world.ns.files_of(holder);
        if files.is_empty() {
            return;
        }
        let inode = files[self.dice.below(files.len() as u64) as usize];
        if self.world.ns.path_of(inode).is_none() {
            return;
        }
        let length = 1 + self.dice.below(1_000);
        let blocks = namespace::reads::get_block_locations::by_id(&self.world.ns, inode);
        let last = blocks.and_then(|blocks| blocks.last).map(|last| last.block);
        match self.dice.below(4) {
            0 => {
                let last = last.map(|block| Block { length: block.length + length, ..block });
                self.world.complete("/x", inode, last);
            }
            1 if last.is_some() => {
                let told = last.map_or(0, |block| block.length) + length;
                let request = namespace::ops::fsync::Request {
                    path: "/x".into(),
                    holder: holder.into(),
                    last_block_length: told as i64,
                    inode,
                };
                let done = self.world.run(|ns, ctx| namespace::ops::fsync::plan(ns, ctx, &request));
                assert!(done.is_ok(), "{done:?}");
            }
            2 if last.is_some() => {
                let request = namespace::ops::abandon_block::Request {
                    path: "/x".into(),
                    holder: holder.into(),
                    pool: String::new(),
                    block: last.unwrap_or_default(),
                    inode,
                };
                let done = self.world.run(|ns, ctx| namespace::ops::abandon_block::plan(ns, ctx, &request));
                assert!(done.is_ok(), "{done:?}");
            }
            _ => {
                let last = last.map(|block| Block { length: block.length + length, ..block });
                self.world.add_block("/x", inode, last);
            }
        }
    }

    /// Appends to a file, or cuts it.
    fn write_on(&mut self) {
        let path = self.path();
        if self.dice.below(3) == 0 {
            let _ = self.world.append(&path, self.dice.below(2) == 0);
            return;
        }
        let status = get_file_info::get(&self.world.ns, &self.world.context(None), &path);
        let Ok(Some(status)) = status else { return };
        let (id, length) = (status.id, self.dice.below(status.length + 1));
        if let Ok(false) = self.world.truncate(&path, length as i64) {
            let cut = self.world.ns.truncation_of(id).map_or(0, |(_, _, cut)| cut);
            let source = self.world.ns.truncation_source_of(id);
            self.copied += u32::from(source.is_some());
            match self.dice.below(5) {
                0 | 1 => self.create_snapshot(true),
                2 => self.world.restart_from_image(),
                3 => {
                    // The snapshot that shows the block may go before it is copied.
                    if let Some((root, name)) = self.any_snapshot() {
                        assert!(self.world.delete_snapshot(&root, &name).is_ok());
                        self.snapshots.remove(&(root, name));
                        self.world.tidy_up();
                    }
                }
                _ => {}
            }
            if let Some(source) = source {
                let mut is_there = 0;
                self.world
                    .ns
                    .for_each_block(&mut |block, _, _, _| is_there += u32::from(block.id == source.id));
                assert!(is_there == 1 && !self.world.removed.contains(&source.id), "{source} is copied");
            }
            self.world.finish_truncation(id, cut);
        }
    }

    fn create_snapshot(&mut self, is_cutting: bool) {
        let root = ROOTS[self.dice.below(3) as usize];
        self.names += 1;
        let name = format!("s{}", self.names);
        if self.world.create_snapshot(root, &name).is_ok() {
            // A file that is being cut has its old length until it is done, but its new one in the snapshot.
            let seen = if is_cutting { format!("{root}/.snapshot/{name}") } else { root.into() };
            let mut lines = self.world.dump(&seen);
            // The top of a snapshot is not shown as snapshottable.
            lines
                .iter_mut()
                .for_each(|line| *line = line.replace("snapshottable: true", "snapshottable: false"));
            lines.sort();
            self.snapshots.insert((root.into(), name), lines);
        }
    }

    fn any_snapshot(&mut self) -> Option<(String, String)> {
        let count = self.snapshots.len() as u64;
        if count == 0 {
            return None;
        }
        let at = self.dice.below(count) as usize;
        self.snapshots.keys().nth(at).cloned()
    }

    fn step(&mut self) {
        match self.dice.below(28) {
            0..=2 => {
                let path = self.path();
                let _ = self.world.mkdirs(&path, true);
            }
            3..=6 => {
                let (path, overwrite) = (self.path(), self.dice.below(2) == 0);
                let _ = self.world.create(&path, overwrite);
            }
            7..=10 => self.write(),
            11 | 12 => {
                let path = self.path();
                let _ = self.world.delete(&path, true);
            }
            13 | 14 => {
                let (from, to) = (self.path(), self.path());
                let _ = self.world.rename(&from, &to);
            }
            15 | 16 => {
                let (from, to) = (self.path(), self.path());
                let _ = self.world.rename2(&from, &to, true);
            }
            17 => {
                let (path, mode) = (self.path(), self.dice.below(0o1000) as u16);
                let _ = self.world.set_permission(&path, mode);
                let _ = self.world.set_replication(&path, 1 + u32::from(mode) % 5);
            }
            18 => {
                let (path, time) = (self.path(), self.dice.below(1 << 40) as i64);
                let _ = self.world.set_times(&path, time, time / 2);
                let _ = self.world.set_owner(&path, Some("someone"), None);
            }
            19 | 20 => self.create_snapshot(false),
            23 | 24 => self.write_on(),
            25 => {
                let (target, sources) = (self.path(), vec![self.path(), self.path()]);
                let _ = self.world.concat(&target, &sources);
            }
            21 => {
                if let Some((root, name)) = self.any_snapshot() {
                    assert!(self.world.delete_snapshot(&root, &name).is_ok());
                    self.snapshots.remove(&(root, name));
                }
            }
            22 => {
                if let Some((root, name)) = self.any_snapshot() {
                    self.names += 1;
                    let new = format!("r{}", self.names);
                    assert!(self.world.rename_snapshot(&root, &name, &new).is_ok());
                    let lines = self.snapshots.remove(&(root.clone(), name)).unwrap_or_default();
                    let renamed = self.world.dump(&format!("{root}/.snapshot/{new}"));
                    // The root of a snapshot takes the time of its renaming, as in HDFS.
                    let mut lines: Vec<String> =
                        lines.into_iter().filter(|line| !line.starts_with(' ')).collect();
                    lines.extend(renamed.into_iter().filter(|line| line.starts_with(' ')));
                    lines.sort();
                    self.snapshots.insert((root, new), lines);
                }
            }
            _ => {
                // A step or two of the work behind the scenes.
                let edit = namespace::ops::cleanup::plan(&self.world.ns, &self.world.context(None));
                if let Some(edit) = edit {
                    self.world.apply(edit);
                }
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.world.ns.check_consistency(), Ok(()));
        for ((root, name), lines) in &self.snapshots {
            let mut now = self.world.dump(&format!("{root}/.snapshot/{name}"));
            now.sort();
            assert_eq!(&now, lines, "{root}/.snapshot/{name}");
        }
        let mut there = BTreeSet::new();
        self.world.ns.for_each_block(&mut |block, _, _, _| {
            assert!(there.insert(block.id), "{block} is there twice");
            assert!(!self.world.removed.contains(&block.id), "{block} was removed");
        });
    }
}

#[test]
fn every_snapshot_shows_what_was_there_when_it_was_made() {
    let mut copied = 0;
    for seed in 0..30 {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        for step in 0..500 {
            run.step();
            if step % 25 == 0 {
                run.check();
            }
            if step % 125 == 0 {
                run.world.restart_from_image();
                run.check();
            }
        }
        run.check();
        run.world.check_replay();
        copied += run.copied;
        // Nothing is left over once all snapshots are deleted.
        for (root, name) in std::mem::take(&mut run.snapshots).into_keys() {
            assert!(run.world.delete_snapshot(&root, &name).is_ok());
            if run.dice.below(2) == 0 {
                run.world.tidy_up();
            }
        }
        run.world.tidy_up();
        run.check();
        let lines = run.world.dump("/").len() as u64;
        let counts = run.world.ns.counts();
        assert_eq!(counts.files + counts.directories, lines, "inodes are left over");
        let mut blocks = 0;
        run.world.ns.for_each_block(&mut |_, _, _, _| blocks += 1);
        assert_eq!(counts.blocks, blocks);
        assert!(run.world.ns.is_past_empty(), "something of the past is left over");
        run.world.restart_from_image();
    }
    assert!(copied > 0, "no block was copied");
}

#[test]
fn a_deleted_file_stays_in_the_snapshot_with_its_blocks_until_the_last_one_goes() {
    let mut world = World::new(1);
    assert_eq!(world.mkdirs("/d", true), Ok(true));
    assert!(world.allow_snapshot("/d").is_ok());
    let file = world.create("/d/f", false).unwrap_or(InodeId(0));
    let block = world.add_block("/d/f", file, None);
    world.complete("/d/f", file, Some(Block { length: 7, ..block }));
    assert!(world.create_snapshot("/d", "one").is_ok());
    assert!(world.create_snapshot("/d", "two").is_ok());
    assert_eq!(world.delete("/d/f", false), Ok(true));
    world.tidy_up();
    for name in ["one", "two"] {
        let path = format!("/d/.snapshot/{name}/f");
        let status = get_file_info::get(&world.ns, &world.context(None), &path);
        assert!(matches!(status, Ok(Some(status)) if status.length == 7 && status.id == file), "{status:?}");
    }
    assert!(world.delete_snapshot("/d", "two").is_ok());
    world.tidy_up();
    assert!(world.removed.is_empty());
    assert!(world.delete_snapshot("/d", "one").is_ok());
    world.tidy_up();
    assert_eq!(world.removed, BTreeSet::from([block.id]));
    assert_eq!(world.ns.counts().files, 0);
    world.check_replay();
}

#[test]
fn what_hdfs_refuses_is_refused_in_its_words() {
    let mut world = World::new(1);
    for path in ["/d/e", "/other/sub"] {
        assert_eq!(world.mkdirs(path, true), Ok(true));
    }
    assert!(world.create("/f", false).is_ok());
    let snapshot = |text: &str| Err(FsError::Snapshot(text.into()));
    assert_eq!(world.create_snapshot("/d", "s"), snapshot("Directory is not a snapshottable directory: /d"));
    assert_eq!(
        world.create_snapshot("/", "s"),
        snapshot("Failed to add snapshot: there are already 0 snapshot(s) and the snapshot quota is 0")
    );
    assert_eq!(world.allow_snapshot("/f"), Err(FsError::PathIsNotDirectory("/f".into())));
    assert_eq!(world.allow_snapshot("/no"), Err(FsError::NotFound("Directory does not exist: /no".into())));
    assert!(world.allow_snapshot("/d").is_ok());
    assert!(world.allow_snapshot("/d").is_ok());
    assert_eq!(
        world.allow_snapshot("/d/e"),
        snapshot(
            "Nested snapshottable directories not allowed: path=/d/e, the ancestor /d is already a \
             snapshottable directory."
        )
    );
    assert_eq!(
        world.allow_snapshot("/"),
        snapshot(
            "Nested snapshottable directories not allowed: path=/, the subdirectory /d is already a \
             snapshottable directory."
        )
    );
    assert!(world.create_snapshot("/d", "s").is_ok());
    assert_eq!(
        world.create_snapshot("/d", "s"),
        snapshot("Failed to add snapshot: there is already a snapshot with the same name \"s\".")
    );
    for (per_directory, in_all, what) in [(1, 9, "per directory"), (9, 1, "file system")] {
        let limits = (world.limits.snapshots_per_directory_max, world.limits.snapshots_max);
        (world.limits.snapshots_per_directory_max, world.limits.snapshots_max) = (per_directory, in_all);
        assert_eq!(
            world.create_snapshot("/d", "t"),
            Err(FsError::Snapshot(format!(
                "Failed to create snapshot: there are already 1 snapshot(s) and the {what} snapshot limit is 1"
            )))
        );
        (world.limits.snapshots_per_directory_max, world.limits.snapshots_max) = limits;
    }
    assert_eq!(
        world.create_snapshot("/d", "a:b"),
        Err(FsError::InvalidPath("Invalid snapshot name: a:b".into()))
    );
    assert_eq!(
        world.rename_snapshot("/d", "no", "new"),
        snapshot("The snapshot no does not exist for directory /d")
    );
    assert_eq!(
        world.delete_snapshot("/d", "no"),
        snapshot("Cannot delete snapshot no from path /d: the snapshot does not exist.")
    );
    assert_eq!(
        world.disallow_snapshot("/d"),
        snapshot(
            "The directory /d has snapshot(s). Please redo the operation after removing all the snapshots."
        )
    );
    let kept = "The directory /d cannot be deleted since /d is snapshottable and already has snapshots";
    assert_eq!(world.delete("/d", true), Err(FsError::Snapshot(kept.into())));
    assert_eq!(world.rename("/d", "/x"), Err(FsError::Snapshot(kept.into())));
    assert_eq!(world.rename2("/d", "/x", false), Err(FsError::Snapshot(kept.into())));
    assert!(world.allow_snapshot("/other").is_ok());
    assert_eq!(
        world.rename("/other", "/d/e"),
        Err(FsError::Snapshot(
            "Unable to rename because /other has snapshottable descendant directories and /d/e is a descent of \
             a snapshottable directory, and HDFS does not support nested snapshottable directory."
                .into()
        ))
    );
    for path in ["/d/.snapshot/s/e", "/d/.snapshot/s", "/d/.snapshot", "/d/.snapshot/no/x"] {
        assert_eq!(world.mkdirs(&format!("{path}/new"), true), Err(FsError::SnapshotReadOnly), "{path}");
        assert_eq!(world.delete(path, true), Err(FsError::SnapshotReadOnly), "{path}");
        assert_eq!(world.rename(path, "/y"), Err(FsError::SnapshotReadOnly), "{path}");
        assert_eq!(world.set_permission(path, 0o700), Err(FsError::SnapshotReadOnly), "{path}");
    }
    assert_eq!(
        world.mkdirs("/other/sub/.snapshot", true),
        Err(FsError::InvalidArgument("\".snapshot\" is a reserved name.".into()))
    );
    // The name is refused after all that may be wrong with the rest.
    assert_eq!(world.rename("/f", "/other/sub/.snapshot/x"), Ok(false));
    let list = |path: &str| get_listing::get(&world.ns, &world.context(None), path, b"", false).err();
    let absent = FsError::NotFound("Directory does not exist: /no".into());
    assert_eq!(list("/no/.snapshot"), Some(absent));
    world.check_replay();
}

/// "Directory does not exist" is said only below a directory that is under a root: HDFS looks for the root first.
#[test]
fn a_diff_of_what_is_not_there_is_first_of_all_not_under_a_root() {
    use namespace::reads::get_snapshot_diff::{self, DiffCursor};
    let mut world = World::new(1);
    assert_eq!(world.mkdirs("/d/e", true), Ok(true));
    assert!(world.create("/d/f", false).is_ok());
    assert!(world.allow_snapshot("/d").is_ok());
    assert!(world.create_snapshot("/d", "s").is_ok());
    assert_eq!(world.mkdirs("/other", true), Ok(true));
    let diff = |path: &str| {
        let cursor = DiffCursor { path: Vec::new(), index: -1 };
        let request =
            get_snapshot_diff::Request { path: path.into(), from: "s".into(), to: String::new(), cursor };
        request.walk(&world.ns, &world.context(None)).map(|_| ())
    };
    let absent = |path: &str| Err(FsError::NotFound(format!("Directory does not exist: {path}")));
    // The root directory of HDFS counts as snapshottable, those below it do not.
    assert_eq!(diff("/no"), absent("/no"));
    let no_root = |path: &str| {
        let why = "is neither snapshottable nor under a snapshot root!";
        Err(FsError::Snapshot(format!("The path {path} {why}")))
    };
    assert_eq!(diff("/other"), no_root("/other"));
    assert_eq!(diff("/other/no"), no_root("/other/no"));
    assert_eq!(diff("/no/further"), absent("/no"));
    assert_eq!(diff("/d/no"), absent("/d/no"));
    // Its snapshots are looked for below it first.
    assert_eq!(diff("/d/f"), Err(FsError::AccessDenied("/d/f (is not a directory)".into())));
    assert_eq!(diff("/d/e"), Ok(()));
}

/// Others have their turn while it is looked whether all of a snapshot may be read, and while it is compared.
#[test]
fn a_diff_of_much_takes_steps_and_checks_rights_once() {
    use namespace::reads::get_snapshot_diff::{self, DiffCursor, Look};
    let mut world = World::new(1);
    for n in 0..100 {
        assert_eq!(world.mkdirs(&format!("/d/{n}"), true), Ok(true));
    }
    assert!(world.allow_snapshot("/d").is_ok());
    assert!(world.create_snapshot("/d", "s").is_ok());
    assert!(world.create("/d/99/new", false).is_ok());
    world.limits.content_summary_step = 10;
    world.limits.snapshot_diff_page_max = 1;
    world.caller = base::Caller::simple("bob", &[]);
    let mut look = Look::default();
    let mut cursor = DiffCursor { path: Vec::new(), index: -1 };
    let (path, from, to) = ("/d".into(), "s".into(), String::new());
    let request = get_snapshot_diff::Request { path, from, to, cursor: cursor.clone() };
    let mut pages = Vec::new();
    loop {
        let mut steps = 1;
        let page = loop {
            match look.step(&world.ns, &world.context(None), &request, &cursor).unwrap() {
                Some(answer) => break answer.page,
                None => steps += 1,
            }
        };
        pages.push((page.modified.len() + page.created.len(), steps));
        match page.next {
            Some(next) => cursor = next,
            None => break,
        }
    }
    let [first, second] = pages[..] else { panic!("{pages:?}") };
    assert!(first.0 == 1 && first.1 >= 20, "100 directories are checked, and compared: {pages:?}");
    assert_eq!(second, (1, 1), "the rights were looked at for the first page");
    // A snapshot that is deleted between two steps is gone.
    let mut look = Look::default();
    assert_eq!(request.step(&mut look, &world.ns, &world.context(None)), Ok(None));
    world.caller = base::Caller::simple("hdfs", &[]);
    assert!(world.delete_snapshot("/d", "s").is_ok());
    world.caller = base::Caller::simple("bob", &[]);
    let gone = loop {
        match request.step(&mut look, &world.ns, &world.context(None)) {
            Ok(None) => {}
            other => break other,
        }
    };
    assert!(matches!(gone, Err(FsError::Snapshot(_) | FsError::NotFound(_))), "{gone:?}");
}

/// What a status says that a diff looks at.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    id: InodeId,
    is_directory: bool,
    attributes: (u64, u16, String, String, u16),
}

/// Everything below a path by its relative path; the path itself is "".
fn seen(world: &World, top: &str) -> BTreeMap<String, Seen> {
    let ctx = world.context(None);
    let mut found = BTreeMap::new();
    let mut stack = vec![String::new()];
    while let Some(below) = stack.pop() {
        let full = format!("{top}{below}");
        let Ok(Some(status)) = get_file_info::get(&world.ns, &ctx, &full) else { panic!("{full} is there") };
        let seen = Seen {
            id: status.id,
            is_directory: status.is_directory(),
            attributes: (
                status.length,
                status.permission,
                status.owner.into(),
                status.group.into(),
                status.replication,
            ),
        };
        if status.is_directory() {
            let limits = Limits { listing_max: 1_000, ..world.limits.clone() };
            let ctx = namespace::Context { limits: &limits, ..ctx };
            let page = namespace::reads::get_listing::get(&world.ns, &ctx, &full, b"", false);
            let Ok(Some(page)) = page else { panic!("{full} is listed") };
            let names = page.entries.iter().map(|entry| String::from_utf8_lossy(entry.name).into_owned());
            stack.extend(names.map(|name| format!("{below}/{name}")));
        }
        found.insert(below.trim_start_matches('/').to_string(), seen);
    }
    found
}

fn parent_and_name(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

type Told = (BTreeSet<String>, BTreeSet<String>, BTreeSet<(String, Option<String>)>);

/// The diff by looking at everything: modified paths, created ones, deleted ones with where they are now.
fn slow_diff(earlier: &BTreeMap<String, Seen>, later: &BTreeMap<String, Seen>) -> Told {
    let path_in = |tree: &BTreeMap<String, Seen>, id: InodeId| {
        tree.iter().find(|(_, seen)| seen.id == id).map(|(path, _)| path.clone())
    };
    let (mut modified, mut created, mut deleted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (path, seen) in earlier {
        // A deleted directory takes its children along, unless they were taken out before.
        let ancestors =
            std::iter::successors(Some(&**path), |path| (!path.is_empty()).then(|| parent_and_name(path).0));
        if !ancestors.clone().all(|above| path_in(later, earlier[above].id).is_some()) {
            continue;
        }
        let now = path_in(later, seen.id).unwrap_or_default();
        if !seen.is_directory {
            if later[&now].attributes != seen.attributes {
                modified.insert(path.clone());
            }
            continue;
        }
        let children = |tree: &BTreeMap<String, Seen>, top: &str| -> BTreeSet<(String, InodeId)> {
            let below = tree.iter().filter(|(path, _)| !path.is_empty() && parent_and_name(path).0 == top);
            below.map(|(path, seen)| (parent_and_name(path).1.to_string(), seen.id)).collect()
        };
        let (before, after) = (children(earlier, path), children(later, &now));
        let join = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}/{name}") };
        created.extend(after.difference(&before).map(|(name, _)| join(name)));
        deleted.extend(before.difference(&after).map(|(name, id)| (join(name), path_in(later, *id))));
        if before != after || later[&now].attributes != seen.attributes {
            modified.insert(path.clone());
        }
    }
    (modified, created, deleted)
}

#[test]
fn a_diff_tells_what_looking_at_everything_tells_however_it_is_paged() {
    use namespace::reads::get_snapshot_diff::{self, DiffCursor};
    for seed in 100..125 {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        (0..400).for_each(|_| run.step());
        let snapshots: Vec<(String, String)> = run.snapshots.keys().cloned().collect();
        for (root, from) in &snapshots {
            let same_root = snapshots.iter().filter(|(other, name)| other == root && name != from);
            for to in same_root.map(|(_, name)| &**name).chain([""]) {
                let path = |name: &str| match name {
                    "" => root.clone(),
                    name => format!("{root}/.snapshot/{name}"),
                };
                let (one, two) = (seen(&run.world, &path(from)), seen(&run.world, &path(to)));
                for (page_max, step) in [(1, 1_000), (3, 2), (1_000, 7)] {
                    let limits = Limits {
                        snapshot_diff_page_max: page_max,
                        content_summary_step: step,
                        ..run.world.limits.clone()
                    };
                    let ctx = namespace::Context { limits: &limits, ..run.world.context(None) };
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let (mut modified, mut created, mut deleted) =
                        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
                    let mut cursor = DiffCursor { path: Vec::new(), index: -1 };
                    let is_from_earlier = loop {
                        let request = get_snapshot_diff::Request {
                            path: root.clone(),
                            from: from.clone(),
                            to: to.into(),
                            cursor: cursor.clone(),
                        };
                        let answer = request.walk(&run.world.ns, &ctx);
                        let answer = answer.unwrap_or_else(|error| panic!("{error}"));
                        let page = answer.page;
                        for entry in page.modified {
                            assert!(modified.insert(text(&entry.path)), "{entry:?} is told twice");
                        }
                        for entry in page.created {
                            assert!(created.insert(text(&entry.path)), "{entry:?} is told twice");
                        }
                        for entry in page.deleted {
                            let target = entry.target.as_deref().map(text);
                            assert!(deleted.insert((text(&entry.path), target)), "told twice");
                        }
                        match page.next {
                            Some(next) => cursor = next,
                            None => break answer.is_from_earlier,
                        }
                    };
                    let expected =
                        if is_from_earlier { slow_diff(&one, &two) } else { slow_diff(&two, &one) };
                    // A diff reports an inode that was moved away and back; comparing the two trees does not show that.
                    let there_and_back: Vec<(String, Option<String>)> =
                        deleted.iter().filter(|(path, _)| created.contains(path)).cloned().collect();
                    for (path, target) in there_and_back {
                        let is_same = !expected.2.contains(&(path.clone(), target.clone()));
                        if is_same && !expected.1.contains(&path) {
                            assert!(target.is_some(), "{path} is neither here nor there");
                            created.remove(&path);
                            deleted.remove(&(path.clone(), target));
                            let parent = parent_and_name(&path).0;
                            let has_others = expected.0.contains(parent);
                            assert!(has_others || modified.remove(parent) || !modified.contains(parent));
                        }
                    }
                    assert_eq!((modified, created, deleted), expected, "{root}: {from} to {to}");
                }
            }
        }
    }
}

/// A file of one block.
#[test]
fn a_large_directory_is_deleted_at_once_and_what_no_snapshot_sees_goes_in_steps() {
    let mut world = World::new(1);
    let fill = |world: &mut World, letter: char| {
        for n in 0..6_000 {
            assert!(world.create(&format!("/d/big/{}/{letter}{n}", n % 7), false).is_ok());
        }
    };
    assert_eq!(world.mkdirs("/d/big", true), Ok(true));
    assert!(world.allow_snapshot("/d").is_ok());
    fill(&mut world, 'a');
    let before = world.journal.len();
    assert!(world.create_snapshot("/d", "s").is_ok());
    let made = &world.journal[before..];
    assert!(made.len() == 1 && made[0].len() < 100, "one small edit, whatever the directory holds");
    fill(&mut world, 'b');
    assert_eq!(world.delete("/d/big", true), Ok(true));
    assert_eq!(world.ns.counts().files, 12_000);
    let before = world.journal.len();
    let steps = world.tidy_up();
    assert!(steps < 40, "{steps} steps");
    assert!(world.journal[before..].iter().all(|edit| edit.len() < 10_000), "no edit names too much");
    assert_eq!(world.ns.counts().files, 6_000);
    assert_eq!(world.dump("/d/.snapshot/s").len(), 6_009);
    assert!(world.delete_snapshot("/d", "s").is_ok());
    assert_eq!(world.ns.counts().files, 6_000);
    let steps = world.tidy_up();
    assert!(steps < 40, "{steps} steps");
    let counts = world.ns.counts();
    assert_eq!((counts.files, counts.directories), (0, 2));
    assert!(world.ns.is_past_empty());
    assert_eq!(world.ns.check_consistency(), Ok(()));
}
