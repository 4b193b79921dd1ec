//! The root group's changes of directories become entries of the directory log, and another group's tree is made of their payloads.

mod common;

use base::{
    FsResult, GroupId, Level,
    directory_log::{Dix, Entry, Mark, MarkKind},
};
use common::{Dice, World, image_of, random_calls};
use namespace::{
    Context, Edit, Namespace, Plannable, Planned,
    ops::{add_group, create, raise_level},
};

/// Stories of the random play; with 1,500 it was played once.
const ROUNDS: u64 = 60;

/// A root group that has told its directory log of group 2.
fn shared(seed: u64) -> World {
    let mut root = World::new(seed);
    root.run(|ns, ctx| raise_level::plan(ns, ctx, Level::NEWEST)).expect("all members know it");
    root.run(|ns, ctx| add_group::plan(ns, ctx, GroupId(2))).expect("nothing stands in the way");
    root.creates_parents = false;
    root
}

/// Group 2, which has nothing of the root group but its entries.
struct Follower(World);

impl Follower {
    fn of(root: &World) -> Self {
        let mut world = World::of_group(7, GroupId(2));
        world.ns = root.ns.for_joining(7, GroupId(2)).expect("nothing stands in the way");
        world.now = root.now;
        Self(world)
    }

    /// Carries out all entries that it lacks, from their payloads.
    fn follow(&mut self, root: &World) {
        let world = &mut self.0;
        let (previous, entries) =
            root.ns.directory_entries(world.ns.directory_log().dix, usize::MAX).expect("they are kept");
        assert_eq!(previous, world.ns.directory_log());
        for entry in entries {
            let change = Edit::decode(&entry.payload).unwrap_or_else(|error| panic!("{error}"));
            let edit = world.ns.follow(&world.context(None), &change, entry.point());
            world.apply(edit.unwrap_or_else(|error| panic!("{error}")));
        }
        assert_eq!(world.ns.directory_log(), root.ns.directory_log());
        assert_eq!(world.ns.directories_digest(), root.ns.directories_digest());
    }
}

fn entries(root: &World) -> Vec<Entry> {
    root.ns.directory_entries(Dix(0), usize::MAX).expect("nothing was dropped").1
}

#[test]
fn changes_of_directories_are_entries_and_changes_of_files_are_none() -> FsResult<()> {
    let mut root = World::new(1);
    root.mkdirs("/before", true)?;
    assert_eq!(root.ns.directory_log().dix, Dix(0), "there is no other group that had to know");
    root.run(|ns, ctx| raise_level::plan(ns, ctx, Level::NEWEST))?;
    root.run(|ns, ctx| add_group::plan(ns, ctx, GroupId(2)))?;
    assert_eq!(root.ns.directory_log().dix, Dix(1), "a group is added by the log's first entry");
    let mut follower = Follower::of(&root);

    root.mkdirs("/a/b", true)?;
    let file = root.create("/a/b/f", false)?;
    let block = root.add_block("/a/b/f", file, None);
    root.complete("/a/b/f", file, Some(block));
    root.set_permission("/a/b/f", 0o600)?;
    root.rename("/a/b/f", "/a/g")?;
    assert_eq!(root.ns.directory_log().dix, Dix(2), "of these only the mkdirs is an entry");
    root.set_permission("/a/b", 0o700)?;
    root.rename("/a/b", "/c")?;
    root.delete("/c", true)?;
    assert_eq!(root.ns.directory_log().dix, Dix(5));
    follower.follow(&root);
    let marked = entries(&root).into_iter().filter(|entry| !entry.marks.is_empty()).count();
    assert_eq!(marked, 4, "all but the added group change something of the tree");
    root.check_replay();
    Ok(())
}

