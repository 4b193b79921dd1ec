//! Quotas that three groups share: what is refused, in which words, and what is used are as in a namespace of one group.

mod common;

use base::{FsError, GroupId, StorageType};
use common::{
    Dice, World,
    both::{Between, Both, is_of_quota, of_each_home, parent},
    cluster::{Cluster, GROUPS},
};
use namespace::{Amounts, Reply, ops, ops::set_quota::KEEP, shares::Lack};

/// Stories of the random play; with 3,000 it was played once.
const ROUNDS: u64 = 30;

const MIB: i64 = 1 << 20;

/// The last name that fits may be in any group, and the next one is refused in all of them.
#[test]
fn what_one_group_leaves_another_may_use_to_the_last_name() {
    let mut both = Both::new(1);
    both.mkdirs("/q").unwrap();
    let directories = of_each_home(&mut both, "/q");
    both.set_quota("/q", 14, KEEP).unwrap();
    for file in 0..10 {
        let path = format!("{}/f{file}", directories[file % 3]);
        both.write(&path, &[]).unwrap();
    }
    for directory in &directories {
        let refused = both.write(&format!("{directory}/one-more"), &[]).unwrap_err().to_string();
        assert!(refused.ends_with("of directory /q is exceeded: quota=14 file count=15"), "{refused}");
        let refused = both.mkdirs(&format!("{directory}/one-more")).unwrap_err().to_string();
        assert!(refused.ends_with("of directory /q is exceeded: quota=14 file count=15"), "{refused}");
    }
    both.delete(&format!("{}/f0", directories[0])).unwrap();
    // What the first group has freed serves the third.
    both.write(&format!("{}/one-more", directories[2]), &[]).unwrap();
    both.write(&format!("{}/two-more", directories[1]), &[]).unwrap_err();
    both.check(&["/q".to_owned()]);
}

/// A group asks for an allowance a few times, and not for each of its files.
#[test]
fn a_group_that_has_an_allowance_asks_nobody() {
    let mut both = Both::new(2);
    both.mkdirs("/q").unwrap();
    let directories = of_each_home(&mut both, "/q");
    both.set_quota("/q", 100_000, 100_000 * MIB).unwrap();
    let before = both.cluster.allotted;
    for file in 0..300 {
        both.write(&format!("{}/f{file}", directories[file % 3]), &[5]).unwrap();
    }
    let asked = both.cluster.allotted - before;
    assert!(asked < 10, "asked {asked} times for 300 files");
    both.check(&["/q".to_owned()]);
}

/// A rename to where another policy holds is not refused by a quota that is above both directories, and counts there. The other groups must not go on with what they
/// were allowed before.
#[test]
fn bytes_that_come_to_a_medium_unasked_leave_the_others_less() {
    let mut both = Both::new(3);
    both.mkdirs("/q").unwrap();
    let homes = of_each_home(&mut both, "/q");
    // Two directories of the second group, and one of the third.
    let (plain, third) = (homes[1].clone(), homes[2].clone());
    let second = both.cluster.home(&plain);
    let hot = (0..).map(|number| format!("/q/e{number}")).find(|path| {
        both.mkdirs(path).unwrap();
        both.cluster.home(path) == second
    });
    let hot = hot.unwrap();
    for directory in [&hot, &third] {
        both.set_storage_policy(directory, Some("HOT")).unwrap();
    }
    both.set_type_quota("/q", StorageType::Disk, 4 * MIB).unwrap();
    both.write(&format!("{third}/small"), &[10]).unwrap();
    both.write(&format!("{plain}/f"), &[900_000]).unwrap();
    both.rename(&format!("{plain}/f"), &format!("{hot}/f"), None).unwrap();
    let refused = both.write(&format!("{third}/more"), &[10]).unwrap_err();
    assert!(matches!(refused, FsError::TypeQuotaExceeded(_)), "{refused}");
    // Two of the three replicas that it is to have are too many.
    both.set_replication(&format!("{hot}/f"), 1).unwrap();
    both.write(&format!("{third}/again"), &[10]).unwrap();
    both.check(&["/q".to_owned()]);
}

