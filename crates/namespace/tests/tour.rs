//! The past as a tour tells it, put together as a NameNode does it, against what the snapshots show.

mod common;

use base::{Block, GroupId, InodeId, Level, Timestamp};
use common::{
    Dice, World,
    random_calls::{paths, some_call},
};
use namespace::{
    SnapshotId,
    ops::{add_group, raise_level},
    reads::get_file_info,
    tour::{DirectoryDiff, FileDiff, Link, SeveralGroups, State},
};
use std::collections::{BTreeMap, BTreeSet};

/// The attributes that a status shows as well.
#[derive(Clone, Debug, PartialEq)]
struct Kept {
    owner: String,
    group: String,
    mode: u16,
    replication: u16,
    block_size: u64,
    accessed: Timestamp,
    modified: Timestamp,
    has_acl: bool,
}

impl Kept {
    fn of(state: &State<'_>) -> Self {
        Self {
            owner: state.owner.into(),
            group: state.group.into(),
            mode: state.mode,
            replication: state.replication,
            block_size: state.block_size,
            accessed: state.accessed,
            modified: state.modified,
            has_acl: !state.acl.is_empty(),
        }
    }
}

/// An entry as an image has it: a number, and a name if that is not the inode's own.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    inode: InodeId,
    name: Option<Vec<u8>>,
    is_reference: bool,
}

impl Entry {
    fn of(link: &Link<'_>) -> Self {
        match link {
            Link::Only(inode) => Self { inode: *inode, name: None, is_reference: false },
            Link::Latest { inode, .. } => Self { inode: *inode, name: None, is_reference: true },
            Link::Former { inode, name, .. } => {
                Self { inode: *inode, name: Some(name.to_vec()), is_reference: true }
            }
        }
    }
}

struct Diff {
    state: Option<Kept>,
    length: u64,
    blocks: Vec<Block>,
    created: Vec<Vec<u8>>,
    deleted: Vec<Entry>,
    children: u64,
}

struct Inode {
    name: Vec<u8>,
    is_directory: bool,
    is_open: bool,
    now: Kept,
    blocks: Vec<Block>,
    children: Vec<Entry>,
    /// By the number of the snapshot.
    diffs: BTreeMap<SnapshotId, Diff>,
}

/// An image, read back.
struct Loaded {
    inodes: BTreeMap<InodeId, Inode>,
    snapshots: Vec<(InodeId, SnapshotId, String)>,
}

fn load(world: &World) -> Loaded {
    let frozen = world.ns.freeze();
    let tour = frozen.tour().unwrap();
    let mut inodes = BTreeMap::new();
    let mut roots: BTreeMap<(InodeId, SnapshotId), Kept> = BTreeMap::new();
    let mut snapshots = Vec::new();
    for (root, taken) in tour.snapshottable() {
        for one in taken {
            roots.insert((root, one.id), Kept::of(&one.state));
            snapshots.push((root, one.id, one.name.to_owned()));
        }
    }
    assert_eq!(snapshots.len(), tour.figures().snapshots as usize);
    let living: BTreeSet<SnapshotId> = snapshots.iter().map(|(_, id, _)| *id).collect();
    let mut stops = 0;
    let walked = tour.each(&mut |stop| {
        stops += 1;
        let mut diffs = BTreeMap::new();
        for diff in stop.directory_diffs() {
            let DirectoryDiff { snapshot, children, is_root, state, created, deleted } = diff;
            assert!(is_root == roots.contains_key(&(stop.id(), snapshot)), "{snapshot:?}");
            let root = roots.get(&(stop.id(), snapshot)).cloned();
            let diff = Diff {
                state: root.or(state.map(|(_, state)| Kept::of(&state))),
                length: 0,
                blocks: Vec::new(),
                created: created.iter().map(|name| name.to_vec()).collect(),
                deleted: deleted.iter().map(Entry::of).collect(),
                children,
            };
            assert!(diffs.insert(snapshot, diff).is_none());
        }
        for diff in stop.file_diffs() {
            let FileDiff { snapshot, name: _, length, state, blocks } = diff;
            let diff = Diff {
                state: Some(Kept::of(&state)),
                length,
                blocks,
                created: Vec::new(),
                deleted: Vec::new(),
                children: 0,
            };
            assert!(diffs.insert(snapshot, diff).is_none());
        }
        assert!(diffs.keys().all(|snapshot| living.contains(snapshot)), "a snapshot that is no more");
        let inode = Inode {
            name: stop.name().to_vec(),
            is_directory: stop.is_directory(),
            is_open: stop.writer().is_some(),
            now: Kept::of(&stop.state()),
            blocks: stop.blocks().collect(),
            children: stop.children().map(|(_, link)| Entry::of(&link)).collect(),
            diffs,
        };
        assert!(inodes.insert(stop.id(), inode).is_none(), "{} twice", stop.id());
        Ok(())
    });
    assert!(walked.is_ok());
    assert_eq!(tour.figures().inodes, stops);
    Loaded { inodes, snapshots }
}

