//! Files that are cut while snapshots show their blocks.

mod common;

use base::{Block, BlockId, FsError, InodeId};
use common::{Dice, World};
use namespace::reads::get_file_info;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn a_block_that_a_snapshot_shows_is_copied_before_it_is_cut() {
    let mut world = World::new(1);
    assert_eq!(world.mkdirs("/d", true), Ok(true));
    assert!(world.allow_snapshot("/d").is_ok());
    let file = world.create("/d/f", false).unwrap_or(InodeId(0));
    let old = Block { length: 77, ..world.add_block("/d/f", file, None) };
    world.complete("/d/f", file, Some(old));
    assert!(world.create_snapshot("/d", "s").is_ok());
    assert_eq!(world.truncate("/d/f", 50), Ok(false));
    world.restart_from_image();
    let Some((new, stamp, cut)) = world.ns.truncation_of(file) else { panic!("nothing is cut") };
    assert!(new.id > old.id && stamp > new.generation_stamp, "{new} {stamp}");
    assert_eq!((new.length, cut), (77, 50));
    let read = namespace::reads::get_block_locations::by_id(&world.ns, file);
    assert_eq!(read.map(|read| (read.length, read.blocks[0].block)), Some((77, old)), "it is read as it was");
    assert_eq!(world.ns.truncation_source_of(file), Some(old));
    // The server that was to copy it found nothing: that is no reason to lose it.
    let lost = namespace::ops::commit_block_synchronization::Request {
        block: new.id,
        stamp,
        length: 0,
        close_file: true,
        delete_block: true,
    };
    let refused = world.run(|ns, ctx| namespace::ops::commit_block_synchronization::plan(ns, ctx, &lost));
    assert!(matches!(refused, Err(FsError::Io(_))), "{refused:?}");
    assert!(world.delete_snapshot("/d", "s").is_ok());
    world.tidy_up();
    assert!(world.removed.is_empty(), "its bytes are still needed");
    world.finish_truncation(file, 50);
    assert_eq!(world.removed, BTreeSet::from([old.id]));
    assert_eq!(world.last_block("/d/f"), Some(Block { generation_stamp: stamp, length: 50, ..new }));
    // A file that goes away while its block is copied takes both blocks along.
    assert!(world.create_snapshot("/d", "t").is_ok());
    assert_eq!(world.truncate("/d/f", 20), Ok(false));
    let Some((newer, ..)) = world.ns.truncation_of(file) else { panic!("nothing is cut") };
    assert!(world.delete_snapshot("/d", "t").is_ok());
    assert_eq!(world.delete("/d/f", false), Ok(true));
    world.tidy_up();
    assert_eq!(world.removed, BTreeSet::from([old.id, new.id, newer.id]));
    assert!(world.ns.is_past_empty());
    world.check_replay();
}

/// A snapshot that is deleted, and not swept away yet, had a list of the file's blocks of its own.
#[test]
fn blocks_that_were_joined_to_another_file_stay_when_the_past_of_their_file_goes() {
    let mut world = World::new(1);
    assert_eq!(world.mkdirs("/d", true), Ok(true));
    assert!(world.allow_snapshot("/d").is_ok());
    let mut blocks = Vec::new();
    for path in ["/d/f", "/d/g"] {
        let file = world.create(path, false).unwrap();
        let first = Block { length: 100, ..world.add_block(path, file, None) };
        let second = Block { length: 50, ..world.add_block(path, file, Some(first)) };
        world.complete(path, file, Some(second));
        blocks.push([first, second]);
    }
    assert!(world.create_snapshot("/d", "s").is_ok());
    assert_eq!(world.truncate("/d/g", 100), Ok(true));
    assert!(world.delete_snapshot("/d", "s").is_ok());
    assert!(world.concat("/d/f", &["/d/g".into()]).is_ok());
    assert_eq!(world.removed, BTreeSet::from([blocks[1][1].id]), "the file that has the rest is there");
    world.tidy_up();
    assert_eq!(world.removed, BTreeSet::from([blocks[1][1].id]));
    assert!(world.ns.is_past_empty());
    world.check_replay();
}

