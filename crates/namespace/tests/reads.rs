//! A read is a value: it tells its paths and what it looks at, and the look can be made again.

mod common;

use bytes::Bytes;
use common::{Dice, World, reads};
use namespace::{Namespace, Read, Readable, Sight, Walkable, reads::get_listing};
use std::{collections::BTreeSet, mem::discriminant};

fn every_read(path: &str) -> Vec<Read> {
    reads::about(path).into_iter().chain(reads::below(path, "s0", "")).collect()
}

/// The paths of a read, out of its fields. A new kind of read does not compile without its line.
fn named(read: &Read) -> Vec<&str> {
    let path = match read {
        Read::Status(read) => &read.path,
        Read::IsClosed(read) => &read.path,
        Read::BlockSize(read) => &read.path,
        Read::StatusAndBlocks(read) => &read.path,
        Read::Blocks(read) => &read.path,
        Read::Listing(read) => &read.path,
        Read::Batch(read) => return read.directories.iter().map(String::as_str).collect(),
        Read::LinkTarget(read) => &read.path,
        Read::Access(read) => &read.path,
        Read::Acl(read) => &read.path,
        Read::Xattrs(read) => &read.path,
        Read::AllXattrs(read) => &read.path,
        Read::StoragePolicy(read) => &read.path,
        Read::ErasureCodingPolicy(read) => &read.path,
        Read::EnclosingRoot(read) => &read.path,
        Read::EncryptionZone(read) => &read.path,
        Read::ContentSummary(read) => &read.path,
        Read::QuotaUsage(read) => &read.path,
        Read::Snapshottable(_) => return Vec::new(),
        Read::Snapshots(read) => &read.path,
        Read::Differences(read) => &read.path,
        Read::AllDifferences(read) => &read.request.path,
        Read::OpenFiles(read) => &read.directory,
    };
    vec![path]
}

#[test]
fn each_read_tells_the_paths_that_its_caller_named() {
    let reads = every_read("/a/../b");
    let kinds: BTreeSet<_> = reads.iter().map(|read| format!("{:?}", discriminant(read))).collect();
    assert_eq!(kinds.len(), reads.len(), "one of each kind");
    for read in &reads {
        assert_eq!(read.paths().collect::<Vec<_>>(), named(read), "{read:?}");
    }
    let batch = get_listing::Batch {
        directories: ["/x", "/y", "/z"].map(String::from).to_vec(),
        start: (1, Bytes::new()),
        need_location: false,
    };
    assert_eq!(batch.paths().collect::<Vec<_>>(), ["/x", "/y", "/z"]);
}

#[test]
fn each_read_has_a_name_of_its_own_among_hadoops_calls() {
    let reads = every_read("/a");
    let names: BTreeSet<_> = reads.iter().map(Readable::method).collect();
    assert_eq!(names.len(), reads.len());
}

#[test]
fn a_read_depends_on_what_it_looks_at() {
    for read in reads::about("/a") {
        match (&read, read.sight()) {
            (Read::Listing(_) | Read::Batch(_), Sight::Listings(paths)) => {
                assert_eq!(paths.collect::<Vec<_>>(), ["/a"]);
            }
            (Read::Listing(_) | Read::Batch(_), other) => panic!("{read:?} looks at {other:?}"),
            (_, Sight::Paths(paths)) => assert_eq!(paths.collect::<Vec<_>>(), ["/a"], "{read:?}"),
            (_, other) => panic!("{read:?} looks at {other:?}"),
        }
    }
    for read in reads::below("/a", "s0", "") {
        assert!(matches!(read.sight(), Sight::Everything), "{read:?}");
    }
    // The name behind which it goes on is that of an inode by its number: it may be anywhere.
    let start_after = Bytes::from_static(b"/.reserved/.inodes/16386");
    let page = get_listing::Request { path: "/a".into(), start_after, need_location: false };
    assert!(matches!(page.sight(), Sight::Everything));
}

fn look_at_all(ns: &Namespace, world: &World, reads: &[Read]) -> Vec<String> {
    let context = world.context(None);
    reads.iter().map(|read| format!("{:?}", read.look(ns, &context))).collect()
}

#[test]
fn a_look_that_is_made_again_finds_what_a_fresh_one_finds() {
    let paths =
        ["/", "/a", "/a/b", "/a/b/f", "/a/f", "/b", "/none", "/a/.snapshot", "/a/.snapshot/s0/f", "x//"];
    let mut world = World::new(3);
    world.limits.content_summary_step = 1;
    world.mkdirs("/a", true).unwrap();
    world.allow_snapshot("/a").unwrap();
    let reads: Vec<Read> = paths.iter().flat_map(|path| every_read(path)).collect();
    let mut dice = Dice(3);
    let mut different = BTreeSet::new();
    for round in 0..60 {
        let path = paths[1 + dice.below(5) as usize];
        match dice.below(7) {
            0 => drop(world.mkdirs(path, true)),
            1 | 2 => drop(world.create(path, dice.below(2) == 0)),
            3 => drop(world.delete(path, true)),
            4 => drop(world.set_permission(path, 0o700)),
            5 => drop(world.rename(path, paths[1 + dice.below(5) as usize])),
            _ if round % 2 == 0 => drop(world.create_snapshot("/a", "s0")),
            _ => drop(world.delete_snapshot("/a", "s0")),
        }
        let again = look_at_all(&world.ns, &world, &reads);
        let fresh: Vec<Read> = paths.iter().flat_map(|path| every_read(path)).collect();
        // As after a restart: a tree at which nobody has looked before.
        let other = world.replayed();
        assert_eq!(again, look_at_all(&other, &world, &fresh), "round {round}");
        assert_eq!(reads, fresh, "a look leaves no trace in its request");
        different.insert(again);
    }
    assert!(different.len() > 20, "the tree changes: {} states", different.len());
}

#[test]
fn a_walk_finds_the_same_in_slices_and_at_once() {
    let mut world = World::new(1);
    for n in 0..20 {
        world.create(&format!("/d/{n}/open"), true).unwrap();
    }
    world.limits.content_summary_step = 2;
    for read in reads::below("/d", "", "") {
        let slices = match &read {
            Read::ContentSummary(read) => slices(&world, read),
            Read::QuotaUsage(read) => slices(&world, read),
            Read::OpenFiles(read) => slices(&world, read),
            _ => continue,
        };
        assert!(slices > 5, "{read:?} takes {slices} slices");
    }
}

/// How many slices a walk takes that ends with what the look at once finds.
fn slices<R: Walkable>(world: &World, read: &R) -> usize
where
    R::Found: std::fmt::Debug + PartialEq,
{
    let context = world.context(None);
    let mut progress = R::Progress::default();
    let mut slices = 1;
    loop {
        match read.step(&mut progress, &world.ns, &context).unwrap() {
            Some(found) => {
                assert_eq!(found, read.walk(&world.ns, &context).unwrap());
                return slices;
            }
            None => slices += 1,
        }
    }
}
