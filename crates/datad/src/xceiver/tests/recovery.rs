//! Servers die, disks rot, replicas move: what was acknowledged stays readable.

use super::cluster::{Keeper, block, located, options, read_range, servers, some_bytes, write_block};
use crate::transfer;
use base::ExtendedBlock;
use client::block::{BlockReader, BlockWriter, WriteError};
use proto::hdfs::{DatanodeInfoProto, ExtendedBlockProto};
use std::{sync::Arc, time::Duration};

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_goes_on_without_the_server_that_dies() {
    for victim in 0..3 {
        let servers = servers::<3>().await;
        let [a, b, c] = &servers;
        let data = some_bytes(2_000_000);
        let keeper = Arc::new(Keeper::default());
        let at = located(block(1), &[a, b, c]);
        let mut writer = BlockWriter::create(&at, &options(), Some(keeper.clone())).await.unwrap();
        writer.write(&data[..700_300]).await.unwrap();
        writer.flush().await.unwrap();
        servers[victim].kill().await;
        writer.write(&data[700_300..]).await.unwrap();
        let closed = writer.close().await.unwrap();
        assert_eq!(closed.num_bytes(), data.len() as u64);
        assert_eq!(closed.generation_stamp, 2001, "one new pipeline is enough");
        let updates = keeper.updates.lock().clone();
        assert_eq!(updates.len(), 1);
        assert_eq!(updates[0].1.len(), 2);
        for (index, server) in servers.iter().enumerate().filter(|(index, _)| *index != victim) {
            let at = located(closed.clone(), &[server]);
            assert!(read_range(&at, 0, data.len() as u64).await.unwrap() == data, "server {index}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_may_die_one_after_the_other() {
    let [a, b, c] = servers().await;
    let data = some_bytes(1_000_000);
    let keeper = Arc::new(Keeper::default());
    let mut writer =
        BlockWriter::create(&located(block(1), &[&a, &b, &c]), &options(), Some(keeper)).await.unwrap();
    for (piece, victim) in data.chunks(400_000).zip([Some(&c), Some(&a), None]) {
        writer.write(piece).await.unwrap();
        if let Some(victim) = victim {
            victim.kill().await;
        }
    }
    let closed = writer.close().await.unwrap();
    assert!(read_range(&located(closed, &[&b]), 0, 1_000_000).await.unwrap() == data);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_keeper_the_writer_learns_which_server_failed() {
    let [a, b] = servers().await;
    let mut writer = BlockWriter::create(&located(block(1), &[&a, &b]), &options(), None).await.unwrap();
    writer.write(&some_bytes(1000)).await.unwrap();
    writer.flush().await.unwrap();
    b.kill().await;
    writer.write(&some_bytes(1000)).await.unwrap();
    let error = writer.flush().await.unwrap_err();
    assert!(matches!(error, WriteError::Broken { acknowledged: 1000, .. }), "{error}");
    assert_eq!(error.bad_node(), Some(&b.info()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_named_when_the_pipeline_is_set_up() {
    let [a, b, c] = servers().await;
    c.kill().await;
    let error = BlockWriter::create(&located(block(1), &[&a, &b, &c]), &options(), None).await.err();
    let error = error.unwrap();
    assert!(matches!(error, WriteError::Setup { .. }), "{error}");
    assert_eq!(error.bad_node(), Some(&c.info()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_turns_from_a_corrupt_replica_to_a_good_one() {
    let [a, b] = servers().await;
    let data = some_bytes(500_000);
    let closed = write_block(&located(block(1), &[&a, &b]), &data).await;
    let (path, mut bytes) = a.file(1).unwrap();
    bytes[300_000] ^= 1;
    std::fs::write(path, bytes).unwrap();

    let mut reader =
        BlockReader::open(&located(closed.clone(), &[&a, &b]), 0, 500_000, &options()).await.unwrap();
    let mut read = Vec::new();
    while let Some(piece) = reader.next().await.unwrap() {
        read.extend_from_slice(&piece);
    }
    assert!(read == data);
    assert_eq!(reader.bad_replicas().len(), 1);
    assert_eq!(reader.bad_replicas()[0].node, a.info());
    assert!(read_range(&located(closed, &[&a]), 0, 500_000).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_goes_on_elsewhere_when_its_server_dies() {
    let [a, b] = servers().await;
    let data = some_bytes(20_000_000);
    let closed = write_block(&located(block(1), &[&a, &b]), &data).await;
    let length = data.len() as u64;
    let mut reader = BlockReader::open(&located(closed, &[&a, &b]), 0, length, &options()).await.unwrap();
    let mut read = reader.next().await.unwrap().unwrap().to_vec();
    a.kill().await;
    while let Some(piece) = reader.next().await.unwrap() {
        read.extend_from_slice(&piece);
    }
    assert!(read == data);
}

fn copy_of(closed: &ExtendedBlockProto, targets: Vec<DatanodeInfoProto>) -> transfer::Copy {
    transfer::Copy {
        block: ExtendedBlock {
            pool: closed.pool_id.as_str().into(),
            block: base::Block {
                id: base::BlockId(closed.block_id),
                generation_stamp: base::GenerationStamp(closed.generation_stamp),
                length: closed.num_bytes(),
            },
        },
        target_storage_types: vec![1; targets.len()],
        targets,
        target_storage_ids: Vec::new(),
        token: Default::default(),
        client_name: String::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupt_replica_is_not_copied_and_its_server_is_reported() {
    let [a, b] = servers().await;
    let told = b.state.reporter.subscribe();
    let closed = write_block(&located(block(1), &[&a]), &some_bytes(100_000)).await;
    let (path, mut bytes) = a.file(1).unwrap();
    bytes[99_999] ^= 1;
    std::fs::write(path, bytes).unwrap();
    let error = transfer::send(&a.state, copy_of(&closed, vec![b.info()])).await.unwrap_err();
    assert!(error.to_string().contains("checksums"), "{error}");
    let corrupt = told.take_corrupt();
    assert_eq!(corrupt.len(), 1);
    assert_eq!(corrupt[0].node, a.info());
    // Removed on a thread of its volume.
    for _ in 0..100 {
        if b.file(1).is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the copy is still there: {:?}", b.file(1).map(|(path, _)| path));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_copied_to_two_more_servers() {
    let [a, b, c] = servers().await;
    let data = some_bytes(1_234_567);
    let closed = write_block(&located(block(1), &[&a]), &data).await;
    transfer::send(&a.state, copy_of(&closed, vec![b.info(), c.info()])).await.unwrap();
    assert!(read_range(&located(closed.clone(), &[&b]), 0, data.len() as u64).await.unwrap() == data);
    // The one further down ends a moment later.
    for _ in 0..100 {
        if c.file(1).is_some_and(|(path, _)| path.to_str().unwrap().contains("finalized")) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(read_range(&located(closed, &[&c]), 0, data.len() as u64).await.unwrap() == data);
}
