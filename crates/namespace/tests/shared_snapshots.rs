//! Snapshots of directories whose files are in three groups: each shows what a namespace of one group would show.

mod common;

use common::{
    Dice,
    both::{Both, of_each_home, parent},
    cluster::{GROUPS, rename},
};
use namespace::{Reply, ops};
use std::collections::BTreeSet;

/// Stories of the random play; with 3,000 it was played once.
const ROUNDS: u64 = 30;

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

#[test]
fn random_changes_leave_snapshots_as_in_one_group() {
    let (mut stayed, mut seen) = (0, 0);
    for seed in 0..ROUNDS {
        let mut dice = Dice(seed);
        let mut both = Both::new(seed);
        let mut directories = vec!["/s".to_owned(), "/s/t".to_owned(), "/f".to_owned()];
        for directory in &directories {
            both.mkdirs(directory).unwrap();
        }
        for above in ["/s", "/s/t", "/f"] {
            directories.extend(of_each_home(&mut both, above));
        }
        both.allow_snapshot("/s").unwrap();
        let mut snapshots: BTreeSet<String> = BTreeSet::new();
        let pick = |dice: &mut Dice, of: &[String]| of[dice.below(of.len() as u64) as usize].clone();
        for step in 0..200 {
            let (directory, other) = (pick(&mut dice, &directories), pick(&mut dice, &directories));
            let (inner, outer) = (dice.below(3), dice.below(3));
            let (file, target) = (format!("{directory}/f{inner}"), format!("{other}/f{outer}"));
            let lengths: Vec<u64> = (0..dice.below(4)).map(|_| 1 + dice.below(1_000)).collect();
            let overwrite = [None, Some(true), Some(false)][dice.below(3) as usize];
            let kind = dice.below(24);
            both.calls.push(format!("seed {seed}, kind {kind}: {directory} {file} {target} {overwrite:?}"));
            let name = format!("s{}", dice.below(5));
            match kind {
                0 | 1 => {
                    both.cluster.deliver(&mut dice);
                    continue;
                }
                2 => {
                    let group = GROUPS[dice.below(3) as usize];
                    both.cluster.tidy_up(group);
                    if dice.below(2) == 0 {
                        both.cluster.world(group).restart_from_image();
                    }
                    both.one.tidy_up();
                    continue;
                }
                3 | 4 => {
                    if both.create_snapshot("/s", &name).is_ok() {
                        snapshots.insert(name);
                    }
                    continue;
                }
                5 => {
                    if both.delete_snapshot("/s", &name).is_ok() {
                        snapshots.remove(&name);
                    }
                    continue;
                }
                6 if both.rename_snapshot("/s", &name, "s7").is_ok() => {
                    snapshots.remove(&name);
                    snapshots.insert("s7".into());
                    continue;
                }
                7 | 8 if both.is_directory(parent(&directory)) => {
                    drop(both.mkdirs(&directory));
                    continue;
                }
                _ => {}
            }
            if !both.is_directory(&directory) || !both.is_directory(parent(&directory)) {
                continue;
            }
            let is_there = both.cluster.see(&file).is_some();
            drop(match kind {
                9..=11 => both.write(&file, &lengths).map(|()| Reply::Unit),
                12..=15 if both.is_directory(&other) => both.rename(&file, &target, overwrite),
                16 => both.delete(&file),
                17 => both.set_replication(&file, 1 + dice.below(6) as u32),
                18 if is_there && !lengths.is_empty() => both.append(&file, &lengths).map(|()| Reply::Unit),
                19 if directory.len() > 4 && both.is_directory(parent(&other)) => {
                    both.rename(&directory, &other, overwrite)
                }
                20 if directory.len() > 4 => both.delete(&directory),
                21 => both.set_permission(&file, 0o600 + dice.below(64) as u16),
                22 => both.set_permission(&directory, 0o700 + dice.below(64) as u16),
                _ => continue,
            });
            if step % 5 == 0 {
                let tops = snapshots.iter().map(|name| format!("/s/.snapshot/{name}"));
                for top in tops.chain(["/s".to_owned(), "/f".to_owned()]) {
                    let [found, expected] = both.see_below(&top);
                    assert_eq!(found, expected, "{top} after {:?}", both.calls.last());
                    seen += found.len();
                }
                both.check(&[]);
            }
        }
        stayed += both.stayed;
        // When all is gone no block is left.
        for name in &snapshots {
            both.delete_snapshot("/s", name).unwrap();
        }
        while both.cluster.deliver(&mut dice) {}
        for top in ["/s", "/f"] {
            both.delete(top).unwrap();
        }
        for _ in 0..3 {
            GROUPS.iter().for_each(|group| both.cluster.tidy_up(*group));
            while both.cluster.deliver(&mut dice) {}
        }
        assert!(both.cluster.maps.values().all(|map| map.is_empty()), "seed {seed}: {:?}", both.cluster.maps);
        assert_eq!(both.cluster.exports(), 0);
        both.check(&[]);
        for group in GROUPS {
            both.cluster.world(group).restart_from_image();
        }
        both.cluster.groups[&GROUPS[0]].check_replay();
    }
    assert!(stayed > ROUNDS && seen > 1_000, "{stayed} moves refused for snapshots, {seen} lines seen");
}
