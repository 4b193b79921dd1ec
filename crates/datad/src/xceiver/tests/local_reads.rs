//! Our own client on the machine of its data server: it reads from files, and in another way when that does not work out.

use super::cluster::*;
use base::{BlockId, ExtendedBlock};
use client::block::{BlockOptions, BlockReader, BlockWriter, LocalConfig, LocalReads};
use proto::hdfs::LocatedBlockProto;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A client that reads locally, as `config` says.
fn local_client(server: &Server, adjust: impl FnOnce(&mut LocalConfig)) -> BlockOptions {
    let mut config = LocalConfig::new(server.socket().to_str().unwrap());
    adjust(&mut config);
    let options = options();
    let local = LocalReads::new(config, &options.client_name, options.io_timeout);
    BlockOptions { local: Some(Arc::new(local)), ..options }
}

async fn read(located: &LocatedBlockProto, offset: u64, length: u64, options: &BlockOptions) -> Vec<u8> {
    let mut reader = BlockReader::open(located, offset, length, options).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = reader.next().await.unwrap() {
        bytes.extend_from_slice(&piece);
    }
    assert!(reader.bad_replicas().is_empty());
    bytes
}

fn by_files(options: &BlockOptions) -> u64 {
    options.local.as_ref().unwrap().bytes_read()
}

