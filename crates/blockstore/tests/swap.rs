//! Data directories are added, removed and replaced while the store runs.

mod common;

use base::{Block, ExtendedBlock, GenerationStamp};
use blockstore::{
    BlockStore, PoolStore, ReplicaState, StorageType, StoreConfig, StoreError, Swap, SwapError, SwapFailure,
    VolumeConfig,
};
use common::*;
use env::Env;
use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Only a test in which a user of the files stays waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);

fn dirs(root: &Path, numbers: &[usize]) -> Vec<VolumeConfig> {
    let volume =
        |number| VolumeConfig { path: root.join(format!("d{number}")), storage_type: StorageType::Disk };
    numbers.iter().copied().map(volume).collect()
}

/// Orders these directories, which must go without a failure.
fn swap(store: &PoolStore, root: &Path, numbers: &[usize]) -> Swap {
    let swap = store.volumes().swap_volumes(&dirs(root, numbers), PATIENCE).unwrap();
    assert!(swap.failures.is_empty(), "{:?}", swap.failures);
    assert_eq!(swap.effective, dirs(root, numbers));
    swap
}

/// A store on other directories than the first ones.
fn restart(root: &Path, numbers: &[usize]) -> PoolStore {
    let store = BlockStore::open(Env::production(), StoreConfig::new(dirs(root, numbers))).unwrap();
    store.serve_pool(&pool()).unwrap()
}

fn named(block: Block) -> ExtendedBlock {
    ExtendedBlock { pool: POOL.into(), block }
}

fn reported(store: &PoolStore) -> Vec<usize> {
    store.block_reports().iter().map(|report| report.replicas.len()).collect()
}

#[test]
fn a_new_disk_takes_replicas_and_keeps_them() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let old = store_block(&store, 1, 1_000);
    fs::create_dir(root.path().join("d1")).unwrap();
    assert_eq!(swap(&store, root.path(), &[0, 1]).added.len(), 1);
    let blocks: Vec<_> = (2..6).map(|id| store_block(&store, id, 1_000)).collect();
    assert_eq!(reported(&store), [3, 2], "new replicas go to both in turn");
    assert_eq!(store.volumes().storage_reports().len(), 2);
    store.volumes().close();
    let store = open(root.path(), 2);
    for block in blocks.into_iter().chain([old]) {
        assert_eq!(content(&store.read(&named(block)).unwrap()), bytes(1_000));
    }
}

#[test]
fn a_disk_goes_with_its_replicas_and_comes_back_with_them() {
    let root = tempfile::tempdir().unwrap();
    let (store, seen) = open_seen(Env::production(), root.path(), 2);
    let blocks: Vec<_> = (0..4).map(|id| store_block(&store, id, 1_000)).collect();
    let gone = [blocks[1], blocks[3]];
    swap(&store, root.path(), &[0]);
    assert_eq!(*seen.lost.lock().unwrap(), gone);
    assert_eq!(reported(&store), [2]);
    assert!(store.volumes().failed_volumes().is_empty(), "it has not failed");
    for block in gone {
        assert!(matches!(store.read(&named(block)), Err(StoreError::NotFound(_))));
    }
    for id in 10..14 {
        assert_eq!(
            store.storage_of(store_block(&store, id, 10).id).unwrap(),
            store.block_reports()[0].storage_id
        );
    }
    // Its lock is free: another process may have it.
    restart(root.path(), &[1]).volumes().close();

    let before = store.volumes().storages().count();
    swap(&store, root.path(), &[0, 1]);
    assert_eq!(store.volumes().storages().count(), before + 1);
    for block in blocks {
        assert_eq!(content(&store.read(&named(block)).unwrap()), bytes(1_000));
    }
    assert_eq!(reported(&store), [6, 2]);
}

