//! Bad input: each is answered, none is finalised, and the server goes on serving.

use super::cluster::{Server, block, located, packet, random, read_range, servers, some_bytes, write_block};
use blockstore::{ScanConfig, Scanners};
use bytes::Bytes;
use proto::{
    data_transfer::Opcode,
    hdfs::{
        BaseHeaderProto, BlockOpResponseProto, ChecksumProto, ClientOperationHeaderProto, DatanodeIdProto,
        DatanodeInfoProto, OpCustomProto, OpReadBlockProto, OpWriteBlockProto, PipelineAckProto, Status,
        op_write_block_proto::BlockConstructionStage,
    },
};
use rpc::streaming::{Inbound, Outgoing};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

pub fn write_op(id: u64) -> OpWriteBlockProto {
    OpWriteBlockProto {
        header: ClientOperationHeaderProto {
            base_header: BaseHeaderProto { block: block(id), ..Default::default() },
            client_name: "hostile".into(),
        },
        stage: BlockConstructionStage::PipelineSetupCreate.into(),
        pipeline_size: 1,
        requested_checksum: ChecksumProto { r#type: 2, bytes_per_checksum: 512 },
        ..Default::default()
    }
}

fn read_op(id: u64, offset: u64, len: u64) -> OpReadBlockProto {
    OpReadBlockProto { header: write_op(id).header, offset, len, ..Default::default() }
}

async fn refusal(inbound: &mut Inbound) -> BlockOpResponseProto {
    let response: BlockOpResponseProto = inbound.message().await.unwrap();
    assert_ne!(response.status, Status::Success as i32);
    assert!(!response.message().is_empty());
    response
}

pub async fn is_closed(inbound: &mut Inbound) -> bool {
    inbound.message::<BlockOpResponseProto>().await.is_err()
}

/// The server still does its work.
async fn check_alive(server: &Server) {
    let data = some_bytes(1000);
    let closed = write_block(&located(block(999_999), &[server]), &data).await;
    assert_eq!(read_range(&located(closed, &[server]), 0, 1000).await.unwrap(), data);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_operation_get_an_error_and_the_end() {
    let [server] = servers().await;
    for bytes in [
        &b"\x00\x1b\x50"[..],
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x1c\x00",
        b"\x00\x1c\xff",
        b"\x00\x1c\x50\xff\xff\xff\xff\x0f",
        b"\x00\x1c\x50\xff\xff\xff\xff\xff\xff",
        b"\x00\x1c\x50\x03abc",
        b"\xde\xad\xbe\xef",
    ] {
        let (mut inbound, mut out) = server.connect().await;
        out.write(bytes).await.unwrap();
        assert_eq!(refusal(&mut inbound).await.status, Status::Error as i32, "{bytes:?}");
        assert!(is_closed(&mut inbound).await);
    }
    let (mut inbound, mut out) = server.connect().await;
    out.write(b"\x00\x1c\x50\x20abc").await.unwrap();
    out.end().await;
    assert!(is_closed(&mut inbound).await, "a truncated header");
    check_alive(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_trickles_in_does_not_hold_a_connection_for_ever() {
    let [server] = servers().await;
    let (mut inbound, mut out) = server.connect().await;
    let trickle = async {
        // 200 KiB promised.
        out.write(b"\x00\x1c\x50\x80\xc0\x0c").await.unwrap();
        while out.write(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let closed = async { inbound.message::<BlockOpResponseProto>().await.is_err() };
    let patience = Duration::from_millis(server.state.config.transfer_timeout_ms);
    tokio::time::timeout(2 * patience, async { tokio::join!(trickle, closed) }).await.unwrap();
    check_alive(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_of_what_is_not_there_get_an_error_that_says_so() {
    let [server] = servers().await;
    write_block(&located(block(1), &[&server]), &some_bytes(1000)).await;
    let mut other_pool = read_op(1, 0, 10);
    other_pool.header.base_header.block.pool_id = "BP-other".into();
    let mut newer = read_op(1, 0, 10);
    newer.header.base_header.block.generation_stamp = 1002;
    for (op, expected) in [
        (read_op(1, -1i64 as u64, 10), "don't match block"),
        (read_op(1, 0, -1i64 as u64), "don't match block"),
        (read_op(1, 990, 11), "blockLen 1000"),
        (read_op(2, 0, 10), "Replica not found"),
        (other_pool, "BP-other"),
        (newer, "generation stamp"),
    ] {
        let (mut inbound, _out) = server.send(Opcode::ReadBlock, &op).await;
        let response = refusal(&mut inbound).await;
        assert!(response.message().contains(expected), "{}", response.message());
    }
    check_alive(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checksums_that_cannot_be_are_refused_before_anything_is_made() {
    let [server] = servers().await;
    for (kind, bytes_per_checksum) in [(2, 0), (2, -1i32 as u32), (2, i32::MAX as u32), (7, 512), (-1, 512)] {
        let mut op = write_op(1);
        op.requested_checksum = ChecksumProto { r#type: kind, bytes_per_checksum };
        let (mut inbound, _out) = server.send(Opcode::WriteBlock, &op).await;
        refusal(&mut inbound).await;
    }
    assert!(server.file(1).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelines_that_cannot_be_are_refused() {
    let [server] = servers().await;
    let node = |ip: &str, port| DatanodeInfoProto {
        id: DatanodeIdProto { ip_addr: ip.into(), xfer_port: port, ..Default::default() },
        ..Default::default()
    };
    let stranger = node("127.0.0.1", 1);
    for targets in [
        (0..600).map(|port| node("10.0.0.1", port + 1)).collect(),
        vec![server.info()],
        vec![node("example.org", 9866)],
        vec![node("127.0.0.1", 70_000)],
        vec![node("0.0.0.0", 9866)],
        vec![stranger.clone(), stranger.clone()],
        // Nobody listens there.
        vec![stranger.clone()],
    ] {
        let first = targets.first().map(|node| format!("{}:{}", node.id.ip_addr, node.id.xfer_port));
        let many = targets.len() > 512;
        let op = OpWriteBlockProto { targets, ..write_op(1) };
        let (mut inbound, _out) = server.send(Opcode::WriteBlock, &op).await;
        let response = refusal(&mut inbound).await;
        if !many {
            assert_eq!(response.first_bad_link(), first.unwrap());
        }
    }
    // There are so many targets that the header itself is over the limit.
    let targets = (0..10_000).map(|port| node("10.0.0.1", port + 1)).collect();
    let (mut inbound, _out) =
        server.send(Opcode::WriteBlock, &OpWriteBlockProto { targets, ..write_op(1) }).await;
    refusal(&mut inbound).await;
    check_alive(&server).await;
}

/// So it is where the host of a server is gone, as a container's that was moved: the writer does not wait for as long as a transfer may stand still.
#[tokio::test(flavor = "multi_thread")]
async fn a_next_server_that_answers_no_connection_is_given_up_soon() {
    let server = Server::start_with(&["DISK"], |config| config.transfer_timeout_ms = 60_000).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let silent = socket.listen(1).unwrap();
    let address = silent.local_addr().unwrap();
    // Nobody takes connections out of its queue: once that is full, the system answers no further one.
    let mut queued = Vec::new();
    let wait = Duration::from_millis(300);
    while let Ok(connected) = tokio::time::timeout(wait, tokio::net::TcpStream::connect(address)).await {
        queued.push(connected.unwrap());
        assert!(queued.len() < 100, "the queue is never full");
    }
    let id = DatanodeIdProto {
        ip_addr: "127.0.0.1".into(),
        xfer_port: address.port().into(),
        ..Default::default()
    };
    let targets = vec![DatanodeInfoProto { id, ..Default::default() }];
    let begun = std::time::Instant::now();
    let op = OpWriteBlockProto { targets, ..write_op(1) };
    let (mut inbound, _out) = server.send(Opcode::WriteBlock, &op).await;
    inbound.timeout = Duration::from_secs(60);
    assert_eq!(refusal(&mut inbound).await.first_bad_link(), address.to_string());
    assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
    drop(queued);
}

/// Begins a block and sends `packets`; returns the first acknowledgement that is no success, if any comes.
async fn stream(server: &Server, op: OpWriteBlockProto, packets: &[Bytes]) -> Option<PipelineAckProto> {
    let (mut inbound, mut out): (Inbound, Outgoing) = server.send(Opcode::WriteBlock, &op).await;
    let response: BlockOpResponseProto = inbound.message().await.unwrap();
    assert_eq!(response.status, Status::Success as i32);
    for packet in packets {
        if out.write(packet).await.is_err() {
            break;
        }
    }
    while let Ok(ack) = inbound.message::<PipelineAckProto>().await {
        if ack.reply.iter().any(|status| *status != Status::Success as i32) {
            assert!(inbound.message::<PipelineAckProto>().await.is_err(), "nothing follows an error");
            return Some(ack);
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_that_break_the_protocol_end_the_write_and_nothing_is_finalised() {
    let [server] = servers().await;
    let data = some_bytes(2000);
    let raw = |payload: i32, header: i16| {
        let mut bytes = payload.to_be_bytes().to_vec();
        bytes.extend_from_slice(&header.to_be_bytes());
        bytes.extend_from_slice(&[0; 40]);
        Bytes::from(bytes)
    };
    let mut negative = packet(0, 0, &[], false).to_vec();
    let at = negative.len() - 4;
    negative[at..].copy_from_slice(&(-1i32).to_le_bytes());
    let mut past_payload = negative.clone();
    past_payload[at..].copy_from_slice(&1000i32.to_le_bytes());
    let mut no_sums = packet(0, 0, &data[..512], false).to_vec();
    no_sums[3] -= 2;
    let cases: Vec<(&str, Vec<Bytes>)> = vec![
        ("payload under 4", vec![raw(3, 25)]),
        ("negative payload", vec![raw(-5, 25)]),
        ("negative header length", vec![raw(100, -1)]),
        ("over 16 MiB", vec![raw(17 << 20, 25)]),
        ("negative data length", vec![negative.into()]),
        ("data length past the payload", vec![past_payload.into()]),
        ("checksums of the wrong length", vec![no_sums.into()]),
        ("sequence going back", vec![packet(1, 0, &data[..512], false), packet(0, 512, &data[..512], false)]),
        ("repeated sequence", vec![packet(0, 0, &data[..512], false), packet(0, 0, &data[..512], false)]),
        ("offset gap", vec![packet(0, 0, &data[..512], false), packet(1, 1024, &data[..512], false)]),
        ("first packet beyond the start", vec![packet(0, 512, &data[..512], false)]),
        ("past the block size", vec![packet(0, 0, &data[..1024], false), packet(1, 1024, &data[..1], false)]),
        ("last packet with data", vec![packet(0, 0, &data[..512], true)]),
    ];
    for (index, (name, packets)) in cases.into_iter().enumerate() {
        let id = 10 + index as u64;
        let mut op = write_op(id);
        op.header.base_header.block.num_bytes = Some(1024);
        let ack = stream(&server, op, &packets).await;
        assert_eq!(ack.expect(name).reply, [Status::Error as i32], "{name}");
        let (path, _) = server.file(id).unwrap();
        assert!(path.to_str().unwrap().contains("rbw"), "{name}: {}", path.display());
    }
    check_alive(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_does_not_match_its_checksum_is_refused_before_it_is_written() {
    let [server] = servers().await;
    let data = some_bytes(512);
    let mut corrupt = packet(1, 512, &data, false).to_vec();
    *corrupt.last_mut().unwrap() ^= 1;
    // The end comes along: a writer need not wait for acknowledgements.
    let packets = [packet(0, 0, &data, false), corrupt.into(), packet(2, 1024, &[], true)];
    let ack = stream(&server, write_op(1), &packets).await.unwrap();
    assert_eq!((ack.seqno, ack.reply), (1, vec![Status::ErrorChecksum as i32]));
    let (path, bytes) = server.file(1).unwrap();
    assert!(path.to_str().unwrap().contains("rbw"));
    assert_eq!(bytes, data, "the good packet is there, the bad one is not");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_passes_on_corrupt_data_is_the_one_to_blame() {
    let [a, b] = servers().await;
    let mut corrupt = packet(0, 0, &some_bytes(512), false).to_vec();
    *corrupt.last_mut().unwrap() ^= 1;
    let op = OpWriteBlockProto { targets: vec![b.info()], pipeline_size: 2, ..write_op(1) };
    // The first server says nothing more: the client blames it, since nobody else can have done it.
    assert_eq!(stream(&a, op, &[corrupt.into()]).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_exists_is_not_made_again() {
    let [server] = servers().await;
    write_block(&located(block(1), &[&server]), &some_bytes(10)).await;
    let (mut inbound, _out) = server.send(Opcode::WriteBlock, &write_op(1)).await;
    assert!(refusal(&mut inbound).await.message().contains("already exists"));
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_that_are_not_served_say_so() {
    let [server] = servers().await;
    let custom = OpCustomProto { custom_id: "anything".into() };
    let (mut inbound, _out) = server.send(Opcode::Custom, &custom).await;
    assert_eq!(refusal(&mut inbound).await.status, Status::ErrorUnsupported as i32);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_goes_away_leaves_a_replica_to_recover() {
    let [a, b] = servers().await;
    let op = OpWriteBlockProto { targets: vec![b.info()], pipeline_size: 2, ..write_op(1) };
    let (mut inbound, mut out) = a.send(Opcode::WriteBlock, &op).await;
    let _: BlockOpResponseProto = inbound.message().await.unwrap();
    out.write(&packet(0, 0, &some_bytes(512), false)).await.unwrap();
    let ack: PipelineAckProto = inbound.message().await.unwrap();
    assert_eq!(ack.reply, [0, 0]);
    drop((inbound, out));
    for server in [&a, &b] {
        let (path, bytes) = server.file(1).unwrap();
        assert!(path.to_str().unwrap().contains("rbw"));
        assert_eq!(bytes.len(), 512);
    }
    check_alive(&a).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_reads_use_one_connection() {
    let [server] = servers().await;
    let data = some_bytes(1000);
    write_block(&located(block(1), &[&server]), &data).await;
    let (mut inbound, mut out) = server.connect().await;
    for _ in 0..3 {
        let mut bytes = bytes::BytesMut::new();
        proto::data_transfer::op::encode(Opcode::ReadBlock, &read_op(1, 0, 1000), &mut bytes);
        out.write(&bytes).await.unwrap();
        let response: BlockOpResponseProto = inbound.message().await.unwrap();
        let info = response.read_op_checksum_info.unwrap();
        assert_eq!((info.chunk_offset, info.checksum.bytes_per_checksum), (0, 512));
        assert_eq!(inbound.packet().await.unwrap().data, data);
        assert!(inbound.packet().await.unwrap().header.last_in_block);
        let status = proto::hdfs::ClientReadStatusProto { status: Status::ChecksumOk.into() };
        out.message(&status).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_a_reader_calls_corrupt_is_scanned_before_its_turn() {
    let [server] = servers().await;
    write_block(&located(block(1), &[&server]), &some_bytes(1000)).await;
    let config = ScanConfig { block_bytes_per_second: u64::MAX, ..ScanConfig::default() };
    let scanners = Scanners::start(&server.state.volumes, &config).unwrap();
    assert!(server.state.scanners.set(scanners).is_ok());
    let figures = server.state.scanners.get().unwrap().figures();
    let wait_for = async |number: &AtomicU64| {
        while number.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    wait_for(&figures.rounds).await;
    let (path, mut bytes) = server.file(1).unwrap();
    bytes[700] ^= 1;
    std::fs::write(path, bytes).unwrap();

    let (mut inbound, mut out) = server.send(Opcode::ReadBlock, &read_op(1, 0, 1000)).await;
    let _: BlockOpResponseProto = inbound.message().await.unwrap();
    while !inbound.packet().await.unwrap().header.last_in_block {}
    let status = proto::hdfs::ClientReadStatusProto { status: Status::ErrorChecksum.into() };
    out.message(&status).await.unwrap();
    wait_for(&figures.suspects).await;
    wait_for(&figures.damaged).await;
    assert_eq!(figures.rounds.load(Ordering::Relaxed), 1);
    server.state.stop_scanners();
}

/// A seed that fails is all that is needed to see it again.
#[tokio::test(flavor = "multi_thread")]
async fn random_packets_never_harm_the_server_or_finalise_what_is_not_whole() {
    let [a, b] = servers().await;
    let data = some_bytes(4096);
    for seed in 1..=60u64 {
        let mut random = random(seed);
        let targets = if random(2) == 0 { vec![b.info()] } else { Vec::new() };
        let op = OpWriteBlockProto { targets, ..write_op(seed) };
        let (mut inbound, mut out) = a.send(Opcode::WriteBlock, &op).await;
        let _: BlockOpResponseProto = inbound.message().await.unwrap();
        let (mut offset, mut is_spoilt) = (0, false);
        for seqno in 0..1 + random(6) as i64 {
            let piece = &data[offset..offset + random(600) as usize];
            let mut bytes = packet(seqno, offset as u64, piece, false).to_vec();
            // Partial chunks may be repeated, so every packet begins at a chunk.
            offset = (offset + piece.len()) / 512 * 512;
            if random(4) == 0 {
                is_spoilt = true;
                let at = random(bytes.len() as u64) as usize;
                match random(3) {
                    0 => bytes[at] ^= 1 << random(8),
                    1 => bytes.truncate(at),
                    _ => bytes.extend((0..random(50)).map(|_| 0xa5)),
                }
            }
            if out.write(&bytes).await.is_err() {
                break;
            }
        }
        out.end().await;
        while inbound.message::<PipelineAckProto>().await.is_ok() {}
        let (path, bytes) = a.file(seed).unwrap();
        assert!(path.to_str().unwrap().contains("rbw"), "seed {seed}");
        assert!(is_spoilt || data.starts_with(&bytes), "seed {seed}");
    }
    check_alive(&a).await;
    check_alive(&b).await;
}
