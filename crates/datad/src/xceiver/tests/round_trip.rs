//! Written bytes can be read back, through pipelines of any length.

use super::cluster::{block, located, options, read_range, servers, some_bytes, write_block};
use client::block::{BlockOptions, BlockWriter, Checksums};
use proto::{
    data_transfer::Opcode,
    hdfs::{
        BaseHeaderProto, BlockChecksumOptionsProto, BlockChecksumTypeProto, BlockOpResponseProto,
        OpBlockChecksumProto,
    },
};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_block_written_to_three_servers_is_on_each_of_them() {
    let [a, b, c] = servers().await;
    let data = some_bytes(3_000_001);
    let closed = write_block(&located(block(1), &[&a, &b, &c]), &data).await;
    assert_eq!(closed.num_bytes(), data.len() as u64);
    for server in [&a, &b, &c] {
        let (path, bytes) = server.file(1).unwrap();
        assert!(path.to_str().unwrap().contains("finalized"), "{}", path.display());
        assert!(bytes == data);
        assert!(read_range(&located(closed.clone(), &[server]), 0, data.len() as u64).await.unwrap() == data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_range_can_be_read() {
    let [server] = servers().await;
    let data = some_bytes(300_000);
    let closed = write_block(&located(block(1), &[&server]), &data).await;
    let at = located(closed, &[&server]);
    for (offset, length) in [
        (0, 0),
        (0, 1),
        (0, 512),
        (1, 511),
        (511, 2),
        (512, 512),
        (65_535, 65_537),
        (299_999, 1),
        (300_000, 0),
        (7, 299_993),
    ] {
        let read = read_range(&at, offset, length).await.unwrap();
        assert!(read == data[offset as usize..(offset + length) as usize], "{offset} {length}");
    }
    for (offset, length) in [(300_000, 1), (0, 300_001), (400_000, 5), (u64::MAX - 4, 3)] {
        let error = read_range(&at, offset, length).await.unwrap_err();
        assert!(error.contains("don't match block"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_block_and_tiny_ones_come_back() {
    let [a, b] = servers().await;
    for (id, length) in [(1, 0), (2, 1), (3, 511), (4, 512), (5, 513)] {
        let data = some_bytes(length);
        let closed = write_block(&located(block(id), &[&a, &b]), &data).await;
        assert_eq!(b.file(id).unwrap().1, data);
        assert_eq!(read_range(&located(closed, &[&b]), 0, length as u64).await.unwrap(), data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flushed_bytes_can_be_read_while_the_block_is_written() {
    let [a, b] = servers().await;
    let at = located(block(1), &[&a, &b]);
    let data = some_bytes(200_000);
    let mut writer = BlockWriter::create(&at, &options(), None).await.unwrap();
    let mut end = 0;
    // Flushes within a chunk, at its end, and beyond a packet.
    for length in [1, 100, 411, 512, 700, 70_000, 3, 100_000, 0, 5] {
        writer.write(&data[end..end + length]).await.unwrap();
        end += length;
        if length % 2 == 0 {
            writer.flush().await.unwrap()
        } else {
            writer.sync().await.unwrap()
        };
        assert_eq!(writer.acknowledged(), end as u64);
        for server in [&a, &b] {
            let read = read_range(&located(block(1), &[server]), 0, end as u64).await.unwrap();
            assert!(read == data[..end], "{end} bytes");
        }
    }
    writer.sync().await.unwrap();
    let closed = writer.close().await.unwrap();
    assert_eq!(closed.num_bytes(), end as u64);
    assert!(read_range(&located(closed, &[&b]), 0, end as u64).await.unwrap() == data[..end]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_may_pause_for_longer_than_servers_wait() {
    let [a, b] = servers().await;
    let mut writer = BlockWriter::create(&located(block(1), &[&a, &b]), &options(), None).await.unwrap();
    writer.write(b"first ").await.unwrap();
    writer.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(a.state.config.transfer_timeout_ms + 1_500)).await;
    writer.write(b"then").await.unwrap();
    let closed = writer.close().await.unwrap();
    assert_eq!(read_range(&located(closed, &[&b]), 0, 10).await.unwrap(), b"first then");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_checksums_serve_too() {
    let [a, b] = servers().await;
    let data = some_bytes(100_003);
    for (id, checksums, bytes_per_checksum) in [
        (1, Checksums::Crc32, 512),
        (2, Checksums::None, 512),
        (3, Checksums::Crc32c, 4096),
        (4, Checksums::Crc32, 1000),
    ] {
        let options = BlockOptions { checksums, bytes_per_checksum, ..options() };
        let at = located(block(id), &[&a, &b]);
        let mut writer = BlockWriter::create(&at, &options, None).await.unwrap();
        writer.write(&data).await.unwrap();
        let closed = writer.close().await.unwrap();
        assert!(read_range(&located(closed, &[&b]), 11, 100_000 - 11).await.unwrap() == data[11..100_000]);
    }
}

/// `hflush`, then `hsync`: the sync comes in a packet without data.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_flushed_inside_a_chunk_is_synced() {
    let [a, b] = servers().await;
    let mut writer = BlockWriter::create(&located(block(1), &[&a, &b]), &options(), None).await.unwrap();
    for piece in [&b"first"[..], b" then", b" last"] {
        writer.write(piece).await.unwrap();
        writer.flush().await.unwrap();
        writer.sync().await.unwrap();
    }
    let closed = writer.close().await.unwrap();
    assert_eq!(read_range(&located(closed, &[&b]), 0, 15).await.unwrap(), b"first then last");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_is_appended_to_from_within_a_chunk() {
    let [a, b] = servers().await;
    let data = some_bytes(150_000);
    let mut closed = write_block(&located(block(1), &[&a, &b]), &data[..700]).await;
    let keeper = std::sync::Arc::new(super::cluster::Keeper::default());
    for (stamp, start, end) in [(2001, 700, 750), (2002, 750, 1024), (2003, 1024, 150_000)] {
        let at = located(closed.clone(), &[&a, &b]);
        let mut writer = BlockWriter::append(&at, &options(), keeper.clone()).await.unwrap();
        writer.write(&data[start..end]).await.unwrap();
        closed = writer.close().await.unwrap();
        assert_eq!((closed.generation_stamp, closed.num_bytes()), (stamp, end as u64));
        for server in [&a, &b] {
            let at = located(closed.clone(), &[server]);
            assert!(read_range(&at, 0, end as u64).await.unwrap() == data[..end]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn block_checksums_are_those_of_hadoop() {
    use md5::{Digest, Md5};
    let [server] = servers().await;
    let data = some_bytes(10_000);
    let closed = write_block(&located(block(1), &[&server]), &data).await;
    let checksum = pipeline::Checksum::CRC32C_512;
    for length in [10_000, 9_000, 512, 100] {
        for kind in [BlockChecksumTypeProto::Md5crc, BlockChecksumTypeProto::CompositeCrc] {
            let mut asked = closed.clone();
            asked.num_bytes = Some(length as u64);
            let op = OpBlockChecksumProto {
                header: BaseHeaderProto { block: asked, ..Default::default() },
                block_checksum_options: Some(BlockChecksumOptionsProto {
                    block_checksum_type: Some(kind.into()),
                    stripe_length: None,
                }),
            };
            let (mut inbound, _out) = server.send(Opcode::BlockChecksum, &op).await;
            let response: BlockOpResponseProto = inbound.message().await.unwrap();
            let sum = response.checksum_response.unwrap();
            let expected = match kind {
                BlockChecksumTypeProto::Md5crc => {
                    let mut sums = Vec::new();
                    checksum.compute(&data[..length], &mut sums);
                    Md5::digest(&sums).to_vec()
                }
                BlockChecksumTypeProto::CompositeCrc => {
                    checksum.append(0, &data[..length]).to_be_bytes().to_vec()
                }
            };
            assert_eq!(sum.block_checksum, expected, "{length} {kind:?}");
            assert_eq!(sum.bytes_per_crc, 512);
        }
    }
}
