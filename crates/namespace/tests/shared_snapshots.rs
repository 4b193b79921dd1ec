//! Snapshots of directories whose files are in three groups: each shows what a namespace of one group would show.

mod common;

use base::{FsResult, StorageType};
use common::{
    Dice,
    both::{Both, of_each_home, parent},
    cluster::{GROUPS, rename},
};
use namespace::{
    Reply, ops,
    ops::set_quota::{CLEAR, KEEP},
};
use std::collections::BTreeSet;

/// Stories of the random play; with 1,000 it was played once.
const ROUNDS: u64 = 30;
const FIRST_SEED: u64 = 0;

const MIB: i64 = 1 << 20;

/// Files of all homes are in a snapshot as they were when it was made.
#[test]
fn a_snapshot_shows_the_files_of_all_groups_as_they_were() {
    let mut both = Both::new(1);
    both.mkdirs("/s").unwrap();
    let homes = of_each_home(&mut both, "/s");
    both.allow_snapshot("/s").unwrap();
    for home in &homes {
        both.write(&format!("{home}/f"), &[700, 300]).unwrap();
        both.write(&format!("{home}/g"), &[10]).unwrap();
    }
    both.create_snapshot("/s", "one").unwrap();
    for home in &homes {
        both.append(&format!("{home}/f"), &[50]).unwrap();
        both.delete(&format!("{home}/g")).unwrap();
        both.write(&format!("{home}/h"), &[20]).unwrap();
    }
    both.delete(&homes[1]).unwrap();
    let [found, expected] = both.see_below("/s/.snapshot/one");
    assert_eq!(found, expected);
    assert_eq!(found.len(), 9);
    let [found, expected] = both.see_below("/s");
    assert_eq!(found, expected);
    both.delete_snapshot("/s", "one").unwrap();
    for group in GROUPS {
        both.cluster.tidy_up(group);
    }
    let kept: usize = both.cluster.maps.values().map(|map| map.len()).sum();
    assert_eq!(kept, 8, "the blocks of what is there now");
}

/// A file that a snapshot sees stays in its home; one that came after the snapshot goes.
#[test]
fn a_file_in_a_snapshot_does_not_move_to_another_home() {
    let mut both = Both::new(2);
    both.mkdirs("/s").unwrap();
    let homes = of_each_home(&mut both, "/s");
    both.allow_snapshot("/s").unwrap();
    for (at, home) in homes.iter().enumerate() {
        let to = &homes[(at + 1) % 3];
        both.write(&format!("{home}/old"), &[700]).unwrap();
        both.create_snapshot("/s", &format!("s{at}")).unwrap();
        both.write(&format!("{home}/new"), &[300]).unwrap();
        let (old, new) = (format!("{home}/old"), format!("{home}/new"));
        let refused = both.cluster.rename(&old, &format!("{to}/moved-old")).unwrap_err();
        assert!(refused.to_string().contains("is in a snapshot"), "{refused}");
        both.rename(&new, &format!("{to}/moved-new"), None).unwrap();
        both.delete_snapshot("/s", &format!("s{at}")).unwrap();
        for group in GROUPS {
            both.cluster.tidy_up(group);
        }
        both.one.tidy_up();
        both.rename(&old, &format!("{to}/moved-old"), None).unwrap();
    }
    let [found, expected] = both.see_below("/s");
    assert_eq!(found, expected);
}

/// What a snapshot keeps of another group's blocks is that group's to look after, also after a restart.
#[test]
fn a_group_does_not_take_foreign_blocks_of_a_snapshot_for_its_own() {
    let mut both = Both::new(3);
    both.mkdirs("/s").unwrap();
    let homes = of_each_home(&mut both, "/s");
    both.allow_snapshot("/s").unwrap();
    for (at, home) in homes.iter().enumerate() {
        let moved = format!("{}/f{at}", homes[(at + 1) % 3]);
        both.write(&format!("{home}/f{at}"), &[700, 300]).unwrap();
        both.rename(&format!("{home}/f{at}"), &moved, None).unwrap();
        both.create_snapshot("/s", &format!("s{at}")).unwrap();
        both.truncate(&moved, 700).unwrap();
    }
    for group in GROUPS {
        assert_eq!(both.cluster.listed(group), both.cluster.maps[&group], "after a restart of group {group}");
    }
}

