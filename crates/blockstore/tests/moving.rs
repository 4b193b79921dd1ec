//! A replica moves from one volume to a volume of another storage type.

mod common;

use base::{ExtendedBlock, GenerationStamp};
use blockstore::{BlockStore, PoolStore, ReplicaState, StorageType, StoreConfig, StoreError, VolumeConfig};
use common::{
    hooked::{Asked, HookedDisk},
    *,
};
use env::{Env, OpenMode};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// A volume of disk and one of archive.
fn two_types(root: &Path) -> PoolStore {
    two_types_of(root, Env::production())
}

fn two_types_of(root: &Path, env: Env) -> PoolStore {
    let volume = |name: &str, storage_type| VolumeConfig { path: root.join(name), storage_type };
    let volumes = vec![volume("d0", StorageType::Disk), volume("d1", StorageType::Archive)];
    let store = BlockStore::open(env, StoreConfig::new(volumes)).unwrap();
    store.serve_pool(&pool()).unwrap()
}

fn written(store: &PoolStore, id: u64, data: &[u8]) -> ExtendedBlock {
    let mut writer = store.create_rbw(&new(id, 1001)).unwrap();
    fill(&mut writer, data, 64 * 1024);
    ExtendedBlock { pool: POOL.into(), block: writer.finalize(false).unwrap() }
}

/// The files of a block on each of the volumes.
fn files(root: &Path, block: &ExtendedBlock) -> [usize; 2] {
    fn count(directory: &Path, name: &str) -> usize {
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
        entries
            .map(|entry| match entry.file_type().unwrap().is_dir() {
                true => count(&entry.path(), name),
                false => usize::from(entry.file_name().to_str().unwrap().starts_with(name)),
            })
            .sum()
    }
    ["d0", "d1"].map(|volume| count(&root.join(volume), &format!("blk_{}", block.block.id.0)))
}

#[test]
fn a_replica_moves_with_all_its_bytes_and_is_counted_where_it_is() {
    let root = tempfile::tempdir().unwrap();
    let store = two_types(root.path());
    let data = bytes(3_000_700);
    let block = written(&store, 1, &data);
    let before = store.read(&block).unwrap();
    assert_eq!(files(root.path(), &block), [2, 0]);
    let used: Vec<u64> = store.volumes().storage_reports().iter().map(|report| report.used_bytes).collect();

    let storage = store.move_to_type(&block, StorageType::Archive).unwrap();

    let reports = store.block_reports();
    assert_eq!(storage, reports[1].storage_id);
    assert_eq!((reports[0].replicas.len(), reports[1].replicas.len()), (0, 1));
    assert_eq!(reports[1].replicas[0].block, block.block);
    assert_eq!(files(root.path(), &block), [0, 2]);
    assert_eq!(content(&store.read(&block).unwrap()), data);
    assert_eq!(content(&before), data, "a reader that came before goes on");
    let now: Vec<u64> = store.volumes().storage_reports().iter().map(|report| report.used_bytes).collect();
    assert_eq!(now, [used[1], used[0]]);
    store.volumes().close();
    let store = two_types(root.path());
    assert_eq!(content(&store.read(&block).unwrap()), data, "after a restart");
    assert_eq!(*store.storage_of(block.block.id).unwrap(), *storage);
}

#[test]
fn what_cannot_be_moved_stays_where_it_is() {
    let root = tempfile::tempdir().unwrap();
    let store = two_types(root.path());
    let block = written(&store, 1, &bytes(1000));
    let with = |length, stamp| {
        let mut other = block.clone();
        (other.block.length, other.block.generation_stamp) = (length, GenerationStamp(stamp));
        other
    };
    let to = |block: &ExtendedBlock, storage_type| store.move_to_type(block, storage_type).unwrap_err();
    assert!(matches!(to(&block, StorageType::Disk), StoreError::Exists { .. }), "it is there already");
    assert!(matches!(to(&block, StorageType::Ssd), StoreError::OutOfSpace(1000)), "there is no such volume");
    assert!(matches!(to(&with(1000, 1002), StorageType::Archive), StoreError::GenerationStamp { .. }));
    assert!(matches!(to(&with(999, 1001), StorageType::Archive), StoreError::Range(_)));
    let open = store.create_rbw(&new(2, 1001)).unwrap();
    let being_written = ExtendedBlock { pool: POOL.into(), block: open.block() };
    assert!(matches!(to(&being_written, StorageType::Archive), StoreError::State { .. }));
    assert!(matches!(to(&common::block(3, 1001), StorageType::Archive), StoreError::NotFound(_)));
    let foreign = ExtendedBlock { pool: "BP-other".into(), ..block.clone() };
    assert!(matches!(to(&foreign, StorageType::Archive), StoreError::UnknownPool(_)));
    store.begin_recovery(&block, GenerationStamp(1005)).unwrap();
    assert!(matches!(to(&block, StorageType::Archive), StoreError::UnderRecovery { .. }));
    assert_eq!(files(root.path(), &block), [2, 0]);
    assert_eq!(content(&store.read(&block).unwrap()), bytes(1000));
}

#[test]
fn a_replica_that_does_not_match_its_checksums_is_not_moved() {
    let root = tempfile::tempdir().unwrap();
    let store = two_types(root.path());
    let data = bytes(100_000);
    let block = written(&store, 1, &data);
    let id = block.block.id;
    let path = root.path().join(format!("d0/current/{POOL}/current/finalized/subdir0/subdir0/blk_{id}"));
    let mut rotten = data.clone();
    rotten[70_000] ^= 1;
    std::fs::write(&path, &rotten).unwrap();
    let refused = store.move_to_type(&block, StorageType::Archive).unwrap_err();
    assert!(refused.to_string().contains("does not match its checksum"), "{refused}");
    assert_eq!(files(root.path(), &block), [2, 0]);
    std::fs::write(&path, &data).unwrap();
    store.move_to_type(&block, StorageType::Archive).unwrap();
}

