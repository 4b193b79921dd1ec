//! A file or directory whose replicas are to be on the media of its storage policy: the note, and the walk over the files.

mod common;

use base::{Block, BlockId, Caller, FsError, FsResult, InodeId};
use common::World;
use namespace::{
    ops::{self, satisfy_storage_policy::WAITING_MAX},
    satisfying::{Look, Walk},
    xattr::{Space, XattrName},
};

/// A closed file of one block.
fn file(world: &mut World, path: &str) -> BlockId {
    let inode = world.create(path, false).unwrap();
    let block = world.add_block(path, inode, None);
    world.complete(path, inode, Some(Block { length: 100, ..block }));
    block.id
}

fn inode(world: &World, path: &str) -> InodeId {
    let status = namespace::reads::get_file_info::get(&world.ns, &world.context(None), path);
    status.unwrap().unwrap().id
}

fn end(world: &mut World, inode: InodeId) -> bool {
    let edit = ops::satisfy_storage_policy::plan_end(&world.ns, &world.context(None), inode);
    edit.map(|edit| world.apply(edit)).is_some()
}

fn remove_note(world: &mut World, path: &str) -> FsResult<namespace::Reply> {
    let name = XattrName { space: Space::User, name: "hdfs.sps".into() };
    let removal = ops::set_xattrs::Removal { path: path.into(), name };
    world.run(|ns, ctx| ops::set_xattrs::plan_removal(ns, ctx, &removal))
}

/// All blocks that the walk names before it comes to an end, in looks with room for this many.
fn walk(world: &World, walk: &mut Walk, room: usize) -> (Vec<BlockId>, Look) {
    let mut named = Vec::new();
    loop {
        match walk.look(&world.ns, room) {
            Look::Blocks(blocks) => {
                assert!(blocks.len() <= room, "files have one block here");
                named.extend(blocks);
            }
            end => return (named, end),
        }
    }
}

#[test]
fn a_directory_is_walked_to_the_bottom_and_each_file_is_named_once() -> FsResult<()> {
    let mut world = World::new(0);
    let mut blocks = Vec::new();
    for path in ["/d/a", "/d/b/f", "/d/b/g/h/i", "/d/b.x", "/d/c"] {
        blocks.push(file(&mut world, path));
    }
    world.mkdirs("/d/empty", true)?;
    file(&mut world, "/e/a");
    assert_eq!(walk(&world, &mut Walk::default(), 9), (Vec::new(), Look::Idle));
    world.satisfy_storage_policy("/d")?;
    let asked = inode(&world, "/d");
    for room in [1, 2, 100] {
        let mut steps = Walk::default();
        let (mut named, last) = walk(&world, &mut steps, room);
        named.sort();
        assert_eq!((&named, last), (&blocks, Look::Walked(asked)));
        // It stays where it is until it has had its turn.
        assert_eq!(steps.look(&world.ns, room), Look::Walked(asked));
    }
    assert!(end(&mut world, asked) && !end(&mut world, asked));
    assert_eq!(world.ns.waiting_for_policies(), 0);
    world.check_replay();
    Ok(())
}

#[test]
fn the_note_outlives_a_restart_and_the_walk_begins_again() -> FsResult<()> {
    let mut world = World::new(0);
    let blocks = [file(&mut world, "/f"), file(&mut world, "/g")];
    world.satisfy_storage_policy("/f")?;
    world.satisfy_storage_policy("/g")?;
    let mut steps = Walk::default();
    assert_eq!(walk(&world, &mut steps, 9).0, [blocks[0]]);
    world.restart_from_image();
    world.check_replay();
    let mut steps = Walk::default();
    let (named, last) = walk(&world, &mut steps, 9);
    assert_eq!((named, last), (vec![blocks[0]], Look::Walked(inode(&world, "/f"))));
    let asked = inode(&world, "/f");
    end(&mut world, asked);
    assert_eq!(steps.look(&world.ns, 9), Look::Withdrawn);
    let (named, last) = walk(&world, &mut steps, 9);
    assert_eq!((named, last), (vec![blocks[1]], Look::Walked(inode(&world, "/g"))));
    Ok(())
}

