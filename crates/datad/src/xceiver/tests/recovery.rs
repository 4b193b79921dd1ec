//! Servers die, disks rot, replicas move: what was acknowledged stays readable.

use super::cluster::{
    Keeper, Server, block, located, options, packet, read_range, servers, some_bytes, write_block,
};
use crate::transfer;
use base::ExtendedBlock;
use client::block::{BlockReader, BlockWriter, WriteError};
use proto::{
    data_transfer::Opcode,
    hdfs::{
        BaseHeaderProto, BlockOpResponseProto, ChecksumProto, ClientOperationHeaderProto, DatanodeInfoProto,
        ExtendedBlockProto, OpTransferBlockProto, OpWriteBlockProto, PipelineAckProto, Status,
        op_write_block_proto::BlockConstructionStage as Stage,
    },
};
use rpc::streaming::{Inbound, Outgoing};
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
async fn an_append_begins_without_the_server_that_is_dead() {
    for victim in 0..3 {
        let servers = servers::<3>().await;
        let [a, b, c] = &servers;
        let data = some_bytes(1_000_000);
        let keeper = Arc::new(Keeper::default());
        let written = write_block(&located(block(1), &[a, b, c]), &data[..700]).await;
        servers[victim].kill().await;
        let at = located(written, &[a, b, c]);
        let mut writer = BlockWriter::append(&at, &options(), keeper.clone()).await.unwrap();
        writer.write(&data[700..]).await.unwrap();
        let closed = writer.close().await.unwrap();
        assert_eq!((closed.generation_stamp, closed.num_bytes()), (2002, data.len() as u64));
        let updates = keeper.updates.lock().clone();
        assert_eq!(updates.len(), 1, "the pipeline that failed is nobody's business");
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

/// A client that hears "not found" from all places takes the block for empty.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_of_an_older_stamp_is_not_called_missing() {
    let [a] = servers().await;
    let closed = write_block(&located(block(1), &[&a]), &some_bytes(5_000)).await;
    let mut asked = copy_of(&closed, Vec::new()).block;
    assert_eq!(crate::ipc::visible_length_of(&a.state, &asked).ok(), Some(5_000));
    asked.block.generation_stamp.0 += 1;
    let older = crate::ipc::visible_length_of(&a.state, &asked).unwrap_err();
    assert_eq!(older.class, "java.io.IOException", "{}", older.message);
    asked.block.id.0 += 1;
    let missing = crate::ipc::visible_length_of(&a.state, &asked).unwrap_err();
    assert_eq!(missing.class, proto::exception::REPLICA_NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupt_replica_is_not_copied_and_its_server_is_reported() {
    let [a, b] = servers().await;
    let told = b.pool().reporter.queue(0);
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

/// The header that a client sends to the first server when it mends a pipeline.
fn recovery_op(stage: Stage, stamp: u64, length: u64, targets: Vec<DatanodeInfoProto>) -> OpWriteBlockProto {
    OpWriteBlockProto {
        header: client_header(),
        pipeline_size: 1 + targets.len() as u32,
        targets,
        stage: stage.into(),
        min_bytes_rcvd: length,
        max_bytes_rcvd: length,
        latest_generation_stamp: stamp,
        requested_checksum: ChecksumProto { r#type: 2, bytes_per_checksum: 512 },
        ..Default::default()
    }
}

fn client_header() -> ClientOperationHeaderProto {
    ClientOperationHeaderProto {
        base_header: BaseHeaderProto { block: block(1), ..Default::default() },
        client_name: "test-client".into(),
    }
}

async fn answer(inbound: &mut Inbound) -> BlockOpResponseProto {
    inbound.message().await.unwrap()
}

/// Leaves block 1 open on `server` with `data`, all of it acknowledged.
async fn leave_open(server: &Server, data: &[u8]) {
    let mut writer = BlockWriter::create(&located(block(1), &[server]), &options(), None).await.unwrap();
    writer.write(data).await.unwrap();
    writer.flush().await.unwrap();
}

fn renamed(stamp: u64) -> ExtendedBlockProto {
    ExtendedBlockProto { generation_stamp: stamp, ..block(1) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_that_broke_while_closing_is_closed_wherever_its_replicas_stand() {
    let [a, b] = servers().await;
    let data = some_bytes(700);
    // The first has finalised it, the second has not.
    write_block(&located(block(1), &[&a]), &data).await;
    leave_open(&b, &data).await;
    let op = recovery_op(Stage::PipelineCloseRecovery, 2001, 700, vec![b.info()]);
    let (mut inbound, _out) = a.send(Opcode::WriteBlock, &op).await;
    let response = answer(&mut inbound).await;
    assert_eq!(response.status, Status::Success as i32, "{}", response.message());
    for server in [&a, &b] {
        assert!(server.file(1).unwrap().0.to_str().unwrap().contains("finalized"));
        assert_eq!(read_range(&located(renamed(2001), &[server]), 0, 700).await.unwrap(), data);
    }
}

/// Begins an append without a new stamp, as hdfs-native and the Go client do.
async fn append_under_the_same_stamp(servers: &[&Server], length: u64) -> (Inbound, Outgoing) {
    let targets = servers[1..].iter().map(|server| server.info()).collect();
    let op = recovery_op(Stage::PipelineSetupAppend, block(1).generation_stamp, length, targets);
    servers[0].send(Opcode::WriteBlock, &op).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_may_keep_the_stamp() {
    let [a, b] = servers().await;
    let data = some_bytes(2000);
    write_block(&located(block(1), &[&a, &b]), &data[..700]).await;
    let (mut inbound, mut out) = append_under_the_same_stamp(&[&a, &b], 700).await;
    let response = answer(&mut inbound).await;
    assert_eq!(response.status, Status::Success as i32, "{}", response.message());
    for packet in [packet(0, 512, &data[512..], false), packet(1, 2000, &[], true)] {
        out.write(&packet).await.unwrap();
        let ack: PipelineAckProto = inbound.message().await.unwrap();
        assert_eq!(ack.reply, [0, 0]);
    }
    for server in [&a, &b] {
        assert_eq!(read_range(&located(block(1), &[server]), 0, 2000).await.unwrap(), data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_gets_no_pipeline_leaves_finished_replicas() {
    let [a, b, dead] = servers().await;
    let data = some_bytes(700);
    write_block(&located(block(1), &[&a, &b, &dead]), &data).await;
    dead.kill().await;
    let (mut inbound, _out) = append_under_the_same_stamp(&[&a, &b, &dead], 700).await;
    let response = answer(&mut inbound).await;
    assert_ne!(response.status, Status::Success as i32);
    for server in [&a, &b] {
        assert!(server.file(1).unwrap().0.to_str().unwrap().contains("finalized"));
    }
    let (mut inbound, _out) = append_under_the_same_stamp(&[&a, &b], 700).await;
    let response = answer(&mut inbound).await;
    assert_eq!(response.status, Status::Success as i32, "{}", response.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_is_brought_up_to_a_broken_pipelines_state() {
    let [a, b] = servers().await;
    let data = some_bytes(2000);
    leave_open(&a, &data[..700]).await;
    let transfer =
        OpTransferBlockProto { header: client_header(), targets: vec![b.info()], ..Default::default() };
    let (mut inbound, _out) = a.send(Opcode::TransferBlock, &transfer).await;
    let response = answer(&mut inbound).await;
    assert_eq!(response.status, Status::Success as i32, "{}", response.message());
    let (path, bytes) = b.file(1).unwrap();
    assert!(path.to_str().unwrap().contains("rbw"), "{}", path.display());
    assert_eq!(bytes, data[..700]);

    let op = recovery_op(Stage::PipelineSetupStreamingRecovery, 2001, 700, vec![b.info()]);
    let (mut inbound, mut out) = a.send(Opcode::WriteBlock, &op).await;
    let response = answer(&mut inbound).await;
    assert_eq!(response.status, Status::Success as i32, "{}", response.message());
    // The chunk that was begun is sent again, whole.
    for packet in [packet(7, 512, &data[512..], false), packet(8, 2000, &[], true)] {
        out.write(&packet).await.unwrap();
        let ack: PipelineAckProto = inbound.message().await.unwrap();
        assert_eq!(ack.reply, [0, 0]);
    }
    for server in [&a, &b] {
        assert_eq!(read_range(&located(renamed(2001), &[server]), 0, 2000).await.unwrap(), data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_to_a_dead_server_is_not_called_a_success() {
    let [a, b] = servers().await;
    leave_open(&a, &some_bytes(700)).await;
    b.kill().await;
    let transfer =
        OpTransferBlockProto { header: client_header(), targets: vec![b.info()], ..Default::default() };
    let (mut inbound, _out) = a.send(Opcode::TransferBlock, &transfer).await;
    assert_eq!(answer(&mut inbound).await.status, Status::Error as i32);
}