/// Whoever has more than a limit when groups come to share it has no allowance before enough is deleted.
#[test]
fn who_has_too_much_when_groups_join_may_not_go_on_with_it() {
    let mut one = World::new(4);
    one.mkdirs("/q", true).unwrap();
    for file in 0..5 {
        let path = format!("/q/f{file}");
        let inode = one.create(&path, false).unwrap();
        one.complete(&path, inode, None);
    }
    one.set_quota("/q", 3, KEEP).unwrap();
    let mut cluster = Cluster::of(4, one);
    cluster.delete("/q/f0").unwrap();
    let refused = cluster.write("/q/again", &[]).unwrap_err().to_string();
    assert!(refused.ends_with("of directory /q is exceeded: quota=3 file count=6"), "{refused}");
    for file in 1..4 {
        cluster.delete(&format!("/q/f{file}")).unwrap();
    }
    cluster.write("/q/again", &[]).unwrap();
}

/// Where more is used than a limit allows, a file that moves to another home leaves no allowance there when it is deleted.
#[test]
fn a_file_that_moves_above_a_limit_brings_no_allowance() {
    let mut both = Both::new(5);
    both.mkdirs("/q").unwrap();
    let homes = of_each_home(&mut both, "/q");
    for file in 0..5 {
        both.write(&format!("{}/f{file}", homes[1]), &[]).unwrap();
    }
    both.set_quota("/q", 6, KEEP).unwrap();
    both.rename(&format!("{}/f0", homes[1]), &format!("{}/f0", homes[2]), None).unwrap();
    both.delete(&format!("{}/f0", homes[2])).unwrap();
    both.write(&format!("{}/again", homes[2]), &[]).unwrap_err();
    both.check(&["/q".to_owned()]);
}

/// Overwriting frees bytes only once it is done: it leaves nothing for others who want some at the same moment.
#[test]
fn who_wants_less_leaves_no_more_to_others_than_there_is() {
    let mut both = Both::new(6);
    both.mkdirs("/q").unwrap();
    let homes = of_each_home(&mut both, "/q");
    both.set_quota("/q", KEEP, 10 * MIB).unwrap();
    let of = |bytes| Amounts { bytes, ..Amounts::default() };
    let (less, more) = ((GroupId(3), of(-10 * MIB)), (GroupId(2), of(15 * MIB)));
    let directory = both.cluster.id("/q");
    let missing = [(GroupId(2), of(11 * MIB))].into();
    let lack = Lack { directory, wanted: [less, more].into(), missing };
    both.cluster.at_root(|ns, ctx| Ok(ops::allot::plan(ns, ctx, &lack))).unwrap();
    both.write(&format!("{}/f", homes[1]), &[1 << 20; 4]).unwrap_err();
    both.check(&["/q".to_owned()]);
}

/// Two quotas by storage type that have no room, one within the other, do not send a call from one to the other for ever.
#[test]
fn bytes_come_to_a_medium_unasked_below_two_quotas() {
    let mut both = Both::new(7);
    both.mkdirs("/q").unwrap();
    both.mkdirs("/q/s").unwrap();
    let homes = of_each_home(&mut both, "/q/s");
    for home in &homes {
        both.write(&format!("{home}/f"), &[900_000, 900_000]).unwrap();
    }
    for directory in ["/q", "/q/s"] {
        both.set_type_quota(directory, StorageType::Disk, MIB).unwrap();
    }
    for home in &homes {
        both.set_storage_policy(&format!("{home}/f"), Some("HOT")).unwrap();
        both.check(&["/q".to_owned(), "/q/s".to_owned()]);
    }
}

