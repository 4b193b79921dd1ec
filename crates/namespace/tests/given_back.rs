//! What a quota counts for files that only snapshots have is given back to the last byte, in whichever order the snapshots go.

mod common;

use base::{Block, FsResult, InodeId, Level};
use common::{Dice, World, image_of};
use namespace::{
    Amounts, Namespace,
    ops::{
        cleanup, commit_block_synchronization, raise_level,
        set_quota::{CLEAR, KEEP},
    },
    reads::get_file_info,
};

/// Stories of the random play; with 4,000 it was played once.
const ROUNDS: u64 = 40;
const FIRST_SEED: u64 = 0;

/// A group whose members all know what this release writes.
fn newest(seed: u64) -> World {
    let mut world = World::new(seed);
    world.limits.block_size_min = 512;
    world.run(|ns, ctx| raise_level::plan(ns, ctx, Level::NEWEST)).unwrap();
    world
}

fn used(world: &World, path: &str) -> i64 {
    world.quota(path).expect("a directory with a quota").used.bytes
}

/// A finished file, three replicas.
fn write(world: &mut World, path: &str, lengths: &[u64]) -> FsResult<()> {
    let inode = world.create(path, false)?;
    let mut last = None;
    for length in lengths {
        let block = world.add_block(path, inode, last);
        last = Some(Block { length: *length, ..block });
    }
    world.complete(path, inode, last);
    Ok(())
}

/// `/q` has a quota, and a snapshot `one` with a file of 1,000 bytes and three replicas.
fn in_one_snapshot(mut world: World) -> FsResult<World> {
    world.mkdirs("/q", true)?;
    world.set_quota("/q", 100, KEEP)?;
    world.allow_snapshot("/q")?;
    write(&mut world, "/q/f", &[1_000])?;
    world.create_snapshot("/q", "one")?;
    Ok(world)
}

#[test]
fn replicas_that_only_a_later_snapshot_wanted_are_given_back_with_that_one() -> FsResult<()> {
    let mut world = in_one_snapshot(newest(1))?;
    world.set_replication("/q/f", 5)?;
    world.create_snapshot("/q", "two")?;
    world.delete("/q/f", false)?;
    world.tidy_up();
    assert_eq!(used(&world, "/q"), 5_000, "two wants five replicas");
    world.delete_snapshot("/q", "two")?;
    assert_eq!(world.ns.check_consistency(), Ok(()), "what is not swept yet counts on");
    world.tidy_up();
    assert_eq!(used(&world, "/q"), 3_000, "one wants three");
    world.restart_from_image();
    world.delete_snapshot("/q", "one")?;
    world.tidy_up();
    assert_eq!(used(&world, "/q"), 0);
    world.check_replay();
    Ok(())
}

/// The last snapshot is deleted, and not swept away yet, when the file is cut: its list has the block until then.
#[test]
fn a_block_that_waits_for_a_sweep_is_given_back_once() -> FsResult<()> {
    let mut world = in_one_snapshot(World::new(2))?;
    write(&mut world, "/q/g", &[700, 300])?;
    world.create_snapshot("/q", "two")?;
    world.set_replication("/q/g", 2)?;
    for name in ["one", "two"] {
        world.delete_snapshot("/q", name)?;
    }
    world.truncate("/q/g", 700)?;
    assert_eq!(world.ns.check_consistency(), Ok(()));
    assert_eq!(used(&world, "/q"), 3_000 + 3 * 1_000);
    world.tidy_up();
    assert_eq!(used(&world, "/q"), 3_000 + 2 * 700);
    world.check_replay();
    Ok(())
}

/// A snapshot has the block as it was before it grew. It counts so again once the file that it grew in is gone.
#[test]
fn a_block_that_has_grown_since_counts_as_the_snapshot_has_it_in_the_end() -> FsResult<()> {
    let mut world = in_one_snapshot(World::new(3))?;
    write(&mut world, "/q/g", &[700, 300])?;
    world.create_snapshot("/q", "two")?;
    world.truncate("/q/g", 700)?;
    let file = world.append("/q/g", false)?;
    let grown = world.last_block("/q/g").map(|it| Block { length: 900, ..it });
    world.complete("/q/g", file, grown);
    assert_eq!(used(&world, "/q"), 3_000 + 3 * (900 + 300));
    world.delete("/q/g", false)?;
    world.tidy_up();
    assert_eq!(world.ns.check_consistency(), Ok(()));
    assert_eq!(used(&world, "/q"), 3_000 + 3 * (700 + 300));
    world.delete_snapshot("/q", "two")?;
    world.tidy_up();
    assert_eq!(used(&world, "/q"), 3_000);
    Ok(())
}

