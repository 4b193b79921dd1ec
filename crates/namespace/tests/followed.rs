//! A group follows the directories of the root group, and keeps files of its own in them.

mod common;

use base::{
    Block, Chain, FsResult, GroupId,
    directory_log::{Dix, Point},
};
use common::{Dice, World, image_of, random_calls};
use namespace::{Edit, Namespace, NotShared, ops::relay::NotFollowed, reads::get_file_info};

/// Stories of the random play; with 1,500 it was played once.
const ROUNDS: u64 = 60;

/// The root group, and another one that follows it.
struct Two {
    root: World,
    other: World,
    /// The root group's entries up to here have been looked at.
    told: usize,
    /// The tree with which the other group began.
    beginning: Vec<u8>,
}

impl Two {
    /// Clients make directories by mkdirs alone: that of `create` is no entry of the directory log. Here nothing is an entry, and allowances
    /// of quotas are handed out by entries.
    fn join(mut root: World) -> Self {
        root.creates_parents = false;
        root.sets_quotas = false;
        let ns = root.ns.for_joining(7, GroupId(2)).expect("nothing stands in the way");
        let mut other = World::of_group(7, GroupId(2));
        let beginning = image_of(&ns.freeze());
        other.ns = ns;
        other.now = root.now;
        other.creates_parents = false;
        let told = root.journal.len();
        Self { root, other, told, beginning }
    }