#[test]
fn a_writer_on_a_removed_disk_gets_an_error_and_changes_nothing_there_any_more() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 2);
    store_block(&store, 1, 10);
    let mut writer = store.create_rbw(&new(2, 1001)).unwrap();
    let mut copied = store.create_temporary(&new(4, 1001));
    while copied.as_ref().is_ok_and(|copied| copied.volume() != writer.volume()) {
        copied = store.create_temporary(&new(5, 1001));
    }
    fill(&mut writer, &bytes(1_000), 512);
    let block = writer.block();
    swap(&store, root.path(), &[0]);
    // And is there again before the writer has noticed.
    swap(&store, root.path(), &[0, 1]);
    assert!(matches!(writer.write(1_000, &[1], &sums(&[1])), Err(StoreError::Replaced(_))));
    assert!(writer.sync().is_err());
    assert!(matches!(writer.finalize(true), Err(StoreError::Replaced(_))));
    drop(copied);
    let facts = store.facts(POOL, block.id).unwrap();
    assert_eq!((facts.block, facts.state), (block, ReplicaState::WaitingRecovery));
    // Its lease's recovery finishes it, with every byte that was acknowledged.
    let candidate = store.begin_recovery(&named(block), GenerationStamp(1002)).unwrap().unwrap();
    store.finish_recovery(&named(candidate.block), GenerationStamp(1002), 1_000).unwrap();
    let block = Block { generation_stamp: GenerationStamp(1002), ..block };
    assert_eq!(content(&store.read(&named(block)).unwrap()), bytes(1_000));
}

#[test]
fn a_disk_that_is_still_read_stays_locked_until_the_reader_has_gone() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 2);
    store_block(&store, 1, 10);
    let block = store_block(&store, 2, 1_000);
    let reader = store.read(&named(block)).unwrap();
    let order = |numbers: &[usize]| {
        store.volumes().swap_volumes(&dirs(root.path(), numbers), Duration::from_millis(30)).unwrap()
    };
    let first = order(&[0]);
    assert!(matches!(&first.failures[..], [SwapFailure::StillUsed { path }] if path.ends_with("d1")));
    assert!(store.is_lost(&reader), "who reads is told to go elsewhere");
    assert_eq!(content(&reader), bytes(1_000));
    // It is not opened a second time meanwhile.
    let again = order(&[0, 1]);
    assert!(
        again.failures.iter().any(|failure| failure.to_string().contains("in_use.lock is locked")),
        "{again:?}"
    );
    assert_eq!(again.effective, dirs(root.path(), &[0]));
    drop(reader);
    swap(&store, root.path(), &[0, 1]);
    assert_eq!(content(&store.read(&named(block)).unwrap()), bytes(1_000));
}

#[test]
fn a_failed_disk_is_replaced_by_an_empty_one() {
    let root = tempfile::tempdir().unwrap();
    let (store, seen) = open_seen(Env::production(), root.path(), 2);
    let kept = store_block(&store, 1, 10);
    let writer = store.create_rbw(&new(2, 1001)).unwrap();
    assert_eq!(store.volumes().volume_failures(), None);
    let reports = store.volumes().storage_reports();
    let capacity = reports.iter().find(|report| report.volume == writer.volume()).unwrap().capacity_bytes;
    let begun_ms = Env::production().clock.timestamp().ms;
    store.volumes().fail_volume(writer.volume(), "it is broken");
    assert_eq!(store.volumes().failed_volumes().len(), 1);
    let failures = store.volumes().volume_failures().unwrap();
    assert_eq!(failures.directories, store.volumes().failed_volumes());
    assert!(failures.last_ms >= begun_ms, "{failures:?}");
    assert_eq!(failures.capacity_bytes, capacity, "the room that it had told before");
    assert_eq!(seen.lost.lock().unwrap().len(), 1);
    let disk = root.path().join("d1");
    fs::remove_dir_all(&disk).unwrap();
    fs::create_dir(&disk).unwrap();
    swap(&store, root.path(), &[0, 1]);
    assert!(store.volumes().failed_volumes().is_empty());
    assert_eq!(store.volumes().volume_failures(), None);
    assert_eq!(seen.lost.lock().unwrap().len(), 1, "what was lost is told once");
    drop(writer);
    assert_eq!(reported(&store), [1, 0]);
    store_block(&store, 3, 10);
    store_block(&store, 4, 10);
    assert_eq!(reported(&store), [2, 1]);
    assert!(store.read(&named(kept)).is_ok());
}

