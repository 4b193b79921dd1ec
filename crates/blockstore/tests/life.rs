//! A replica's life on a real disk: written, read, finished, taken up again, removed.

mod common;

use base::{Block, GenerationStamp};
use blockstore::{Checksum, Observer, PoolStore, ReplicaState, StoreError};
use common::*;
use std::sync::{Arc, Mutex};

#[test]
fn a_replica_is_written_finished_and_read() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let data = bytes(200_000);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    fill(&mut writer, &data, 64 * 1024);
    assert_eq!(writer.finalize(true).unwrap().length, 200_000);
    let reader = store.read(&block(1, 1001)).unwrap();
    assert_eq!((reader.state, reader.block.length), (ReplicaState::Finalized, 200_000));
    assert_eq!(content(&reader), data);
    let id = block(1, 1001).block.id.0;
    let name = format!("d0/current/{POOL}/current/finalized/subdir0/subdir0/blk_{id}");
    assert_eq!(std::fs::read(root.path().join(&name)).unwrap(), data);
    assert!(root.path().join(format!("{name}_1001.meta")).exists());
    let report = &store.block_reports()[0];
    assert_eq!(report.replicas.len(), 1);
    assert_eq!(store.volumes().storage_reports()[0].used_bytes, 200_000 + 7 + 4 * 391);
}

#[test]
fn an_empty_replica_is_one() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let block_ = store.create_rbw(&new(1, 1001)).unwrap().finalize(false).unwrap();
    assert_eq!(block_.length, 0);
    assert_eq!(content(&store.read(&block(1, 1001)).unwrap()), b"");
}

#[test]
fn readers_see_a_partial_chunk_with_its_own_sum() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let data = bytes(2000);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    writer.write(0, &data[..700], &sums(&data[..700])).unwrap();
    writer.acknowledger().acknowledge(700);
    let early = store.read(&block(1, 1001)).unwrap();
    assert_eq!((early.state, early.visible_length), (ReplicaState::BeingWritten, 700));
    // After an hflush the client repeats the partial chunk from its start.
    writer.write(512, &data[512..1500], &sums(&data[512..1500])).unwrap();
    assert_eq!(content(&early), &data[..700]);
    assert_eq!(content(&store.read(&block(1, 1001)).unwrap()), &data[..1500]);
    assert_eq!(store.facts(POOL, block(1, 0).block.id).unwrap().visible_length, 700);
    writer.sync().unwrap();
    // The whole packet again: nothing to do.
    writer.write(512, &data[512..1500], &sums(&data[512..1500])).unwrap();
    // Full chunks that are here, and new ones.
    writer.write(0, &data, &sums(&data)).unwrap();
    writer.finalize(false).unwrap();
    assert_eq!(content(&store.read(&block(1, 1001)).unwrap()), data);
}

/// `hsync` after `hflush`: there is nothing to write any more, wherever the replica ends.
#[test]
fn a_packet_without_data_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let data = bytes(1024);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    for end in [0, 5, 512, 700, 1024] {
        let start = writer.block().length as usize / 512 * 512;
        writer.write(start as u64, &data[start..end], &sums(&data[start..end])).unwrap();
        writer.write(end as u64, b"", b"").unwrap();
        assert!(writer.write(end as u64, b"", &[0; 4]).is_err(), "sums of nothing at {end}");
    }
    writer.finalize(false).unwrap();
    assert_eq!(content(&store.read(&block(1, 1001)).unwrap()), data);
}

#[test]
fn packets_that_do_not_fit_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let data = bytes(2000);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    writer.write(0, &data[..700], &sums(&data[..700])).unwrap();
    let gap = writer.write(701, &data[701..800], &sums(&data[701..800]));
    assert!(matches!(gap, Err(StoreError::Range(_))), "{gap:?}");
    let beyond = writer.write(700, &data[700..1100], &sums(&data[700..1100]));
    assert!(matches!(beyond, Err(StoreError::Range(_))), "{beyond:?}");
    let sums_missing = writer.write(512, &data[512..1600], &[0; 4]);
    assert!(matches!(sums_missing, Err(StoreError::Checksum(_))), "{sums_missing:?}");
    let overflow = writer.write(u64::MAX, &data[..10], &sums(&data[..10]));
    assert!(matches!(overflow, Err(StoreError::Range(_))), "{overflow:?}");
    assert_eq!(writer.block().length, 700);
}

