//! The directory scanner: what is on the disk and not in memory, and the other way round. It deletes nothing.

mod common;

use base::{Block, BlockId};
use blockstore::{PoolStore, ScanConfig, Scanners, scanner::figures::Kind};
use common::{
    POOL, Seen, block, bytes, content, eventually, files, fill, flip,
    hooked::{Asked, HookedDisk},
    new, open_seen, store_block, sums,
};
use env::{Env, OpenMode};
use std::{
    collections::BTreeSet,
    fs, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
};

/// Scan after scan.
fn fast() -> ScanConfig {
    ScanConfig { block_period_ms: 0, directory_interval_ms: 1, ..ScanConfig::default() }
}

fn start(pool: &PoolStore) -> Scanners {
    Scanners::start(pool.volumes(), &fast()).unwrap()
}

fn scans(scanners: &Scanners) -> u64 {
    scanners.figures().directory_scans.load(Ordering::Relaxed)
}

/// Waits for a scan that begins from now on.
fn wait_scan(scanners: &Scanners) {
    let before = scans(scanners);
    eventually("a whole scan is over", || scans(scanners) >= before + 2);
}

fn set(told: &std::sync::Mutex<Vec<Block>>) -> BTreeSet<Block> {
    told.lock().unwrap().iter().copied().collect()
}

fn nothing_told(seen: &Seen) {
    assert_eq!(set(&seen.deleted), BTreeSet::new());
    assert_eq!(set(&seen.damaged), BTreeSet::new());
    assert_eq!(set(&seen.received), BTreeSet::new());
    assert_eq!(set(&seen.lost), BTreeSet::new());
}

/// The names of all files of replicas below a directory.
fn names(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => names(&entry.path(), found),
            false => drop(found.insert(entry.file_name().into_string().unwrap())),
        }
    }
    found.retain(|name| name.starts_with("blk_"));
}

fn all_names(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    names(root, &mut found);
    found
}

/// The two files of a replica that was never in the store, as a backup of it would have them.
fn plant(root: &Path, id: u64, length: usize) -> Block {
    let planted = Block { length: length as u64, ..block(id, 1001).block };
    let (at, meta) = files(root, 0, planted);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    let data = bytes(length);
    let header = blockstore::meta_file::encode_header(blockstore::Checksum::DEFAULT);
    fs::write(meta, [&header[..], &sums(&data)].concat()).unwrap();
    fs::write(at, data).unwrap();
    planted
}

#[test]
fn each_difference_is_settled_and_no_file_is_deleted() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = open_seen(Env::production(), root.path(), 1);
    let at = |block| files(root.path(), 0, block);
    let blocks: Vec<_> = (0..8).map(|id| store_block(&pool, id, 5_000)).collect();
    let scanners = start(&pool);
    wait_scan(&scanners);
    nothing_told(&seen);
    scanners.stop();

    let missing = blocks[1];
    fs::remove_file(at(missing).0).unwrap();
    let short = blocks[2];
    fs::File::options().write(true).open(at(short).0).unwrap().set_len(4_999).unwrap();
    let long = blocks[3];
    fs::File::options().write(true).open(at(long).0).unwrap().set_len(5_001).unwrap();
    let without_meta = blocks[4];
    fs::remove_file(at(without_meta).1).unwrap();
    let moved = blocks[5];
    let elsewhere = root.path().join("d0/current").join(POOL).join("current/finalized/subdir31/subdir3");
    fs::create_dir_all(&elsewhere).unwrap();
    for file in [at(moved).0, at(moved).1] {
        fs::rename(&file, elsewhere.join(file.file_name().unwrap())).unwrap();
    }
    let doubled = blocks[6];
    for file in [at(doubled).0, at(doubled).1] {
        fs::copy(&file, elsewhere.join(file.file_name().unwrap())).unwrap();
    }
    let whole = plant(root.path(), 20, 70_000);
    let rotten = plant(root.path(), 21, 70_000);
    flip(&at(rotten).0, 69_999);
    // A copy that is not complete: all of its bytes have their sums.
    let half = plant(root.path(), 22, 70_000);
    fs::File::options().write(true).open(at(half).0).unwrap().set_len(51_200).unwrap();
    let alone = plant(root.path(), 23, 70_000);
    fs::remove_file(at(alone).0).unwrap();
    let before = all_names(root.path());

    let scanners = start(&pool);
    wait_scan(&scanners);
    scanners.stop();
    assert_eq!(set(&seen.deleted), BTreeSet::from([missing, moved]));
    assert_eq!(set(&seen.received), BTreeSet::from([whole, moved]));
    assert_eq!(set(&seen.damaged), BTreeSet::from([short, long, without_meta]));
    assert_eq!(all_names(root.path()), before);
    for found in [whole, moved] {
        let reader = pool.read(&common::block(found.id.0 - 1_073_741_824, 1001)).unwrap();
        assert_eq!(content(&reader), bytes(found.length as usize));
    }
    assert!(at(moved).0.exists() && !elsewhere.join(at(moved).0.file_name().unwrap()).exists());
    let known = |block: Block| pool.facts(POOL, block.id).is_ok();
    assert!(!known(missing) && !known(rotten) && !known(half) && !known(alone));
    for kind in Kind::ALL {
        assert!(scanners.figures().differences(kind) > 0, "{kind:?} is counted");
    }
    // What was taken up once is a replica like any other; the rest is told again.
    let (received, unknown) = (set(&seen.received), scanners.figures().differences(Kind::Missing));
    let scanners = start(&pool);
    wait_scan(&scanners);
    assert_eq!((set(&seen.received), unknown), (received, 2));
    assert_eq!(scanners.figures().differences(Kind::Missing), 0);
}

