//! An answer that edits have changed rests on something that their footprints name. If it did not, a reader could be
//! told of what is not yet durable, or, below the minimum, of what never will have been.

mod common;

use base::{Caller, Epoch, Sn, Timestamp, TxId};
use common::{
    Dice, World,
    random_calls::{paths, some_call},
    reads,
};
use namespace::{
    Context, Edit, Mark, Namespace, Reach, Readable, Sight, Step,
    acl::{AclEntry, Kind, Scope},
    ops,
    xattr::{Space, XattrName},
};
use std::{
    collections::{BTreeSet, VecDeque},
    fmt::Write,
};

/// The answers to all reads about a path, asked by the superuser and by another user: of those that look at the path alone, and of those
/// that look at its children as well.
fn answer(ns: &Namespace, ctx: &Context<'_>, path: &str) -> (String, String) {
    let bob = Caller::simple("bob", &["staff"]);
    let as_bob = Context { caller: &bob, ..*ctx };
    let (mut itself, mut children) = (String::new(), String::new());
    for read in reads::about(path) {
        let told = match read.sight() {
            Sight::Paths(_) => &mut itself,
            Sight::Listings(_) => &mut children,
            other => panic!("{read:?} looks at {other:?}"),
        };
        write!(told, "{:?} {:?}", read.look(ns, ctx), read.look(ns, &as_bob)).unwrap();
    }
    (itself, children)
}

type Answers = Vec<(String, String)>;

fn answers(ns: &Namespace, ctx: &Context<'_>, paths: &[String]) -> Answers {
    paths.iter().map(|path| answer(ns, ctx, path)).collect()
}

/// Whether an answer rests on nothing of these.
fn is_certain(ns: &Namespace, path: &str, reach: Reach, touched: &BTreeSet<Mark>) -> bool {
    let sight = match reach {
        Reach::Itself => Sight::Paths(path.into()),
        Reach::Children => Sight::Listings(path.into()),
    };
    let mut seen = Vec::new();
    sight.marks(ns, &mut seen) && !seen.iter().any(|mark| touched.contains(mark))
}

/// Follows a journal, edit by edit, and remembers what was answered in the last states.
struct Tail {
    ns: Namespace,
    applied: usize,
    /// The marks that each of the last edits has touched, and the answers before that edit.
    last: VecDeque<(Vec<Mark>, Answers)>,
    /// Answers that were certain although something was in doubt, and those that were not.
    certain: usize,
    doubtful: usize,
}

const TAIL: usize = 6;

impl Tail {
    /// Every answer that rests on nothing of the last edits is the same without any number of them.
    fn follow(&mut self, world: &World, paths: &[String]) {
        let ctx = &world.context(None);
        for bytes in &world.journal[self.applied..] {
            let edit = Edit::decode(bytes).unwrap();
            let mut footprint = Vec::new();
            edit.footprint(&self.ns, &mut footprint);
            let before = answers(&self.ns, ctx, paths);
            self.applied += 1;
            self.ns.apply(TxId { epoch: Epoch(1), sn: Sn(self.applied as u64) }, &edit);
            self.last.push_back((footprint, before));
            if self.last.len() > TAIL {
                self.last.pop_front();
            }
            self.compare(ctx, paths);
        }
    }

    fn compare(&mut self, ctx: &Context<'_>, paths: &[String]) {
        let now = answers(&self.ns, ctx, paths);
        let mut touched = BTreeSet::new();
        for (back, (footprint, then)) in self.last.iter().rev().enumerate() {
            touched.extend(footprint.iter().copied());
            for (index, path) in paths.iter().enumerate() {
                let (now, then) = (&now[index], &then[index]);
                let looks = [(Reach::Itself, &now.0, &then.0), (Reach::Children, &now.1, &then.1)];
                for (reach, now, then) in looks {
                    if !is_certain(&self.ns, path, reach, &touched) {
                        self.doubtful += 1;
                        continue;
                    }
                    self.certain += 1;
                    assert_eq!(now, then, "{path} without the last {} edits of {}", back + 1, self.applied);
                }
            }
        }
    }
}

/// Other names, and what snapshots show.
fn further_paths() -> Vec<String> {
    let mut paths: Vec<String> =
        ["/.reserved", "/.reserved/raw/a/b", "/a/.snapshot", "/b/.snapshot"].map(String::from).to_vec();
    for (root, name) in [("/a", "s0"), ("/a", "s1"), ("/b", "s0")] {
        for below in ["", "/a", "/b", "/c", "/a/b", "/b/c", "/c/a"] {
            paths.push(format!("{root}/.snapshot/{name}{below}"));
        }
    }
    for inode in 16386..16400 {
        for below in ["", "/a", "/.."] {
            paths.push(format!("/.reserved/.inodes/{inode}{below}"));
        }
    }
    paths
}

#[test]
fn each_certain_answer_is_the_same_without_any_end_of_the_tail() {
    let (mut certain, mut doubtful) = (0, 0);
    for seed in 1..=2 {
        let names = paths();
        let all: Vec<String> = names.iter().cloned().chain(further_paths()).collect();
        let mut world = World::new(seed);
        let ns = Namespace::new(seed, "hdfs", "supergroup", Timestamp::from_ms(1));
        let mut tail = Tail { ns, applied: 0, last: VecDeque::new(), certain: 0, doubtful: 0 };
        let mut dice = Dice(seed);
        while world.journal.len() < 150 {
            some_call(&mut world, &mut dice, &names);
            tail.follow(&world, &all);
        }
        (certain, doubtful) = (certain + tail.certain, doubtful + tail.doubtful);
    }
    println!("{certain} answers certain, {doubtful} in doubt");
    assert!(2 * certain > doubtful, "{certain} answers certain, {doubtful} in doubt");
}