impl Loaded {
    fn name_of(&self, entry: &Entry) -> Vec<u8> {
        entry.name.clone().unwrap_or_else(|| self.inodes[&entry.inode].name.clone())
    }

    /// The children of a directory in a snapshot: those of now, with all differences since then taken back.
    fn children_at(&self, directory: InodeId, at: SnapshotId) -> BTreeMap<Vec<u8>, InodeId> {
        let inode = &self.inodes[&directory];
        let named = |entry: &Entry| (self.name_of(entry), entry.inode);
        let mut children: BTreeMap<_, _> = inode.children.iter().map(named).collect();
        assert_eq!(children.len(), inode.children.len());
        for diff in inode.diffs.range(at..).rev().map(|(_, diff)| diff) {
            for name in &diff.created {
                assert!(children.remove(name).is_some(), "no entry of the name that came");
            }
            for entry in &diff.deleted {
                let (name, inode) = named(entry);
                assert!(children.insert(name, inode).is_none(), "two entries of one name");
            }
            assert_eq!(children.len() as u64, diff.children);
        }
        children
    }

    /// A line for each inode of a snapshot.
    fn lines(&self, root: InodeId, at: SnapshotId) -> BTreeMap<String, String> {
        let mut lines = BTreeMap::new();
        let mut stack = vec![(String::new(), root)];
        while let Some((path, id)) = stack.pop() {
            let inode = &self.inodes[&id];
            let state = inode.diffs.range(at..).find_map(|(_, diff)| diff.state.as_ref());
            let length = match inode.diffs.range(at..).next() {
                _ if inode.is_directory => 0,
                Some((_, diff)) => {
                    // Blocks are found in the next difference that has any, or in the file of now.
                    let mut lists = inode.diffs.range(at..).map(|(_, diff)| &diff.blocks);
                    let blocks = lists.find(|blocks| !blocks.is_empty()).unwrap_or(&inode.blocks);
                    let there: u64 = blocks.iter().map(|block| block.length).sum();
                    assert!(there >= diff.length, "{path}: {there} of {} bytes", diff.length);
                    diff.length
                }
                None => inode.blocks.iter().map(|block| block.length).sum(),
            };
            if inode.is_directory {
                let children = self.children_at(id, at);
                stack.extend(
                    children
                        .into_iter()
                        .map(|(name, child)| (format!("{path}/{}", String::from_utf8(name).unwrap()), child)),
                );
            }
            let line = line(id, inode.is_directory, length, state.unwrap_or(&inode.now));
            lines.insert(path, line);
        }
        lines
    }
}

fn line(id: InodeId, is_directory: bool, length: u64, kept: &Kept) -> String {
    format!("{id} {is_directory} {length} {kept:?}")
}

/// The lines as the snapshot itself shows them.
fn shown(world: &World, top: &str) -> BTreeMap<String, String> {
    let ctx = world.context(None);
    let mut lines = BTreeMap::new();
    let mut stack = vec![String::new()];
    while let Some(below) = stack.pop() {
        let path = format!("{top}{below}");
        let status = get_file_info::get(&world.ns, &ctx, &path).unwrap().unwrap();
        let kept = Kept {
            owner: status.owner.into(),
            group: status.group.into(),
            mode: status.permission,
            replication: status.replication,
            block_size: status.block_size,
            accessed: status.accessed,
            modified: status.modified,
            has_acl: status.has_acl,
        };
        lines.insert(below.clone(), line(status.id, status.is_directory(), status.length, &kept));
        if status.is_directory() {
            let page = namespace::reads::get_listing::get(&world.ns, &ctx, &path, b"", false);
            let page = page.unwrap().unwrap();
            assert_eq!(page.remaining, 0);
            let names = page.entries.iter().map(|entry| String::from_utf8_lossy(entry.name).into_owned());
            stack.extend(names.map(|name| format!("{below}/{name}")));
        }
    }
    lines
}

fn path_of(world: &World, root: InodeId) -> String {
    world.ns.path_of(root).expect("a snapshottable directory is in the tree")
}