#[test]
fn appends_continue_the_partial_chunk() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let data = bytes(3000);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    fill(&mut writer, &data[..1300], 1024);
    writer.finalize(false).unwrap();
    let wrong = store.append(&block(1, 1001), GenerationStamp(1005), 1299).err().unwrap();
    assert!(matches!(wrong, StoreError::State { .. }), "{wrong}");
    let mut writer = store.append(&block(1, 1001), GenerationStamp(1005), 1300).unwrap();
    assert_eq!(writer.block().generation_stamp, GenerationStamp(1005));
    // The first packet completes the chunk; its sum covers its own bytes only.
    writer.write(1300, &data[1300..1536], &Checksum::DEFAULT.sum(&data[1300..1536])).unwrap();
    writer.write(1536, &data[1536..], &sums(&data[1536..])).unwrap();
    // Readers who learnt the old stamp still get the replica.
    assert_eq!(store.read(&block(1, 1001)).unwrap().visible_length, 1300);
    writer.finalize(true).unwrap();
    let reader = store.read(&block(1, 1005)).unwrap();
    assert_eq!(content(&reader), data);
    let newer = store.read(&block(1, 1006)).err().unwrap();
    assert!(matches!(newer, StoreError::GenerationStamp { .. }), "{newer}");
}

/// Some clients append without asking for a new stamp first. Hadoop's data server refuses a stamp only if it is smaller.
#[test]
fn an_append_may_keep_the_stamp() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let data = bytes(3000);
    let mut writer = store.create_rbw(&new(1, 1005)).unwrap();
    fill(&mut writer, &data[..1300], 1024);
    writer.finalize(false).unwrap();
    let smaller = store.append(&block(1, 1005), GenerationStamp(1004), 1300).err().unwrap();
    assert!(matches!(smaller, StoreError::GenerationStamp { .. }), "{smaller}");
    let mut writer = store.append(&block(1, 1005), GenerationStamp(1005), 1300).unwrap();
    writer.write(1300, &data[1300..1536], &Checksum::DEFAULT.sum(&data[1300..1536])).unwrap();
    writer.write(1536, &data[1536..], &sums(&data[1536..])).unwrap();
    let second = store.append(&block(1, 1005), GenerationStamp(1005), 1300).err().unwrap();
    assert!(matches!(second, StoreError::State { .. }), "it has a writer already: {second}");
    writer.finalize(true).unwrap();
    let late = store.append(&block(1, 1005), GenerationStamp(1005), 1300).err().unwrap();
    assert!(matches!(late, StoreError::State { .. }), "it is longer by now: {late}");
    store.volumes().close();
    assert_eq!(content(&open(root.path(), 1).read(&block(1, 1005)).unwrap()), data);
}

#[test]
fn pipeline_recovery_fences_the_old_writer_and_cuts_what_was_not_acknowledged() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let data = bytes(5000);
    let mut old = store.create_rbw(&new(1, 1001)).unwrap();
    fill(&mut old, &data[..3000], 1024);
    old.write(2560, &data[2560..4000], &sums(&data[2560..4000])).unwrap();
    let short = store.recover_rbw(&block(1, 1001), GenerationStamp(1002), 3001, 5000).err().unwrap();
    assert!(matches!(short, StoreError::Range(_)), "{short}");
    let mut writer = store.recover_rbw(&block(1, 1001), GenerationStamp(1002), 3000, 5000).unwrap();
    assert_eq!((writer.block().length, writer.block().generation_stamp.0), (3000, 1002));
    let late = old.write(2560, &data[2560..4500], &sums(&data[2560..4500])).err().unwrap();
    assert!(matches!(late, StoreError::Replaced(_)), "{late}");
    old.acknowledger().acknowledge(4999);
    drop(old);
    assert_eq!(content(&store.read(&block(1, 1002)).unwrap()), &data[..3000]);
    writer.write(2560, &data[2560..], &sums(&data[2560..])).unwrap();
    writer.finalize(false).unwrap();
    assert_eq!(content(&store.read(&block(1, 1002)).unwrap()), data);
}

