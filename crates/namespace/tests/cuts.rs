//! All groups of a namespace are put back to one place in the directory log, each as it was when it had just come there. They came there at different times, and
//! have told each other much since; put back, they fit together.

mod common;

use base::{FsError, FsResult, GroupId, InodeId, InodeOrigin, directory_log::Dix};
use common::{
    Dice,
    cluster::{Cluster, GROUPS},
    then::Then,
};
use namespace::{
    Namespace, Reply, ops,
    reads::{get_block_locations, get_file_info},
};
use std::collections::{BTreeMap, BTreeSet};

/// Stories of the random play; with 4,000 it was played once.
const ROUNDS: u64 = 60;

struct Play {
    cluster: Cluster,
    dice: Dice,
    directories: Vec<String>,
    paths: Vec<String>,
    /// Names of directories that were made for no files.
    made: u64,
}

impl Play {
    fn new(seed: u64) -> Self {
        let mut cluster = Cluster::new(seed);
        let directories = cluster.directories(2);
        let names = ["f", "g", "h"];
        let paths = directories.iter().flat_map(|directory| names.map(|name| format!("{directory}/{name}")));
        let paths = paths.collect();
        Self { cluster, dice: Dice(seed), directories, paths, made: 0 }
    }

    fn path(&mut self) -> String {
        self.paths[self.dice.below(self.paths.len() as u64) as usize].clone()
    }

    fn further_group(&mut self) -> GroupId {
        GROUPS[1 + self.dice.below(2) as usize]
    }

    /// Makes a random call, or delivers a message. A group that falls behind in the directory log stays behind for a while, and goes on with its files.
    fn step(&mut self) {
        let (path, other) = (self.path(), self.path());
        let lengths: Vec<u64> = (0..self.dice.below(3)).map(|_| 1 + self.dice.below(1_000)).collect();
        let done = match self.dice.below(24) {
            0..=3 => self.cluster.write(&path, &lengths).map(|()| Reply::Unit),
            4..=7 => self.cluster.rename(&path, &other),
            8 => self.cluster.rename2(&path, &other, true),
            9 => self.cluster.delete(&path),
            10 => {
                let replication = 1 + self.dice.below(5) as u32;
                self.cluster.set_replication(&path, replication)
            }
            11 if self.cluster.see(&path).is_some() && !lengths.is_empty() => {
                self.cluster.append(&path, &lengths).map(|()| Reply::Unit)
            }
            12 | 13 => self.concat(&path),
            14 => self.mkdirs(),
            15 if self.dice.below(4) == 0 => self.empty(&path),
            16 => {
                let group = self.further_group();
                self.cluster.behind.insert(group);
                return;
            }
            17 => {
                let group = self.further_group();
                let some = self.dice.below(3) as usize;
                self.cluster.follow_by(group, some);
                return;
            }
            18 => {
                let group = self.further_group();
                self.cluster.behind.remove(&group);
                self.cluster.follow();
                return;
            }
            _ => {
                self.cluster.deliver(&mut self.dice);
                return;
            }
        };
        if let Err(error) = done {
            let is_told = matches!(
                error,
                FsError::NotFound(_)
                    | FsError::Retry(_)
                    | FsError::AlreadyExists(_)
                    | FsError::InvalidArgument(_)
            );
            assert!(is_told, "{path} {other}: {error}");
        }
    }

    fn concat(&mut self, target: &str) -> FsResult<Reply> {
        let (directory, _) = target.rsplit_once('/').unwrap();
        let beside = |path: &&String| {
            path.rsplit_once('/').unwrap().0 == directory
                && *path != target
                && self.cluster.see(path).is_some()
        };
        let sources: Vec<String> = self.paths.iter().filter(beside).cloned().collect();
        match self.cluster.see(target).is_some() && !sources.is_empty() {
            true => self.cluster.concat(target, &sources),
            false => Ok(Reply::Unit),
        }
    }

    fn mkdirs(&mut self) -> FsResult<Reply> {
        self.made += 1;
        let path = format!("/made-{}", self.made);
        let request = ops::mkdirs::Request { path, permission: 0o755, unmasked: None, create_parent: true };
        self.cluster.at_root(|ns, ctx| ops::mkdirs::plan(ns, ctx, &request))
    }

    /// A directory goes with all files in it, and comes again, perhaps with another home.
    fn empty(&mut self, path: &str) -> FsResult<Reply> {
        let (directory, _) = path.rsplit_once('/').unwrap();
        let request = ops::delete::Request { path: directory.into(), recursive: true };
        self.cluster.at_root(|ns, ctx| ops::delete::plan(ns, ctx, &request))?;
        self.remake(directory)
    }

    fn remake(&mut self, directory: &str) -> FsResult<Reply> {
        let request = ops::mkdirs::Request {
            path: directory.into(),
            permission: 0o755,
            unmasked: None,
            create_parent: true,
        };
        self.cluster.at_root(|ns, ctx| ops::mkdirs::plan(ns, ctx, &request))
    }

    fn end(&self) -> Dix {
        self.cluster.root().ns.directory_log().dix
    }

    /// The place at which the groups will be put back.
    fn cut_at(&mut self, dix: Dix) {
        self.cluster.cut = Some((dix, Vec::new()));
    }