/// The file that is replaced was made by the root group, which keeps an export of it: that says nothing of what the file counts for.
#[test]
fn what_a_moved_file_replaces_makes_room_as_its_home_says() {
    let mut both = Both::new(10);
    both.mkdirs("/q").unwrap();
    let homes = of_each_home(&mut both, "/q");
    assert_eq!(both.cluster.home(&homes[0]), GroupId::ROOT);
    both.set_storage_policy("/q", Some("HOT")).unwrap();
    both.write(&format!("{}/f", homes[0]), &[900_000]).unwrap();
    both.rename(&format!("{}/f", homes[0]), &format!("{}/f", homes[2]), None).unwrap();
    both.append(&format!("{}/f", homes[2]), &[900_000]).unwrap();
    both.write(&format!("{}/new", homes[1]), &[900_000, 900_000]).unwrap();
    both.set_type_quota(&homes[2], StorageType::Disk, 2 * 3 * 900_000).unwrap();
    both.rename(&format!("{}/new", homes[1]), &format!("{}/f", homes[2]), Some(true)).unwrap();
    both.check(&homes);
}

/// A file goes from one home to another after both have told what they use, and before that is handed out.
#[test]
fn what_groups_have_told_is_void_when_a_file_moves_from_one_to_the_other() {
    let mut both = Both::new(8);
    both.mkdirs("/q").unwrap();
    let homes = of_each_home(&mut both, "/q");
    let [source, destination] = [1, 2].map(|home| format!("{}/m", homes[home]));
    both.write(&source, &[]).unwrap();
    both.set_quota("/q", 7, KEEP).unwrap();
    for name in ["a", "b"] {
        both.write(&format!("{}/{name}", homes[2]), &[]).unwrap();
    }
    both.delete(&format!("{}/b", homes[2])).unwrap();
    both.let_between(Between::Rename { source, destination });
    both.write(&format!("{}/a", homes[1]), &[]).unwrap();
    assert_eq!(both.came_between, 1);
    both.write(&format!("{}/b", homes[1]), &[]).unwrap_err();
    both.check(&["/q".to_owned()]);
}

/// The same for a quota that is just being set.
#[test]
fn what_groups_have_told_for_a_new_quota_is_void_when_something_comes_there() {
    let mut both = Both::new(9);
    for directory in ["/q", "/out"] {
        both.mkdirs(directory).unwrap();
    }
    let homes = of_each_home(&mut both, "/q");
    let outside = of_each_home(&mut both, "/out");
    let (source, destination) = (format!("{}/m", outside[1]), format!("{}/m", homes[2]));
    both.write(&source, &[]).unwrap();
    both.let_between(Between::Rename { source, destination });
    both.set_quota("/q", 6, KEEP).unwrap();
    assert_eq!(both.came_between, 1);
    both.write(&format!("{}/a", homes[1]), &[]).unwrap();
    both.write(&format!("{}/b", homes[1]), &[]).unwrap_err();
    both.check(&["/q".to_owned()]);
}