/// A snapshot is made while a file is on its way out, and the file's directory is below the snapshot's only for that moment.
#[test]
fn a_file_that_a_snapshot_came_to_see_is_asked_for_again() {
    let mut both = Both::new(4);
    both.mkdirs("/s").unwrap();
    both.mkdirs("/f").unwrap();
    let homes = of_each_home(&mut both, "/f");
    both.allow_snapshot("/s").unwrap();
    // From another home than the root group's.
    let (file, target) = (format!("{}/f", homes[1]), format!("{}/f", homes[2]));
    both.write(&file, &[700]).unwrap();
    let (from, below) = (homes[1].clone(), "/s/d".to_owned());
    both.cluster.meanwhile = Some(Box::new(move |cluster| {
        cluster.at_root(|ns, ctx| ops::rename::plan(ns, ctx, &rename(&from, &below))).unwrap();
        let snapshot = ops::create_snapshot::Request { path: "/s".into(), name: "one".into() };
        cluster.at_root(|ns, ctx| ops::create_snapshot::plan(ns, ctx, &snapshot)).unwrap();
        cluster.at_root(|ns, ctx| ops::rename::plan(ns, ctx, &rename(&below, &from))).unwrap();
    }));
    let refused = both.cluster.rename(&file, &target).unwrap_err();
    assert!(refused.to_string().contains("is in a snapshot"), "{refused}");
}

/// A file that a snapshot keeps at its former place counts there as well, in whichever group it is.
#[test]
fn a_file_that_was_renamed_counts_twice_in_a_quota_while_a_snapshot_keeps_it() {
    let mut both = Both::new(5);
    both.mkdirs("/s").unwrap();
    let homes = of_each_home(&mut both, "/s");
    both.allow_snapshot("/s").unwrap();
    both.set_quota("/s", 100, 100 * MIB).unwrap();
    for home in &homes {
        both.write(&format!("{home}/f"), &[700]).unwrap();
    }
    both.create_snapshot("/s", "one").unwrap();
    for home in &homes {
        both.rename(&format!("{home}/f"), &format!("{home}/g"), None).unwrap();
        both.check(&["/s".to_owned()]);
    }
}

/// The snapshot keeps a file of the directory that is replaced, in another group than that with the files of the one that comes. Together they are no
/// more than before, so it does not matter that there is no room.
#[test]
fn a_directory_that_is_replaced_makes_room_with_what_other_groups_keep_of_it() {
    let mut both = Both::new(6);
    both.mkdirs("/s").unwrap();
    both.mkdirs("/f").unwrap();
    let (homes, others) = (of_each_home(&mut both, "/s"), of_each_home(&mut both, "/f"));
    both.allow_snapshot("/s").unwrap();
    both.write(&format!("{}/f", homes[1]), &[700]).unwrap();
    both.create_snapshot("/s", "one").unwrap();
    both.delete(&format!("{}/f", homes[1])).unwrap();
    both.write(&format!("{}/g", others[2]), &[300]).unwrap();
    both.set_quota("/s", 4, KEEP).unwrap();
    both.rename(&others[2], &homes[1], Some(true)).unwrap();
    both.check(&["/s".to_owned()]);
}

#[test]
fn random_changes_leave_snapshots_as_in_one_group() {
    let (mut stayed, mut seen) = (0, 0);
    for seed in FIRST_SEED..FIRST_SEED + ROUNDS {
        let mut story = Story::new(seed);
        for step in 0..200 {
            story.step();
            if step % 5 == 0 {
                story.compare();
            }
        }
        story.end();
        stayed += story.both.stayed;
        seen += story.seen;
    }
    assert!(stayed * 8 > ROUNDS && seen > 1_000, "{stayed} moves refused for snapshots, {seen} lines seen");
}

/// A random play.
struct Story {
    seed: u64,
    dice: Dice,
    both: Both,
    /// Directories that are there, or were.
    directories: Vec<String>,
    /// Snapshots that are there: the directory, and the name.
    snapshots: BTreeSet<(String, String)>,
    /// Every other story has quotas. Usage has what is not swept away yet, so there everything is swept away at once.
    has_quotas: bool,
    seen: usize,
}

/// The snapshottable directories of the play.
const TOPS: [&str; 2] = ["/s", "/r"];