fn of(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

async fn written(server: &Server, id: u64, data: &[u8]) -> LocatedBlockProto {
    located(write_block(&located(block(id), &[server]), data).await, &[server])
}

/// Waits until `what` holds. A server counts a block after it has sent its last byte, and the reader may be faster.
async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .expect("this should have become true long ago");
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_read_from_files_and_asked_for_once() {
    let [server] = servers().await;
    let data = some_bytes((5 << 20) + 123);
    let at = written(&server, 1, &data).await;
    let options = local_client(&server, |_| {});
    let ranges = [(0, data.len() as u64), (1, 1), (511, 2), (1 << 20, 1 << 20), (data.len() as u64 - 1, 1)];
    for (offset, length) in ranges {
        let wanted = &data[offset as usize..(offset + length) as usize];
        assert_eq!(read(&at, offset, length, &options).await, wanted, "{length} from {offset}");
    }
    assert_eq!(by_files(&options), ranges.iter().map(|(_, length)| length).sum::<u64>());
    assert_eq!(of(&server.state.short_circuit.figures.granted), 1);
    assert_eq!(of(&server.state.counters.blocks_read), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rotten_files_are_judged_by_their_server() {
    let [server] = servers().await;
    let data = some_bytes(10_000);
    let at = written(&server, 1, &data).await;
    let options = local_client(&server, |_| {});
    let (path, mut bytes) = server.file(1).unwrap();
    bytes[5000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let mut reader = BlockReader::open(&at, 0, 10_000, &options).await.unwrap();
    assert!(reader.next().await.is_err(), "there is no other replica");
    assert_eq!(reader.bad_replicas().len(), 1);

    let careless = local_client(&server, |config| config.skips_checksums = true);
    assert_eq!(read(&at, 0, 10_000, &careless).await, bytes);
    assert_eq!(by_files(&careless), 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_replica_is_not_read_from_what_is_still_open() {
    let [server] = servers().await;
    let at = written(&server, 1, &some_bytes(10_000)).await;
    let options = local_client(&server, |_| {});
    read(&at, 0, 10_000, &options).await;
    let block = server.pool().store.facts(POOL, BlockId(1)).unwrap().block;
    server.pool().store.invalidate(&ExtendedBlock { pool: POOL.into(), block }).unwrap();
    BlockReader::open(&at, 0, 10_000, &options).await.err().expect("there is no such block any more");
    assert_eq!(by_files(&options), 10_000);
    // The slot comes back, and the segment with its last slot.
    until(|| server.state.short_circuit.segment_count() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_is_seen_and_not_taken_for_rot() {
    let [server] = servers().await;
    let data = some_bytes(1000);
    let at = written(&server, 1, &data[..700]).await;
    let options = local_client(&server, |_| {});
    assert_eq!(read(&at, 0, 700, &options).await, &data[..700]);

    let mut writer = BlockWriter::append(&at, &self::options(), Arc::new(Keeper::default())).await.unwrap();
    writer.write(&data[700..]).await.unwrap();
    writer.flush().await.unwrap();
    // A reader that has not heard of the append reads the old length.
    assert_eq!(read(&at, 0, 700, &options).await, &data[..700]);
    let now = located(writer.close().await.unwrap(), &[&server]);
    assert_eq!(read(&now, 0, 1000, &options).await, data);
    assert_eq!(by_files(&options), 1700, "while it was being written it was read through the network");
    until(|| of(&server.state.counters.blocks_read) == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_nobody_reads_are_closed() {
    let [server] = servers().await;
    let options = local_client(&server, |config| {
        config.unused_max = 2;
        config.unused_for = Duration::from_millis(200);
    });
    let held = |count| server.state.short_circuit.slot_count() == count;
    for id in 1..=5 {
        let at = written(&server, id, &some_bytes(1000)).await;
        read(&at, 0, 1000, &options).await;
        until(|| server.state.short_circuit.slot_count() <= 3).await;
    }
    until(|| held(0)).await;
    until(|| server.state.short_circuit.segment_count() == 0).await;
    assert_eq!(of(&server.state.short_circuit.figures.granted), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_ends_leaves_nothing_with_the_server() {
    let [server] = servers().await;
    let at = written(&server, 1, &some_bytes(1000)).await;
    let options = local_client(&server, |_| {});
    read(&at, 0, 1000, &options).await;
    assert_eq!(server.state.short_circuit.slot_count(), 1);
    drop(options);
    until(|| server.state.short_circuit.segment_count() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hands_nothing_out_is_left_alone_for_a_while() {
    let server = Server::start_with(&["DISK"], |config| config.short_circuit = false).await;
    let data = some_bytes(1000);
    let at = written(&server, 1, &data).await;
    let options = local_client(&server, |_| {});
    for _ in 0..4 {
        assert_eq!(read(&at, 0, 1000, &options).await, data);
    }
    let refused = &server.state.short_circuit.figures.refused;
    assert_eq!((by_files(&options), of(refused)), (0, 1));

    let eager = local_client(&server, |config| config.pause = Duration::ZERO);
    for _ in 0..4 {
        assert_eq!(read(&at, 0, 1000, &eager).await, data);
    }
    assert_eq!(of(refused), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_socket_blocks_come_through_the_network() {
    let [server] = servers().await;
    let data = some_bytes(1000);
    let at = written(&server, 1, &data).await;
    let options = local_client(&server, |config| config.socket_path = "/no/such/socket._PORT".into());
    assert_eq!(read(&at, 0, 1000, &options).await, data);
    assert_eq!(by_files(&options), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_server_that_is_gone_are_not_used_any_more() {
    let [server] = servers().await;
    let data = some_bytes(1000);
    let at = written(&server, 1, &data).await;
    let options = local_client(&server, |_| {});
    assert_eq!(read(&at, 0, 1000, &options).await, data);
    server.kill_local().await;
    // Nobody tells any more when the replica goes: its server is asked.
    let reads = &server.state.counters.blocks_read;
    while of(reads) == 0 {
        assert_eq!(read(&at, 0, 1000, &options).await, data);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let before = by_files(&options);
    assert_eq!(read(&at, 0, 1000, &options).await, data);
    assert_eq!(by_files(&options), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_streamed_through_the_socket_where_that_is_asked_for() {
    let [server] = servers().await;
    let data = some_bytes(300_000);
    let at = written(&server, 1, &data).await;
    let options = local_client(&server, |config| {
        config.asks_for_files = false;
        config.carries_data = true;
    });
    // The network's port is closed, and the block can still be read.
    let mut elsewhere = at.clone();
    let port = server.info().id.xfer_port;
    elsewhere.locs[0].id.xfer_port = 1;
    assert_eq!(read(&elsewhere, 7, 250_000, &options).await, &data[7..250_007]);
    assert_ne!(port, 1);
    assert_eq!(by_files(&options), 0);
    until(|| of(&server.state.counters.blocks_read) == 1).await;
    server.kill_local().await;
    assert_eq!(read(&at, 7, 250_000, &options).await, &data[7..250_007]);
}
