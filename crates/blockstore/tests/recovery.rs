//! Block recovery: the servers that have a block agree on its length.

mod common;

use base::{Block, GenerationStamp};
use blockstore::{BlockStore, Candidate, ReplicaState, StoreError};
use common::*;
use std::sync::Arc;

const RECOVERY: GenerationStamp = GenerationStamp(1010);

fn finish(store: &Arc<BlockStore>, candidate: Candidate, length: u64) -> Result<Arc<str>, StoreError> {
    let mut old = block(1, 0);
    old.block = candidate.block;
    store.finish_recovery(&old, RECOVERY, length)
}

fn begin(store: &Arc<BlockStore>) -> Candidate {
    store.begin_recovery(&block(1, 1001), RECOVERY).unwrap().unwrap()
}

fn is_finished(store: &BlockStore, length: usize) {
    let facts = store.facts(POOL, block(1, 0).block.id).unwrap();
    let wanted = Block { generation_stamp: RECOVERY, length: length as u64, ..block(1, 0).block };
    assert_eq!((facts.state, facts.block), (ReplicaState::Finalized, wanted));
    assert_eq!(content(&store.read(&block(1, 1010)).unwrap()), bytes(length));
}

#[test]
fn a_replica_being_written_is_cut_to_the_agreed_length() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    fill(&mut writer, &bytes(3000), 1024);
    let candidate = begin(&store);
    assert_eq!((candidate.state, candidate.block.length), (ReplicaState::BeingWritten, 3000));
    let late = writer.write(3000, b"x", &sums(b"x")).err().unwrap();
    assert!(matches!(late, StoreError::Replaced(_)), "{late}");
    let other = store.recover_rbw(&block(1, 1001), GenerationStamp(1011), 0, 9000).err().unwrap();
    assert!(matches!(other, StoreError::UnderRecovery { .. }), "{other}");
    assert!(matches!(finish(&store, candidate, 3001), Err(StoreError::Range(_))));
    finish(&store, candidate, 2700).unwrap();
    drop(writer);
    is_finished(&store, 2700);
    assert!(finish(&store, candidate, 2700).is_err(), "it is over");
}

#[test]
fn an_interrupted_replica_is_finished_after_a_restart() {
    let root = tempfile::tempdir().unwrap();
    {
        let store = open(root.path(), 1);
        let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
        fill(&mut writer, &bytes(1300), 1024);
        std::mem::forget(writer);
        store.close();
    }
    let store = open(root.path(), 1);
    let candidate = begin(&store);
    assert_eq!((candidate.state, candidate.block.length), (ReplicaState::WaitingRecovery, 1300));
    finish(&store, candidate, 1300).unwrap();
    is_finished(&store, 1300);
    store.close();
    is_finished(&open(root.path(), 1), 1300);
}

#[test]
fn a_finished_replica_takes_the_stamp_and_perhaps_a_shorter_length() {
    for length in [2000, 1500] {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path(), 1);
        let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
        fill(&mut writer, &bytes(2000), 1024);
        writer.finalize(false).unwrap();
        let candidate = begin(&store);
        assert_eq!(candidate.state, ReplicaState::Finalized);
        finish(&store, candidate, length as u64).unwrap();
        is_finished(&store, length);
    }
}

#[test]
fn only_a_newer_recovery_takes_over() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    assert_eq!(store.begin_recovery(&block(1, 1001), RECOVERY).unwrap(), None);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    fill(&mut writer, &bytes(2000), 1024);
    let candidate = begin(&store);
    let again = store.begin_recovery(&block(1, 1001), RECOVERY).unwrap_err();
    assert!(matches!(again, StoreError::UnderRecovery { .. }), "{again}");
    let older = store.begin_recovery(&block(1, 1001), GenerationStamp(1001)).unwrap_err();
    assert!(matches!(older, StoreError::GenerationStamp { .. }), "{older}");
    store.begin_recovery(&block(1, 1001), GenerationStamp(1020)).unwrap().unwrap();
    assert!(finish(&store, candidate, 2000).is_err(), "another recovery has taken over");
}