impl Story {
    fn new(seed: u64) -> Self {
        let mut both = Both::new(seed);
        let mut directories = ["/s", "/s/t", "/f", "/r"].map(str::to_owned).to_vec();
        for directory in &directories {
            both.mkdirs(directory).unwrap();
        }
        for above in directories.clone() {
            directories.extend(of_each_home(&mut both, &above));
        }
        for top in TOPS {
            both.allow_snapshot(top).unwrap();
        }
        let (dice, snapshots) = (Dice(seed), BTreeSet::new());
        Self { seed, dice, both, directories, snapshots, has_quotas: seed % 2 == 1, seen: 0 }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.dice.below(limit)
    }

    fn directory(&mut self) -> String {
        let at = self.below(self.directories.len() as u64);
        self.directories[at as usize].clone()
    }

    fn file_in(&mut self, directory: &str) -> String {
        format!("{directory}/f{}", self.below(3))
    }

    fn step(&mut self) {
        let (directory, other) = (self.directory(), self.directory());
        let (file, target) = (self.file_in(&directory), self.file_in(&other));
        let lengths: Vec<u64> = (0..self.below(4)).map(|_| 1 + self.below(1_000)).collect();
        let overwrite = [None, Some(true), Some(false)][self.below(3) as usize];
        let kind = self.below(36);
        let call = format!("seed {}, kind {kind}: {directory} {file} {target} {overwrite:?}", self.seed);
        self.both.calls.push(call);
        match kind {
            0..6 => self.change_world(kind),
            6..12 => self.change_snapshots(kind),
            12 | 13 if self.both.is_directory(parent(&directory)) => drop(self.both.mkdirs(&directory)),
            _ if !self.both.is_directory(&directory) => {}
            14..20 => drop(self.change_directory(kind, &directory, &other, overwrite)),
            20..25 if self.both.is_directory(&other) => drop(self.both.rename(&file, &target, overwrite)),
            _ => drop(self.change_file(kind, &file, &lengths)),
        }
        if self.has_quotas {
            self.tidy_up();
            self.both.check(&self.directories);
        }
    }

    fn tidy_up(&mut self) {
        GROUPS.iter().for_each(|group| self.both.cluster.tidy_up(*group));
        self.both.one.tidy_up();
    }

    /// Messages come late, and groups sweep or start again.
    fn change_world(&mut self, kind: u64) {
        let group = GROUPS[self.below(3) as usize];
        match kind {
            0..3 => drop(self.both.cluster.deliver(&mut self.dice)),
            3 => self.both.cluster.tidy_up(group),
            4 => _ = self.both.one.tidy_up(),
            _ => self.both.cluster.world(group).restart_from_image(),
        }
    }

    fn change_snapshots(&mut self, kind: u64) {
        let top = TOPS[self.below(2) as usize].to_owned();
        let name = format!("s{}", self.below(5));
        match kind {
            6..9 if self.both.create_snapshot(&top, &name).is_ok() => {
                self.snapshots.insert((top, name));
            }
            9 | 10 if self.both.delete_snapshot(&top, &name).is_ok() => {
                self.snapshots.remove(&(top, name));
            }
            11 if self.both.rename_snapshot(&top, &name, "s7").is_ok() => {
                self.snapshots.remove(&(top.clone(), name));
                self.snapshots.insert((top, "s7".into()));
            }
            _ => {}
        }
    }

    fn change_directory(
        &mut self,
        kind: u64,
        directory: &str,
        other: &str,
        overwrite: Option<bool>,
    ) -> FsResult<Reply> {
        let is_top = directory.len() <= 4;
        match kind {
            14 if !is_top && self.both.is_directory(parent(other)) => {
                self.both.rename(directory, other, overwrite)
            }
            15 if !is_top => self.both.delete(directory),
            16 => self.both.set_permission(directory, 0o700 + self.dice.below(64) as u16),
            17 => {
                let policy = [None, Some("HOT"), Some("ALL_SSD")][self.below(3) as usize];
                self.both.set_storage_policy(directory, policy)
            }
            18 if self.has_quotas => {
                let inodes = [KEEP, 4 + self.below(20) as i64][self.below(2) as usize];
                let bytes = 3 * MIB + self.below(4 << 20) as i64;
                self.both.set_quota(directory, inodes, bytes)
            }
            19 if self.has_quotas && self.below(2) == 0 => self.both.set_quota(directory, CLEAR, CLEAR),
            19 if self.has_quotas => {
                let bytes = 3 * MIB + self.below(4 << 20) as i64;
                self.both.set_type_quota(directory, StorageType::Disk, bytes)
            }
            _ => Ok(Reply::Unit),
        }
    }

