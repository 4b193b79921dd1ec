//! The start of a store on directories that hold its own replicas, remnants of a crash, or files of other programs.

mod common;

use blockstore::{BlockStore, OpenError, PoolInfo, PoolStore, ReplicaState};
use common::*;
use env::Env;
use std::{
    fs,
    path::{Path, PathBuf},
};

fn pool_dir(root: &Path) -> PathBuf {
    root.join("d0/current").join(POOL)
}

fn finalized(root: &Path) -> PathBuf {
    pool_dir(root).join("current/finalized/subdir0/subdir0")
}

fn rbw(root: &Path) -> PathBuf {
    pool_dir(root).join("current/rbw")
}

/// The one replica that the store has.
fn only(store: &PoolStore) -> (ReplicaState, u64, u64) {
    let reports = store.block_reports();
    let replicas: Vec<_> = reports.iter().flat_map(|report| &report.replicas).collect();
    assert_eq!(replicas.len(), 1);
    let facts = replicas[0];
    (facts.state, facts.block.generation_stamp.0, facts.block.length)
}

fn edit_version(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

fn open_error(root: &Path, pool: &PoolInfo) -> OpenError {
    match BlockStore::open(Env::production(), config(root, 1)) {
        Ok(store) => store.serve_pool(pool).unwrap_err(),
        Err(error) => error,
    }
}

#[test]
fn finished_replicas_and_identity_survive() {
    let root = tempfile::tempdir().unwrap();
    let (uuid, storage) = {
        let store = open(root.path(), 2);
        for id in 1..=10 {
            let mut writer = store.create_rbw(&new(id << 8, 1001)).unwrap();
            fill(&mut writer, &bytes(1000 * id as usize), 1024);
            writer.finalize(true).unwrap();
        }
        store.volumes().close();
        (store.volumes().uuid().clone(), store.volumes().storage_id(blockstore::VolumeIndex(1)).clone())
    };
    let store = open(root.path(), 2);
    assert_eq!(
        (store.volumes().uuid(), store.volumes().storage_id(blockstore::VolumeIndex(1))),
        (&uuid, &storage)
    );
    assert_eq!(store.replica_count(), 10);
    for id in 1..=10 {
        let data = content(&store.read(&block(id << 8, 1001)).unwrap());
        assert_eq!(data, bytes(1000 * id as usize));
    }
}

#[test]
fn a_replica_being_written_waits_for_recovery() {
    let root = tempfile::tempdir().unwrap();
    {
        let store = open(root.path(), 1);
        let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
        fill(&mut writer, &bytes(1300), 1024);
        let mut copy = store.create_temporary(&new(2, 1001)).unwrap();
        fill(&mut copy, &bytes(1300), 1024);
        // A kill leaves no time to tidy up.
        std::mem::forget((writer, copy));
        store.volumes().close();
    }
    let store = open(root.path(), 1);
    assert_eq!(only(&store), (ReplicaState::WaitingRecovery, 1001, 1300));
    assert!(store.read(&block(1, 1001)).is_err());
    assert_eq!(fs::read_dir(pool_dir(root.path()).join("tmp")).unwrap().count(), 0);
    store.invalidate(&block(1, 1001)).unwrap();
    eventually("its files go", || fs::read_dir(rbw(root.path())).unwrap().count() == 0);
}

#[test]
fn bytes_without_sums_are_cut_off_and_acknowledged_ones_stay() {
    // A client has hflushed 1300 bytes; the process dies when the next packet's data is on disk and its sums
    // are not: the last sum covers 276 bytes of a chunk that has 512 by now.
    let root = tempfile::tempdir().unwrap();
    {
        let store = open(root.path(), 1);
        let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
        fill(&mut writer, &bytes(1300), 1024);
        std::mem::forget(writer);
        store.volumes().close();
    }
    let path = rbw(root.path()).join(format!("blk_{}", block(1, 0).block.id));
    fs::write(&path, bytes(5000)).unwrap();
    let store = open(root.path(), 1);
    assert_eq!(only(&store), (ReplicaState::WaitingRecovery, 1001, 1300));
    assert_eq!(fs::read(&path).unwrap(), bytes(1300));
    store.volumes().close();
    // A flipped bit in the last chunk: that chunk is not vouched for.
    let mut data = bytes(1300);
    data[1100] ^= 1;
    fs::write(&path, data).unwrap();
    assert_eq!(only(&open(root.path(), 1)), (ReplicaState::WaitingRecovery, 1001, 1024));
}

#[test]
fn a_move_interrupted_between_its_two_renames_is_finished() {
    let root = tempfile::tempdir().unwrap();
    let finished = {
        let store = open(root.path(), 1);
        let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
        fill(&mut writer, &bytes(1300), 1024);
        let finished = writer.finalize(false).unwrap();
        store.volumes().close();
        finished
    };
    let name = format!("blk_{}", finished.id);
    fs::rename(finalized(root.path()).join(&name), rbw(root.path()).join(&name)).unwrap();
    let store = open(root.path(), 1);
    assert_eq!(only(&store), (ReplicaState::Finalized, 1001, 1300));
    assert_eq!(content(&store.read(&block(1, 1001)).unwrap()), bytes(1300));
    store.volumes().close();
    // This time the power failed as well, and the end of the data is lost: the replica is not complete.
    fs::write(rbw(root.path()).join(&name), bytes(1100)).unwrap();
    fs::remove_file(finalized(root.path()).join(&name)).unwrap();
    assert_eq!(only(&open(root.path(), 1)), (ReplicaState::WaitingRecovery, 1001, 1024));
}

#[test]
fn a_missing_or_short_meta_file_is_recognised() {
    let root = tempfile::tempdir().unwrap();
    let finished = {
        let store = open(root.path(), 1);
        let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
        fill(&mut writer, &bytes(5000), 1024);
        let finished = writer.finalize(false).unwrap();
        store.volumes().close();
        finished
    };
    let meta = finalized(root.path()).join(format!("blk_{}_1001.meta", finished.id));
    let whole = fs::read(&meta).unwrap();
    for (length, covered) in [(7 + 5 * 4, 2560), (7, 0), (3, 0)] {
        fs::write(&meta, &whole[..length]).unwrap();
        let store = open(root.path(), 1);
        assert_eq!(only(&store), (ReplicaState::Finalized, 1001, covered));
        store.volumes().close();
    }
    fs::remove_file(&meta).unwrap();
    let store = open(root.path(), 1);
    assert_eq!(only(&store), (ReplicaState::Finalized, 0, 5000));
    assert!(store.read(&block(1, 0)).unwrap().meta_file.is_none());
}

#[test]
fn a_directory_serves_one_process() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let error = open_error(root.path(), &pool());
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    store.volumes().close();
    open(root.path(), 1);
}