#[test]
fn what_is_asked_twice_or_cannot_be_asked_is_answered_as_hdfs_does() -> FsResult<()> {
    let mut world = World::new(0);
    world.create("/d/empty", false)?;
    file(&mut world, "/d/f");
    world.satisfy_storage_policy("/d/empty")?;
    assert_eq!(world.ns.waiting_for_policies(), 0, "a file without blocks is skipped");
    world.satisfy_storage_policy("/d/f")?;
    world.satisfy_storage_policy("/d/f")?;
    assert_eq!(world.ns.waiting_for_policies(), 1);
    world.satisfy_storage_policy("/d")?;
    let again = "XAttr: hdfs.sps already exists. The REPLACE flag must be specified.";
    assert_eq!(world.satisfy_storage_policy("/d"), Err(FsError::Io(again.into())));
    let missing = world.satisfy_storage_policy("/d/none");
    assert_eq!(missing, Err(FsError::NotFound("cannot find /d/none".into())));
    world.set_permission("/d/f", 0o644)?;
    world.caller = Caller::simple("bob", &[]);
    assert!(matches!(world.satisfy_storage_policy("/d/f"), Err(FsError::AccessDenied(_))));
    world.caller = Caller::simple("hdfs", &[]);
    for number in world.ns.waiting_for_policies()..WAITING_MAX {
        let path = format!("/many/{number}");
        world.mkdirs(&path, true)?;
        world.satisfy_storage_policy(&path)?;
    }
    let full = "Outstanding satisfier queue limit: 1000 exceeded, try later!";
    assert_eq!(world.satisfy_storage_policy("/many"), Err(FsError::Io(full.into())));
    Ok(())
}

#[test]
fn a_walk_ends_where_what_was_asked_for_is_deleted_or_withdrawn() -> FsResult<()> {
    let mut world = World::new(0);
    for number in 0..10 {
        file(&mut world, &format!("/d/{number}"));
    }
    world.satisfy_storage_policy("/d")?;
    let mut steps = Walk::default();
    assert!(matches!(steps.look(&world.ns, 3), Look::Blocks(_)));
    remove_note(&mut world, "/d")?;
    assert_eq!(steps.look(&world.ns, 3), Look::Withdrawn);
    assert_eq!(steps.look(&world.ns, 3), Look::Idle);
    // A snapshot goes on to show a deleted directory with its note, and nobody walks it.
    world.satisfy_storage_policy("/d")?;
    assert!(matches!(steps.look(&world.ns, 3), Look::Blocks(_)));
    world.allow_snapshot("/")?;
    world.create_snapshot("/", "s")?;
    world.delete("/d", true)?;
    assert_eq!(steps.look(&world.ns, 3), Look::Withdrawn);
    assert_eq!(steps.look(&world.ns, 3), Look::Idle);
    world.restart_from_image();
    assert_eq!(Walk::default().look(&world.ns, 3), Look::Idle);
    world.check_replay();
    Ok(())
}

#[test]
fn what_is_renamed_or_made_in_the_middle_costs_nothing_else_its_turn() -> FsResult<()> {
    let mut world = World::new(0);
    let mut blocks: Vec<BlockId> = ["/d/a/1", "/d/a/2", "/d/b"].map(|path| file(&mut world, path)).into();
    world.satisfy_storage_policy("/d")?;
    let mut steps = Walk::default();
    let Look::Blocks(mut named) = steps.look(&world.ns, 1) else { panic!("there are files") };
    world.rename("/d/a", "/a")?;
    blocks.push(file(&mut world, "/d/c"));
    world.delete("/d/b", true)?;
    let (rest, last) = walk(&world, &mut steps, 1);
    named.extend(rest);
    blocks.remove(2);
    assert_eq!((named, last), (blocks, Look::Walked(inode(&world, "/d"))));
    Ok(())
}

#[test]
fn where_several_groups_hold_files_only_single_files_are_taken() -> FsResult<()> {
    let mut world = World::new(0);
    let block = file(&mut world, "/d/f");
    let second = base::GroupId(2);
    world.run(|ns, ctx| ops::raise_level::plan(ns, ctx, base::Level::NEWEST))?;
    world.satisfy_storage_policy("/d")?;
    world.run(|ns, ctx| ops::add_group::plan(ns, ctx, second))?;
    world.run(|ns, ctx| ops::give_slots::plan(ns, ctx, second))?;
    assert_eq!(Walk::default().look(&world.ns, 9), Look::Idle, "what waited before is left");
    world.mkdirs("/e", true)?;
    let refused = world.satisfy_storage_policy("/e").unwrap_err().to_string();
    assert!(refused.contains("/e is a directory of several groups"), "{refused}");
    world.satisfy_storage_policy("/d/f")?;
    assert_eq!(walk(&world, &mut Walk::default(), 9).0, [block]);
    Ok(())
}
