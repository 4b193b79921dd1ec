//! A disk is full in the midst of a write. Part of it is in the files, and the replica ends where it ended before: also after the next start.

mod common;

use base::GenerationStamp;
use blockstore::{
    BlockStore, PoolStore, ReplicaState, ReplicaWriter, StorageType, StoreConfig, VolumeConfig,
};
use common::{POOL, block, bytes as data_bytes, content, new, pool, sums};
use env::Env;
use sim::{Dice, Fault, SimClock, SimDisk, SimRandom};
use std::sync::Arc;

const NEW_STAMP: GenerationStamp = GenerationStamp(1010);

fn start(disk: &SimDisk) -> PoolStore {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        disk: Arc::new(disk.clone()),
        random: Arc::new(SimRandom::new(Dice::new(7))),
        descriptors: Arc::new(env::Descriptors::new(1 << 20)),
    };
    let volume = VolumeConfig { path: "/data".into(), storage_type: StorageType::Disk };
    let store =
        BlockStore::open(env, StoreConfig { threads_per_volume: 1, ..StoreConfig::new(vec![volume]) });
    store.unwrap().serve_pool(&pool()).unwrap()
}

/// Writes on to `end`, from the beginning of the last chunk, as clients do.
fn write_on(writer: &mut ReplicaWriter, end: usize) -> bool {
    let begin = writer.block().length as usize / 512 * 512;
    let data = data_bytes(end);
    writer.write(begin as u64, &data[begin..], &sums(&data[begin..])).is_ok()
}

/// What becomes of a replica whose last write has failed; the length that it ends with.
type End = fn(&PoolStore, ReplicaWriter, length: usize) -> usize;

fn is_recovered(store: &PoolStore, writer: ReplicaWriter, length: usize) -> usize {
    drop(writer);
    let candidate = store.begin_recovery(&block(1, 1001), NEW_STAMP).unwrap().unwrap();
    let mut old = block(1, 0);
    old.block = candidate.block;
    store.finish_recovery(&old, NEW_STAMP, length as u64).unwrap();
    length
}

fn is_closed_by_another(store: &PoolStore, writer: ReplicaWriter, length: usize) -> usize {
    writer.acknowledger().acknowledge(length as u64);
    drop(writer);
    store.recover_close(&block(1, 1001), NEW_STAMP, length as u64).unwrap();
    length
}

fn is_finished(_: &PoolStore, writer: ReplicaWriter, length: usize) -> usize {
    writer.finalize(true).unwrap();
    length
}

/// By less than what was lost.
fn is_written_on(store: &PoolStore, writer: ReplicaWriter, length: usize) -> usize {
    writer.acknowledger().acknowledge(length as u64);
    drop(writer);
    let bound = length as u64;
    let mut writer = store.recover_rbw(&block(1, 1001), NEW_STAMP, bound, bound).unwrap();
    assert!(write_on(&mut writer, length + 3));
    writer.finalize(true).unwrap();
    length + 3
}

#[test]
fn what_a_failed_write_leaves_is_no_part_of_the_replica_after_a_start() {
    let ends: [End; 4] = [is_recovered, is_closed_by_another, is_finished, is_written_on];
    for (way, end) in ends.into_iter().enumerate() {
        // In the midst of a chunk and at its end; the data does not fit, or its sums do not.
        for (length, failing) in [(1300, 0), (1300, 1), (1024, 0), (1024, 1)] {
            let disk = SimDisk::new(Dice::new(1));
            let store = start(&disk);
            let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
            assert!(write_on(&mut writer, length));
            disk.fail_write(failing, Fault::Full);
            assert!(!write_on(&mut writer, 5000));
            let wanted = end(&store, writer, length);
            let what = format!("way {way}, {length} bytes, write {failing}");
            let stamp = store.facts(POOL, block(1, 0).block.id).unwrap().block.generation_stamp;
            assert_eq!(content(&store.read(&block(1, stamp.0)).unwrap()), data_bytes(wanted), "{what}");
            store.volumes().close();
            drop(store);

            let store = start(&disk);
            let facts = store.facts(POOL, block(1, 0).block.id).unwrap();
            assert_eq!((facts.state, facts.block.length), (ReplicaState::Finalized, wanted as u64), "{what}");
            assert_eq!(content(&store.read(&block(1, stamp.0)).unwrap()), data_bytes(wanted), "{what}");
        }
    }
}
