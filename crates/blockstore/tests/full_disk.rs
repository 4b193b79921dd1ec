//! A disk is full in the midst of a write. Part of it is in the files, and the replica ends where it ended before: also after the next start.

mod common;

use base::GenerationStamp;
use blockstore::{
    BlockStore, PoolStore, ReplicaState, ReplicaWriter, StorageType, StoreConfig, VolumeConfig, meta_file,
};
use common::{POOL, block, bytes as data_bytes, content, new, pool, sums};
use env::{Env, disk::read_exact_at};
use sim::{Dice, Fault, SimClock, SimDisk, SimRandom};
use std::{path::Path, sync::Arc};

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

/// The mend of a torn replica fails once, between the cut and the known sum of the last chunk. Meanwhile a byte of that chunk has rotted.
#[test]
fn a_mend_that_was_broken_off_vouches_for_no_rotten_byte() {
    let disk = SimDisk::new(Dice::new(1));
    let store = start(&disk);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    assert!(write_on(&mut writer, 1300));
    disk.fail_write(0, Fault::Full);
    assert!(!write_on(&mut writer, 5000));
    drop(writer);
    let id = block(1, 0).block.id.0;
    disk.flip_bit(Path::new(&format!("/data/current/{POOL}/current/rbw/blk_{id}")), 1290, 0);
    let recover = |known: u64, stamp: u64| {
        let stamp = GenerationStamp(stamp);
        let candidate = store.begin_recovery(&block(1, known), stamp)?.expect("it is there");
        let mut old = block(1, 0);
        old.block = candidate.block;
        store.finish_recovery(&old, stamp, 1300)
    };
    disk.fail_write(1, Fault::Full);
    assert!(recover(1001, 1010).is_err());
    // The metadata server has another recovery made, with a newer stamp.
    recover(1010, 1011).unwrap();
    let reader = store.read(&block(1, 1011)).unwrap();
    let mut kept = vec![0; 4];
    let meta = reader.meta_file.as_ref().unwrap();
    read_exact_at(&**meta, &mut kept, meta_file::HEADER_SIZE + 2 * 4).unwrap();
    assert_eq!(kept, sums(&data_bytes(1300)[1024..]), "the sum is that of the bytes that were written");
}