#[test]
fn a_directory_of_another_cluster_is_refused() {
    let root = tempfile::tempdir().unwrap();
    open(root.path(), 1).volumes().close();
    let error = open_error(root.path(), &PoolInfo { cluster: "CID-other".into(), ..pool() });
    assert!(matches!(error, OpenError::Foreign { key: "clusterID", .. }), "{error}");
    let error = open_error(root.path(), &PoolInfo { namespace_id: 78, ..pool() });
    assert!(matches!(error, OpenError::Foreign { key: "namespaceID", .. }), "{error}");
    let error = open_error(root.path(), &PoolInfo { pool: "BP-/../..".into(), ..pool() });
    assert!(matches!(error, OpenError::Version { .. }), "{error}");
}

#[test]
fn another_layout_is_refused() {
    for (other, what) in [("-58", "newer"), ("-56", "older")] {
        let root = tempfile::tempdir().unwrap();
        open(root.path(), 1).volumes().close();
        edit_version(
            &root.path().join("d0/current/VERSION"),
            "layoutVersion=-57",
            &format!("layoutVersion={other}"),
        );
        let error = open_error(root.path(), &pool());
        assert!(matches!(error, OpenError::Layout { .. }), "{what}: {error}");
    }
}

#[test]
fn version_files_that_make_no_sense_are_refused() {
    for (from, to) in [
        ("layoutVersion=-57", "layoutVersion=many"),
        ("layoutVersion=-57", ""),
        ("storageID=", "storage="),
        ("storageType=DATA_NODE", "storageType=NAME_NODE"),
    ] {
        let root = tempfile::tempdir().unwrap();
        open(root.path(), 1).volumes().close();
        edit_version(&root.path().join("d0/current/VERSION"), from, to);
        let error = open_error(root.path(), &pool());
        assert!(matches!(error, OpenError::Version { .. } | OpenError::Foreign { .. }), "{from}: {error}");
    }
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("d0/current/photos")).unwrap();
    assert!(matches!(open_error(root.path(), &pool()), OpenError::Version { .. }));
}

#[test]
fn directories_of_two_servers_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let uuid = open(root.path(), 2).volumes().uuid().to_string();
    edit_version(&root.path().join("d1/current/VERSION"), &uuid, "00000000-0000-0000-0000-000000000000");
    let error = BlockStore::open(Env::production(), config(root.path(), 2)).err().unwrap();
    assert!(
        matches!(error, OpenError::Uuid { .. }) || matches!(error, OpenError::TooManyFailed { .. }),
        "{error}"
    );
}

#[test]
fn a_broken_directory_is_tolerated_when_the_configuration_says_so() {
    let root = tempfile::tempdir().unwrap();
    open(root.path(), 2).volumes().close();
    fs::remove_dir_all(root.path().join("d1")).unwrap();
    fs::write(root.path().join("d1"), "not a directory").unwrap();
    let mut config = config(root.path(), 2);
    let error = BlockStore::open(Env::production(), config.clone()).err().unwrap();
    assert!(matches!(error, OpenError::TooManyFailed { .. }), "{error}");
    config.failed_volumes_tolerated = 1;
    let store = BlockStore::open(Env::production(), config).unwrap();
    let store = store.serve_pool(&pool()).unwrap();
    assert_eq!(store.volumes().failed_volumes().len(), 1);
}
