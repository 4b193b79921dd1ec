//! A data server's directory that release 0.1.0 left behind; the bytes were recorded from it by `tests/upgrade/record`.

mod common;

use base::ExtendedBlock;
use blockstore::{BlockStore, PoolInfo, ReplicaState, StorageType, StoreConfig, VolumeConfig};
use common::{content, copy};
use env::Env;
use std::{collections::BTreeMap, fs, path::Path};

/// The bytes that the recording script wrote for this seed.
fn recorded_content(seed: u64, length: u64) -> Vec<u8> {
    (0..length).map(|at| ((at * 7 + seed) % 251) as u8).collect()
}

#[test]
fn every_replica_of_the_older_release_reads_back() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recorded/0.1.0");
    let root = tempfile::tempdir().unwrap();
    copy(&recorded.join("data"), root.path());
    let cluster = fs::read_to_string(recorded.join("meta/CLUSTER")).unwrap();
    let values: BTreeMap<&str, &str> = cluster.lines().filter_map(|line| line.split_once('=')).collect();
    let pool = PoolInfo {
        pool: values["blockpoolID"].into(),
        cluster: values["clusterID"].into(),
        namespace_id: values["namespaceID"].parse().unwrap(),
        created_ms: values["cTime"].parse().unwrap(),
    };
    let volume = VolumeConfig { path: root.path().into(), storage_type: StorageType::Disk };
    let store = BlockStore::open(Env::production(), StoreConfig::new(vec![volume])).unwrap();
    let store = store.serve_pool(&pool).unwrap();
    let mut found: Vec<(u64, Vec<u8>)> = Vec::new();
    for facts in &store.block_reports()[0].replicas {
        assert_eq!(facts.state, ReplicaState::Finalized);
        let reader = store.read(&ExtendedBlock { pool: pool.pool.clone(), block: facts.block }).unwrap();
        found.push((facts.block.length, content(&reader)));
    }
    found.sort();
    let listed = fs::read_to_string(recorded.join("lone.tsv")).unwrap();
    let mut expected: Vec<(u64, Vec<u8>)> = Vec::new();
    for line in listed.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        if let (Ok(length), Ok(seed)) = (fields[3].parse(), fields[4].parse()) {
            expected.push((length, recorded_content(seed, length)));
        }
    }
    expected.sort();
    assert_eq!(expected.len(), 3);
    // A deleted file's replica may be there still.
    found.retain(|(length, _)| *length != 9);
    assert!(found == expected, "{:?}", found.iter().map(|(length, _)| length).collect::<Vec<_>>());
}