#[test]
fn what_is_made_elsewhere_leaves_no_doubt() {
    let mut world = World::new(1);
    for path in ["/a/b", "/x/z"] {
        world.mkdirs(path, true).unwrap();
    }
    let ctx = world.context(None);
    let request = ops::mkdirs::Request {
        path: "/x/y/deep".into(),
        permission: 0o755,
        unmasked: None,
        create_parent: true,
    };
    let Ok(namespace::Planned::Edit(edit)) = ops::mkdirs::plan(&world.ns, &ctx, &request) else {
        panic!("it can be made")
    };
    let edit: Edit = edit.into();
    let mut touched = Vec::new();
    edit.footprint(&world.ns, &mut touched);
    let touched: BTreeSet<Mark> = touched.into_iter().collect();
    world.apply(edit);
    let certain = |path: &str, reach| is_certain(&world.ns, path, reach, &touched);
    for path in ["/", "/a", "/a/b", "/a/b/none", "/none", "/x/z"] {
        assert!(certain(path, Reach::Itself), "{path}");
    }
    assert!(certain("/a", Reach::Children) && certain("/x/z", Reach::Children));
    // The directory's time, the statuses that the root's listing shows, and what was made.
    assert!(!certain("/x", Reach::Itself) && !certain("/x", Reach::Children));
    assert!(!certain("/", Reach::Children));
    assert!(!certain("/x/y", Reach::Itself) && !certain("/x/y/deep", Reach::Itself));
    assert!(!certain("/x/y/deep/none", Reach::Itself) && !certain("/.reserved/.inodes/99999", Reach::Itself));
}

fn apply_and_compare(world: &mut World, edit: Edit, paths: &[String]) {
    let mut footprint = Vec::new();
    edit.footprint(&world.ns, &mut footprint);
    let footprint: BTreeSet<Mark> = footprint.into_iter().collect();
    let before = answers(&world.ns, &world.context(None), paths);
    world.apply(edit.clone());
    let after = answers(&world.ns, &world.context(None), paths);
    for (path, (before, after)) in paths.iter().zip(before.iter().zip(&after)) {
        let is_certain = |reach| is_certain(&world.ns, path, reach, &footprint);
        assert!(
            before.0 == after.0 || !is_certain(Reach::Itself),
            "{path}: {before:?} became {after:?} by {edit:?}"
        );
        assert!(
            before.1 == after.1 || !is_certain(Reach::Children),
            "{path}: {before:?} became {after:?} by {edit:?}"
        );
    }
}

#[test]
fn a_changed_answer_rests_on_the_footprint_of_the_change() {
    let paths = paths();
    let mut world = World::new(4);
    let mut dice = Dice(4);
    let pick = |dice: &mut Dice| paths[1 + dice.below(paths.len() as u64 - 1) as usize].clone();
    for step in 0..600 {
        let (path, other) = (pick(&mut dice), pick(&mut dice));
        let ctx = world.context(None);
        let ns = &world.ns;
        let planned = match dice.below(10) {
            0 => {
                let request = ops::mkdirs::Request {
                    path: path.clone(),
                    permission: 0o755,
                    unmasked: None,
                    create_parent: true,
                };
                ops::mkdirs::plan(ns, &ctx, &request).map(Step::from)
            }
            1 | 2 => {
                let mut request = world.create_request(&path, "holder");
                request.flags |= ops::create::flag::OVERWRITE;
                ops::create::plan(ns, &ctx, &request).map(Step::from)
            }
            3 => {
                let request = ops::rename::Request { source: path.clone(), destination: other.clone() };
                ops::rename::plan(ns, &ctx, &request).map(Step::from)
            }
            4 => {
                let request = ops::rename2::Request {
                    source: path.clone(),
                    destination: other.clone(),
                    overwrite: true,
                    to_trash: false,
                };
                ops::rename2::plan(ns, &ctx, &request).map(Step::from)
            }
            5 if step % 3 == 0 => {
                ops::delete::plan(ns, &ctx, &ops::delete::Request { path: path.clone(), recursive: true })
                    .map(Step::from)
            }
            8 => {
                let entry = AclEntry {
                    scope: Scope::Access,
                    kind: Kind::User,
                    name: Some("ann".into()),
                    permission: step as u8 & 7,
                };
                let change = ops::set_acl::Change::Merge(vec![entry]);
                ops::set_acl::plan(ns, &ctx, &ops::set_acl::Request { path: path.clone(), change })
                    .map(Step::from)
            }
            9 => {
                let name = XattrName { space: Space::User, name: "a".into() };
                let request = ops::set_xattrs::Request {
                    path: path.clone(),
                    name,
                    value: Some(step.to_string().into_bytes()),
                    flags: 3,
                };
                ops::set_xattrs::plan(ns, &ctx, &request).map(Step::from)
            }
            6 => {
                let request =
                    ops::set_permission::Request { path: path.clone(), permission: step as u16 & 0o777 };
                ops::set_permission::plan(ns, &ctx, &request).map(Step::from)
            }
            _ => {
                let request =
                    ops::set_times::Request { path: path.clone(), modified: i64::from(step), accessed: -1 };
                ops::set_times::plan(ns, &ctx, &request).map(Step::from)
            }
        };
        if let Ok(Step::Edit(edit)) = planned {
            apply_and_compare(&mut world, edit, &paths);
        }
    }
    assert!(world.journal.len() > 100);
    world.check_replay();
}