#[test]
fn the_figures_of_the_volume_go_along() {
    let root = tempfile::tempdir().unwrap();
    let (pool, _) = open_seen(Env::production(), root.path(), 1);
    let used = || pool.used_bytes(blockstore::VolumeIndex(0));
    let first = store_block(&pool, 1, 5_000);
    let one = used();
    plant(root.path(), 2, 5_000);
    let scanners = start(&pool);
    wait_scan(&scanners);
    assert_eq!(used(), 2 * one);
    fs::remove_file(files(root.path(), 0, first).0).unwrap();
    wait_scan(&scanners);
    assert_eq!(used(), 2 * one - 5_000);
}

#[test]
fn a_replica_of_another_volume_is_not_taken_up_a_second_time() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = open_seen(Env::production(), root.path(), 2);
    let first = store_block(&pool, 1, 5_000);
    let here = files(root.path(), 0, first);
    let (here, there) = match here.0.exists() {
        true => (here, files(root.path(), 1, first)),
        false => (files(root.path(), 1, first), here),
    };
    fs::create_dir_all(there.0.parent().unwrap()).unwrap();
    fs::copy(&here.0, &there.0).unwrap();
    fs::copy(&here.1, &there.1).unwrap();
    let scanners = start(&pool);
    // Each volume has its own scans.
    wait_scan(&scanners);
    wait_scan(&scanners);
    nothing_told(&seen);
    assert!(scanners.figures().differences(Kind::Duplicate) > 0);
    // If the one is gone, the other takes its place.
    fs::remove_file(&here.0).unwrap();
    eventually("it is taken up", || set(&seen.received) == BTreeSet::from([first]));
    assert_eq!(set(&seen.deleted), BTreeSet::from([first]));
    assert_eq!(content(&pool.read(&block(1, 1001)).unwrap()), bytes(5_000));
}

#[test]
fn a_volume_that_is_gone_is_lost_and_no_replica_of_it_is_called_deleted() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = open_seen(Env::production(), root.path(), 1);
    let blocks: BTreeSet<_> = (0..5).map(|id| store_block(&pool, id, 5_000)).collect();
    fs::rename(root.path().join("d0"), root.path().join("away")).unwrap();
    fs::create_dir(root.path().join("d0")).unwrap();
    let _scanners = start(&pool);
    eventually("the volume is lost", || set(&seen.lost) == blocks);
    assert_eq!(set(&seen.deleted), BTreeSet::new());
}

