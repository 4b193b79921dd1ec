//! Several block pools on the same volumes. A block id is that of one block in each pool.

mod common;

use base::{Block, ExtendedBlock};
use blockstore::{BlockStore, NewReplica, OpenError, POOL_COUNT_MAX, PoolInfo, PoolStore, VolumeIndex};
use common::{Seen, config, content, eventually, fill, pool};
use env::Env;
use std::{path::Path, sync::Arc};

const SECOND: &str = "BP-1235-127.0.0.1-1700000000000";

fn second() -> PoolInfo {
    PoolInfo { pool: SECOND.into(), namespace_id: 78, ..pool() }
}

/// Opens a store with both pools.
fn open(root: &Path, volumes: usize) -> [PoolStore; 2] {
    let store = BlockStore::open(Env::production(), config(root, volumes)).unwrap();
    [pool(), second()].map(|pool| store.serve_pool(&pool).unwrap())
}

/// The block with this number, in the pool.
fn block(of: &PoolStore, id: u64) -> ExtendedBlock {
    ExtendedBlock { pool: of.info().pool.clone(), ..common::block(id, 1001) }
}

fn store_block(pool: &PoolStore, id: u64, data: &[u8]) -> Block {
    let new = NewReplica { block: block(pool, id), ..common::new(id, 1001) };
    let mut writer = pool.create_rbw(&new).unwrap();
    fill(&mut writer, data, 512);
    writer.finalize(false).unwrap()
}

fn read(pool: &PoolStore, id: u64) -> Vec<u8> {
    content(&pool.read(&block(pool, id)).unwrap())
}

/// Bytes of a replica and its sums.
fn size(length: u64) -> u64 {
    length + 7 + 4 * length.div_ceil(512)
}

#[test]
fn one_block_id_is_a_block_in_each_pool() {
    let root = tempfile::tempdir().unwrap();
    let [one, other] = open(root.path(), 1);
    store_block(&one, 1, &[1; 1_000]);
    store_block(&other, 1, &[2; 2_000]);
    assert_eq!((read(&one, 1), read(&other, 1)), (vec![1; 1_000], vec![2; 2_000]));
    for pool in [&*pool().pool, SECOND] {
        let name = format!("d0/current/{pool}/current/finalized/subdir0/subdir0/blk_1073741825");
        assert!(root.path().join(name).is_file(), "each pool has a directory of its own");
    }
    // A store knows its own pool only.
    assert!(one.read(&block(&other, 1)).is_err() && other.invalidate(&block(&one, 1)).is_err());

    // The volume's figure is the sum, as in HDFS.
    let volume = VolumeIndex(0);
    assert_eq!((one.used_bytes(volume), other.used_bytes(volume)), (size(1_000), size(2_000)));
    assert_eq!(one.volumes().storage_reports()[0].used_bytes, size(1_000) + size(2_000));

    one.invalidate(&block(&one, 1)).unwrap();
    eventually("the files of the one are gone", || one.used_bytes(volume) == 0);
    assert_eq!(read(&other, 1), vec![2; 2_000]);
    assert_eq!(other.volumes().storage_reports()[0].used_bytes, size(2_000));
}

#[test]
fn a_restart_finds_the_replicas_of_each_pool() {
    let root = tempfile::tempdir().unwrap();
    let [one, other] = open(root.path(), 2);
    for id in 1..=3 {
        store_block(&one, id, &[1; 700]);
    }
    store_block(&other, 2, &[2; 900]);
    one.volumes().close();
    drop((one, other));

    let [one, other] = open(root.path(), 2);
    assert_eq!((one.replica_count(), other.replica_count()), (3, 1));
    assert_eq!((read(&one, 2), read(&other, 2)), (vec![1; 700], vec![2; 900]));
    let used = |pool: &PoolStore| (0..2).map(|at| pool.used_bytes(VolumeIndex(at))).sum::<u64>();
    assert_eq!((used(&one), used(&other)), (3 * size(700), size(900)));
}

#[test]
fn a_lost_volume_is_told_to_each_pool_by_its_own_blocks() {
    let root = tempfile::tempdir().unwrap();
    let pools = open(root.path(), 2);
    let seen = [Arc::new(Seen::default()), Arc::new(Seen::default())];
    let mut lost = [Vec::new(), Vec::new()];
    for (number, pool) in pools.iter().enumerate() {
        pool.set_observer(seen[number].clone());
        for id in 1..=4 {
            let stored = store_block(pool, id, &[9; 600]);
            if pool.storage_of(stored.id).unwrap() == *pools[0].volumes().storage_id(VolumeIndex(0)) {
                lost[number].push(stored);
            }
        }
        assert!(!lost[number].is_empty() && lost[number].len() < 4, "both volumes have blocks of each pool");
    }
    pools[0].volumes().fail_volume(VolumeIndex(0), "pulled out");
    for number in 0..2 {
        assert_eq!(*seen[number].lost.lock().unwrap(), lost[number]);
        assert_eq!(pools[number].replica_count(), 4 - lost[number].len());
    }
}

