//! A store in a directory of its own, and replicas to fill it with.
#![allow(dead_code)]

pub mod hooked;

use base::{Block, BlockId, ExtendedBlock, GenerationStamp};
use blockstore::{
    BlockStore, Checksum, NewReplica, Observer, PoolInfo, PoolStore, ReplicaReader, ReplicaWriter,
    StorageType, StoreConfig, VolumeConfig, meta_file,
};
use env::{Env, disk::read_exact_at};
use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

pub const POOL: &str = "BP-1234-127.0.0.1-1700000000000";
/// A cluster that is new whenever the tests run, so that directories may be made.
pub const NEW_CLUSTER_MS: u64 = 4_102_444_800_000;

pub fn pool() -> PoolInfo {
    PoolInfo { pool: POOL.into(), cluster: "CID-one".into(), namespace_id: 77, created_ms: NEW_CLUSTER_MS }
}

/// Copies a directory with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => fs::copy(entry.path(), target).map(drop).unwrap(),
        }
    }
}

pub fn config(root: &Path, volumes: usize) -> StoreConfig {
    let volume =
        |index| VolumeConfig { path: root.join(format!("d{index}")), storage_type: StorageType::Disk };
    StoreConfig::new((0..volumes).map(volume).collect())
}

pub fn open(root: &Path, volumes: usize) -> PoolStore {
    let store = BlockStore::open(Env::production(), config(root, volumes)).unwrap();
    store.serve_pool(&pool()).unwrap()
}

/// A store on a disk of the test's own, and what its observer has seen.
pub fn open_seen(env: Env, root: &Path, volumes: usize) -> (PoolStore, Arc<Seen>) {
    let store = BlockStore::open(env, config(root, volumes)).unwrap();
    let pool = store.serve_pool(&pool()).unwrap();
    let seen = Arc::<Seen>::default();
    pool.set_observer(seen.clone());
    (pool, seen)
}

/// Writes a finished replica of `length` bytes.
pub fn store_block(pool: &PoolStore, id: u64, length: usize) -> Block {
    let mut writer = pool.create_rbw(&new(id, 1001)).unwrap();
    fill(&mut writer, &bytes(length), 4096);
    writer.finalize(true).unwrap()
}

/// The two files of a finished replica on the volume.
pub fn files(root: &Path, volume: usize, block: Block) -> (std::path::PathBuf, std::path::PathBuf) {
    use blockstore::layout::{Place, VolumePaths};
    let paths = VolumePaths { root: root.join(format!("d{volume}")) }.pool(POOL);
    (paths.block(Place::Finalized, block.id), paths.meta(Place::Finalized, block.id, block.generation_stamp))
}

/// Changes one byte of a file.
pub fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

pub fn block(id: u64, stamp: u64) -> ExtendedBlock {
    let block =
        Block { id: BlockId(1_073_741_824 + id), generation_stamp: GenerationStamp(stamp), length: 0 };
    ExtendedBlock { pool: POOL.into(), block }
}

pub fn new(id: u64, stamp: u64) -> NewReplica {
    NewReplica {
        block: block(id, stamp),
        checksum: Checksum::DEFAULT,
        storage_type: StorageType::Disk,
        size_expected: 1 << 20,
    }
}

pub fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 251) as u8).collect()
}

pub fn sums(data: &[u8]) -> Vec<u8> {
    data.chunks(512).flat_map(|chunk| Checksum::DEFAULT.sum(chunk)).collect()
}

/// Writes `data` in packets of `packet` bytes (a multiple of the chunk), each acknowledged.
pub fn fill(writer: &mut ReplicaWriter, data: &[u8], packet: usize) {
    for (index, piece) in data.chunks(packet).enumerate() {
        writer.write((index * packet) as u64, piece, &sums(piece)).unwrap();
    }
    writer.acknowledger().acknowledge(data.len() as u64);
}

/// All that a reader sees, after checking it against the sums.
pub fn content(reader: &ReplicaReader) -> Vec<u8> {
    let mut data = vec![0; reader.block.length as usize];
    read_exact_at(&*reader.block_file, &mut data, 0).unwrap();
    let meta = reader.meta_file.as_ref().expect("there is a meta file");
    let mut found = vec![0; data.len().div_ceil(512) * 4];
    read_exact_at(&**meta, &mut found, meta_file::HEADER_SIZE).unwrap();
    if let Some(sum) = reader.last_sum {
        let at = found.len() - 4;
        found[at..].copy_from_slice(&sum);
    }
    assert_eq!(found, sums(&data), "the sums are those of the data");
    data
}

pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what} within a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[derive(Default)]
pub struct Seen {
    pub deleted: Mutex<Vec<Block>>,
    pub lost: Mutex<Vec<Block>>,
    pub damaged: Mutex<Vec<Block>>,
    pub received: Mutex<Vec<Block>>,
    pub unsettled: Mutex<Vec<BlockId>>,
}

impl Observer for Seen {
    fn deleted(&self, _: &Arc<str>, block: Block) {
        self.deleted.lock().unwrap().push(block);
    }

    fn damaged(&self, _: &Arc<str>, block: Block) {
        self.damaged.lock().unwrap().push(block);
    }

    fn received(&self, _: &Arc<str>, block: Block) {
        self.received.lock().unwrap().push(block);
    }

    fn volume_lost(&self, _: &Arc<str>, blocks: Vec<Block>) {
        self.lost.lock().unwrap().extend(blocks);
    }

    fn unsettled(&self, id: BlockId) {
        self.unsettled.lock().unwrap().push(id);
    }
}
