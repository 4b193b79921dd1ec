//! A plan that rests on a large subtree has it looked at in slices first. It comes to exactly what it would come to if it looked
//! by itself.

mod common;

use base::{Caller, FsResult};
use common::{
    ALL_FINISHED, Dice, World,
    random_calls::{paths, some_call},
};
use namespace::{
    Context, Look, Looks, Question, Request, Step, next_step,
    ops::{self, set_quota::KEEP},
};

fn delete(path: &str) -> Request {
    ops::delete::Request { path: path.into(), recursive: true }.into()
}

fn set_quota(path: &str, inodes: i64) -> Request {
    ops::set_quota::Request { path: path.into(), inodes, bytes: KEEP, storage_type: None }.into()
}

/// The step of a request for a caller: with looks, or as the plan comes to it by itself.
fn step(world: &World, caller: &Caller, request: &Request, looks: Option<&Looks>) -> FsResult<Step> {
    let ctx = Context { caller, looks, ..world.context(Some(world.origin())) };
    next_step(request, &world.ns, &ctx, &ALL_FINISHED)
}

/// Looks at so many inodes a slice, and lets `meanwhile` happen between any two slices.
fn look_through(
    world: &mut World,
    caller: &Caller,
    looks: &mut Looks,
    question: Question,
    slice: usize,
    mut meanwhile: impl FnMut(&mut World),
) {
    let watch = world.watches.set(question.top()).expect("one is free");
    let mut look = Look::new(question);
    loop {
        let ctx = Context { caller, ..world.context(None) };
        if look.step(&world.ns, &ctx, slice) {
            break;
        }
        meanwhile(world);
    }
    look.tell(looks, watch);
}

/// A directory of alice's with forty directories in it, of which one is bob's but open to all.
fn project() -> FsResult<(World, Caller)> {
    let mut world = World::new(1);
    for at in 0..40 {
        world.mkdirs(&format!("/home/alice/project/{at:02}/deep"), true)?;
        world.create(&format!("/home/alice/project/{at:02}/deep/file"), false)?;
    }
    for path in ["/home/alice", "/home/alice/project"] {
        world.set_owner(path, Some("alice"), None)?;
    }
    for at in 0..40 {
        for below in ["", "/deep"] {
            let path = format!("/home/alice/project/{at:02}{below}");
            world.set_owner(&path, Some(if at == 7 { "bob" } else { "alice" }), None)?;
            world.set_permission(&path, 0o777)?;
        }
    }
    Ok((world, Caller::simple("alice", &["staff"])))
}

#[test]
fn a_large_directory_is_looked_at_in_slices_and_then_deleted() -> FsResult<()> {
    let (mut world, alice) = project()?;
    let request = delete("/home/alice/project");
    let mut looks = Looks::new(10);
    let Step::Look(look) = step(&world, &alice, &request, Some(&looks))? else { panic!("it is large") };
    let mut slices = 0;
    look_through(&mut world, &alice, &mut looks, look, 10, |world| {
        slices += 1;
        // Things that do not matter: elsewhere, and above.
        world.mkdirs(&format!("/elsewhere/{slices}"), true).expect("a new directory");
        world.set_times("/home/alice", slices, -1).expect("a time");
    });
    assert!(slices > 5, "{slices} slices");
    let by_itself = step(&world, &alice, &request, None)?;
    assert!(matches!(by_itself, Step::Edit(_)));
    assert_eq!(step(&world, &alice, &request, Some(&looks))?, by_itself);
    Ok(())
}

#[test]
fn a_small_directory_is_deleted_without_a_look() -> FsResult<()> {
    let (world, alice) = project()?;
    let looks = Looks::new(10);
    let request = delete("/home/alice/project/03");
    assert!(matches!(step(&world, &alice, &request, Some(&looks))?, Step::Edit(_)));
    // Nobody asks whether the superuser may.
    let root = Caller::simple("hdfs", &[]);
    assert!(matches!(step(&world, &root, &delete("/home/alice/project"), Some(&looks))?, Step::Edit(_)));
    Ok(())
}

#[test]
fn a_right_that_is_taken_away_behind_the_look_counts() -> FsResult<()> {
    let (mut world, alice) = project()?;
    let request = delete("/home/alice/project");
    let mut looks = Looks::new(10);
    let Step::Look(look) = step(&world, &alice, &request, Some(&looks))? else { panic!("it is large") };
    look_through(&mut world, &alice, &mut looks, look, 1_000, |_| {});
    world.set_permission("/home/alice/project/07/deep", 0o700)?;
    let Step::Look(again) = step(&world, &alice, &request, Some(&looks))? else { panic!("it has changed") };
    look_through(&mut world, &alice, &mut looks, again, 10, |_| {});
    let refused = step(&world, &alice, &request, Some(&looks)).expect_err("bob has closed it");
    assert_eq!(refused, step(&world, &alice, &request, None).expect_err("bob has closed it"));
    assert_eq!(
        refused.to_string(),
        "Permission denied: user=alice, access=ALL, inode=\"/home/alice/project/07/deep\":bob:supergroup:drwx------"
    );
    Ok(())
}

