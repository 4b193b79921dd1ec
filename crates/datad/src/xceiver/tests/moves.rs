//! A balancer has a server take a replica over: from another server, from one that lies, and from another disk.

use super::cluster::{POOL, Server, block, located, packet, read_range, servers, some_bytes, write_block};
use crate::{reporter::Change, shift, transfer::Order, xceiver::request};
use bytes::{Bytes, BytesMut};
use proto::{
    data_transfer::{Opcode, delimited},
    hdfs::{
        BaseHeaderProto, BlockOpResponseProto, ChecksumProto, DatanodeIdProto, DatanodeInfoProto,
        ExtendedBlockProto, OpCopyBlockProto, OpReplaceBlockProto, ReadOpChecksumInfoProto, Status,
        StorageTypeProto,
    },
};
use rpc::streaming::{Inbound, split};
use std::{sync::atomic::Ordering, time::Duration};
use tokio::net::TcpListener;

const LENGTH: usize = 300_700;

fn replace_op(block: &ExtendedBlockProto, proxy: DatanodeInfoProto, hint: &str) -> OpReplaceBlockProto {
    OpReplaceBlockProto {
        header: BaseHeaderProto { block: block.clone(), ..Default::default() },
        del_hint: hint.into(),
        source: proxy,
        storage_type: Some(StorageTypeProto::Disk.into()),
        ..Default::default()
    }
}

/// The last answer of a move, and whether others came before that said that it goes on.
async fn end_of(inbound: &mut Inbound) -> (BlockOpResponseProto, bool) {
    let mut goes_on = false;
    loop {
        let response: BlockOpResponseProto = inbound.message().await.unwrap();
        if response.status != Status::InProgress as i32 {
            return (response, goes_on);
        }
        goes_on = true;
    }
}

async fn refused(server: &Server, op: &OpReplaceBlockProto) -> String {
    let (mut inbound, _out) = server.send(Opcode::ReplaceBlock, op).await;
    let (response, _) = end_of(&mut inbound).await;
    assert_eq!(response.status, Status::Error as i32);
    assert!(inbound.message::<BlockOpResponseProto>().await.is_err(), "the connection ends");
    response.message().to_owned()
}

async fn succeeded(server: &Server, op: &OpReplaceBlockProto) {
    let (mut inbound, _out) = server.send(Opcode::ReplaceBlock, op).await;
    let (response, _) = end_of(&mut inbound).await;
    assert_eq!(response.status, Status::Success as i32, "{}", response.message());
}

/// The blocks that the server has told to have received, with their hints.
fn told(server: &Server) -> Vec<(u64, Option<String>)> {
    let events = server.pool().reporter.queue(0).take(usize::MAX);
    events
        .into_iter()
        .filter_map(|event| match event.change {
            Change::Received { delete_hint } => Some((event.block.id.0, delete_hint)),
            _ => None,
        })
        .collect()
}

