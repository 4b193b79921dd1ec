//! A store keeps its promises over a loss of power at any moment.
//!
//! The story: a data server writes, hsyncs, finishes and appends to a few replicas. At some point the power
//! goes: from then on every call to the disk fails, and of what was not synced each sector and each name may be
//! there or not. The server starts again. A replica that was finished durably is whole; one that was hsynced
//! has at least what was hsynced, at the stamp that it had (up to a partial chunk that was written on since).

mod common;

use base::{Block, GenerationStamp};
use blockstore::{
    BlockStore, PoolStore, ReplicaState, ReplicaWriter, StorageType, StoreConfig, StoreError, VolumeConfig,
};
use bytes::Bytes;
use common::{POOL, block, bytes as data_bytes, content, new, pool, sums};
use env::{Disk, Env, File, Lock, OpenMode, WriteDone, disk::Space, disk::read_exact_at};
use sim::{Dice, Fault, Loss, SimClock, SimDisk, SimRandom};
use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

/// A disk that answers a number of calls, then none: the moment at which the power goes.
struct Tripwire {
    disk: SimDisk,
    left: Arc<AtomicI64>,
}

struct TripwireFile {
    file: Arc<dyn File>,
    left: Arc<AtomicI64>,
}

fn step(left: &AtomicI64) -> io::Result<()> {
    match left.fetch_sub(1, Ordering::Relaxed) {
        1.. => Ok(()),
        _ => Err(io::Error::other("the power is gone")),
    }
}

impl Disk for Tripwire {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        step(&self.left)?;
        Ok(Arc::new(TripwireFile { file: self.disk.open(path, mode)?, left: self.left.clone() }))
    }
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        step(&self.left)?;
        self.disk.create_directory(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        step(&self.left)?;
        self.disk.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        step(&self.left)?;
        self.disk.remove_file(path)
    }
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        step(&self.left)?;
        self.disk.remove_directory(path)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }
    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        self.disk.is_directory(path)
    }
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        step(&self.left)?;
        self.disk.sync_directory(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.disk.lock(path)
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        self.disk.space(path)
    }
}

impl File for TripwireFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        step(&self.left)?;
        self.file.write_at(bytes, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        step(&self.left)?;
        self.file.sync_data()
    }
    fn submit_write_sync(self: Arc<Self>, _: Bytes, _: u64, _: WriteDone) {
        unreachable!("replicas are written in place")
    }
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        step(&self.left)?;
        self.file.set_length(length)
    }
    fn allocate(&self, length: u64) -> io::Result<()> {
        step(&self.left)?;
        self.file.allocate(length)
    }
}

fn start(disk: &SimDisk, dice: &mut Dice, left: i64) -> Option<PoolStore> {
    let left = Arc::new(AtomicI64::new(left));
    let env = Env {
        clock: Arc::new(SimClock::new()),
        disk: Arc::new(Tripwire { disk: disk.clone(), left }),
        random: Arc::new(SimRandom::new(dice.split())),
        descriptors: Arc::new(env::Descriptors::new(1 << 20)),
    };
    let volume = VolumeConfig { path: "/data".into(), storage_type: StorageType::Disk };
    let store =
        BlockStore::open(env, StoreConfig { threads_per_volume: 1, ..StoreConfig::new(vec![volume]) })
            .ok()?;
    store.serve_pool(&pool()).ok()
}

/// The promise of the store about one replica.
#[derive(Clone, Copy, Debug, Default)]
struct Promise {
    stamp: u64,
    /// Durable up to here.
    length: u64,
    is_finished: bool,
    /// An append or a finish was under way when the power went: either stamp, or either state, is right.
    is_changing: bool,
}

const DATA_BYTES: usize = 6000;

/// Writes the next few bytes, as a client does after an hflush: from the last chunk's start.
fn write_on(writer: &mut ReplicaWriter, dice: &mut Dice) -> Result<(), StoreError> {
    let data = data_bytes(DATA_BYTES);
    let length = writer.block().length as usize;
    let end = (length + 1 + dice.below(900) as usize).min(DATA_BYTES);
    let begin = length / 512 * 512;
    match begin < end {
        true => writer.write(begin as u64, &data[begin..end], &sums(&data[begin..end])),
        false => Ok(()),
    }
}