/// The disk goes in the middle of a scan: at each of the things that the scanner asks of it.
#[test]
fn a_volume_that_goes_during_the_scan_is_lost_and_no_replica_of_it_is_called_deleted() {
    for go_at in 0..14 {
        let root = tempfile::tempdir().unwrap();
        let (disk, env) = HookedDisk::new();
        let (pool, seen) = open_seen(env, root.path(), 1);
        let blocks: BTreeSet<_> = (0..3).map(|id| store_block(&pool, id, 5_000)).collect();
        let (place, away) = (root.path().join("d0"), root.path().join("away"));
        let asked = std::sync::atomic::AtomicUsize::new(0);
        disk.set(move |_, _| {
            if asked.fetch_add(1, Ordering::SeqCst) == go_at {
                fs::rename(&place, &away).unwrap();
                fs::create_dir(&place).unwrap();
            }
            Ok(())
        });
        let scanners = start(&pool);
        eventually("the volume is lost", || set(&seen.lost) == blocks);
        assert_eq!(set(&seen.deleted), BTreeSet::new(), "gone at question {go_at}");
        assert_eq!(set(&seen.damaged), BTreeSet::new(), "gone at question {go_at}");
        scanners.stop();
    }
}

#[test]
fn a_disk_that_fails_to_list_is_a_lost_volume_or_no_news() {
    let root = tempfile::tempdir().unwrap();
    let (disk, env) = HookedDisk::new();
    let (pool, seen) = open_seen(env, root.path(), 1);
    let block = store_block(&pool, 1, 5_000);
    let is_asked = Arc::<AtomicBool>::default();
    let asked_for = is_asked.clone();
    disk.set(move |asked, _| match asked {
        Asked::List => {
            asked_for.store(true, Ordering::SeqCst);
            Err(io::Error::from_raw_os_error(13))
        }
        _ => Ok(()),
    });
    let scanners = start(&pool);
    eventually("it was asked", || is_asked.load(Ordering::SeqCst));
    nothing_told(&seen);
    assert_eq!(scans(&scanners), 0);
    disk.set(|asked, _| match asked {
        Asked::List | Asked::Read => Err(io::Error::from_raw_os_error(5)),
        _ => Ok(()),
    });
    eventually("the volume is lost", || set(&seen.lost) == BTreeSet::from([block]));
    assert_eq!(set(&seen.deleted), BTreeSet::new());
}

fn is_named(path: &Path, wanted: &Path) -> bool {
    path.file_name() == wanted.file_name()
}