#[test]
fn a_broken_close_is_finished_at_the_new_stamp() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let data = bytes(1000);
    for id in [1, 2] {
        let mut writer = store.create_rbw(&new(id, 1001)).unwrap();
        fill(&mut writer, &data, 1024);
        if id == 2 {
            writer.finalize(false).unwrap();
        }
        let (closed, storage) = store.recover_close(&block(id, 1001), GenerationStamp(1009), 1000).unwrap();
        assert_eq!((closed.generation_stamp.0, closed.length), (1009, 1000));
        assert_eq!(&storage, store.volumes().storage_id(blockstore::VolumeIndex(0)));
        assert_eq!(content(&store.read(&block(id, 1009)).unwrap()), data);
    }
}

#[test]
fn a_copy_is_invisible_until_it_is_whole() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let data = bytes(1000);
    let mut writer = store.create_temporary(&new(1, 1001)).unwrap();
    fill(&mut writer, &data, 1024);
    assert!(matches!(store.read(&block(1, 1001)), Err(StoreError::State { .. })));
    assert!(store.block_reports()[0].replicas.is_empty());
    drop(writer);
    assert!(matches!(store.read(&block(1, 1001)), Err(StoreError::NotFound(_))));
    assert_eq!(store.volumes().storage_reports()[0].used_bytes, 0);

    let mut writer = store.create_temporary(&new(1, 1001)).unwrap();
    fill(&mut writer, &data, 1024);
    writer.finalize(false).unwrap();
    assert_eq!(content(&store.read(&block(1, 1001)).unwrap()), data);

    let mut writer = store.create_temporary(&new(2, 1001)).unwrap();
    fill(&mut writer, &data, 1024);
    store.convert_temporary_to_rbw(writer, 1000).unwrap();
    let mut writer = store.recover_rbw(&block(2, 1001), GenerationStamp(1002), 1000, 1000).unwrap();
    writer.write(512, &data[512..], &sums(&data[512..])).unwrap();
    writer.finalize(false).unwrap();
}

#[test]
fn what_is_invalidated_goes_and_is_told() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let seen = Arc::new(Seen::default());
    store.set_observer(seen.clone());
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    fill(&mut writer, &bytes(1000), 1024);
    let exists = store.create_rbw(&new(1, 1002)).err().unwrap();
    assert!(matches!(exists, StoreError::Exists { .. }), "{exists}");
    let finished = writer.finalize(false).unwrap();
    assert!(matches!(store.invalidate(&block(1, 1000)), Err(StoreError::GenerationStamp { .. })));
    store.invalidate(&block(1, 1001)).unwrap();
    assert!(matches!(store.invalidate(&block(1, 1001)), Err(StoreError::NotFound(_))));
    eventually("the files are removed", || !seen.deleted.lock().unwrap().is_empty());
    assert_eq!(*seen.deleted.lock().unwrap(), [finished]);
    assert_eq!(store.volumes().storage_reports()[0].used_bytes, 0);
    eventually("the id is free again", || store.create_rbw(&new(1, 1003)).is_ok());
}

/// Tries to make a replica of the block whose removal it is told of.
struct Hasty {
    store: PoolStore,
    told: Mutex<Vec<Result<(), String>>>,
}

impl Observer for Hasty {
    fn deleted(&self, _: &Arc<str>, _: Block) {
        let made = self.store.create_rbw(&new(1, 1002)).map(drop).map_err(|error| error.to_string());
        self.told.lock().unwrap().push(made);
    }
    fn damaged(&self, _: &Arc<str>, _: Block) {}
    fn received(&self, _: &Arc<str>, _: Block) {}
    fn volume_lost(&self, _: &Arc<str>, _: Vec<Block>) {}
}