#[test]
fn random_files_of_snapshots_leave_nothing_charged() {
    let mut kept = 0;
    for seed in FIRST_SEED..FIRST_SEED + ROUNDS {
        let mut story = Story::new(seed);
        for _ in 0..150 {
            story.step();
            kept += usize::from(!story.world.ns.is_past_empty());
            story.check();
        }
        story.end();
    }
    assert!(kept as u64 > ROUNDS * 50, "snapshots keep something after {kept} steps only");
}

/// Directories of the play. Those of [`TOPS`] may have snapshots.
const DIRECTORIES: [&str; 5] = ["/q/s", "/q/s/d", "/q/r", "/q/o", "/p"];
const TOPS: [&str; 2] = ["/q/s", "/q/r"];
const QUOTAS: [&str; 3] = ["/q", "/q/s", "/q/s/d"];

struct Story {
    seed: u64,
    world: World,
    dice: Dice,
    calls: Vec<String>,
}

impl Story {
    fn new(seed: u64) -> Self {
        // Every third group has members that know nothing of the newest edits.
        let mut world = if seed % 3 == 2 { World::new(seed) } else { newest(seed) };
        for directory in DIRECTORIES {
            world.mkdirs(directory, true).unwrap();
        }
        for top in TOPS {
            world.allow_snapshot(top).unwrap();
        }
        world.set_quota("/q", 1_000, KEEP).unwrap();
        Self { seed, world, dice: Dice(seed), calls: Vec::new() }
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.dice.below(of.len() as u64) as usize]
    }

    fn file(&mut self) -> String {
        format!("{}/f{}", self.pick(&DIRECTORIES), self.dice.below(2))
    }

    /// Makes one operation, whether it succeeds or not.
    fn step(&mut self) {
        let (file, other) = (self.file(), self.file());
        let kind = self.dice.below(34);
        let number = self.dice.below(6);
        self.calls.push(format!("{kind} {number} {file} {other}"));
        match kind {
            0..5 => {
                let lengths: Vec<u64> = (0..number % 4).map(|_| 1 + self.dice.below(1_000)).collect();
                drop(write(&mut self.world, &file, &lengths));
            }
            5..9 => drop(self.world.set_replication(&file, 1 + number as u32)),
            9 | 10 => drop(self.world.delete(&file, false)),
            11..14 => drop(self.world.rename2(&file, &other, number > 2)),
            14..17 => self.write_on(&file, number),
            17 | 18 => self.cut(&file, number),
            19 => drop(self.world.concat(&file, &[format!("{}f{}", &file[..file.len() - 2], number % 2)])),
            20 | 21 => {
                let policy = [None, Some("HOT"), Some("ALL_SSD")][number as usize % 3];
                let path = if kind == 20 { file } else { self.pick(&DIRECTORIES).to_owned() };
                drop(self.world.set_storage_policy(&path, policy));
            }
            22 => {
                let directory = self.pick(&QUOTAS);
                let inodes = if number > 2 { CLEAR } else { 1_000 };
                drop(self.world.set_quota(directory, inodes, KEEP));
            }
            23..26 => {
                let top = self.pick(&TOPS);
                drop(self.world.create_snapshot(top, &format!("s{number}")));
            }
            26 | 27 => {
                let top = self.pick(&TOPS);
                drop(self.world.delete_snapshot(top, &format!("s{number}")));
            }
            28 => self.change_directory(number),
            29..33 => {
                for _ in 0..number / 2 {
                    self.sweep();
                }
            }
            _ => self.world.restart_from_image(),
        }
    }

    /// Takes apart and sweeps, a step of it.
    fn sweep(&mut self) -> bool {
        let Some(edit) = cleanup::plan(&self.world.ns, &self.world.context(None)) else { return false };
        self.world.apply(edit);
        self.check();
        true
    }

    fn change_directory(&mut self, number: u64) {
        let world = &mut self.world;
        match number {
            0 => drop(world.delete("/q/s/d", true)),
            1 => drop(world.rename("/q/s/d", "/q/r/d")),
            2 => drop(world.rename("/q/r/d", "/q/s/d")),
            3 => drop(world.rename("/q/s/d", "/q/o/d")),
            4 => drop(world.delete("/q/o/d", true)),
            _ => drop(world.mkdirs("/q/s/d", true)),
        }
    }

    /// Another block, or more in the last one; the file may stay open.
    fn write_on(&mut self, file: &str, number: u64) {
        let world = &mut self.world;
        if number.is_multiple_of(2) {
            drop(world.append(file, number > 2));
        }
        let grown =
            |last: Option<Block>| last.map(|it| Block { length: (it.length + 60).min(1 << 20), ..it });
        let Some(last) = world.last_file_block(file) else { return };
        if number < 3 || last.committed {
            let last = grown(world.last_block(file)).filter(|_| !last.committed).or(world.last_block(file));
            drop(world.try_add_block(file, last));
        }
        self.close(file);
    }

    fn close(&mut self, file: &str) {
        let world = &mut self.world;
        let status = get_file_info::get(&world.ns, &world.context(None), file);
        let Ok(Some(status)) = status else { return };
        if !status.under_construction || world.ns.truncation_of(status.id).is_some() {
            return;
        }
        if self.dice.below(3) > 0 {
            let last = world.last_file_block(file);
            let last = last.map(|it| Block { length: it.block.length.max(40), ..it.block });
            world.complete(file, InodeId(0), last);
        }
    }

    /// A truncation at the end of a block or inside, which the data servers may carry out later.
    fn cut(&mut self, file: &str, number: u64) {
        let world = &mut self.world;
        let status = get_file_info::get(&world.ns, &world.context(None), file);
        let Ok(Some((id, whole))) = status.map(|it| it.map(|it| (it.id, it.length))) else { return };
        if world.ns.truncation_of(id).is_none() {
            let lengths = world.block_lengths(file);
            let ends: u64 = lengths.iter().take(self.dice.below(lengths.len() as u64 + 1) as usize).sum();
            let length = if number.is_multiple_of(2) { ends } else { self.dice.below(whole + 1) };
            drop(world.truncate(file, length as i64));
        }
        if number > 1 && world.ns.truncation_of(id).is_some() {
            let request = world.cut_to(file);
            world.run(|ns, ctx| commit_block_synchronization::plan(ns, ctx, &request)).unwrap();
        }
    }

    /// Every quota's usage equals a fresh count of the tree.
    fn check(&self) {
        let found = self.world.ns.check_consistency();
        assert_eq!(found, Ok(()), "seed {}: {:#?}", self.seed, self.calls);
    }

    /// All goes, the snapshots in any order and before or after the files.
    fn end(&mut self) {
        let mut left: Vec<(&str, String)> = Vec::new();
        for top in TOPS {
            left.extend((0..6).map(|name| (top, format!("s{name}"))));
        }
        left.extend(
            DIRECTORIES.into_iter().flat_map(|it| [(it, "f0".into()), (it, "f1".into()), (it, "d".into())]),
        );
        while !left.is_empty() {
            let at = self.dice.below(left.len() as u64) as usize;
            let (directory, name) = left.swap_remove(at);
            self.calls.push(format!("end {directory} {name}"));
            match &*name {
                "f0" | "f1" | "d" => drop(self.world.delete(&format!("{directory}/{name}"), true)),
                name => drop(self.world.delete_snapshot(directory, name)),
            }
            self.check();
            while self.dice.below(3) > 0 && self.sweep() {}
        }
        while self.sweep() {}
        self.world.set_quota("/q", 1_000, KEEP).unwrap();
        let expected = Amounts { inodes: 4, ..Amounts::default() };
        let quota = self.world.quota("/q").unwrap();
        assert_eq!(quota.used, expected, "seed {}: {:#?}", self.seed, self.calls);
        assert!(self.world.ns.is_past_empty());
        assert_eq!(self.world.ns.counts().files, 0);
        self.world.check_replay();
        self.world.restart_from_image();
        let replayed: Namespace = self.world.replayed();
        assert_eq!(image_of(&replayed.freeze()), image_of(&self.world.ns.freeze()));
    }
}