#[test]
fn a_pool_of_another_cluster_is_refused_and_the_others_stay() {
    let root = tempfile::tempdir().unwrap();
    let [one, _] = open(root.path(), 1);
    store_block(&one, 1, b"clover");
    let foreign = PoolInfo { cluster: "CID-other".into(), pool: "BP-3-127.0.0.1-1".into(), ..pool() };
    let refused = one.volumes().serve_pool(&foreign).unwrap_err();
    assert!(matches!(refused, OpenError::Foreign { key: "clusterID", .. }), "{refused}");
    assert!(!root.path().join("d0/current/BP-3-127.0.0.1-1").exists(), "nothing was made");
    assert_eq!(read(&one, 1), b"clover");
}

#[test]
fn there_are_only_so_many_pools() {
    let root = tempfile::tempdir().unwrap();
    let store = BlockStore::open(Env::production(), config(root.path(), 1)).unwrap();
    let numbered = |number: usize| PoolInfo { pool: format!("BP-{number}-127.0.0.1-1").into(), ..pool() };
    for number in 0..POOL_COUNT_MAX {
        store.serve_pool(&numbered(number)).unwrap();
    }
    let refused = store.serve_pool(&numbered(POOL_COUNT_MAX)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "block pool BP-64-127.0.0.1-1 is not served here: this data server serves 64 others, and no more are possible"
    );
    store.serve_pool(&numbered(3)).unwrap();
}

/// Otherwise the place of a disk that is not mounted would be taken for a new disk, because a group is new.
#[test]
fn a_new_pool_does_not_make_an_old_cluster_new() {
    let root = tempfile::tempdir().unwrap();
    let old = PoolInfo { created_ms: 1_700_000_000_000, ..pool() };
    let all = [config(root.path(), 1), config(root.path(), 2)];
    for volume in &all[0].volumes {
        std::fs::create_dir(&volume.path).unwrap();
    }
    BlockStore::open(Env::production(), all[0].clone()).unwrap().serve_pool(&old).unwrap();
    let store = BlockStore::open(Env::production(), all[1].clone()).unwrap();
    let refused = store.serve_pool(&second()).unwrap_err();
    assert!(matches!(refused, OpenError::Missing { .. }), "{refused}");
}

/// The directory is this server's from the first pool on: an older pool, or one that is met later, finds it made.
#[test]
fn a_directory_that_was_made_for_one_pool_is_there_for_the_next() {
    let root = tempfile::tempdir().unwrap();
    let store = BlockStore::open(Env::production(), config(root.path(), 1)).unwrap();
    store.serve_pool(&pool()).unwrap();
    store.serve_pool(&PoolInfo { created_ms: 1_700_000_000_000, ..second() }).unwrap();
}

/// Several metadata servers of each pool shake hands at once.
#[test]
fn a_pool_that_several_ask_for_at_once_is_opened_once() {
    let root = tempfile::tempdir().unwrap();
    let [one, other] = open(root.path(), 2);
    store_block(&one, 1, &[1; 700]);
    store_block(&other, 1, &[2; 900]);
    one.volumes().close();
    drop((one, other));

    let store = BlockStore::open(Env::production(), config(root.path(), 2)).unwrap();
    let all: Vec<PoolStore> = std::thread::scope(|scope| {
        let handshake = |at: usize| {
            let (store, pool) = (&store, [pool(), second()][at % 2].clone());
            scope.spawn(move || store.serve_pool(&pool).unwrap())
        };
        let running: Vec<_> = (0..16).map(handshake).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let used: u64 = store.storage_reports().iter().map(|report| report.used_bytes).sum();
    assert_eq!(used, size(700) + size(900));
    // They are one value: what one of them makes, the others have.
    store_block(&all[0], 2, &[1; 10]);
    store_block(&all[1], 3, &[2; 10]);
    for (at, pool) in all.iter().enumerate() {
        assert_eq!(pool.read(&block(pool, 2)).is_ok(), at % 2 == 0);
        assert_eq!(pool.read(&block(pool, 3)).is_ok(), at % 2 == 1);
    }
}
