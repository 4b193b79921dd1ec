//! A directory that a Hadoop 3.5.0 DataNode left behind, taken over as it is.
//!
//! `tests/data/hadoop-3.5.0-datanode` was written by the real one: a file of 3,000 bytes, put twice. (Its empty
//! directories are left out, as git has none.)

mod common;

use base::{Block, BlockId, ExtendedBlock, GenerationStamp};
use blockstore::{
    BlockStore, Checksum, PoolInfo, PoolStore, ReplicaState, StorageType, StoreConfig, VolumeConfig,
    VolumeIndex,
};
use common::{content, copy};
use env::Env;
use std::{fs, path::Path};

const POOL: &str = "BP-1897328119-127.0.0.1-1795248668531";

fn take_over(root: &Path) -> PoolStore {
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hadoop-3.5.0-datanode"), root);
    let volume = VolumeConfig { path: root.into(), storage_type: StorageType::Disk };
    let store = BlockStore::open(Env::production(), StoreConfig::new(vec![volume])).unwrap();
    let pool = PoolInfo {
        pool: POOL.into(),
        cluster: "CID-c5bb2832-4ddd-46e0-b4b6-cf850c88996a".into(),
        namespace_id: 1_856_947_803,
        created_ms: 1_795_248_668_537,
    };
    store.serve_pool(&pool).unwrap()
}

#[test]
fn identity_and_replicas_are_those_of_the_datanode() {
    let root = tempfile::tempdir().unwrap();
    let store = take_over(root.path());
    assert_eq!(&**store.volumes().uuid(), "5ef584e6-094d-469b-a399-1dd62d6f7480");
    assert_eq!(&**store.volumes().storage_id(VolumeIndex(0)), "DS-296626d9-75d9-4175-96c7-839038ace8c4");
    let report = &store.block_reports()[0];
    let found: Vec<_> = report
        .replicas
        .iter()
        .map(|facts| (facts.block.id.0, facts.block.generation_stamp.0, facts.block.length, facts.state))
        .collect();
    assert_eq!(
        found,
        [
            (1_073_741_825, 1001, 3000, ReplicaState::Finalized),
            (1_073_741_826, 1002, 3000, ReplicaState::Finalized)
        ]
    );
    let read = |id, stamp| {
        let block = Block { id: BlockId(id), generation_stamp: GenerationStamp(stamp), length: 3000 };
        let reader = store.read(&ExtendedBlock { pool: POOL.into(), block }).unwrap();
        assert_eq!(reader.checksum, Checksum::DEFAULT);
        content(&reader)
    };
    let file = read(1_073_741_825, 1001);
    assert_eq!(file, read(1_073_741_826, 1002), "the same file was put twice");
}

#[test]
fn versions_stay_as_the_datanode_wrote_them() {
    let root = tempfile::tempdir().unwrap();
    take_over(root.path()).volumes().close();
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hadoop-3.5.0-datanode");
    for path in ["current/VERSION".to_owned(), format!("current/{POOL}/current/VERSION")] {
        assert_eq!(fs::read(root.path().join(&path)).unwrap(), fs::read(original.join(&path)).unwrap());
    }
}