#[test]
fn a_directory_that_cannot_be_added_leaves_the_others_as_they_were() {
    let root = tempfile::tempdir().unwrap();
    let foreign = tempfile::tempdir().unwrap();
    let other = blockstore::PoolInfo { cluster: "CID-other".into(), ..pool() };
    BlockStore::open(Env::production(), config(foreign.path(), 1))
        .unwrap()
        .serve_pool(&other)
        .unwrap()
        .volumes()
        .close();
    let store = open(root.path(), 2);
    let block = store_block(&store, 1, 10);
    let taken = restart(root.path(), &[5]);
    copy(&root.path().join("d0"), &root.path().join("d6"));
    fs::create_dir_all(root.path().join("d7/current/mine")).unwrap();
    fs::write(root.path().join("d8"), "a file").unwrap();
    let at = |path: &Path| VolumeConfig { path: path.into(), storage_type: StorageType::Disk };
    let foreign_directory = foreign.path().join("d0");
    fs::remove_file(foreign_directory.join("in_use.lock")).unwrap();
    let cases = [
        (foreign_directory.clone(), "datanodeUuid is"),
        (root.path().join("d5"), "in_use.lock is locked"),
        (root.path().join("d6"), "one is a copy of the other"),
        (root.path().join("d7"), "has no VERSION but is not empty"),
        (root.path().join("d8"), "d8"),
        (root.path().join("d9"), "is its disk mounted?"),
    ];
    for (path, why) in cases {
        let mut wanted = dirs(root.path(), &[0, 1]);
        wanted.push(at(&path));
        let swap = store.volumes().swap_volumes(&wanted, PATIENCE).unwrap();
        let told: Vec<_> = swap.failures.iter().map(ToString::to_string).collect();
        let start = format!("FAILED TO ADD: [DISK]{}: ", path.display());
        assert!(told.len() == 1 && told[0].starts_with(&start) && told[0].contains(why), "{told:?}");
        assert_eq!(swap.effective, wanted[..2]);
        assert_eq!((swap.added.len(), swap.removed.len()), (0, 0));
    }
    assert!(!root.path().join("d9").exists(), "nothing was made where no disk is");
    assert!(content(&store.read(&named(block)).unwrap()).len() == 10);
    // Beside one that cannot be added, another one can.
    fs::create_dir(root.path().join("d3")).unwrap();
    let both = store.volumes().swap_volumes(&dirs(root.path(), &[0, 9, 3]), PATIENCE).unwrap();
    assert_eq!(both.effective, dirs(root.path(), &[0, 3]));
    assert_eq!((both.added.len(), both.removed.len(), both.failures.len()), (1, 1, 1));
    taken.volumes().close();
}

#[test]
fn senseless_orders_change_nothing() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 2);
    let refused = |wanted: &[VolumeConfig]| store.volumes().swap_volumes(wanted, PATIENCE).unwrap_err();
    assert!(matches!(refused(&[]), SwapError::NoneLeft));
    assert!(matches!(refused(&dirs(root.path(), &[7])), SwapError::NoneLeft));
    assert!(matches!(refused(&dirs(root.path(), &[0, 0])), SwapError::Twice { .. }));
    let mut other = dirs(root.path(), &[0, 1]);
    other[1].storage_type = StorageType::Ssd;
    assert!(matches!(refused(&other), SwapError::StorageType));
    assert_eq!(store.volumes().storage_reports().len(), 2);
}

#[test]
fn a_move_between_disks_survives_the_removal_of_either() {
    for (removed, stays) in [(0, 1), (1, 0)] {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path(), 2);
        let block = named(store_block(&store, 1, 3_000_000));
        store_block(&store, 2, 10);
        let target = store.volumes().storage_reports()[1].volume;
        let waiting = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (mover, seen) = (store.clone(), waiting.clone());
            let (moved, root) = (block.clone(), root.path());
            let removal = {
                let (store, waiting) = (store.clone(), waiting.clone());
                scope.spawn(move || {
                    eventually("the move is under way", || waiting.load(Ordering::SeqCst));
                    swap(&store, root, &[stays]);
                })
            };
            let outcome = mover.move_to_volume(&moved, target, &mut |_| {
                seen.store(true, Ordering::SeqCst);
                eventually("the disk is lost", || mover.volumes().storage_reports().len() == 1);
                true
            });
            assert!(matches!(outcome, Err(StoreError::VolumeLost(_))), "{outcome:?}");
            removal.join().unwrap();
        });
        // The other disk has it if it did not go itself.
        assert_eq!(store.read(&block).is_ok(), removed == 1);
        swap(&store, root.path(), &[0, 1]);
        assert_eq!(content(&store.read(&block).unwrap()), bytes(3_000_000));
        let left: Vec<_> = (0..2).map(|volume| files(root.path(), volume, block.block).0.exists()).collect();
        assert_eq!(left, [true, false], "the copy has left nothing behind");
    }
}