/// A few replicas' lives, until the power goes.
fn live(store: &PoolStore, dice: &mut Dice, promises: &mut BTreeMap<u64, Promise>) -> Result<(), StoreError> {
    for _ in 0..4 {
        let id = 1 + dice.below(3) + (dice.below(2) << 8);
        let mut promise = promises.get(&id).copied().unwrap_or_default();
        let mut was_durable = promise.is_finished;
        let mut writer = if promise.is_finished {
            // Some clients keep the stamp.
            let stamp = promise.stamp + dice.below(2);
            promises.get_mut(&id).expect("it is finished").is_changing = true;
            let writer = store.append(&block(id, promise.stamp), GenerationStamp(stamp), promise.length)?;
            // The new stamp is durable with the next sync.
            (promise.is_finished, promise.is_changing) = (false, true);
            writer
        } else if promises.contains_key(&id) {
            continue;
        } else {
            promise.stamp = 1001;
            store.create_rbw(&new(id, 1001))?
        };
        for _ in 0..dice.below(6) {
            // The sum of a partial chunk is written anew in place as the chunk grows, in Hadoop's format: until
            // the next hsync nothing vouches for that chunk should the power go.
            promise.length -= promise.length % 512;
            if promises.contains_key(&id) {
                promises.insert(id, promise);
            }
            write_on(&mut writer, dice)?;
            if dice.chance(40) {
                writer.sync()?;
                was_durable = true;
                let Block { generation_stamp, length, .. } = writer.block();
                promise = Promise { stamp: generation_stamp.0, length, is_changing: false, ..promise };
                promises.insert(id, promise);
            }
        }
        let Block { generation_stamp, length, .. } = writer.block();
        if dice.chance(80) {
            promises.entry(id).or_default().is_changing = true;
            let sync = dice.chance(70);
            writer.finalize(sync)?;
            match sync || was_durable {
                true => {
                    let stamp = generation_stamp.0;
                    promises.insert(id, Promise { stamp, length, is_finished: true, is_changing: false })
                }
                // Nothing more is promised, and nobody may touch it again.
                false => promises.insert(id, Promise { is_changing: true, ..promise }),
            };
        }
    }
    Ok(())
}

fn run(seed: u64) {
    let mut dice = Dice::new(seed);
    let disk = SimDisk::new(dice.split());
    let left = 20 + dice.below(180) as i64;
    let mut promises = BTreeMap::new();
    if let Some(store) = start(&disk, &mut dice, left) {
        // The error is the power; whatever was promised before stands.
        let _ = live(&store, &mut dice, &mut promises);
    }
    let loss = *dice.pick(&[Loss::All, Loss::Random, Loss::Random, Loss::Nothing]);
    disk.crash(loss);
    let store = start(&disk, &mut dice, i64::MAX).expect("the store opens after a loss of power");
    for (id, promise) in promises {
        check(&store, id, promise)
            .unwrap_or_else(|what| panic!("seed {seed}, {loss:?}: {id} {promise:?}: {what}"));
    }
}

fn check(store: &PoolStore, id: u64, promise: Promise) -> Result<(), String> {
    if promise.length == 0 && !promise.is_finished {
        return Ok(());
    }
    let facts = store.facts(POOL, block(id, 0).block.id).map_err(|error| error.to_string())?;
    let (stamp, length) = (facts.block.generation_stamp.0, facts.block.length);
    let is_stamp_right = stamp == promise.stamp || (promise.is_changing && stamp == promise.stamp + 1);
    if !is_stamp_right || length < promise.length {
        return Err(format!("found {facts:?}"));
    }
    if promise.is_finished && !promise.is_changing {
        if facts.state != ReplicaState::Finalized || length != promise.length {
            return Err(format!("found {facts:?}"));
        }
        let reader = store.read(&block(id, stamp)).map_err(|error| error.to_string())?;
        if content(&reader) != data_bytes(length as usize) {
            return Err("its bytes are others".into());
        }
        return Ok(());
    }
    // Recovery finishes the replica in whichever state it is now, and the promised bytes can be read.
    let recovery = GenerationStamp(stamp + 10);
    let mut old = block(id, stamp);
    old.block = facts.block;
    store.begin_recovery(&old, recovery).map_err(|error| error.to_string())?;
    store.finish_recovery(&old, recovery, length).map_err(|error| error.to_string())?;
    let reader = store.read(&block(id, recovery.0)).map_err(|error| error.to_string())?;
    let mut found = vec![0; promise.length as usize];
    read_exact_at(&*reader.block_file, &mut found, 0).map_err(|error| error.to_string())?;
    match found == data_bytes(promise.length as usize) {
        true => Ok(()),
        false => Err("the promised bytes are others".into()),
    }
}

#[test]
fn what_was_promised_survives_a_loss_of_power() {
    for seed in 0..400 {
        run(seed);
    }
}

