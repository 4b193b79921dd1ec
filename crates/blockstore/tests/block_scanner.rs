//! The block scanner: finds what the disk has lost, and accuses nobody else.

mod common;

use base::Block;
use blockstore::{PoolStore, ScanConfig, Scanners, VolumeIndex, scanner::cursor::CURSOR_FILE};
use common::{
    POOL, Seen, block, eventually, files, fill, flip,
    hooked::{Asked, HookedDisk},
    new, open_seen, store_block,
};
use env::{Env, OpenMode};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// Round after round, as fast as it goes.
fn fast() -> ScanConfig {
    ScanConfig {
        block_period_ms: 1,
        block_bytes_per_second: u64::MAX,
        directory_interval_ms: 0,
        ..ScanConfig::default()
    }
}

fn start(pool: &PoolStore, config: &ScanConfig) -> Scanners {
    Scanners::start(pool.volumes(), config).unwrap()
}

/// Waits for a round that begins from now on.
fn wait_round(scanners: &Scanners) {
    let rounds = || scanners.figures().rounds.load(Ordering::Relaxed);
    let before = rounds();
    eventually("a whole round is over", || rounds() >= before + 2);
}

fn damaged(seen: &Seen) -> Vec<Block> {
    let mut found = seen.damaged.lock().unwrap().clone();
    found.sort();
    found.dedup();
    found
}

fn production(root: &Path) -> (PoolStore, Arc<Seen>) {
    open_seen(Env::production(), root, 1)
}

#[test]
fn all_kinds_of_damage_are_found_and_nothing_else_is_told() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = production(root.path());
    let blocks: Vec<_> = (0..8).map(|id| store_block(&pool, id, 700_000 + id as usize)).collect();
    let empty = store_block(&pool, 8, 0);
    let scanners = start(&pool, &fast());
    wait_round(&scanners);
    assert_eq!(damaged(&seen), []);
    let paths = |block| files(root.path(), 0, block);
    flip(&paths(blocks[1]).0, 699_999);
    flip(&paths(blocks[2]).1, 7 + 4 * 1_000);
    // The header's version.
    flip(&paths(blocks[3]).1, 1);
    fs::File::options().write(true).open(paths(blocks[4]).0).unwrap().set_len(699_000).unwrap();
    fs::File::options().write(true).open(paths(blocks[5]).1).unwrap().set_len(4_000).unwrap();
    fs::remove_file(paths(blocks[6]).1).unwrap();
    fs::remove_file(paths(empty).1).unwrap();
    let mut bad = blocks[1..7].to_vec();
    bad.push(empty);
    eventually("all are found", || damaged(&seen) == bad);
    wait_round(&scanners);
    assert_eq!(damaged(&seen), bad);
    assert_eq!(*seen.deleted.lock().unwrap(), []);
    // They stay until somebody orders them away.
    assert_eq!(pool.replica_count(), 9);
}

#[test]
fn a_block_file_that_is_gone_is_forgotten() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = production(root.path());
    let blocks = [store_block(&pool, 1, 5_000), store_block(&pool, 2, 5_000)];
    fs::remove_file(files(root.path(), 0, blocks[0]).0).unwrap();
    let scanners = start(&pool, &fast());
    eventually("it is told", || *seen.deleted.lock().unwrap() == [blocks[0]]);
    wait_round(&scanners);
    assert_eq!(pool.replica_count(), 1);
    assert_eq!(damaged(&seen), []);
}

/// The place of a disk that was unmounted is an empty directory.
#[test]
fn a_volume_that_is_gone_is_lost_and_no_replica_of_it_is_called_deleted() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = open_seen(Env::production(), root.path(), 2);
    let blocks: Vec<_> = (0..6).map(|id| store_block(&pool, id, 5_000)).collect();
    let place = root.path().join("d0");
    fs::rename(&place, root.path().join("away")).unwrap();
    fs::create_dir(&place).unwrap();
    let _scanners = start(&pool, &fast());
    eventually("the volume is lost", || pool.volumes().failed_volumes().len() == 1);
    eventually("with its replicas", || seen.lost.lock().unwrap().len() == 3);
    assert_eq!(*seen.deleted.lock().unwrap(), []);
    assert_eq!(damaged(&seen), []);
    assert_eq!(pool.replica_count(), blocks.len() - 3);
}

/// A client's read meets the empty place first.
#[test]
fn a_reader_that_misses_a_file_costs_the_volume_only_if_the_volume_is_gone() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = production(root.path());
    let blocks: Vec<_> = (0..4).map(|id| store_block(&pool, id, 5_000)).collect();
    fs::remove_file(files(root.path(), 0, blocks[0]).0).unwrap();
    // People remove such files.
    fs::remove_file(root.path().join("d0/in_use.lock")).unwrap();
    assert!(pool.read(&block(0, 1001)).is_err());
    assert_eq!(*seen.deleted.lock().unwrap(), [blocks[0]]);
    assert!(pool.volumes().has_living_volume());
    fs::rename(root.path().join("d0"), root.path().join("away")).unwrap();
    assert!(pool.read(&block(1, 1001)).is_err());
    assert!(!pool.volumes().has_living_volume());
    assert_eq!(seen.deleted.lock().unwrap().len(), 1);
    assert_eq!(*seen.lost.lock().unwrap(), blocks[1..]);
}