/// Disks go and come while others write, read, move and recover. In the end every replica whose end was acknowledged is there.
#[test]
fn disks_that_go_and_come_under_load_lose_no_finished_replica() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 3);
    let is_over = AtomicBool::new(false);
    let data = bytes(30_000);
    let mut finished = Vec::new();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3u64)
            .map(|writer| {
                let (store, data, is_over) = (store.clone(), &data, &is_over);
                scope.spawn(move || {
                    let mut finished = Vec::new();
                    let mut id = writer * 1_000_000;
                    while !is_over.load(Ordering::Relaxed) {
                        id += 1;
                        let Ok(mut writer) = store.create_rbw(&new(id, 1001)) else { continue };
                        let mut pieces = data.chunks(4_096).enumerate();
                        let written = pieces
                            .all(|(at, piece)| writer.write(at as u64 * 4_096, piece, &sums(piece)).is_ok());
                        if written && let Ok(block) = writer.finalize(false) {
                            finished.push(block);
                            let _ = store.begin_recovery(&named(block), GenerationStamp(1001));
                            for volume in store.volumes().storage_reports() {
                                let _ = store.move_to_volume(&named(block), volume.volume, &mut |_| true);
                            }
                        }
                        if let Some(block) = finished.get(finished.len() / 2)
                            && let Ok(reader) = store.read(&named(*block))
                        {
                            assert_eq!(content(&reader), *data);
                        }
                    }
                    finished
                })
            })
            .collect();
        for round in 0..20 {
            let gone = round % 3;
            let kept: Vec<_> = (0..3).filter(|number| *number != gone).collect();
            swap(&store, root.path(), &kept);
            swap(&store, root.path(), &[0, 1, 2]);
        }
        is_over.store(true, Ordering::Relaxed);
        for writer in writers {
            finished.extend(writer.join().unwrap());
        }
    });
    assert!(finished.len() > 10, "{} were written", finished.len());
    let check = |store: &PoolStore| {
        for block in &finished {
            assert_eq!(content(&store.read(&named(*block)).unwrap()), data);
        }
    };
    check(&store);
    store.volumes().close();
    check(&open(root.path(), 3));
}

/// While a disk is away, its block is copied to another disk of this server. When it is back, one replica is enough.
#[test]
fn a_disk_that_is_put_back_brings_no_second_replicas() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 2);
    let blocks = [store_block(&store, 1, 5_000), store_block(&store, 2, 5_000)];
    let away = blocks[1];
    swap(&store, root.path(), &[0]);
    assert_eq!(store_block(&store, 2, 5_000), away);
    // The replica in use is rotten: the other one stays until an operator has decided.
    flip(&files(root.path(), 0, away).0, 700);
    swap(&store, root.path(), &[0, 1]);
    std::thread::sleep(Duration::from_millis(50));
    let has = |volume| files(root.path(), volume, away).0.exists();
    assert_eq!((has(0), has(1)), (true, true));
    flip(&files(root.path(), 0, away).0, 700);
    swap(&store, root.path(), &[0]);
    swap(&store, root.path(), &[0, 1]);
    eventually("the second replica goes", || !has(1));
    eventually("it is counted no more", || store.volumes().storage_reports()[1].used_bytes < 5_000);
    assert_eq!(content(&store.read(&named(away)).unwrap()), bytes(5_000));
    assert_eq!(reported(&store), [2, 0]);
}

/// The replica in use is deleted before its double was removed: then the metadata server hears of the double, and orders it away too.
#[test]
fn a_second_replica_does_not_outlive_the_first_unknown() {
    let root = tempfile::tempdir().unwrap();
    let (store, seen) = open_seen(Env::production(), root.path(), 2);
    store_block(&store, 1, 5_000);
    let away = store_block(&store, 2, 5_000);
    swap(&store, root.path(), &[0]);
    assert_eq!(store_block(&store, 2, 5_000), away);
    // Opened to be appended to, it is nobody's to judge.
    let writer = store.append(&named(away), GenerationStamp(1002), 5_000).unwrap();
    swap(&store, root.path(), &[0, 1]);
    let is_there = || files(root.path(), 1, away).0.exists();
    assert!(is_there());
    store.invalidate(&named(writer.block())).unwrap();
    drop(writer);
    eventually("the second replica is told", || seen.received.lock().unwrap().contains(&away));
    store.invalidate(&named(away)).unwrap();
    eventually("it goes", || !is_there());
}