/// A client has hsynced all that it wrote, and closes the file: from then on nobody recovers the block. Then the power goes everywhere, and of the
/// renames that finished the replica none has reached a disk.
#[test]
fn what_was_hsynced_is_finished_durably_at_the_close() {
    for loss in [Loss::All, Loss::Random, Loss::Nothing] {
        let disk = SimDisk::new(Dice::new(1));
        let store = start(&disk, &mut Dice::new(2), i64::MAX).unwrap();
        let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
        write_on(&mut writer, &mut Dice::new(3)).unwrap();
        writer.sync().unwrap();
        write_on(&mut writer, &mut Dice::new(4)).unwrap();
        let finished = writer.finalize(false).unwrap();
        disk.crash(loss);
        let store = start(&disk, &mut Dice::new(5), i64::MAX).unwrap();
        assert_eq!(store.facts(POOL, finished.id).unwrap().state, ReplicaState::Finalized, "{loss:?}");
        let reader = store.read(&block(1, 1001)).unwrap();
        assert_eq!(content(&reader), data_bytes(finished.length as usize), "{loss:?}");
    }
}

/// The replica had been durable for long when a client appended a few bytes and closed the file, without an hsync.
#[test]
fn what_was_durable_before_an_append_is_finished_durably_behind_it() {
    for loss in [Loss::All, Loss::Random, Loss::Nothing] {
        let disk = SimDisk::new(Dice::new(1));
        let store = start(&disk, &mut Dice::new(2), i64::MAX).unwrap();
        let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
        write_on(&mut writer, &mut Dice::new(3)).unwrap();
        let before = writer.finalize(true).unwrap();
        let mut writer = store.append(&block(1, 1001), GenerationStamp(1002), before.length).unwrap();
        write_on(&mut writer, &mut Dice::new(4)).unwrap();
        let finished = writer.finalize(false).unwrap();
        disk.crash(loss);
        let store = start(&disk, &mut Dice::new(5), i64::MAX).unwrap();
        assert_eq!(store.facts(POOL, finished.id).unwrap().state, ReplicaState::Finalized, "{loss:?}");
        let reader = store.read(&block(1, 1002)).unwrap();
        assert_eq!(content(&reader), data_bytes(finished.length as usize), "{loss:?}");
    }
}

#[test]
fn a_failed_sync_ends_the_volume() {
    let disk = SimDisk::new(Dice::new(1));
    let store = start(&disk, &mut Dice::new(2), i64::MAX).unwrap();
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    write_on(&mut writer, &mut Dice::new(3)).unwrap();
    disk.fail_sync(0, Fault::Io);
    assert!(matches!(writer.sync(), Err(StoreError::Io { .. })));
    assert_eq!(store.volumes().failed_volumes(), ["/data"]);
    assert!(!store.volumes().has_living_volume());
    assert_eq!(store.replica_count(), 0);
    // A later sync that succeeds is not believed.
    assert!(matches!(writer.sync(), Err(StoreError::Replaced(_))));
    assert!(matches!(store.create_rbw(&new(2, 1001)), Err(StoreError::OutOfSpace(_))));
}

/// An append moves the files of a finished replica before it writes. Where their names could not be synced, nobody knows
/// under which name they are found after a loss of power.
#[test]
fn a_failed_sync_of_names_before_an_append_ends_the_volume() {
    let disk = SimDisk::new(Dice::new(1));
    let store = start(&disk, &mut Dice::new(2), i64::MAX).unwrap();
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    write_on(&mut writer, &mut Dice::new(3)).unwrap();
    let finished = writer.finalize(true).unwrap();
    disk.fail_sync(0, Fault::Full);
    let refused = store.append(&block(1, 1001), GenerationStamp(1002), finished.length).err().unwrap();
    assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
    assert_eq!(store.volumes().failed_volumes(), ["/data"]);
}

#[test]
fn a_full_disk_is_an_error_and_not_the_end_of_the_volume() {
    let disk = SimDisk::new(Dice::new(1));
    let store = start(&disk, &mut Dice::new(2), i64::MAX).unwrap();
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    write_on(&mut writer, &mut Dice::new(3)).unwrap();
    let before = writer.block().length;
    disk.fail_write(0, Fault::Full);
    assert!(write_on(&mut writer, &mut Dice::new(4)).is_err());
    assert!(store.volumes().has_living_volume());
    // The packet comes again, once there is room.
    assert_eq!(writer.block().length, before);
    write_on(&mut writer, &mut Dice::new(4)).unwrap();
    let finished = writer.finalize(true).unwrap();
    let reader = store.read(&block(1, 1001)).unwrap();
    assert_eq!(content(&reader), data_bytes(finished.length as usize));
}
