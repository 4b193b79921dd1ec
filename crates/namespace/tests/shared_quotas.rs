//! Quotas that three groups share: what is refused, in which words, and what is used are as in a namespace of one group.

mod common;

use base::{FsError, GroupId, StorageType};
use common::{
    Dice,
    both::{Both, of_each_home, parent},
    cluster::GROUPS,
};
use namespace::{Reply, ops, ops::set_quota::KEEP};

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
            let kind = dice.below(20);
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
            let found = match kind {
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
                _ => continue,
            };
            let is_refused = matches!(
                found,
                Err(FsError::NamespaceQuotaExceeded(_)
                    | FsError::SpaceQuotaExceeded(_)
                    | FsError::TypeQuotaExceeded(_))
            );
            refused += u64::from(is_refused);
            both.check(&directories);
        }
        while both.cluster.deliver(&mut dice) {}
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
