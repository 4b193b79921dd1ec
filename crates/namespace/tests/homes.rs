//! Which group decides a call, and what its plan rests on at a home.

mod common;

use base::{FsResult, GroupId, InodeId, Level, directory_log::Mark};
use common::World;
use namespace::{
    Namespace,
    homes::{Decision, HomeCall, Intent, Rename},
    ops::{add_group, give_slots, raise_level},
    questions::Question,
};

const SECOND: GroupId = GroupId(2);

fn call(intent: Intent, rename: Option<Rename>, paths: &[&str]) -> HomeCall {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    HomeCall { intent, paths, file: None, block: None, rename, is_batch: false }
}

fn seen(ns: &Namespace, call: &HomeCall) -> Vec<Mark> {
    let mut seen = Vec::new();
    assert!(call.seen(ns, &mut seen));
    seen
}

/// A home that has told that a directory has no file of this name, or none at all, lets no call make one.
#[test]
fn a_call_that_makes_a_file_meets_the_holds_about_it() -> FsResult<()> {
    let mut world = World::new(1);
    world.mkdirs("/a/b", true)?;
    world.mkdirs("/c", true)?;
    let directory = InodeId(InodeId::ROOT.0 + 2);
    let held = [Question::HasFile { directory, name: "f".into() }, Question::HasFiles { directory }]
        .map(|question| question.marks()[0]);
    for (intent, rename, paths) in [
        (Intent::CreateWithParents, None, &["/a/b/f"][..]),
        (Intent::Change, None, &["/a/b/f"]),
        (Intent::Change, Some(Rename::ToOrInto), &["/c/f", "/a/b/f"]),
        // Into the directory, under its own name, which the call does not say.
        (Intent::Change, Some(Rename::ToOrInto), &["/c/f", "/a/b"]),
        (Intent::Change, Some(Rename::ToOrInto), &["/c/f", "/a/b/"]),
        (Intent::Change, Some(Rename::To), &["/c/f", "/a/b/f"]),
    ] {
        let call = call(intent, rename, paths);
        let seen = seen(&world.ns, &call);
        assert!(held.iter().all(|mark| seen.contains(mark)), "{call:?}");
    }
    Ok(())
}

#[test]
fn the_root_group_moves_files_between_homes_and_a_concat_is_for_the_home_of_its_target() -> FsResult<()> {
    let mut world = World::new(1);
    world.run(|ns, ctx| raise_level::plan(ns, ctx, Level::NEWEST))?;
    world.run(|ns, ctx| add_group::plan(ns, ctx, SECOND))?;
    world.run(|ns, ctx| give_slots::plan(ns, ctx, SECOND))?;
    // One directory of each group, and another one of the second group.
    let mut of_root = Vec::new();
    let mut of_second = Vec::new();
    for path in (0..).map(|number| format!("/d{number}")) {
        world.mkdirs(&path, true)?;
        match world.ns.decider(&path, Intent::Look) {
            GroupId::ROOT => of_root.push(path),
            _ => of_second.push(path),
        }
        if !of_root.is_empty() && of_second.len() > 1 {
            break;
        }
    }
    let (a, b, c) = (&*of_second[0], &*of_second[1], &*of_root[0]);
    let file = format!("{a}/f");
    let (near, far) = (format!("{b}/g"), format!("{c}/g"));
    for rename in [Rename::ToOrInto, Rename::To] {
        for (from, to, decision) in [
            (&*file, &*near, Decision::Group(SECOND)),
            (&file, b, Decision::Group(SECOND)),
            (&file, &far, Decision::Group(GroupId::ROOT)),
            (&file, c, Decision::Group(GroupId::ROOT)),
            // The root group renames directories, to wherever they go.
            (a, &far, Decision::Group(GroupId::ROOT)),
        ] {
            let call = call(Intent::Change, Some(rename), &[from, to]);
            assert_eq!(call.decision(&world.ns), decision, "{call:?}");
        }
    }
    let concat = |paths: &[&str]| call(Intent::Change, None, paths).decision(&world.ns);
    assert_eq!(concat(&[&near, &file]), Decision::Group(SECOND));
    assert_eq!(concat(&[&near, &file, &far]), Decision::Group(SECOND), "it refuses that");
    let batch =
        |paths: &[&str]| HomeCall { is_batch: true, ..call(Intent::Look, None, paths) }.decision(&world.ns);
    assert_eq!(batch(&[&near, a, &file]), Decision::Group(SECOND));
    assert_eq!(batch(&[&near, a, &far]), Decision::Apart(SECOND));
    Ok(())
}