#[test]
fn a_quota_counts_what_was_made_while_others_were_looked_at() -> FsResult<()> {
    let (mut world, _) = project()?;
    let root = Caller::simple("hdfs", &[]);
    let request = set_quota("/home/alice", 1_000);
    let mut looks = Looks::new(10);
    let mut made = 0;
    let mut rounds = 0;
    let edit = loop {
        match step(&world, &root, &request, Some(&looks))? {
            Step::Look(look) => {
                rounds += 1;
                look_through(&mut world, &root, &mut looks, look, 20, |world| {
                    if made < 2 {
                        made += 1;
                        world.mkdirs(&format!("/home/alice/new-{made}"), true).expect("a new directory");
                    }
                });
            }
            Step::Edit(edit) => break edit,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((made, rounds), (2, 2));
    world.apply(edit);
    // One, the project, forty with two below each, and two new ones.
    assert!(world.set_quota("/home/alice", 124, KEEP).is_ok());
    assert!(world.mkdirs("/home/alice/one-too-many", true).is_err());
    world.check_replay();
    Ok(())
}

/// A quota far below has noted what it counts by media, so a policy set above changes that note. The question is the same again once the
/// policy is taken back.
#[test]
fn a_policy_that_comes_and_goes_above_the_subtree_counts() -> FsResult<()> {
    let (mut world, _) = project()?;
    let path = "/home/alice/project/03/deep/big";
    let inode = world.create(path, false)?;
    world.add_block(path, inode, None);
    world.set_quota("/home", 10_000, KEEP)?;
    world.set_quota("/home/alice/project/03", 1_000, KEEP)?;
    let root = Caller::simple("hdfs", &[]);
    let request = delete("/home/alice/project");
    let mut looks = Looks::new(10);
    let Step::Look(look) = step(&world, &root, &request, Some(&looks))? else { panic!("it is large") };
    let watch = world.watches.set(look.top()).expect("one is free");
    world.set_storage_policy("/home/alice", Some("ALL_SSD"))?;
    let mut looking = Look::new(look);
    while !looking.step(&world.ns, &Context { caller: &root, ..world.context(None) }, 10) {}
    world.set_storage_policy("/home/alice", None)?;
    looking.tell(&mut looks, watch);
    let by_itself = step(&world, &root, &request, None)?;
    let with_looks = loop {
        match step(&world, &root, &request, Some(&looks))? {
            Step::Look(again) => look_through(&mut world, &root, &mut looks, again, 10, |_| {}),
            step => break step,
        }
    };
    assert_eq!(with_looks, by_itself);
    Ok(())
}

#[test]
fn a_plan_looks_by_itself_after_three_vain_looks() -> FsResult<()> {
    let (mut world, alice) = project()?;
    let request = delete("/home/alice/project");
    let mut looks = Looks::new(10);
    for round in 0..3 {
        let Step::Look(look) = step(&world, &alice, &request, Some(&looks))? else { panic!("round {round}") };
        look_through(&mut world, &alice, &mut looks, look, 50, |world| {
            world.set_times("/home/alice/project/03/deep/file", 5, -1).expect("a time");
        });
    }
    assert!(matches!(step(&world, &alice, &request, Some(&looks))?, Step::Edit(_)));
    Ok(())
}

fn some_request(dice: &mut Dice, paths: &[String]) -> Request {
    let mut pick = || paths[dice.below(paths.len() as u64) as usize].clone();
    let (path, other) = (pick(), pick());
    match dice.below(5) {
        0 => delete(&path),
        1 | 2 => set_quota(&path, [1, 100, -1][dice.below(3) as usize]),
        3 => ops::rename::Request { source: path, destination: other }.into(),
        _ => {
            ops::rename2::Request { source: path, destination: other, overwrite: true, to_trash: true }.into()
        }
    }
}

#[test]
fn a_plan_with_looks_comes_to_what_it_comes_to_without() {
    let (mut intact, mut spoilt, mut refused) = (0, 0, 0);
    for seed in 1..=60 {
        let names = paths();
        let mut world = World::new(seed);
        let mut dice = Dice(seed);
        for _ in 0..60 {
            for _ in 0..10 {
                some_call(&mut world, &mut dice, &names);
            }
            // Others get far enough to be refused far below.
            for path in names.iter().filter(|_| dice.below(10) > 0) {
                drop(world.set_permission(path, 0o777));
            }
            let caller = Caller::simple(["hdfs", "bob", "ann"][dice.below(3) as usize], &["staff"]);
            let request = some_request(&mut dice, &names);
            let mut looks = Looks::new(1);
            // Mostly calm, so that looks come to an end in peace as well.
            let unrest = [0, 0, 1, 3][dice.below(4) as usize];
            let mut looked = 0;
            let with_looks = loop {
                match step(&world, &caller, &request, Some(&looks)) {
                    Ok(Step::Look(look)) => {
                        looked += 1;
                        look_through(&mut world, &caller, &mut looks, look, 2, |world| {
                            if dice.below(10) < unrest {
                                some_call(world, &mut dice, &names);
                            }
                        });
                        // Behind the look and before the plan, too.
                        if dice.below(10) < unrest {
                            some_call(&mut world, &mut dice, &names);
                        }
                    }
                    other => break other,
                }
            };
            let by_itself = step(&world, &caller, &request, None);
            assert_eq!(with_looks, by_itself, "seed {seed}: {request:?} of {}", caller.user);
            if looked > 0 {
                intact += usize::from(unrest == 0);
                spoilt += usize::from(unrest > 0);
                refused += usize::from(with_looks.is_err());
            }
            if let Ok(Step::Edit(edit)) = with_looks {
                world.apply(edit);
            }
        }
        world.check_replay();
    }
    println!("{intact} looks in peace, {spoilt} among changes, {refused} refusals");
    assert!(intact > 100 && spoilt > 100 && refused > 20, "{intact} {spoilt} {refused}");
}