async fn written(server: &Server, id: u64) -> (ExtendedBlockProto, Vec<u8>) {
    let data = some_bytes(LENGTH);
    let closed = write_block(&located(block(id), &[server]), &data).await;
    told(server);
    (closed, data)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_comes_from_the_proxy_and_the_hint_goes_to_the_metadata_server() {
    let [source, proxy, target] = servers().await;
    let data = some_bytes(LENGTH);
    let closed = write_block(&located(block(1), &[&source, &proxy]), &data).await;
    let hint = source.info().id.datanode_uuid;
    succeeded(&target, &replace_op(&closed, proxy.info(), &hint)).await;
    assert_eq!(told(&target), [(1, Some(hint))]);
    assert_eq!(target.file(1).unwrap().1, data);
    assert!(target.file(1).unwrap().0.to_str().unwrap().contains("/finalized/"));
    assert_eq!(read_range(&located(closed, &[&target]), 0, LENGTH as u64).await.unwrap(), data);
    assert!(source.file(1).is_some() && proxy.file(1).is_some(), "nothing goes but by order");
    assert_eq!([&source, &proxy, &target].map(|server| server.state.moves.under_way()), [0; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_here_already_is_not_fetched() {
    let [proxy, target] = servers().await;
    let data = some_bytes(LENGTH);
    let closed = write_block(&located(block(1), &[&proxy, &target]), &data).await;
    told(&target);
    let sent_before = proxy.state.moves.sent.load(std::sync::atomic::Ordering::Relaxed);
    let mut newer = closed.clone();
    newer.generation_stamp += 1;
    for op in [closed, newer] {
        let reason = refused(&target, &replace_op(&op, proxy.info(), "any")).await;
        assert!(reason.contains("already exists in state") && reason.contains("opReplaceBlock"), "{reason}");
    }
    assert_eq!(target.file(1).unwrap().1, data, "a higher stamp has the replica removed as little");
    assert_eq!(told(&target), []);
    assert_eq!(proxy.state.moves.sent.load(std::sync::atomic::Ordering::Relaxed), sent_before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_sends_only_a_finished_replica_of_exactly_that_stamp() {
    let [proxy, target] = servers().await;
    let (closed, _) = written(&proxy, 1).await;
    let mut older = closed.clone();
    older.generation_stamp -= 1;
    let mut other_pool = closed.clone();
    other_pool.pool_id = "BP-other".into();
    let mut writer =
        client::block::BlockWriter::create(&located(block(2), &[&proxy]), &super::cluster::options(), None)
            .await
            .unwrap();
    writer.write(&some_bytes(70_000)).await.unwrap();
    for (asked, expected) in [
        (older, "was asked for"),
        (block(2), "it stays here"),
        (block(3), "Replica not found"),
        (other_pool, "BP-other"),
    ] {
        let reason = refused(&target, &replace_op(&asked, proxy.info(), "any")).await;
        assert!(reason.contains(expected), "{reason}");
    }
    assert_eq!(told(&target), []);
    assert!([1, 2, 3].iter().all(|id| target.file(*id).is_none()));
}

/// A proxy of ours that answers a copy with these bytes, and then ends the connection or leaves it open.
async fn lying_proxy(answer: Vec<Bytes>, ends: bool) -> DatanodeInfoProto {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let (mut inbound, mut out) = split(socket, Duration::from_secs(60));
        let op = inbound.op().await.unwrap();
        assert_eq!(op.code, Opcode::CopyBlock);
        for bytes in answer {
            if out.write(&bytes).await.is_err() {
                return;
            }
        }
        if ends {
            out.end().await;
        }
        inbound.drain(Duration::from_secs(60)).await;
    });
    DatanodeInfoProto {
        id: DatanodeIdProto {
            ip_addr: address.ip().to_string(),
            xfer_port: address.port().into(),
            datanode_uuid: "a-liar".into(),
            ..Default::default()
        },
        ..Default::default()
    }
}

fn yes(checksum: ChecksumProto, chunk_offset: u64) -> Bytes {
    delimited::encoded(&BlockOpResponseProto {
        status: Status::Success.into(),
        read_op_checksum_info: Some(ReadOpChecksumInfoProto { checksum, chunk_offset }),
        ..Default::default()
    })
}

const CRC32C: ChecksumProto = ChecksumProto { r#type: 2, bytes_per_checksum: 512 };

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_sends_anything_else_leaves_nothing_behind() {
    let [target] = servers().await;
    let data = some_bytes(2_048);
    let asked = ExtendedBlockProto { num_bytes: Some(2_048), ..block(1) };
    let mut rotten = BytesMut::from(&packet(0, 0, &data, false)[..]);
    let at = rotten.len() - 100;
    rotten[at] ^= 1;
    let last = |offset| packet(1, offset, &[], true);
    let no = delimited::encoded(&BlockOpResponseProto {
        status: Status::Error.into(),
        message: Some("threads quota=1 is exceeded".into()),
        ..Default::default()
    });
    let wordless = delimited::encoded(&BlockOpResponseProto { status: 0, ..Default::default() });
    let absurd = ChecksumProto { r#type: 2, bytes_per_checksum: u32::MAX };
    let stories: Vec<(&str, Vec<Bytes>, &str)> = vec![
        ("refuses", vec![no], "threads quota=1 is exceeded"),
        ("says nothing of checksums", vec![wordless], "how the replica is checksummed"),
        ("has absurd checksums", vec![yes(absurd, 0)], ""),
        ("begins inside the block", vec![yes(CRC32C, 512)], "from its beginning"),
        (
            "sends too little",
            vec![yes(CRC32C, 0), packet(0, 0, &data[..1_024], false), last(1_024)],
            "1024 bytes have come, and 2048",
        ),
        ("sends nothing", vec![yes(CRC32C, 0), packet(0, 0, &[], true)], "0 bytes have come"),
        (
            "sends too much",
            vec![yes(CRC32C, 0), packet(0, 0, &data, false), packet(1, 2_048, &data, false)],
            "",
        ),
        ("leaves a gap", vec![yes(CRC32C, 0), packet(0, 1_024, &data, false)], ""),
        ("sends rotten bytes", vec![yes(CRC32C, 0), rotten.freeze(), last(2_048)], "checksums"),
        ("goes away within the block", vec![yes(CRC32C, 0), packet(0, 0, &data[..1_024], false)], ""),
        ("goes away within a packet", vec![yes(CRC32C, 0), packet(0, 0, &data, false).slice(..900)], ""),
        ("talks nonsense", vec![Bytes::from_static(b"HTTP/1.1 200 OK\r\n\r\n")], ""),
        (
            "promises gigabytes",
            vec![yes(CRC32C, 0), Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff, 0, 25, 0, 0])],
            "",
        ),
    ];
    for (what, answer, expected) in stories {
        let proxy = lying_proxy(answer, true).await;
        let reason = refused(&target, &replace_op(&asked, proxy, "victim")).await;
        assert!(reason.contains(expected), "a proxy that {what}: {reason}");
        assert_eq!(told(&target), [], "a proxy that {what}");
        while target.file(1).is_some() {
            // The thread of the volume removes it.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(target.state.moves.under_way(), 0);
    }
    let proxy = lying_proxy(vec![yes(CRC32C, 0), packet(0, 0, &data, false), last(2_048)], true).await;
    succeeded(&target, &replace_op(&asked, proxy, "victim")).await;
    assert_eq!(told(&target), [(1, Some("victim".into()))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_hangs_holds_a_place_for_a_while_and_the_balancer_hears_that_it_goes_on() {
    let target = Server::start_with(&["DISK"], |config| {
        config.transfer_timeout_ms = 1_000;
        config.move_count_max = 1;
    })
    .await;
    let asked = ExtendedBlockProto { num_bytes: Some(2_048), ..block(1) };
    let hanging = lying_proxy(vec![yes(CRC32C, 0)], false).await;
    let (mut inbound, _out) = target.send(Opcode::ReplaceBlock, &replace_op(&asked, hanging, "any")).await;
    while target.state.moves.under_way() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let reason = refused(&target, &replace_op(&asked, target.info(), "any")).await;
    assert!(reason.contains("threads quota=1 is exceeded"), "{reason}");
    let copy = OpCopyBlockProto { header: BaseHeaderProto { block: asked, ..Default::default() } };
    let (mut copied, _out) = target.send(Opcode::CopyBlock, &copy).await;
    let response: BlockOpResponseProto = copied.message().await.unwrap();
    assert!(response.message().contains("Not able to copy block 1 to 127.0.0.1:"), "{}", response.message());
    let (response, has_gone_on) = end_of(&mut inbound).await;
    assert!(has_gone_on);
    assert_eq!(response.status, Status::Error as i32);
    assert!(response.message().contains("nothing came for 1s"), "{}", response.message());
    assert_eq!(target.state.moves.under_way(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_before_anybody_is_asked() {
    let [target] = servers().await;
    let proxy = |ip: &str, port| DatanodeInfoProto {
        id: DatanodeIdProto { ip_addr: ip.into(), xfer_port: port, ..Default::default() },
        ..Default::default()
    };
    let of_length = |length| ExtendedBlockProto { num_bytes: Some(length), ..block(1) };
    let good = proxy("127.0.0.1", 1);
    let hint = "h".repeat(1_000);
    for op in [
        replace_op(&of_length(10), proxy("example.org", 9866), "any"),
        replace_op(&of_length(10), proxy("127.0.0.1", 70_000), "any"),
        replace_op(&of_length(10), proxy("0.0.0.0", 9866), "any"),
        replace_op(&of_length(10), good.clone(), "any"),
        replace_op(&of_length(u64::MAX), good.clone(), "any"),
        replace_op(&of_length(10), good.clone(), &hint),
    ] {
        refused(&target, &op).await;
    }
    let (closed, _) = written(&target, 2).await;
    let reason = refused(&target, &replace_op(&closed, target.info(), "any")).await;
    assert!(reason.contains("already exists"), "it is on a volume of this type: {reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_goes_only_to_a_volume_of_the_type_asked_for_and_with_room() {
    let [proxy, target] = servers().await;
    let (closed, _) = written(&proxy, 1).await;
    let mut archive = replace_op(&closed, proxy.info(), "any");
    archive.storage_type = Some(StorageTypeProto::Archive.into());
    let reason = refused(&target, &archive).await;
    assert!(reason.contains("no volume of type ARCHIVE has room"), "{reason}");
    let data = some_bytes(10);
    let huge = ExtendedBlockProto { num_bytes: Some(1 << 39), ..block(2) };
    let liar =
        lying_proxy(vec![yes(CRC32C, 0), packet(0, 0, &data, false), packet(1, 10, &[], true)], true).await;
    let reason = refused(&target, &replace_op(&huge, liar, "any")).await;
    assert!(reason.to_lowercase().contains("space") || reason.contains("10 bytes have come"), "{reason}");
    assert_eq!(told(&target), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_goes_from_one_volume_of_a_server_to_another() {
    let server = Server::start_with(&["DISK", "ARCHIVE"], |_| {}).await;
    let (closed, data) = written(&server, 1).await;
    let before = server.file(1).unwrap().0;
    let mut op = replace_op(&closed, server.info(), &server.info().id.datanode_uuid);
    op.storage_type = Some(StorageTypeProto::Archive.into());
    succeeded(&server, &op).await;
    let (after, bytes) = server.file(1).unwrap();
    assert_eq!(bytes, data);
    assert!(before.to_str().unwrap().contains("/d0/") && after.to_str().unwrap().contains("/d1/"));
    let events = server.pool().reporter.queue(0).take(usize::MAX);
    let [event] = &events[..] else { panic!("{events:?}") };
    assert_eq!(event.change, Change::Received { delete_hint: None }, "nobody else is to give it up");
    assert_eq!(*event.storage_id, *server.pool().store.storage_of(event.block.id).unwrap());
    assert_eq!(server.pool().store.facts(POOL, event.block.id).unwrap().block, event.block);
}

/// The order of a metadata server to copy a replica to the server that has it: to another of its volumes.
fn order_within(server: &Server, block: &ExtendedBlockProto, storage_type: StorageTypeProto) -> Order {
    Order {
        block: request::block(block),
        targets: vec![server.info()],
        storage_ids: Vec::new(),
        storage_types: vec![storage_type.into()],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metadata_server_has_a_replica_moved_from_one_volume_to_another() {
    let server = Server::start_with(&["DISK", "ARCHIVE"], |_| {}).await;
    let (closed, data) = written(&server, 1).await;
    // The second time it is there already, and the server says once more where it is.
    for _ in 0..2 {
        shift::start(&server.state, order_within(&server, &closed, StorageTypeProto::Archive));
        let event = loop {
            match server.pool().reporter.queue(0).take(usize::MAX).pop() {
                Some(event) => break event,
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        let (file, bytes) = server.file(1).unwrap();
        assert!(bytes == data && file.to_str().unwrap().contains("/d1/"), "{file:?}");
        assert_eq!(event.change, Change::Received { delete_hint: None });
        assert_eq!(*event.storage_id, *server.pool().store.storage_of(event.block.id).unwrap());
        assert_eq!(event.block.length, LENGTH as u64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_to_move_what_cannot_be_moved_leaves_the_replica_where_it_is() {
    let server = Server::start_with(&["DISK", "ARCHIVE"], |_| {}).await;
    let (closed, data) = written(&server, 1).await;
    let another = ExtendedBlockProto { generation_stamp: closed.generation_stamp + 1, ..closed.clone() };
    let orders = [
        ("no such volume", order_within(&server, &closed, StorageTypeProto::Ssd)),
        ("another stamp", order_within(&server, &another, StorageTypeProto::Archive)),
        ("no such replica", order_within(&server, &block(2), StorageTypeProto::Archive)),
    ];
    for (index, (what, order)) in orders.into_iter().enumerate() {
        shift::start(&server.state, order);
        while server.state.moves.failed.load(Ordering::Relaxed) <= index as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let (file, bytes) = server.file(1).unwrap();
        assert!(bytes == data && file.to_str().unwrap().contains("/d0/"), "{what}: {file:?}");
        assert_eq!(told(&server), [], "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_lost_before_its_move_is_told_is_known_on_neither_volume() {
    let server = Server::start_with(&["DISK", "ARCHIVE"], |_| {}).await;
    let (closed, _) = written(&server, 1).await;
    told(&server);
    let (pool, moved) = (server.pool(), request::block(&closed));
    let from = pool.store.storage_of(moved.block.id).unwrap();
    let to = pool.store.move_to_type(&moved, base::StorageType::Archive).unwrap();
    pool.store.invalidate(&moved).unwrap();
    assert!(shift::tell(pool, &moved, (&from, &to)).is_err());
    let events = pool.reporter.queue(0).take(usize::MAX);
    let of_first: Vec<_> = events.iter().filter(|event| event.storage_id == from).collect();
    let [event] = &of_first[..] else { panic!("{events:?}") };
    assert_eq!((&event.change, event.block.id), (&Change::Deleted, moved.block.id));
}
