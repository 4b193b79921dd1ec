//! Replicas that are written in turns: what goes to the disk and when, who waits, and what fails.

mod common;

use base::{Block, GenerationStamp, StorageType};
use blockstore::{
    BlockStore, Gate, PoolStore, StoreConfig, StoreError,
    schedule::{config::Which, plan::Limits},
};
use common::{
    hooked::{Asked, HookedDisk},
    *,
};
use env::Env;
use std::{
    io,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

const KIB: u64 = 1 << 10;
const LIMITS: Limits =
    Limits { run_bytes: 256 * KIB, piece_bytes: 64 * KIB, queue_bytes: 1024 * KIB, linger_ms: 600_000 };

fn turns_config(root: &Path) -> StoreConfig {
    let mut config = config(root, 1);
    config.turns.which = Which::All;
    config.turns.limits = LIMITS;
    config
}

fn open_turns(env: Env, root: &Path) -> PoolStore {
    BlockStore::open(env, turns_config(root)).unwrap().serve_pool(&pool()).unwrap()
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn admit(gate: &Gate, bytes: u64, woken: &Arc<Woken>) -> bool {
    gate.poll_admit(&mut Context::from_waker(&Waker::from(woken.clone())), bytes) == Poll::Ready(())
}

#[test]
fn a_stream_that_has_a_run_goes_out_and_one_that_has_less_waits() {
    let root = tempfile::tempdir_in(".").unwrap();
    let store = open_turns(Env::production(), root.path());
    let figures = || store.volumes().turn_figures();
    let (mut long, mut short) =
        (store.create_rbw(&new(1, 1001)).unwrap(), store.create_rbw(&new(2, 1002)).unwrap());
    fill(&mut short, &bytes(100_000), 64 * 1024);
    fill(&mut long, &bytes(300_000), 64 * 1024);
    eventually("the run is written out", || figures().written_out_bytes >= LIMITS.run_bytes);
    assert_eq!((figures().turns, figures().written_out_bytes), (1, LIMITS.run_bytes));
    eventually("the queue knows", || figures().queued_bytes == 400_000 - LIMITS.run_bytes);
    // A replica that ends takes its last turn, and a small one as well, because it is longer than a piece.
    long.finalize(false).unwrap();
    short.finalize(false).unwrap();
    eventually("all of it is written out", || figures().written_out_bytes == 400_000);
    eventually("nothing waits", || figures().queued_bytes == 0);
    for (id, length) in [(1, 300_000), (2, 100_000)] {
        assert_eq!(content(&store.read(&block(id, 1000 + id)).unwrap()), bytes(length));
    }
}

#[test]
fn room_that_was_taken_is_given_back_when_the_replica_ends() {
    let root = tempfile::tempdir_in(".").unwrap();
    let store = open_turns(Env::production(), root.path());
    let mut wanted = new(1, 1001);
    wanted.size_expected = 16 << 20;
    let mut writer = store.create_rbw(&wanted).unwrap();
    fill(&mut writer, &bytes(300_000), 64 * 1024);
    let path = root.path().join(format!("d0/current/{POOL}/current/rbw/blk_{}", wanted.block.block.id.0));
    eventually("room is taken", || std::fs::metadata(&path).unwrap().blocks() * 512 >= 16 << 20);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 300_000);
    let block = writer.finalize(true).unwrap();
    let taken = std::fs::metadata(files(root.path(), 0, block).0).unwrap().blocks() * 512;
    assert!(taken < 2 << 20, "{taken} bytes for 300,000");
}

#[test]
fn a_sender_waits_while_the_disk_is_behind_and_is_woken() {
    let root = tempfile::tempdir_in(".").unwrap();
    let (disk, env) = HookedDisk::new();
    let store = open_turns(env, root.path());
    let is_stuck = Arc::new(AtomicBool::new(true));
    let stuck = is_stuck.clone();
    disk.set(move |asked, _| {
        while asked == Asked::AwaitWriteOut && stuck.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        Ok(())
    });
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    let gate = writer.gate().expect("the volume has turns");
    let woken = Arc::<Woken>::default();
    let (data, mut offset) = (bytes(64 * 1024), 0);
    while admit(&gate, data.len() as u64, &woken) {
        writer.write_admitted(offset, &data, &sums(&data), data.len() as u64).unwrap();
        offset += data.len() as u64;
        assert!(offset <= LIMITS.queue_bytes, "the queue is bounded");
    }
    assert_eq!(store.volumes().turn_figures().queued_bytes, LIMITS.queue_bytes);
    // A packet that is not kept gives its room back.
    assert!(!woken.0.load(Ordering::SeqCst));
    is_stuck.store(false, Ordering::SeqCst);
    eventually("the sender is woken", || woken.0.load(Ordering::SeqCst));
    assert!(admit(&gate, data.len() as u64, &woken));
    writer.write_admitted(0, &data, &sums(&data), data.len() as u64).unwrap();
    drop(writer);
    assert!(admit(&gate, 1 << 30, &woken), "nobody waits for a writer that is gone");
    eventually("its bytes go out", || store.volumes().turn_figures().queued_bytes == 0);
}

#[test]
fn a_sync_has_the_disk_between_two_pieces_and_leaves_nothing_to_write() {
    let root = tempfile::tempdir_in(".").unwrap();
    let (disk, env) = HookedDisk::new();
    let store = open_turns(env, root.path());
    let begun = Arc::new(AtomicUsize::new(0));
    let seen = begun.clone();
    disk.set(move |asked, _| {
        seen.fetch_add(usize::from(asked == Asked::BeginWriteOut), Ordering::SeqCst);
        Ok(())
    });
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    fill(&mut writer, &bytes(200_000), 64 * 1024);
    writer.sync().unwrap();
    assert_eq!(store.volumes().turn_figures().queued_bytes, 0);
    writer.finalize(true).unwrap();
    assert_eq!(begun.load(Ordering::SeqCst), 0, "the syncs have written everything");
}

#[test]
fn a_disk_that_does_not_take_bytes_is_a_lost_volume() {
    let root = tempfile::tempdir_in(".").unwrap();
    let (disk, env) = HookedDisk::new();
    let store = open_turns(env, root.path());
    disk.set(|asked, _| match asked {
        Asked::AwaitWriteOut => Err(io::Error::from_raw_os_error(5)),
        _ => Ok(()),
    });
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    fill(&mut writer, &bytes(262_144), 64 * 1024);
    let (data, mut error) = (bytes(512), None);
    eventually("the writer hears of it", || {
        error = writer.write(262_144, &data, &sums(&data)).err();
        error.is_some()
    });
    assert!(matches!(error, Some(StoreError::Io { .. })), "{error:?}");
    assert_eq!(store.volumes().failed_volumes().len(), 1);
}

#[test]
fn media_that_do_not_seek_have_no_turns() {
    let root = tempfile::tempdir_in(".").unwrap();
    let mut config = turns_config(root.path());
    config.turns.which = Which::ThatSeek;
    config.turns.drops_behind_writes = true;
    config.volumes[0].storage_type = StorageType::Ssd;
    let store = BlockStore::open(Env::production(), config).unwrap().serve_pool(&pool()).unwrap();
    let mut writer = store.create_rbw(&new(1, 1001)).unwrap();
    assert!(writer.gate().is_none());
    fill(&mut writer, &bytes(300_000), 64 * 1024);
    writer.finalize(false).unwrap();
    assert_eq!(store.volumes().turn_figures().turns, 0);
    assert_eq!(content(&store.read(&block(1, 1001)).unwrap()), bytes(300_000));
}

#[test]
fn a_long_read_is_read_ahead_in_turns_and_one_from_memory_needs_none() {
    let root = tempfile::tempdir_in(".").unwrap();
    let store = open_turns(Env::production(), root.path());
    let length = 700_000;
    store_block(&store, 1, length);
    let reader = store.read(&block(1, 1001)).unwrap();
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(woken.clone());
    let turns = || store.volumes().turn_figures().turns;
    let before = turns();
    let mut cached = store.read_stream(&reader, 0, length as u64).expect("the volume has turns");
    assert!(cached.poll_ready(&mut Context::from_waker(&waker), 0, 64 * KIB).is_ready());
    assert_eq!(turns(), before, "memory has it");
    // The rest is written out and forgotten: now the disk has to be asked.
    reader.block_file.begin_write_out(0, length as u64).unwrap();
    reader.block_file.await_write_out(0, length as u64).unwrap();
    reader.block_file.forget_cached(0, length as u64).unwrap();
    let mut ahead = store.read_stream(&reader, 0, length as u64).expect("the volume has turns");
    let mut position = 0;
    while position < length as u64 {
        let end = (position + 64 * KIB).min(length as u64);
        eventually("the bytes are in memory", || {
            ahead.poll_ready(&mut Context::from_waker(&waker), position, end).is_ready()
        });
        assert!(reader.block_file.is_cached(end - 1), "up to {end}");
        position = end;
    }
    assert!(turns() > before);
    drop(ahead);
    drop(cached);
    assert_eq!(content(&reader), bytes(length));
}

#[test]
fn room_that_a_crash_has_left_is_given_back_by_the_recovery() {
    let root = tempfile::tempdir_in(".").unwrap();
    let mut wanted = new(1, 1001);
    wanted.size_expected = 16 << 20;
    let path = root.path().join(format!("d0/current/{POOL}/current/rbw/blk_{}", wanted.block.block.id.0));
    let taken = |path: &Path| std::fs::metadata(path).unwrap().blocks() * 512;
    {
        let store = open_turns(Env::production(), root.path());
        let mut writer = store.create_rbw(&wanted).unwrap();
        fill(&mut writer, &bytes(300_000), 64 * 1024);
        eventually("room is taken", || taken(&path) >= 16 << 20);
        drop(writer);
        assert!(taken(&path) >= 16 << 20, "somebody may take the replica up again");
    }
    let store = open_turns(Env::production(), root.path());
    let stamp = GenerationStamp(1002);
    let candidate = store.begin_recovery(&wanted.block, stamp).unwrap().expect("the replica is here");
    let mut found = wanted.block.clone();
    found.block = candidate.block;
    store.finish_recovery(&found, stamp, 300_000).unwrap();
    let block = Block { generation_stamp: stamp, ..candidate.block };
    assert!(taken(&files(root.path(), 0, block).0) < 2 << 20);
    assert_eq!(content(&store.read(&common::block(1, 1002)).unwrap()), bytes(300_000));
}