/// Otherwise a new replica could be finished, and told of, before the removal of the old one is: then the metadata server would take the new one for
/// deleted.
#[test]
fn no_replica_is_made_before_the_removal_of_the_last_one_is_told() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let hasty = Arc::new(Hasty { store: store.clone(), told: Mutex::default() });
    store.set_observer(hasty.clone());
    store_block(&store, 1, 1000);
    store.invalidate(&block(1, 1001)).unwrap();
    eventually("it is told", || !hasty.told.lock().unwrap().is_empty());
    let told = hasty.told.lock().unwrap()[0].clone();
    assert!(told.clone().is_err_and(|error| error.contains("being removed")), "{told:?}");
    eventually("the id is free again", || store.create_rbw(&new(1, 1003)).is_ok());
}

#[test]
fn invalidating_a_replica_ends_its_writer() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let seen = Arc::new(Seen::default());
    store.set_observer(seen.clone());
    let data = bytes(1000);
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    fill(&mut writer, &data, 1024);
    store.invalidate(&block(1, 1001)).unwrap();
    eventually("the files are removed", || !seen.deleted.lock().unwrap().is_empty());
    assert!(writer.is_replaced());
    assert!(matches!(writer.finalize(false), Err(StoreError::Replaced(_))));
    assert_eq!(store.replica_count(), 0);
}

#[test]
fn a_foreign_pool_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let mut foreign = block(1, 1001);
    foreign.pool = "BP-other".into();
    assert!(matches!(store.read(&foreign), Err(StoreError::UnknownPool(_))));
    assert!(matches!(store.invalidate(&foreign), Err(StoreError::UnknownPool(_))));
}

#[test]
fn a_pool_that_is_served_again_is_the_one_there_is() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    store.create_rbw(&new(1, 1001)).unwrap().finalize(false).unwrap();
    let again = store.volumes().serve_pool(&common::pool()).unwrap();
    assert_eq!(again.replica_count(), 1);
    again.create_rbw(&new(2, 1001)).unwrap().finalize(false).unwrap();
    assert_eq!(store.replica_count(), 2);
    let other = blockstore::PoolInfo { namespace_id: 78, ..common::pool() };
    let refused = store.volumes().serve_pool(&other).unwrap_err();
    assert!(matches!(refused, blockstore::OpenError::Foreign { key: "namespaceID", .. }), "{refused}");
}

#[test]
fn a_lost_volume_takes_its_replicas_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 2);
    let seen = Arc::new(Seen::default());
    store.set_observer(seen.clone());
    for id in 1..=4 {
        let mut writer = store.create_rbw(&new(id, 1001)).unwrap();
        fill(&mut writer, &bytes(600), 1024);
        writer.finalize(false).unwrap();
    }
    store.volumes().fail_volume(blockstore::VolumeIndex(0), "pulled out");
    assert_eq!(seen.lost.lock().unwrap().len(), 2);
    assert_eq!(store.volumes().failed_volumes().len(), 1);
    assert_eq!(store.volumes().storage_reports().len(), 1);
    assert_eq!(store.block_reports()[0].replicas.len(), 2);
    for id in 5..=6 {
        assert_eq!(store.create_rbw(&new(id, 1001)).unwrap().volume(), blockstore::VolumeIndex(1));
    }
}

#[test]
fn a_block_file_that_vanished_is_reported_gone() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 1);
    let seen = Arc::new(Seen::default());
    store.set_observer(seen.clone());
    let finished = store.create_rbw(&new(1, 1001)).unwrap().finalize(false).unwrap();
    let name = format!("d0/current/{POOL}/current/finalized/subdir0/subdir0/blk_{}", finished.id);
    std::fs::remove_file(root.path().join(name)).unwrap();
    assert!(matches!(store.read(&block(1, 1001)), Err(StoreError::NotFound(_))));
    assert_eq!(*seen.deleted.lock().unwrap(), [finished]);
}
