//! Directories have homes: the groups that hold their files. A directory's slot, which is in its id for ever, says who is its home.

mod common;

use base::{FsResult, GroupId, InodeId, InodeOrigin, Level, Sn, TxId};
use common::{Dice, World, image_of, random_calls};
use namespace::{
    Edit, Namespace, NewEpoch,
    ops::{add_group, give_slots, raise_level},
    reads::get_file_info,
};
use std::collections::BTreeMap;

const SECOND: GroupId = GroupId(2);
const THIRD: GroupId = GroupId(3);

/// A root group with these further groups, which have slots.
fn shared(seed: u64, groups: &[GroupId]) -> World {
    let mut root = World::new(seed);
    root.run(|ns, ctx| raise_level::plan(ns, ctx, Level::NEWEST)).expect("all members know it");
    for group in groups {
        root.run(|ns, ctx| add_group::plan(ns, ctx, *group)).expect("nothing stands in the way");
    }
    for group in groups {
        root.run(|ns, ctx| give_slots::plan(ns, ctx, *group)).expect("there are slots");
    }
    root.creates_parents = false;
    root
}

fn id(world: &World, path: &str) -> InodeId {
    let found = get_file_info::get(&world.ns, &world.context(None), path);
    found.ok().flatten().unwrap_or_else(|| panic!("{path} is there")).id
}

fn slot(world: &World, path: &str) -> u16 {
    match id(world, path).origin() {
        InodeOrigin::Slot { slot, .. } => slot,
        InodeOrigin::Group { .. } => panic!("{path} has no slot"),
    }
}

fn home(world: &World, path: &str) -> GroupId {
    world.ns.home_of(id(world, path))
}

#[test]
fn with_one_group_all_is_as_it_was() -> FsResult<()> {
    let mut root = World::new(1);
    root.run(|ns, ctx| raise_level::plan(ns, ctx, Level::NEWEST))?;
    root.mkdirs("/a", true)?;
    assert_eq!(id(&root, "/a"), InodeId(InodeId::ROOT.0 + 1));
    assert_eq!((home(&root, "/a"), root.ns.slots()), (GroupId::ROOT, vec![]));
    let refused = root.run(|ns, ctx| give_slots::plan(ns, ctx, SECOND)).unwrap_err().to_string();
    assert!(refused.contains("Group 2 was not added"), "{refused}");
    root.run(|ns, ctx| add_group::plan(ns, ctx, SECOND))?;
    root.mkdirs("/b", true)?;
    assert_eq!(id(&root, "/b"), InodeId(InodeId::ROOT.0 + 2), "a group without slots is nobody's home");
    Ok(())
}

#[test]
fn new_directories_are_spread_over_all_groups() -> FsResult<()> {
    let mut root = World::new(1);
    root.mkdirs("/old/x", true)?;
    let before = [id(&root, "/old"), id(&root, "/old/x")];
    root.run(|ns, ctx| raise_level::plan(ns, ctx, Level::NEWEST))?;
    for group in [SECOND, THIRD] {
        root.run(|ns, ctx| add_group::plan(ns, ctx, group))?;
        root.run(|ns, ctx| give_slots::plan(ns, ctx, group))?;
    }
    assert_eq!([id(&root, "/old"), id(&root, "/old/x")], before);
    assert_eq!((home(&root, "/old"), home(&root, "/old/x")), (GroupId::ROOT, GroupId::ROOT));
    let mut of_group: BTreeMap<GroupId, u32> = BTreeMap::new();
    for number in 0..900 {
        root.mkdirs(&format!("/old/d{number}/e"), true)?;
        for path in [format!("/old/d{number}"), format!("/old/d{number}/e")] {
            *of_group.entry(home(&root, &path)).or_default() += 1;
        }
    }
    assert!(of_group.len() == 3 && of_group.values().all(|count| (500..700).contains(count)), "{of_group:?}");
    let (before, home_before) = (id(&root, "/old/d7"), home(&root, "/old/d7"));
    root.rename("/old/d7", "/moved")?;
    assert_eq!((id(&root, "/moved"), home(&root, "/moved")), (before, home_before), "a slot is for ever");
    let file = root.create("/moved/f", false)?;
    assert!(matches!(file.origin(), InodeOrigin::Group { number: 0, .. }), "a file has no slot");
    root.check_replay();
    root.restart_from_image();
    assert_eq!(home(&root, "/moved"), home_before);
    Ok(())
}

/// A job writes below a directory for what is not done yet, and renames it when it commits: all within one home.
#[test]
fn a_staging_directory_and_all_below_it_is_in_the_slot_of_the_directory_above() -> FsResult<()> {
    let mut root = shared(1, &[SECOND, THIRD]);
    for job in 0..20 {
        let out = format!("/out{job}");
        root.mkdirs(&out, true)?;
        root.mkdirs(&format!("{out}/_temporary/0/_temporary/attempt_1"), true)?;
        root.mkdirs(&format!("{out}/.hive-staging_hive_1/-ext-1"), true)?;
        for below in
            ["_temporary", "_temporary/0", "_temporary/0/_temporary/attempt_1", ".hive-staging_hive_1/-ext-1"]
        {
            assert_eq!(slot(&root, &format!("{out}/{below}")), slot(&root, &out), "{below}");
        }
    }
    root.mkdirs("/new/_temporary/0", true)?;
    assert_eq!(slot(&root, "/new/_temporary/0"), slot(&root, "/new"), "made by one call");
    Ok(())
}