#[test]
fn a_replica_that_was_moved_is_appended_to_and_removed_like_any_other() {
    let root = tempfile::tempdir().unwrap();
    let store = two_types(root.path());
    let block = written(&store, 1, &bytes(1000));
    store.move_to_type(&block, StorageType::Archive).unwrap();
    let writer = store.append(&block, GenerationStamp(1002), 1000).unwrap();
    let appended = ExtendedBlock { pool: POOL.into(), block: writer.finalize(false).unwrap() };
    assert_eq!(store.facts(POOL, block.block.id).unwrap().state, ReplicaState::Finalized);
    assert_eq!(files(root.path(), &block), [0, 2]);
    store.invalidate(&appended).unwrap();
    eventually("the files are removed", || files(root.path(), &block) == [0, 0]);
    // The store may forget the removal a moment after the files have gone.
    eventually("a new replica can be made", || store.create_rbw(&new(1, 1001)).is_ok());
}

/// While a reader opens the block file, the replica is moved away, so that the file is missing. While the store looks whether the volume is
/// there, the replica comes back. Then nothing is missing.
#[test]
fn a_replica_that_comes_back_while_a_reader_misses_it_is_not_forgotten() {
    let root = tempfile::tempdir().unwrap();
    let (disk, env) = HookedDisk::new();
    let store = two_types_of(root.path(), env);
    let block = written(&store, 1, &bytes(1000));
    let (home, step) = (root.path().join("d0"), AtomicUsize::new(0));
    let (mover, moved) = (store.clone(), block.clone());
    disk.set(move |asked, path| {
        let is_here = path.starts_with(&home);
        let is_version = path.ends_with("VERSION");
        match (asked, step.load(Ordering::SeqCst)) {
            (Asked::Open(OpenMode::Read), 0) if is_here && !is_version => {
                step.store(1, Ordering::SeqCst);
                mover.move_to_type(&moved, StorageType::Archive).unwrap();
                step.store(2, Ordering::SeqCst);
            }
            (Asked::Open(_), 2) if is_here && is_version => {
                step.store(3, Ordering::SeqCst);
                mover.move_to_type(&moved, StorageType::Disk).unwrap();
            }
            _ => {}
        }
        Ok(())
    });
    let read = store.read(&block);
    disk.clear();
    assert!(store.facts(POOL, block.block.id).is_ok(), "the replica is there, and is known");
    assert_eq!(content(&read.unwrap()), bytes(1000));
}

/// Readers, an appender and two movers use one replica at the same time. Some of their calls fail, but no byte is lost.
#[test]
fn moves_to_and_fro_under_readers_and_appends_lose_no_byte() {
    let root = tempfile::tempdir().unwrap();
    let store = two_types(root.path());
    let data = bytes(50_000);
    let first = written(&store, 1, &data);
    let id = first.block.id;
    let (stop, moves) = (AtomicBool::new(false), AtomicUsize::new(0));
    let is_over = || stop.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let mover = |types: [StorageType; 2]| {
            let (store, first, moves) = (store.clone(), first.clone(), &moves);
            move || {
                while !is_over() {
                    for storage_type in types {
                        let Ok(facts) = store.facts(POOL, id) else { panic!("the replica is gone") };
                        let block = ExtendedBlock { block: facts.block, ..first.clone() };
                        if store.move_to_type(&block, storage_type).is_ok() {
                            moves.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            }
        };
        scope.spawn(mover([StorageType::Archive, StorageType::Disk]));
        scope.spawn(mover([StorageType::Disk, StorageType::Archive]));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut reads = 0;
                    while !is_over() {
                        match store.read(&common::block(1, 1001)) {
                            Ok(reader) => {
                                assert_eq!(content(&reader), data);
                                reads += 1;
                            }
                            // An append has renamed the files between the look-up and the opening.
                            Err(StoreError::Io { .. }) => {}
                            Err(error) => panic!("it is there all the time: {error}"),
                        }
                    }
                    reads
                })
            })
            .collect();
        // An append ends the move that it meets. On a busy machine moves come through only in longer breaks between appends.
        let (mut stamp, deadline) = (1001, Instant::now() + Duration::from_secs(60));
        for round in 0.. {
            let block = ExtendedBlock { block: store.facts(POOL, id).unwrap().block, ..first.clone() };
            if let Ok(writer) = store.append(&block, GenerationStamp(stamp + 1), 50_000) {
                stamp += 1;
                writer.finalize(false).unwrap();
            }
            std::thread::sleep(Duration::from_millis(round % 20));
            let is_enough = round > 100 && stamp > 1010 && moves.load(Ordering::Relaxed) > 10;
            if is_enough || Instant::now() > deadline {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let reads: Vec<usize> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        let moves = moves.load(Ordering::Relaxed);
        assert!(reads.iter().all(|reads| *reads > 0), "{reads:?}");
        assert!(moves > 0 && stamp > 1001, "{moves} moves, stamp {stamp}");
    });
    let left = files(root.path(), &first);
    assert!(left == [2, 0] || left == [0, 2], "{left:?}");
    store.volumes().close();
    let store = two_types(root.path());
    assert_eq!(content(&store.read(&common::block(1, 1001)).unwrap()), data);
}