/// Every snapshot, every reference and every child.
fn check(world: &World) -> usize {
    let loaded = load(world);
    for (root, at, name) in &loaded.snapshots {
        let top = format!("{}/.snapshot/{name}", path_of(world, *root));
        assert_eq!(loaded.lines(*root, *at), shown(world, &top), "{top}");
    }
    // An inode that one entry names is no reference; of several that name it, all are.
    let mut named: BTreeMap<InodeId, (usize, usize)> = BTreeMap::new();
    for inode in loaded.inodes.values() {
        let past = inode.diffs.values().flat_map(|diff| &diff.deleted);
        for entry in inode.children.iter().chain(past) {
            let count = named.entry(entry.inode).or_default();
            count.0 += 1;
            count.1 += usize::from(entry.is_reference);
            assert!(loaded.inodes.contains_key(&entry.inode), "an entry names an inode that is not there");
        }
    }
    for (id, inode) in &loaded.inodes {
        let (entries, references) = named.get(id).copied().unwrap_or_default();
        assert!(entries > 0 || *id == InodeId::ROOT, "nothing names {id}");
        assert!(
            entries <= 1 || references == entries,
            "{id}: {references} of {entries} entries are references"
        );
        assert!(!inode.is_open || !inode.is_directory);
    }
    named.values().filter(|(entries, _)| *entries > 1).count()
}

#[test]
fn a_name_node_would_see_in_every_snapshot_what_clover_shows() {
    let paths = paths();
    let (mut moved, mut seen) = (0, 0);
    for seed in 0..40 {
        println!("seed {seed}");
        let mut world = World::new(seed);
        let mut dice = Dice(seed);
        for path in ["/a", "/b"] {
            assert_eq!(world.mkdirs(path, true), Ok(true));
            assert!(world.allow_snapshot(path).is_ok());
        }
        for step in 0..600 {
            some_call(&mut world, &mut dice, &paths);
            if step % 20 == 0 {
                // A file that is being cut has its new length in a snapshot before it is cut.
                let cut: Vec<InodeId> = world.ns.files_of(common::HOLDER);
                for inode in cut {
                    if let Some((_, _, length)) = world.ns.truncation_of(inode) {
                        world.finish_truncation(inode, length);
                    }
                }
                moved += check(&world);
                seen += load(&world).snapshots.len();
            }
        }
        world.tidy_up();
        check(&world);
    }
    assert!(moved > 500, "only {moved} inodes were seen by several names");
    assert!(seen > 1_000, "only {seen} snapshots were compared");
}

#[test]
fn what_was_moved_has_a_reference_for_each_entry() {
    let mut world = World::new(1);
    for path in ["/d/sub", "/e", "/f"] {
        assert_eq!(world.mkdirs(path, true), Ok(true));
    }
    for root in ["/d", "/e"] {
        assert!(world.allow_snapshot(root).is_ok());
    }
    let file = world.create("/d/sub/x", false).unwrap();
    let gone = world.create("/d/gone", false).unwrap();
    for (path, file) in [("/d/sub/x", file), ("/d/gone", gone)] {
        world.complete(path, file, None);
    }
    assert!(world.create_snapshot("/d", "s1").is_ok());
    assert_eq!(world.rename("/d/sub/x", "/e/y"), Ok(true));
    assert_eq!(world.delete("/d/gone", false), Ok(true));
    assert!(world.create_snapshot("/e", "s2").is_ok());
    assert_eq!(world.rename("/e/y", "/f/z"), Ok(true));
    world.tidy_up();

    let frozen = world.ns.freeze();
    let tour = frozen.tour().unwrap();
    let mut found = Vec::new();
    let walked = tour.each(&mut |stop| {
        let name = String::from_utf8_lossy(stop.name()).into_owned();
        for (_, link) in stop.children().filter(|(_, link)| !matches!(link, Link::Only(_))) {
            found.push(format!("{name} has {link:?}"));
        }
        for diff in stop.directory_diffs() {
            for link in &diff.deleted {
                found.push(format!("{name} had {link:?} in {}", diff.snapshot.0));
            }
            for created in &diff.created {
                found.push(format!(
                    "{name} got {} after {}",
                    String::from_utf8_lossy(created),
                    diff.snapshot.0
                ));
            }
        }
        Ok(())
    });
    assert!(walked.is_ok());
    found.sort();
    let former = |name: &'static [u8], last| Link::Former { inode: file, name, last: SnapshotId(last) };
    let mut expected = vec![
        format!("d had {:?} in 1", Link::Only(gone)),
        format!("e had {:?} in 2", former(b"y", 2)),
        format!("f has {:?}", Link::Latest { inode: file, since: None }),
        format!("sub had {:?} in 1", former(b"x", 1)),
    ];
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_part_of_a_namespace_has_no_tour() {
    let mut root = World::new(1);
    root.run(|ns, ctx| raise_level::plan(ns, ctx, Level::NEWEST)).expect("all members know it");
    assert!(root.ns.freeze().tour().is_ok());
    root.run(|ns, ctx| add_group::plan(ns, ctx, GroupId(2))).expect("nothing stands in the way");
    assert!(matches!(root.ns.freeze().tour(), Err(SeveralGroups)));
}