#[test]
fn another_disk_at_the_place_of_a_volume_is_not_the_volume() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = production(root.path());
    let lost = store_block(&pool, 1, 5_000);
    fs::remove_file(files(root.path(), 0, lost).0).unwrap();
    fs::remove_file(root.path().join("d0/in_use.lock")).unwrap();
    fs::write(root.path().join("d0/in_use.lock"), "another process").unwrap();
    let _scanners = start(&pool, &fast());
    eventually("the volume is lost", || *seen.lost.lock().unwrap() == [lost]);
    assert_eq!(*seen.deleted.lock().unwrap(), []);
}

const EIO: i32 = 5;
const EMFILE: i32 = 24;

fn refuse(number: i32) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(number))
}

#[test]
fn a_replica_that_the_disk_cannot_read_is_damaged_and_its_volume_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let (disk, env) = HookedDisk::new();
    let (pool, seen) = open_seen(env, root.path(), 1);
    let blocks: Vec<_> = (0..3).map(|id| store_block(&pool, id, 5_000)).collect();
    let bad = files(root.path(), 0, blocks[1]).0;
    disk.set(move |asked, path| if asked == Asked::Read && path == bad { refuse(EIO) } else { Ok(()) });
    let scanners = start(&pool, &fast());
    eventually("it is found", || damaged(&seen) == [blocks[1]]);
    wait_round(&scanners);
    assert_eq!(damaged(&seen), [blocks[1]]);
    assert!(pool.volumes().has_living_volume());
}

#[test]
fn a_read_that_fails_once_accuses_nobody() {
    let root = tempfile::tempdir().unwrap();
    let (disk, env) = HookedDisk::new();
    let (pool, seen) = open_seen(env, root.path(), 1);
    let block = store_block(&pool, 1, 5_000);
    let file = files(root.path(), 0, block).0;
    let has_failed = Arc::<AtomicBool>::default();
    let fails = has_failed.clone();
    disk.set(move |asked, path| {
        match asked == Asked::Read && path == file && !fails.swap(true, Ordering::SeqCst) {
            true => refuse(EIO),
            false => Ok(()),
        }
    });
    let scanners = start(&pool, &fast());
    eventually("it has failed", || has_failed.load(Ordering::SeqCst));
    wait_round(&scanners);
    assert_eq!(damaged(&seen), []);
}

#[test]
fn a_disk_that_reads_nothing_is_a_lost_volume_and_no_replica_of_it_is_damaged() {
    let root = tempfile::tempdir().unwrap();
    let (disk, env) = HookedDisk::new();
    let (pool, seen) = open_seen(env, root.path(), 1);
    let block = store_block(&pool, 1, 5_000);
    disk.set(|asked, _| if asked == Asked::Read { refuse(EIO) } else { Ok(()) });
    let _scanners = start(&pool, &fast());
    eventually("the volume is lost", || *seen.lost.lock().unwrap() == [block]);
    assert_eq!(damaged(&seen), []);
    assert_eq!(*seen.deleted.lock().unwrap(), []);
}

#[test]
fn want_of_descriptors_says_nothing_of_a_replica() {
    let root = tempfile::tempdir().unwrap();
    let (disk, env) = HookedDisk::new();
    let (pool, seen) = open_seen(env, root.path(), 1);
    store_block(&pool, 1, 5_000);
    let looks = Arc::<AtomicUsize>::default();
    let counted = looks.clone();
    disk.set(move |asked, path| {
        let is_block = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("blk_"));
        if asked != Asked::Open(OpenMode::ReadMedium) || !is_block {
            return Ok(());
        }
        counted.fetch_add(1, Ordering::Relaxed);
        refuse(EMFILE)
    });
    let scanners = start(&pool, &fast());
    eventually("it was tried", || looks.load(Ordering::Relaxed) >= 2);
    wait_round(&scanners);
    assert_eq!(damaged(&seen), []);
    assert!(pool.volumes().has_living_volume());
    assert_eq!(pool.replica_count(), 1);
}

/// Does `change` when the scanner has opened the file for the first time.
fn when_opened(
    disk: &HookedDisk,
    file: PathBuf,
    change: impl Fn() + Send + Sync + 'static,
) -> Arc<AtomicBool> {
    let done = Arc::<AtomicBool>::default();
    let is_done = done.clone();
    disk.set(move |asked, path| {
        if asked == Asked::Read && path == file && !is_done.swap(true, Ordering::SeqCst) {
            change();
        }
        Ok(())
    });
    done
}

