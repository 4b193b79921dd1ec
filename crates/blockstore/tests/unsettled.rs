//! The observer of a store hears when a finished replica changes or goes, and can tell the clients that have its files open.

mod common;

use base::{BlockId, ExtendedBlock, GenerationStamp};
use blockstore::{BlockStore, PoolStore, StorageType, StoreConfig, VolumeConfig, VolumeIndex};
use common::*;
use env::Env;
use std::{fs, path::Path, sync::Arc};

const LENGTH: usize = 1300;

/// A volume of disk and one of archive, the finished replicas 1 and 2 on the first, and what the observer has seen since.
fn two_replicas(root: &Path) -> (PoolStore, Arc<Seen>) {
    let volume = |name: &str, storage_type| VolumeConfig { path: root.join(name), storage_type };
    let volumes = vec![volume("d0", StorageType::Disk), volume("d1", StorageType::Archive)];
    let store = BlockStore::open(Env::production(), StoreConfig::new(volumes)).unwrap();
    let pool = store.serve_pool(&pool()).unwrap();
    let seen = Arc::<Seen>::default();
    pool.set_observer(seen.clone());
    for id in [1, 2] {
        store_block(&pool, id, LENGTH);
    }
    assert_eq!(told(&seen), [], "nobody has files of a replica that is only just finished");
    (pool, seen)
}

fn told(seen: &Seen) -> Vec<BlockId> {
    std::mem::take(&mut *seen.unsettled.lock().unwrap())
}

fn first() -> BlockId {
    block(1, 0).block.id
}

fn first_as_it_is(pool: &PoolStore) -> ExtendedBlock {
    ExtendedBlock { pool: POOL.into(), block: pool.facts(POOL, first()).unwrap().block }
}

#[test]
fn a_removal_is_told_before_the_order_is_answered() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = two_replicas(root.path());
    pool.invalidate(&block(1, 1001)).unwrap();
    assert_eq!(told(&seen), [first()]);
}

#[test]
fn an_append_is_told_before_a_byte_changes() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = two_replicas(root.path());
    let writer = pool.append(&block(1, 1001), GenerationStamp(1002), LENGTH as u64).unwrap();
    assert_eq!(told(&seen), [first()]);
    writer.finalize(false).unwrap();
    assert_eq!(told(&seen), []);
}

#[test]
fn a_recovery_that_cuts_is_told_and_one_that_only_raises_the_stamp_is_not() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = two_replicas(root.path());
    for (recovery, length) in [(1010, LENGTH), (1011, LENGTH - 1)] {
        let recovery = GenerationStamp(recovery);
        let candidate = pool.begin_recovery(&first_as_it_is(&pool), recovery).unwrap().unwrap();
        let found = ExtendedBlock { pool: POOL.into(), block: candidate.block };
        pool.finish_recovery(&found, recovery, length as u64).unwrap();
        assert_eq!(told(&seen).len(), usize::from(length < LENGTH));
    }
}

#[test]
fn a_move_to_another_volume_is_told() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = two_replicas(root.path());
    pool.move_to_type(&first_as_it_is(&pool), StorageType::Archive).unwrap();
    assert_eq!(told(&seen), [first()]);
}

#[test]
fn a_lost_volume_is_told_for_each_replica() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = two_replicas(root.path());
    pool.volumes().fail_volume(VolumeIndex(0), "pulled out");
    let mut lost = told(&seen);
    lost.sort_unstable();
    assert_eq!(lost, [first(), block(2, 0).block.id]);
}

#[test]
fn a_block_file_that_has_vanished_is_told() {
    let root = tempfile::tempdir().unwrap();
    let (pool, seen) = two_replicas(root.path());
    let (block_file, _) = files(root.path(), 0, first_as_it_is(&pool).block);
    fs::remove_file(block_file).unwrap();
    assert!(pool.read(&block(1, 1001)).is_err());
    assert_eq!(told(&seen), [first()]);
}