#[test]
fn a_file_with_missing_directories_waits_for_an_entry_that_makes_them() -> FsResult<()> {
    let mut root = shared(1);
    let mut follower = Follower::of(&root);
    let holder = root.holder.clone();
    root.creates_parents = true;
    let request = root.create_request("/new/deep/f", &holder);
    let plan = |ns: &Namespace, ctx: &Context<'_>| request.plan(ns, ctx, &common::ALL_FINISHED);
    let create::Plan::Parents(parents) = root.plan(plan)? else { panic!("the directories come first") };
    let parents: Edit = parents.into();
    assert_eq!(parents.origin, None, "the call is not answered by it");
    root.apply(parents);
    follower.follow(&root);
    let before = root.ns.directory_log();
    let create::Plan::Create(_) = root.plan(plan)? else { panic!("the directories are there") };
    assert_eq!(root.ns.directory_log(), before);
    Ok(())
}

/// A home compares the marks of an entry with those that its plans have seen. So an entry has to mark what its relay will change.
#[test]
fn the_marks_of_an_entry_are_those_of_the_change_in_the_other_group() -> FsResult<()> {
    let mut root = shared(1);
    root.mkdirs("/a/b", true)?;
    root.mkdirs("/c", true)?;
    let mut follower = Follower::of(&root);
    follower.follow(&root);
    type Change = fn(&mut World) -> FsResult<bool>;
    let changes: [Change; 4] = [
        |root| root.mkdirs("/c/d/e", true),
        |root| root.rename("/a/b", "/c/d/b"),
        |root| root.set_permission("/c/d", 0o711).map(|_| true),
        |root| root.delete("/c", true),
    ];
    for change in changes {
        assert!(change(&mut root)?);
        let entry = entries(&root).pop().expect("it is an entry");
        let relayed = Edit::decode(&entry.payload).unwrap_or_else(|error| panic!("{error}"));
        let mut marks = Vec::new();
        relayed.footprint(&follower.0.ns, &mut marks);
        let mut marks: Vec<Mark> = marks.into_iter().map(Mark::from).collect();
        marks.sort_unstable();
        marks.dedup();
        // No plan rests on contents: only what homes have told.
        let of_plans = entry.marks.iter().copied().filter(|mark| mark.kind != MarkKind::Contents);
        assert_eq!(of_plans.collect::<Vec<_>>(), marks);
        follower.follow(&root);
    }
    Ok(())
}

/// Whatever the root group does, the other group comes to the same directories by the payloads alone, and the root group's journal and images
/// bring back the entries that some group may lack.
#[test]
fn random_calls_leave_the_same_directories_and_entries_everywhere() {
    let paths = random_calls::paths();
    let mut most = 0;
    for seed in 0..ROUNDS {
        let mut dice = Dice(seed);
        let mut root = shared(seed);
        let mut follower = Follower::of(&root);
        for _ in 0..150 {
            random_calls::some_call(&mut root, &mut dice, &paths);
            // Visible lags behind the end, and what all groups have carried out lags behind visible.
            let end = root.ns.directory_log().dix.0;
            root.visible = root.visible.max(Dix(end.saturating_sub(dice.below(4))));
            root.carried_out = root.carried_out.max(Dix(root.visible.0.saturating_sub(dice.below(4))));
            if dice.below(3) == 0 {
                follower.follow(&root);
            }
        }
        follower.follow(&root);
        most = most.max(root.ns.directory_log().dix.0);
        root.check_replay();
        follower.0.ns.check_consistency().unwrap_or_else(|error| panic!("{error}"));
        let (before, doubt) = (entries(&root), root.ns.directory_entries_in_doubt());
        root.restart_from_image();
        assert_eq!((entries(&root), root.ns.directory_entries_in_doubt()), (before, doubt));
        root.mkdirs("/after/the/start", true).expect("it goes on");
        follower.follow(&root);
    }
    assert!(most > 20, "{most}");
}