#[test]
fn a_block_that_a_snapshot_shows_is_copied_after_those_behind_it_are_gone() {
    let mut world = World::new(1);
    assert_eq!(world.mkdirs("/d", true), Ok(true));
    assert!(world.allow_snapshot("/d").is_ok());
    let file = world.create("/d/f", false).unwrap_or(InodeId(0));
    let first = Block { length: 100, ..world.add_block("/d/f", file, None) };
    let second = Block { length: 100, ..world.add_block("/d/f", file, Some(first)) };
    world.complete("/d/f", file, Some(second));
    assert!(world.create_snapshot("/d", "s").is_ok());
    // From here on the snapshot has a list of its own, whose first block is still that of the file.
    assert_eq!(world.truncate("/d/f", 100), Ok(true));
    assert_eq!(world.truncate("/d/f", 60), Ok(false));
    assert_eq!(world.ns.truncation_source_of(file), Some(first), "it is copied, not cut");
    world.finish_truncation(file, 60);
    let shown = get_file_info::get(&world.ns, &world.context(None), "/d/.snapshot/s/f");
    assert!(matches!(shown, Ok(Some(status)) if status.length == 200));
    assert!(world.removed.is_empty(), "{:?}", world.removed);
    world.check_replay();
}

/// The blocks of a file with how many bytes are shown of each.
fn blocks_of(world: &World, path: &str) -> Vec<(BlockId, u64)> {
    let found = namespace::reads::get_block_locations::get(&world.ns, &world.context(None), path, 0, 1 << 40);
    let file = found.unwrap_or_else(|error| panic!("{path}: {error}"));
    let shown = |block: &namespace::FileBlock| block.block.length.min(file.length - block.offset);
    file.blocks.iter().map(|block| (block.block.id, shown(block))).collect()
}

/// Files are written on and cut in a directory of which snapshots are made and deleted. Whatever replicas were cut, those
/// of a block that a snapshot shows have all that it shows.
#[test]
fn no_sequence_of_truncations_takes_bytes_from_a_snapshot() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let mut world = World::new(seed);
        assert_eq!(world.mkdirs("/d", true), Ok(true));
        assert!(world.allow_snapshot("/d").is_ok());
        let file = world.create("/d/f", false).unwrap_or(InodeId(0));
        world.complete("/d/f", file, None);
        // The length of each block's replicas. To write on is to grow them; the bytes that are there stay.
        let mut held: BTreeMap<BlockId, u64> = BTreeMap::new();
        let mut length = 0;
        let mut names = Vec::new();
        for step in 0..60 {
            match dice.below(5) {
                0 if length > 0 => {
                    assert!(world.append("/d/f", false).is_ok(), "seed {seed}, step {step}");
                    let last = world.last_block("/d/f").expect("it has bytes");
                    let more = 1 + dice.below(50);
                    held.insert(last.id, last.length + more);
                    length += more;
                    world.complete("/d/f", file, Some(Block { length: last.length + more, ..last }));
                }
                0 | 1 => {
                    assert!(world.append("/d/f", true).is_ok(), "seed {seed}, step {step}");
                    let mut last = world.last_block("/d/f");
                    for _ in 0..=dice.below(2) {
                        let block =
                            Block { length: 10 + dice.below(90), ..world.add_block("/d/f", file, last) };
                        held.insert(block.id, block.length);
                        length += block.length;
                        last = Some(block);
                    }
                    world.complete("/d/f", file, last);
                }
                2 => {
                    let name = format!("s{step}");
                    assert!(world.create_snapshot("/d", &name).is_ok());
                    names.push(name);
                }
                3 if !names.is_empty() => {
                    let name = names.swap_remove(dice.below(names.len() as u64) as usize);
                    assert!(world.delete_snapshot("/d", &name).is_ok());
                    world.tidy_up();
                }
                _ if length > 0 => {
                    // To the end of a block as often as into one.
                    let lengths: Vec<u64> =
                        blocks_of(&world, "/d/f").into_iter().map(|(_, bytes)| bytes).collect();
                    let blocks = dice.below(lengths.len() as u64) as usize;
                    let wanted =
                        lengths[..blocks].iter().sum::<u64>() + dice.below(2) * dice.below(lengths[blocks]);
                    if world.truncate("/d/f", wanted as i64) == Ok(false) {
                        let (block, _, cut) = world.ns.truncation_of(file).expect("it is being cut");
                        held.insert(block.id, cut);
                        world.finish_truncation(file, cut);
                    }
                    length = wanted;
                }
                _ => {}
            }
            for name in &names {
                let path = format!("/d/.snapshot/{name}/f");
                for (block, shown) in blocks_of(&world, &path) {
                    assert!(
                        !world.removed.contains(&block),
                        "seed {seed}, step {step}: {path} has lost {block}"
                    );
                    assert!(
                        held[&block] >= shown,
                        "seed {seed}, step {step}: {path} shows {shown} of {block}"
                    );
                }
            }
        }
        world.check_replay();
    }
}