    /// Whether all groups have come to that place.
    fn is_cut(&self) -> bool {
        self.cluster.cut.as_ref().is_some_and(|(_, groups)| groups.len() == GROUPS.len())
    }

    /// Every group is again as it was when it had just come to the place. Returns how many orders wait.
    fn put_back(&mut self) -> u64 {
        let (dix, groups): (Dix, Vec<Then>) = self.cluster.cut.take().unwrap();
        self.cluster.behind.clear();
        self.cluster.late.clear();
        for then in groups {
            then.comes_back(&mut self.cluster);
        }
        self.cluster.followed.values_mut().for_each(|at| *at = dix);
        let digests: BTreeSet<u64> =
            self.cluster.groups.values().map(|world| world.ns.directories_digest()).collect();
        assert_eq!(digests.len(), 1, "all groups have the same directories");
        let waiting = self.cluster.groups.values().map(|world| world.ns.messages_waiting()).sum();
        // A directory may have been gone just then.
        for directory in self.directories.clone() {
            self.remake(&directory).unwrap();
        }
        waiting
    }

    /// Every block belongs to a file, and every group that has to know a file knows it.
    fn check(&mut self) {
        self.cluster.deliver_all(&mut self.dice);
        // Orders were sent again that had been carried out and not noted.
        self.cluster.unknown.clear();
        self.cluster.check(&self.paths);
        let mut exports = BTreeMap::new();
        let mut files = BTreeSet::new();
        for path in &self.paths {
            let home = self.cluster.home(path.rsplit_once('/').unwrap().0);
            let world = &self.cluster.groups[&home];
            let Some(status) = get_file_info::get(&world.ns, &world.context(None), path).unwrap() else {
                continue;
            };
            assert!(files.insert(status.id), "{} has one name", status.id);
            let blocks = get_block_locations::by_id(&world.ns, status.id).unwrap().blocks;
            let pools = blocks.iter().map(|block| Namespace::group_of_pool(block.block.id));
            for group in pools.chain(maker(status.id)).filter(|group| *group != home) {
                exports.insert((group, status.id), home);
            }
        }
        for ((group, file), home) in &exports {
            assert_eq!(self.cluster.groups[group].ns.exported_to(*file), Some(*home), "{file} in {group}");
        }
        assert_eq!(self.cluster.exports(), exports.len() as u64);
    }
}

fn maker(file: InodeId) -> Option<GroupId> {
    match file.origin() {
        InodeOrigin::Group { number, .. } => Some(GroupId(GroupId::ROOT.0 + u32::from(number))),
        InodeOrigin::Slot { .. } => None,
    }
}

#[test]
fn groups_that_are_put_back_to_one_place_fit_together_and_go_on() {
    let (mut cuts, mut with_orders) = (0u64, 0u64);
    for seed in 0..ROUNDS {
        let mut play = Play::new(seed);
        for _ in 0..2 {
            for _ in 0..play.dice.below(200) {
                play.step();
            }
            let dix = Dix(play.end().0 + 1 + play.dice.below(12));
            play.cut_at(dix);
            let mut steps = play.dice.below(100);
            while steps > 0 || !play.is_cut() {
                play.step();
                steps = steps.saturating_sub(1);
            }
            let waiting = play.put_back();
            play.check();
            cuts += 1;
            with_orders += u64::from(waiting > 0);
        }
        for _ in 0..50 {
            play.step();
        }
        play.check();
    }
    assert!(with_orders > cuts / 10, "{with_orders} of {cuts}");
}

/// A group that is far ahead carries out an order of one that is behind. Put back to a place in between, it has forgotten that; so the sender must remember the order there.
#[test]
fn what_is_noted_before_an_entry_was_carried_out_before_it() {
    let mut play = Play::new(7);
    let in_home = |play: &Play, group: GroupId| {
        let is_there = |path: &&String| play.cluster.home(path.rsplit_once('/').unwrap().0) == group;
        play.paths.iter().find(is_there).unwrap().clone()
    };
    let (receiver, sender) = (GROUPS[1], GROUPS[2]);
    let (from, to) = (in_home(&play, receiver), in_home(&play, sender));
    play.cluster.write(&from, &[10]).unwrap();
    assert_eq!(play.cluster.rename(&from, &to), Ok(Reply::Bool(true)));
    play.cluster.behind.insert(sender);
    let dix = Dix(play.end().0 + 1);
    play.cut_at(dix);
    play.mkdirs().unwrap();
    play.cluster.delete(&to).unwrap();
    assert_eq!(play.cluster.maps[&receiver].len(), 1);
    for _ in 0..20 {
        play.cluster.deliver(&mut play.dice);
    }
    assert_eq!(play.cluster.maps[&receiver].len(), 0, "it was carried out");
    assert_eq!(play.cluster.groups[&sender].ns.messages_waiting(), 1, "and is not noted");
    play.cluster.catch_up(sender);
    play.cluster.deliver_all(&mut play.dice);
    assert_eq!(play.cluster.groups[&sender].ns.messages_waiting(), 0);
    assert!(play.is_cut());

    assert_eq!(play.put_back(), 1);
    assert_eq!(play.cluster.maps[&receiver].len(), 1, "the block is there again");
    assert_eq!(play.cluster.see(&to), None, "and the file is not");
    play.check();
    assert_eq!(play.cluster.maps[&receiver].len(), 0);
}