/// A thousand entries: those that everybody has go, in an image as in memory, and a member that starts from it goes on like the others.
#[test]
fn entries_that_everybody_has_are_dropped() -> FsResult<()> {
    let mut root = shared(1);
    let mut follower = Follower::of(&root);
    for number in 0..1_000 {
        root.mkdirs(&format!("/d{number}"), true)?;
        if number % 100 == 0 {
            follower.follow(&root);
            let carried_out = follower.0.ns.directory_log().dix;
            (root.visible, root.carried_out) = (carried_out, carried_out);
        }
    }
    let (kept, bytes) = root.ns.kept_directory_entries();
    assert!((100..=100 + 2 * 256).contains(&kept) && bytes > 0, "{kept}");
    assert_eq!(root.ns.directory_entries(Dix(0), usize::MAX), None, "the first are gone");
    assert!(root.ns.directory_entries_in_doubt().1.len() <= 100);
    root.check_replay();
    root.restart_from_image();
    assert_eq!(root.ns.kept_directory_entries().0, kept);
    follower.follow(&root);
    Ok(())
}

#[test]
fn entries_are_read_in_pieces() -> FsResult<()> {
    let mut root = shared(1);
    for number in 0..50 {
        root.mkdirs(&format!("/d{number}"), true)?;
    }
    let all = entries(&root);
    let (mut after, mut read) = (Dix(0), Vec::new());
    while let Some((_, piece)) =
        root.ns.directory_entries(after, 1_000).filter(|(_, piece)| !piece.is_empty())
    {
        let bytes: usize = piece.iter().map(Entry::bytes).sum();
        assert!(bytes <= 1_000 || piece.len() == 1, "{bytes}");
        after = piece.last().expect("looked at above").dix;
        read.extend(piece);
    }
    assert_eq!(read, all);
    let one_at_least = root.ns.directory_entries(Dix(3), 1).expect("they are kept").1;
    assert_eq!(one_at_least, all[3..4]);
    Ok(())
}

/// Bytes in a journal that no program of ours wrote: an entry within an entry would go on without end, and one that was visible before it was
/// planned, or comes before the first, is none.
#[test]
fn hostile_entries_are_refused() -> FsResult<()> {
    let mut root = shared(1);
    root.mkdirs("/a", true)?;
    let good = root.journal.last().expect("the mkdirs").clone();
    let edit = Edit::decode(&good).unwrap_or_else(|error| panic!("{error}"));
    let payload = entries(&root).pop().expect("it is an entry").payload;
    let place =
        good.windows(payload.len()).position(|at| at == &payload[..]).expect("the payload stands in it");
    let refused_within = |kind: u8| {
        (place..place + payload.len()).any(|at| {
            let mut nested = good.clone();
            nested[at] = kind;
            Edit::decode(&nested).is_err_and(|error| error.to_string().contains("in another one"))
        })
    };
    assert!([41, 42].into_iter().all(refused_within), "an entry within an entry would go on without end");
    for at in 0..good.len() {
        for byte in [0, 1, 41, 42, 0x7f, 0x80, 0xff] {
            let mut other = good.clone();
            other[at] = byte;
            // Any answer is right but a panic, or an edit that comes back as other bytes mean.
            if let Ok(decoded) = Edit::decode(&other) {
                let mut again = Vec::new();
                decoded.encode(&mut again);
                assert_eq!(Edit::decode(&again), Ok(decoded));
            }
        }
        assert!(Edit::decode(&good[..at]).is_err(), "{at} bytes of {}", good.len());
    }
    assert_eq!(Edit::decode(&good), Ok(edit));
    let image = image_of(&root.ns.freeze());
    for at in 0..image.len() {
        assert!(Namespace::read_image(1, &mut &image[..at], at as u64).is_err());
    }
    assert!(root.plan(|ns, ctx| add_group::plan(ns, ctx, GroupId::ROOT)).is_err());
    assert!(matches!(root.plan(|ns, ctx| add_group::plan(ns, ctx, GroupId(2)))?, Planned::NoChange(_)));
    Ok(())
}