    /// The other group carries out all changes of directories that it has not carried out yet. Returns how many there were.
    fn follow(&mut self) -> usize {
        let new: Vec<Edit> =
            self.root.journal[self.told..].iter().map(|bytes| Edit::decode(bytes).unwrap()).collect();
        self.told = self.root.journal.len();
        let mut followed = 0;
        for entry in new {
            let at = self.other.ns.directory_log();
            let point = Point { dix: at.dix.next(), chain: Chain(at.chain.0 + 7) };
            match self.other.ns.follow(&self.other.context(None), &entry, point) {
                Ok(edit) => {
                    self.other.apply(edit);
                    assert_eq!(self.other.ns.directory_log(), point);
                    followed += 1;
                }
                Err(NotFollowed::NoDirectories(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        followed
    }

    fn check(&mut self) {
        self.follow();
        assert_eq!(self.root.ns.directories_digest(), self.other.ns.directories_digest());
        for world in [&self.root, &self.other] {
            world.ns.check_consistency().unwrap();
        }
    }

    /// The other group's journal makes the same tree again.
    fn check_replay(&self) {
        let image = &self.beginning;
        let mut again = Namespace::read_image(9, &mut &image[..], image.len() as u64).unwrap();
        for (at, bytes) in self.other.journal.iter().enumerate() {
            let at = base::TxId { epoch: base::Epoch(1), sn: base::Sn(at as u64 + 1) };
            again.apply(at, &Edit::decode(bytes).unwrap());
        }
        assert_eq!(again.digest(), self.other.ns.digest());
    }
}

fn has(world: &World, path: &str) -> bool {
    get_file_info::get(&world.ns, &world.context(None), path).is_ok_and(|status| status.is_some())
}

#[test]
fn directories_come_to_the_other_group_and_its_files_go_with_them() -> FsResult<()> {
    let mut root = World::new(1);
    root.mkdirs("/a/b", true)?;
    root.create("/a/file-of-the-root-group", false)?;
    let mut two = Two::join(root);
    assert!(has(&two.other, "/a/b") && !has(&two.other, "/a/file-of-the-root-group"));

    let file = two.other.create("/a/b/f", false)?;
    let block = two.other.add_block("/a/b/f", file, None);
    two.other.complete("/a/b/f", file, Some(Block { length: 700, ..block }));
    two.root.rename("/a/b", "/c")?;
    two.root.mkdirs("/c/d", true)?;
    two.root.set_permission("/c", 0o700)?;
    assert_eq!(two.follow(), 3);
    assert!(has(&two.other, "/c/f") && has(&two.other, "/c/d"));

    two.root.delete("/c", true)?;
    two.check();
    assert!(!has(&two.other, "/c") && two.other.removed.contains(&block.id), "its blocks go with it");
    two.check_replay();
    Ok(())
}

/// The root group's directory is small. The other group has thousands of files in it, and takes them apart in pieces.
#[test]
fn a_directory_that_is_large_in_one_group_alone_is_taken_apart_there() -> FsResult<()> {
    let mut root = World::new(1);
    root.mkdirs("/a", true)?;
    let mut two = Two::join(root);
    for number in 0..1_200 {
        two.other.create(&format!("/a/f{number}"), false)?;
    }
    two.root.delete("/a", true)?;
    two.check();
    assert_eq!((two.root.ns.counts().orphans, two.other.ns.counts().orphans), (0, 1));
    Ok(())
}

#[test]
fn a_repeated_call_is_known_in_the_other_group() -> FsResult<()> {
    let mut two = Two::join(World::new(1));
    two.root.mkdirs("/a", true)?;
    let origin = two.root.origin();
    two.follow();
    let found = two.other.ns.retry_lookup(&origin, 42);
    assert_eq!(found, two.root.ns.retry_lookup(&origin, 42));
    assert!(matches!(found, namespace::RetryLookup::Hit(_)), "{found:?}");
    Ok(())
}

#[test]
fn an_entry_that_is_not_the_next_or_names_what_is_not_there_is_an_error() -> FsResult<()> {
    let mut two = Two::join(World::new(1));
    two.root.mkdirs("/a", true)?;
    two.root.mkdirs("/a/b", true)?;
    let entries: Vec<Edit> = two.root.journal.iter().map(|bytes| Edit::decode(bytes).unwrap()).collect();
    let plan = |entry: &Edit, dix: u64| {
        let point = Point { dix: Dix(dix), chain: Chain(1) };
        two.other.ns.follow(&two.other.context(None), entry, point).map(drop)
    };
    let (expected, found) = (Dix(1), Dix(2));
    assert_eq!(plan(&entries[0], 2), Err(NotFollowed::NotNext { expected, found }));
    assert_eq!(plan(&entries[1], 1), Err(NotFollowed::NoDirectories(Dix(1))));
    assert_eq!(plan(&entries[0], 1), Ok(()));
    Ok(())
}

#[test]
fn a_relay_holds_no_relay() -> FsResult<()> {
    let mut two = Two::join(World::new(1));
    two.root.mkdirs("/a", true)?;
    two.follow();
    let bytes = two.other.journal.last().expect("it has followed").clone();
    // The kind of a relay is followed by a small number, the chain's first bytes, and the kind of the change.
    let kind = bytes.windows(4).position(|at| at == [41, 1, 7, 1]).expect("the relay of a mkdirs");
    let mut nested = bytes.clone();
    nested[kind + 3] = 41;
    let refused = Edit::decode(&nested).expect_err("it would go on without end");
    assert!(refused.to_string().contains("a change of directories in another one"), "{refused}");
    Ok(())
}

#[test]
fn what_groups_cannot_share_yet_is_said() -> FsResult<()> {
    let mut root = World::new(1);
    root.mkdirs("/a", true)?;
    root.allow_snapshot("/a")?;
    root.create_snapshot("/a", "s")?;
    let joins = |root: &World| root.ns.for_joining(1, GroupId(2)).map(drop);
    assert_eq!(joins(&root), Err(NotShared::Snapshots(1)));
    root.delete_snapshot("/a", "s")?;
    root.set_quota("/a", 10, i64::MAX)?;
    assert_eq!(joins(&root), Ok(()));
    Ok(())
}

/// Random calls in the root group, and files of the other group's own with names that the root group does not use, because homes have kept
/// these free by their holds.
#[test]
fn random_changes_leave_the_same_directories_everywhere() {
    let paths = random_calls::paths();
    let mut followed = 0;
    for seed in 0..ROUNDS {
        let mut dice = Dice(seed);
        let mut root = World::new(seed);
        for _ in 0..20 {
            let path = &paths[1 + dice.below(paths.len() as u64 - 1) as usize];
            drop(root.mkdirs(path, true));
        }
        let mut two = Two::join(root);
        for _ in 0..150 {
            random_calls::some_call(&mut two.root, &mut dice, &paths);
            followed += two.follow();
            assert_eq!(two.root.ns.directories_digest(), two.other.ns.directories_digest());
            let parent = &paths[dice.below(paths.len() as u64) as usize];
            let file = format!("{}/f{}", parent.trim_end_matches('/'), dice.below(3));
            if !has(&two.other, parent) {
                continue;
            }
            match dice.below(4) {
                0 => drop(two.other.delete(&file, false)),
                1 => drop(two.other.set_permission(&file, 0o640)),
                2 => drop(two.other.tidy_up()),
                _ => drop(two.other.create(&file, true)),
            }
        }
        two.check();
        two.check_replay();
        two.other.restart_from_image();
        two.check();
    }
    assert!(followed > ROUNDS as usize * 20, "{followed}");
}
