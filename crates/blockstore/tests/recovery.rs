//! Block recovery: the servers that have a block agree on its length.

mod common;

use base::{Block, GenerationStamp};
use blockstore::{Candidate, PoolStore, ReplicaState, StoreError};
use common::*;
use std::sync::Arc;

const RECOVERY: GenerationStamp = GenerationStamp(1010);

fn finish(store: &PoolStore, candidate: Candidate, length: u64) -> Result<Arc<str>, StoreError> {
    let mut old = block(1, 0);
    old.block = candidate.block;
    store.finish_recovery(&old, RECOVERY, length)
}

fn begin(store: &PoolStore) -> Candidate {
    store.begin_recovery(&block(1, 1001), RECOVERY).unwrap().unwrap()
}

fn is_finished(store: &PoolStore, length: usize) {
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
        store.volumes().close();
    }
    let store = open(root.path(), 1);
    let candidate = begin(&store);
    assert_eq!((candidate.state, candidate.block.length), (ReplicaState::WaitingRecovery, 1300));
    finish(&store, candidate, 1300).unwrap();
    is_finished(&store, 1300);
    store.volumes().close();
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

/// The bytes of block 2, which is made of the first ones of block 1.
fn copied(store: &PoolStore, recovery: u64, length: u64) -> Result<Vec<u8>, StoreError> {
    let recovery = GenerationStamp(recovery);
    let candidate = store.begin_recovery(&block(1, 1001), recovery)?.unwrap();
    let old = base::ExtendedBlock { block: candidate.block, ..block(1, 0) };
    store.finish_recovery_as_copy(&old, recovery, length, block(2, 0).block.id)?;
    Ok(content(&store.read(&block(2, recovery.0))?))
}

#[test]
fn a_copy_has_the_first_bytes_and_leaves_the_other_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let all = bytes(3 << 20);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    fill(&mut writer, &all, 1 << 16);
    writer.finalize(false).unwrap();
    // The later ones take over from those before, whose outcome nobody took.
    for (stamp, length) in (1010..).zip([all.len(), (2 << 20) + 513, 1 << 20, 512, 1]) {
        assert!(copied(&store, stamp, length as u64).unwrap() == all[..length], "{length}");
        assert!(content(&store.read(&block(1, 1001)).unwrap()) == all);
        let facts = store.facts(POOL, block(2, 0).block.id).unwrap();
        assert_eq!((facts.state, facts.block.length), (ReplicaState::Finalized, length as u64));
    }
    let late = store.finish_recovery_as_copy(&block(1, 1001), RECOVERY, 1, block(2, 0).block.id);
    assert!(matches!(late, Err(StoreError::State { .. })), "{late:?}");
    store.volumes().close();
    let store = open(root.path(), 1);
    assert_eq!(content(&store.read(&block(2, 1014)).unwrap()), all[..1]);
    assert!(content(&store.read(&block(1, 1001)).unwrap()) == all);
}

#[test]
fn what_does_not_match_its_checksums_is_not_copied() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    let mut wrong = sums(&bytes(2000));
    wrong[5] ^= 1;
    writer.write(0, &bytes(2000), &wrong).unwrap();
    writer.finalize(false).unwrap();
    let refused = copied(&store, 1010, 600).unwrap_err();
    assert!(refused.to_string().contains("the chunk at offset 512"), "{refused}");
    assert!(store.facts(POOL, block(2, 0).block.id).is_err(), "nothing is left of it");
    assert_eq!(copied(&store, 1011, 512).unwrap(), bytes(512));
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

/// A recovery was agreed on without this server, which was slow: the others have the block under its stamp, and one of them has sent a copy. The copy is a
/// replica like any other, and the late word to take the agreed length is not about it.
#[test]
fn a_copy_ends_the_recovery_of_the_replica_that_it_replaces() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    fill(&mut writer, &bytes(3000), 1024);
    let candidate = begin(&store);
    let mut copy = store.create_temporary(&new(1, 1010)).unwrap();
    drop(writer);
    fill(&mut copy, &bytes(3000), 1024);
    assert!(finish(&store, candidate, 3000).is_err(), "it is over");
    copy.finalize(true).unwrap();
    is_finished(&store, 3000);
    let appended = store.append(&block(1, 1010), GenerationStamp(1011), 3000);
    assert!(appended.is_ok(), "{:?}", appended.err());
}