#[test]
fn random_changes_are_refused_as_in_one_group() {
    let (mut refused, mut retries, mut allotted) = (0, 0, 0);
    for seed in 0..ROUNDS {
        let mut dice = Dice(seed);
        let mut both = Both::new(seed);
        let mut directories = vec!["/q".to_owned(), "/q/s".to_owned(), "/f".to_owned()];
        for directory in &directories {
            both.mkdirs(directory).unwrap();
        }
        for above in ["/q", "/q/s", "/f"] {
            directories.extend(of_each_home(&mut both, above));
        }
        let pick = |dice: &mut Dice, of: &[String]| of[dice.below(of.len() as u64) as usize].clone();
        for _ in 0..250 {
            let directory = pick(&mut dice, &directories);
            let other = pick(&mut dice, &directories);
            let (inner, outer) = (dice.below(3), dice.below(3));
            let (file, target) = (format!("{directory}/f{inner}"), format!("{other}/f{outer}"));
            let lengths: Vec<u64> = (0..dice.below(3)).map(|_| 1 + dice.below(300_000)).collect();
            let overwrite = [None, Some(true), Some(false)][dice.below(3) as usize];
            let kind = dice.below(24);
            both.cluster.between = None;
            both.calls.push(format!("seed {seed}, kind {kind}: {directory} {file} {target} {overwrite:?}"));
            if kind == 19 {
                both.cluster.deliver(&mut dice);
                if dice.below(4) == 0 {
                    let group = GROUPS[dice.below(3) as usize];
                    both.cluster.world(group).restart_from_image();
                }
                continue;
            }
            if (12..14).contains(&kind) {
                drop(both.mkdirs(&directory));
                continue;
            }
            if !both.is_directory(&directory) || !both.is_directory(parent(&directory)) {
                continue;
            }
            if kind != 9 && dice.below(4) == 0 {
                let (from, to) = (pick(&mut dice, &directories), pick(&mut dice, &directories));
                let is_apart =
                    |it: &String| !directory.starts_with(it.as_str()) && !other.starts_with(it.as_str());
                match dice.below(3) {
                    0 if both.are_apart(&from, &to) => {
                        let (source, destination) = (format!("{from}/m"), format!("{to}/m"));
                        both.let_between(Between::Rename { source, destination });
                    }
                    1 if is_apart(&from) && is_apart(&to) => {
                        both.let_between(Between::Rename { source: from, destination: to });
                    }
                    _ if both.is_directory(&from) => {
                        let policy = [None, Some("HOT"), Some("ALL_SSD")][dice.below(3) as usize];
                        both.let_between(Between::SetStoragePolicy { path: from, policy });
                    }
                    _ => {}
                }
            }
            let found = match kind {
                20 => both.write(&format!("{directory}/m"), &lengths).map(|()| Reply::Unit),
                0..=3 => both.write(&file, &lengths).map(|()| Reply::Unit),
                4..=6 if both.is_directory(&other) => both.rename(&file, &target, overwrite),
                7 => both.delete(&file),
                8 => both.set_replication(&file, 1 + dice.below(6) as u32),
                9 if both.cluster.see(&file).is_some() && !lengths.is_empty() => {
                    both.append(&file, &lengths).map(|()| Reply::Unit)
                }
                10 | 11 if directory.len() > 4 && both.is_directory(parent(&other)) => {
                    both.rename(&directory, &other, overwrite)
                }
                14 | 15 => {
                    let inodes = [KEEP, 4 + dice.below(20) as i64][dice.below(2) as usize];
                    let bytes = [KEEP, 3 * MIB + dice.below(4 << 20) as i64][dice.below(2) as usize];
                    both.set_quota(&directory, inodes, bytes)
                }
                16 => both.set_quota(&directory, ops::set_quota::CLEAR, ops::set_quota::CLEAR),
                17 => {
                    both.set_type_quota(&directory, StorageType::Disk, 3 * MIB + dice.below(4 << 20) as i64)
                }
                18 => {
                    both.set_storage_policy(&directory, [None, Some("HOT"), Some("ALL_SSD")][inner as usize])
                }
                21..24 => {
                    let sources: Vec<String> = (0..3)
                        .filter(|name| *name != inner)
                        .map(|name| format!("{directory}/f{name}"))
                        .filter(|path| both.cluster.see(path).is_some())
                        .collect();
                    both.concat(&file, &sources)
                }
                _ => continue,
            };
            refused += u64::from(found.as_ref().is_err_and(is_of_quota));
            both.check(&directories);
        }
        both.cluster.deliver_all(&mut dice);
        both.check(&directories);
        retries += both.retries;
        allotted += both.cluster.allotted;
        for group in GROUPS {
            both.cluster.world(group).restart_from_image();
        }
        both.cluster.groups[&GroupId::ROOT].check_replay();
    }
    assert!(
        refused > ROUNDS * 5 && allotted > ROUNDS * 10,
        "{refused} refused, {allotted} allotted, {retries} later"
    );
}