#[test]
fn a_replica_that_is_appended_to_under_the_scan_is_not_accused() {
    let root = tempfile::tempdir().unwrap();
    let (disk, env) = HookedDisk::new();
    let (pool, seen) = open_seen(env, root.path(), 1);
    let first = store_block(&pool, 1, 5_000);
    let (at, appending) = (files(root.path(), 0, first), pool.clone());
    // At the same stamp, as some clients do. The last chunk has other bytes and another sum then.
    let done = when_opened(&disk, at.0, move || {
        let mut writer = appending.append(&block(1, 1001), first.generation_stamp, 5_000).unwrap();
        let more = vec![7; 100];
        writer.write(5_000, &more, &common::sums(&more)).unwrap();
        writer.finalize(true).unwrap();
    });
    let scanners = start(&pool, &fast());
    eventually("it was appended to", || done.load(Ordering::SeqCst));
    wait_round(&scanners);
    assert_eq!(damaged(&seen), []);
    assert_eq!(*seen.deleted.lock().unwrap(), []);
}

#[test]
fn a_damaged_replica_that_is_replaced_under_the_scan_is_not_accused() {
    let root = tempfile::tempdir().unwrap();
    let (disk, env) = HookedDisk::new();
    let (pool, seen) = open_seen(env, root.path(), 1);
    let first = store_block(&pool, 1, 5_000);
    let at = files(root.path(), 0, first);
    flip(&at.0, 99);
    let changing = pool.clone();
    // Another replica of the same block, stamp and length takes its place.
    let done = when_opened(&disk, at.0, move || {
        changing.invalidate(&block(1, 1001)).unwrap();
        eventually("its files are gone", || match changing.create_temporary(&new(1, 1001)) {
            Ok(mut writer) => {
                fill(&mut writer, &common::bytes(5_000), 4096);
                writer.finalize(true).unwrap();
                true
            }
            Err(_) => false,
        });
    });
    let scanners = start(&pool, &fast());
    eventually("it was replaced", || done.load(Ordering::SeqCst));
    wait_round(&scanners);
    assert_eq!(damaged(&seen), []);
}

#[test]
fn a_suspect_is_looked_at_before_its_turn() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = production(root.path());
    let blocks: Vec<_> = (0..3).map(|id| store_block(&pool, id, 5_000)).collect();
    let config = ScanConfig { block_period_ms: 3_600_000, ..fast() };
    let scanners = start(&pool, &config);
    eventually("the round is over", || scanners.figures().rounds.load(Ordering::Relaxed) == 1);
    flip(&files(root.path(), 0, blocks[1]).0, 4_999);
    flip(&files(root.path(), 0, blocks[2]).0, 4_999);
    scanners.suspect(&POOL.into(), VolumeIndex(0), blocks[1].id);
    eventually("the suspect is found", || damaged(&seen) == [blocks[1]]);
    assert_eq!(scanners.figures().suspects.load(Ordering::Relaxed), 1);
}

fn cursor(root: &Path) -> PathBuf {
    root.join("d0/current").join(POOL).join("current").join(CURSOR_FILE)
}

#[test]
fn a_round_goes_on_where_it_was_after_a_restart_and_begins_anew_if_its_cursor_is_damaged() {
    let root = tempfile::tempdir().unwrap();
    let slow = ScanConfig {
        block_period_ms: 3_600_000,
        block_bytes_per_second: 100_000,
        cursor_interval_ms: 1,
        ..fast()
    };
    let seen_blocks = |scanners: &Scanners| scanners.figures().blocks.load(Ordering::Relaxed);
    let (first, second) = {
        let (pool, _) = production(root.path());
        let blocks = (0..10).map(|id| store_block(&pool, id, 5_000)).collect::<Vec<_>>();
        let scanners = start(&pool, &slow);
        eventually("some are scanned", || seen_blocks(&scanners) >= 3);
        scanners.stop();
        pool.volumes().close();
        (blocks[0], seen_blocks(&scanners))
    };
    assert!(second < 10, "the round is not over");
    let text = fs::read_to_string(cursor(root.path())).unwrap();
    assert!(text.starts_with("clover-scan-cursor=1\nbegun_ms="), "{text}");

    // What was scanned before is not scanned again: the damage to the first one is not found in what is left of the round.
    flip(&files(root.path(), 0, first).0, 1);
    let rest_of = |damage: bool| {
        let (pool, seen) = production(root.path());
        let scanners = start(&pool, &ScanConfig { block_bytes_per_second: u64::MAX, ..slow.clone() });
        eventually("the round is over", || scanners.figures().rounds.load(Ordering::Relaxed) == 1);
        scanners.stop();
        pool.volumes().close();
        assert_eq!(!damaged(&seen).is_empty(), damage);
        seen_blocks(&scanners)
    };
    assert_eq!(rest_of(false), 10 - second);
    flip(&cursor(root.path()), 30);
    assert_eq!(rest_of(true), 10);
}

#[test]
fn nothing_is_read_where_it_is_switched_off() {
    let root = tempfile::tempdir().unwrap();
    let (pool, _) = production(root.path());
    store_block(&pool, 1, 5_000);
    for config in
        [ScanConfig { block_period_ms: 0, ..fast() }, ScanConfig { block_bytes_per_second: 0, ..fast() }]
    {
        let scanners = start(&pool, &config);
        scanners.suspect(&POOL.into(), VolumeIndex(0), base::BlockId(1));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(scanners.figures().bytes.load(Ordering::Relaxed), 0);
    }
    assert!(!cursor(root.path()).exists());
}