#[test]
fn what_goes_to_the_trash_stays_in_its_home() -> FsResult<()> {
    let mut root = shared(1, &[SECOND, THIRD]);
    for number in 0..20 {
        let path = format!("/data/d{number}/e");
        root.mkdirs(&path, true)?;
        let trash = format!("/user/ann/.Trash/Current{path}");
        root.mkdirs(&trash, true)?;
        assert_eq!(slot(&root, &trash), slot(&root, &path));
        assert_eq!(
            slot(&root, &format!("/user/ann/.Trash/Current/data/d{number}")),
            slot(&root, &format!("/data/d{number}"))
        );
    }
    root.mkdirs("/user/ann/.Trash/Current/nowhere/to/be/found", true)?;
    root.mkdirs("/user/ann/.Trash", true)?;
    Ok(())
}

/// An id that was given out in a tail which no other member has is never given out again.
#[test]
fn a_new_epoch_leaves_ids_of_directories_out() -> FsResult<()> {
    let mut root = shared(1, &[SECOND]);
    let count = |root: &World, path: &str| match id(root, path).origin() {
        InodeOrigin::Slot { count, .. } => count,
        InodeOrigin::Group { .. } => panic!("{path} has no slot"),
    };
    root.mkdirs("/a", true)?;
    assert_eq!(count(&root, "/a"), 1);
    let next = TxId { epoch: base::Epoch(2), sn: Sn(root.ns.applied().sn.0 + 1) };
    root.ns.start_epoch(next, NewEpoch { inodes: 1 << 20, ..NewEpoch::default() });
    root.mkdirs("/b/c", true)?;
    assert_eq!((count(&root, "/b"), count(&root, "/b/c")), (1_026, 1_027));
    root.restart_from_image();
    root.mkdirs("/d", true)?;
    assert_eq!(count(&root, "/d"), 1_028);
    Ok(())
}

/// Random calls in the root group; a follower has the same homes, in memory and from an image.
#[test]
fn all_groups_agree_who_is_the_home() {
    let paths = random_calls::paths();
    for seed in 0..30 {
        let mut dice = Dice(seed);
        let mut root = shared(seed, &[SECOND]);
        let mut second = World::of_group(7, SECOND);
        second.ns = root.ns.for_joining(7, SECOND).expect("nothing stands in the way");
        for call in 0..150 {
            random_calls::some_call(&mut root, &mut dice, &paths);
            if call == 70 {
                root.delete_snapshots();
                root.run(|ns, ctx| add_group::plan(ns, ctx, THIRD)).expect("nothing stands in the way");
                root.run(|ns, ctx| give_slots::plan(ns, ctx, THIRD)).expect("there are slots");
            }
        }
        let (_, entries) =
            root.ns.directory_entries(second.ns.directory_log().dix, usize::MAX).expect("they are kept");
        for entry in entries {
            let change = Edit::decode(&entry.payload).unwrap_or_else(|error| panic!("{error}"));
            let edit = second.ns.follow(&second.context(None), &change, entry.point());
            second.apply(edit.unwrap_or_else(|error| panic!("{error}")));
        }
        second.restart_from_image();
        assert_eq!(second.ns.slots(), root.ns.slots());
        assert_eq!(second.ns.slots().len(), 3);
        assert_eq!(second.ns.directories_digest(), root.ns.directories_digest());
        root.check_replay();
        root.ns.check_consistency().unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A directory in a slot that no group has would be nobody's. An image that has one is refused, whatever its digest says.
#[test]
fn an_image_with_directories_of_nobody_is_refused() -> FsResult<()> {
    let mut root = shared(1, &[SECOND]);
    root.mkdirs("/a", true)?;
    let image = image_of(&root.ns.freeze());
    let read = |bytes: &[u8]| Namespace::read_image(1, &mut &bytes[..], bytes.len() as u64);
    assert!(read(&image).is_ok());
    // The two ranges of slots: the root group's 64, and those of group 2.
    let ranges = [2, 0, 64, 1, 64, 64, 2];
    let at = image.windows(ranges.len()).position(|at| at == ranges).expect("they stand in it");
    for (what, offset, byte) in [
        ("the second group has other slots", 4, 65),
        ("it has fewer", 5, 1),
        ("the slots are of a group that was not added", 6, 3),
        ("old directories have no home", 1, 1),
    ] {
        let mut other = image.clone();
        other[at + offset] = byte;
        let refused = read(&other).map(drop).expect_err(what).to_string();
        assert!(
            refused.contains("slots of directories that no member writes") || refused.contains("digest"),
            "{what}: {refused}"
        );
    }
    let mut counted = image.clone();
    counted[at - 1] = 0;
    let refused =
        read(&counted).map(drop).expect_err("fewer directories were made than are there").to_string();
    assert!(refused.contains("slots of directories that no member writes"), "{refused}");
    Ok(())
}

/// Clients choose the ids that they send: numbers of groups that are not there lead nowhere.
#[test]
fn ids_of_groups_that_are_not_there_are_decided_here() {
    let root = shared(1, &[SECOND]);
    for number in [2, 3, 127] {
        assert_eq!(root.ns.decider_of_file(InodeId::of_group(number, 7)), GroupId::ROOT);
    }
    assert_eq!(root.ns.decider_of_file(InodeId::of_group(1, 7)), SECOND);
    assert_eq!(root.ns.decider_of_file(InodeId(u64::MAX)), GroupId::ROOT);
    for number in [2, 128, 1_023] {
        assert_eq!(root.ns.decider_of_block(base::BlockId::of_pool(number, 7)), GroupId::ROOT);
    }
    assert_eq!(root.ns.decider_of_block(base::BlockId::of_pool(1, 7)), SECOND);
}