/// The replica is away for an append just when its file is looked for, and back with nothing changed when memory is asked.
#[test]
fn a_replica_that_was_away_for_a_moment_is_not_forgotten() {
    let root = tempfile::tempdir().unwrap();
    let (disk, env) = HookedDisk::new();
    let (pool, seen) = open_seen(env, root.path(), 1);
    let first = store_block(&pool, 1, 5_000);
    let (file, appending) = (files(root.path(), 0, first).0, pool.clone());
    let directory = file.parent().unwrap().to_owned();
    let is_done = Arc::<AtomicBool>::default();
    let done = is_done.clone();
    disk.set(move |asked, path| {
        if asked == Asked::List && path == directory {
            // Missing in the listing, so that it is looked for a second time.
            return Err(io::ErrorKind::NotFound.into());
        }
        if asked == Asked::Length && is_named(path, &file) && !done.swap(true, Ordering::SeqCst) {
            let writer = appending.append(&block(1, 1001), first.generation_stamp, 5_000).unwrap();
            writer.finalize(true).unwrap();
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(())
    });
    let scanners = start(&pool);
    eventually("it was looked for", || is_done.load(Ordering::SeqCst));
    wait_scan(&scanners);
    nothing_told(&seen);
    assert_eq!(content(&pool.read(&block(1, 1001)).unwrap()), bytes(5_000));
}

/// Somebody writes the block while the scanner reads the file that nobody knew.
#[test]
fn a_replica_that_is_made_during_the_take_up_counts_and_is_whole() {
    let root = tempfile::tempdir().unwrap();
    let (disk, env) = HookedDisk::new();
    let (pool, seen) = open_seen(env, root.path(), 1);
    let planted = plant(root.path(), 1, 5_000);
    let (file, writing) = (files(root.path(), 0, planted).0, pool.clone());
    let is_done = Arc::<AtomicBool>::default();
    let done = is_done.clone();
    disk.set(move |asked, path| {
        if asked == Asked::Open(OpenMode::ReadMedium)
            && is_named(path, &file)
            && !done.swap(true, Ordering::SeqCst)
        {
            let mut writer = writing.create_temporary(&new(1, 1_002)).unwrap();
            fill(&mut writer, &bytes(6_000), 4_096);
            writer.finalize(true).unwrap();
        }
        Ok(())
    });
    let scanners = start(&pool);
    eventually("it was written", || is_done.load(Ordering::SeqCst));
    wait_scan(&scanners);
    nothing_told(&seen);
    assert_eq!(content(&pool.read(&block(1, 1_002)).unwrap()), bytes(6_000));
}

#[test]
fn a_disk_that_hangs_holds_up_its_scanner_and_nobody_else() {
    let root = tempfile::tempdir().unwrap();
    let (disk, env) = HookedDisk::new();
    let (pool, _) = open_seen(env, root.path(), 1);
    store_block(&pool, 1, 5_000);
    let (hangs, is_hanging) = mpsc::sync_channel(1);
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    disk.set(move |asked, _| {
        if asked == Asked::List {
            let _ = hangs.try_send(());
            let _ = released.lock().unwrap().recv();
        }
        Ok(())
    });
    let scanners = start(&pool);
    is_hanging.recv().unwrap();
    assert_eq!(content(&pool.read(&block(1, 1001)).unwrap()), bytes(5_000));
    store_block(&pool, 2, 5_000);
    pool.invalidate(&block(1, 1001)).unwrap();
    assert_eq!(pool.block_reports()[0].replicas.len(), 1);
    scanners.stop();
    drop(release);
}

/// Writers, appenders and removers at work, with both scanners as fast as they go.
#[test]
fn a_storm_of_changes_is_no_difference() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = open_seen(Env::production(), root.path(), 2);
    let config = ScanConfig {
        block_period_ms: 1,
        block_bytes_per_second: u64::MAX,
        directory_interval_ms: 1,
        ..ScanConfig::default()
    };
    let scanners = Scanners::start(pool.volumes(), &config).unwrap();
    let (mut kept, mut removed) = (BTreeSet::new(), BTreeSet::new());
    std::thread::scope(|scope| {
        let work = |lane: u64| {
            let pool = &pool;
            move || {
                let (mut kept, mut removed) = (Vec::new(), Vec::new());
                for turn in 0..60 {
                    let id = lane * 1_000 + turn;
                    let mut last = store_block(pool, id, 3_000);
                    for step in 0..turn % 4 {
                        // Every other one at its own stamp, and some without a byte.
                        let stamp = base::GenerationStamp(last.generation_stamp.0 + step % 2);
                        let from = block(id, last.generation_stamp.0);
                        let mut writer = pool.append(&from, stamp, last.length).unwrap();
                        if step < 2 {
                            let more = bytes(700);
                            let sum = blockstore::Checksum::DEFAULT.sum(&more[..72]);
                            writer.write(last.length, &more[..72], &sum).unwrap();
                        }
                        last = writer.finalize(false).unwrap();
                    }
                    match turn % 3 {
                        0 => {
                            pool.invalidate(&block(id, last.generation_stamp.0)).unwrap();
                            removed.push(last);
                        }
                        _ => kept.push(last),
                    }
                }
                (kept, removed)
            }
        };
        let lanes: Vec<_> = (0..3).map(|lane| scope.spawn(work(lane))).collect();
        for lane in lanes {
            let (one, other) = lane.join().unwrap();
            kept.extend(one);
            removed.extend(other);
        }
    });
    eventually("all removals are told", || set(&seen.deleted).len() >= removed.len());
    wait_scan(&scanners);
    assert_eq!(set(&seen.deleted), removed);
    assert_eq!(set(&seen.damaged), BTreeSet::new());
    assert_eq!(set(&seen.received), BTreeSet::new());
    let reports = pool.block_reports();
    let reported: BTreeSet<Block> =
        reports.iter().flat_map(|volume| volume.replicas.iter().map(|facts| facts.block)).collect();
    assert_eq!(reported, kept);
    for last in kept {
        let id = BlockId(last.id.0);
        let reader = pool.read(&block(id.0 - 1_073_741_824, last.generation_stamp.0)).unwrap();
        content(&reader);
    }
}

#[test]
fn a_scan_waits_for_its_turn() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = open_seen(Env::production(), root.path(), 1);
    plant(root.path(), 1, 5_000);
    for interval_ms in [0, 1 << 50] {
        let config = ScanConfig { directory_interval_ms: interval_ms, ..fast() };
        let scanners = Scanners::start(pool.volumes(), &config).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(scans(&scanners), 0);
    }
    nothing_told(&seen);
}