    fn change_file(&mut self, kind: u64, file: &str, lengths: &[u64]) -> FsResult<Reply> {
        let done = |result: FsResult<()>| result.map(|()| Reply::Unit);
        let Some(length) = self.both.cluster.see(file).map(|seen| seen.length) else {
            return done(self.both.write(file, lengths));
        };
        match kind {
            25 => self.both.delete(file),
            26 => self.both.set_replication(file, 1 + self.dice.below(6) as u32),
            27 | 28 if !lengths.is_empty() => done(self.both.append(file, lengths)),
            29 => self.both.set_permission(file, 0o600 + self.dice.below(64) as u16),
            30 => done(self.both.overwrite(file, lengths)),
            31 | 32 => {
                let length = [self.below(length + 1), self.end_of_a_block(file)][self.below(2) as usize];
                self.both.truncate(file, length)
            }
            33 => {
                let source = self.file_in(parent(file));
                self.both.concat(file, &[source])
            }
            34 => {
                let policy = [None, Some("HOT"), Some("ALL_SSD")][self.below(3) as usize];
                self.both.set_storage_policy(file, policy)
            }
            _ => done(self.both.write(file, lengths)),
        }
    }

    /// A length at which a file can be cut without cutting a block.
    fn end_of_a_block(&mut self, file: &str) -> u64 {
        let lengths = self.both.one.block_lengths(file);
        let kept = self.below(lengths.len() as u64 + 1);
        lengths.iter().take(kept as usize).sum()
    }

    /// All that clients see is as in one group, and so is what a group knows after a restart.
    fn compare(&mut self) {
        let tops = self.snapshots.iter().map(|(top, name)| format!("{top}/.snapshot/{name}"));
        for top in tops.chain(["/s", "/f", "/r"].map(str::to_owned)) {
            let [found, expected] = self.both.see_below(&top);
            assert_eq!(found, expected, "{top} after {:?}", self.both.calls.last());
            self.seen += found.len();
        }
        for group in GROUPS {
            let (listed, known) = (self.both.cluster.listed(group), &self.both.cluster.maps[&group]);
            assert!(listed.keys().eq(known.keys()), "group {group} after {:?}", self.both.calls.last());
        }
        self.both.check(&[]);
    }

    /// Every file can move once the snapshots are gone, and when all is gone no block is left.
    fn end(&mut self) {
        for (top, name) in std::mem::take(&mut self.snapshots) {
            self.both.delete_snapshot(&top, &name).unwrap();
        }
        self.settle();
        self.compare();
        let stayed = self.both.stayed;
        let files: Vec<String> =
            self.directories.iter().filter(|it| self.both.is_directory(it)).cloned().collect();
        for (at, directory) in files.iter().enumerate() {
            for name in 0..3 {
                let file = format!("{directory}/f{name}");
                let target = format!("{}/g{at}-{name}", self.directory());
                if self.both.cluster.see(&file).is_some() && self.both.is_directory(parent(&target)) {
                    drop(self.both.rename(&file, &target, None));
                }
            }
        }
        assert_eq!(self.both.stayed, stayed, "no snapshot is left");
        for top in ["/s", "/f", "/r"] {
            self.both.delete(top).unwrap();
        }
        self.settle();
        let cluster = &mut self.both.cluster;
        assert!(cluster.maps.values().all(|map| map.is_empty()), "seed {}: {:?}", self.seed, cluster.maps);
        assert_eq!(cluster.exports(), 0);
        for group in GROUPS {
            assert!(cluster.groups[&group].ns.is_past_empty(), "seed {}", self.seed);
            cluster.world(group).restart_from_image();
        }
        cluster.groups[&GROUPS[0]].check_replay();
        self.both.check(&[]);
    }

    /// All messages come, and everything is swept away.
    fn settle(&mut self) {
        for _ in 0..3 {
            self.tidy_up();
            self.both.cluster.deliver_all(&mut self.dice);
        }
    }
}
