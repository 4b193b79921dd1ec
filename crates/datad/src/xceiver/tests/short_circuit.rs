//! A server's answers to clients of its machine: to good ones, and to such as send nonsense.

use super::cluster::*;
use crate::short_circuit::SEGMENTS_OF_A_PROCESS_MAX;
use base::{BlockId, ExtendedBlock};
use blockstore::ReplicaState;
use client::block::BlockWriter;
use proto::{
    data_transfer::{
        Opcode,
        slot::{SEGMENT_BYTES, SLOTS, VALID},
    },
    hdfs::{
        BaseHeaderProto, BlockOpResponseProto, ExtendedBlockProto, OpRequestShortCircuitAccessProto,
        ReleaseShortCircuitAccessRequestProto, ReleaseShortCircuitAccessResponseProto,
        ShortCircuitShmIdProto, ShortCircuitShmRequestProto, ShortCircuitShmResponseProto,
        ShortCircuitShmSlotProto, Status,
    },
};
use rpc::local::{LocalLink, Segment};
use std::{
    fs::File,
    io::Read,
    os::{fd::OwnedFd, unix::fs::FileExt},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::io::AsyncWriteExt;

const PATIENCE: Duration = Duration::from_secs(5);

/// A client's segment and the connection that it lasts for.
struct Memory {
    segment: Segment,
    id: ShortCircuitShmIdProto,
    _link: LocalLink,
}

impl Memory {
    /// A slot that the client has marked as valid.
    fn slot(&self, index: i32) -> ShortCircuitShmSlotProto {
        if let Some(word) = usize::try_from(index).ok().and_then(|index| self.segment.word(index)) {
            word.store(VALID, Ordering::Release);
        }
        ShortCircuitShmSlotProto { shm_id: self.id, slot_idx: index }
    }

    fn is_valid(&self, index: usize) -> bool {
        self.segment.word(index).unwrap().load(Ordering::Acquire) & VALID != 0
    }
}

async fn link(server: &Server) -> LocalLink {
    LocalLink::connect(&server.socket(), PATIENCE).await.unwrap()
}

async fn ask_for_memory(server: &Server) -> Result<Memory, ShortCircuitShmResponseProto> {
    let mut link = link(server).await;
    let request = ShortCircuitShmRequestProto { client_name: "test".into(), trace_info: None };
    link.send(Opcode::RequestShortCircuitShm, &request).await.unwrap();
    let answer: ShortCircuitShmResponseProto = link.message().await.unwrap();
    let Some(id) = answer.id else { return Err(answer) };
    let (_, mut files) = link.descriptors().await.unwrap();
    assert_eq!(files.len(), 1);
    let file = File::from(files.remove(0));
    assert_eq!(file.metadata().unwrap().len(), SEGMENT_BYTES as u64);
    Ok(Memory { segment: Segment::map(&file).unwrap(), id, _link: link })
}

async fn memory(server: &Server) -> Memory {
    ask_for_memory(server).await.unwrap_or_else(|answer| panic!("{answer:?}"))
}

fn request(
    block: ExtendedBlockProto,
    slot: Option<ShortCircuitShmSlotProto>,
) -> OpRequestShortCircuitAccessProto {
    OpRequestShortCircuitAccessProto {
        header: BaseHeaderProto { block, ..Default::default() },
        max_version: 1,
        slot_id: slot,
        supports_receipt_verification: Some(true),
    }
}

type Files = [OwnedFd; 2];

/// The files, or the refusal. The connection is as good as before afterwards.
async fn ask(
    link: &mut LocalLink,
    request: &OpRequestShortCircuitAccessProto,
) -> Result<Files, BlockOpResponseProto> {
    link.send(Opcode::RequestShortCircuitFds, request).await.unwrap();
    let answer: BlockOpResponseProto = link.message().await.unwrap();
    if answer.status != Status::Success as i32 {
        return Err(answer);
    }
    assert_eq!(answer.short_circuit_access_version, Some(1));
    let (byte, files) = link.descriptors().await.unwrap();
    assert_eq!(byte, u8::from(request.supports_receipt_verification()));
    if byte == 1 {
        link.receipt().await.unwrap();
    }
    Ok(files.try_into().unwrap())
}

async fn release(link: &mut LocalLink, slot: ShortCircuitShmSlotProto) -> Status {
    let request = ReleaseShortCircuitAccessRequestProto { slot_id: slot, trace_info: None };
    link.send(Opcode::ReleaseShortCircuitFds, &request).await.unwrap();
    let answer: ReleaseShortCircuitAccessResponseProto = link.message().await.unwrap();
    Status::try_from(answer.status).unwrap()
}

fn contents(file: OwnedFd) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::from(file).read_to_end(&mut bytes).unwrap();
    bytes
}

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_this_machine_gets_the_files_of_a_replica() {
    let [server] = servers().await;
    let data = some_bytes(100_000);
    let closed = write_block(&located(block(1), &[&server]), &data).await;
    let memory = memory(&server).await;
    let mut link = link(&server).await;
    let [block_file, meta_file] = ask(&mut link, &request(closed, Some(memory.slot(5)))).await.unwrap();
    assert_eq!(contents(block_file), data);
    let meta = contents(meta_file);
    assert_eq!(meta[..7], [0, 1, 2, 0, 0, 2, 0]);
    assert_eq!(meta.len(), 7 + 4 * data.len().div_ceil(512));
    assert!(memory.is_valid(5));

    assert_eq!(release(&mut link, memory.slot(5)).await, Status::Success);
    assert!(!memory.is_valid(5));
    assert_eq!(release(&mut link, memory.slot(5)).await, Status::ErrorInvalid);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_for_reading_only() {
    let [server] = servers().await;
    let closed = write_block(&located(block(1), &[&server]), &some_bytes(1000)).await;
    let files = ask(&mut link(&server).await, &request(closed, None)).await.unwrap();
    for file in files.map(File::from) {
        assert!(file.write_at(b"x", 0).is_err() && file.set_len(0).is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_knows_no_receipts_gets_its_files_and_the_end() {
    let [server] = servers().await;
    let data = some_bytes(1000);
    let closed = write_block(&located(block(1), &[&server]), &data).await;
    let memory = memory(&server).await;
    let asked = OpRequestShortCircuitAccessProto {
        supports_receipt_verification: None,
        ..request(closed, Some(memory.slot(0)))
    };
    let mut link = link(&server).await;
    let [block_file, _] = ask(&mut link, &asked).await.unwrap();
    assert_eq!(contents(block_file), data);
    assert!(link.message::<BlockOpResponseProto>().await.is_err(), "one at a time without receipts");
    assert!(memory.is_valid(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_hears_when_its_replica_is_deleted() {
    let [server] = servers().await;
    let data = some_bytes(5000);
    let closed = write_block(&located(block(1), &[&server]), &data).await;
    let memory = memory(&server).await;
    let asked = request(closed.clone(), Some(memory.slot(0)));
    let [block_file, _] = ask(&mut link(&server).await, &asked).await.unwrap();

    let id = ExtendedBlock {
        pool: POOL.into(),
        block: server.pool().store.facts(POOL, BlockId(1)).unwrap().block,
    };
    server.pool().store.invalidate(&id).unwrap();
    assert!(!memory.is_valid(0));
    assert_eq!(contents(block_file), data, "what is open stays readable");

    let gone = ask(&mut link(&server).await, &request(closed, Some(memory.slot(1)))).await.unwrap_err();
    assert_eq!(gone.status, Status::ErrorUnsupported as i32);
    assert!(gone.short_circuit_access_version.is_some(), "the client goes on asking for other blocks");
    until(|| server.state.short_circuit.slot_count() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_hears_when_its_replica_is_appended_to_and_gets_no_files_meanwhile() {
    let [server] = servers().await;
    let closed = write_block(&located(block(1), &[&server]), &some_bytes(700)).await;
    let memory = memory(&server).await;
    let mut link = link(&server).await;
    ask(&mut link, &request(closed.clone(), Some(memory.slot(0)))).await.unwrap();

    let keeper = Arc::new(Keeper::default());
    let at = located(closed.clone(), &[&server]);
    let mut writer = BlockWriter::append(&at, &options(), keeper).await.unwrap();
    assert!(!memory.is_valid(0));
    writer.write(&some_bytes(10)).await.unwrap();
    let refused = ask(&mut link, &request(closed, Some(memory.slot(1)))).await.unwrap_err();
    assert_eq!(refused.status, Status::ErrorUnsupported as i32);
    assert_eq!(refused.short_circuit_access_version, Some(1));
    assert!(refused.message().contains("being written"), "{refused:?}");

    let now = writer.close().await.unwrap();
    let [block_file, _] = ask(&mut link, &request(now, Some(memory.slot(2)))).await.unwrap();
    assert_eq!(contents(block_file).len(), 710);
    assert_eq!(server.state.short_circuit.slot_count(), 2, "the refused one is not kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_given_back_when_the_client_is_gone() {
    let [server] = servers().await;
    let closed = write_block(&located(block(1), &[&server]), &some_bytes(700)).await;
    let transfers = server.state.transfer_count();
    let memory = memory(&server).await;
    ask(&mut link(&server).await, &request(closed, Some(memory.slot(0)))).await.unwrap();
    until(|| server.state.transfer_count() == transfers).await;
    let descriptors = server.state.env.descriptors.taken();
    let Memory { segment, _link, .. } = memory;
    drop(_link);
    until(|| server.state.short_circuit.segment_count() == 0).await;
    assert_eq!(server.state.short_circuit.slot_count(), 0);
    assert_eq!(segment.word(0).unwrap().load(Ordering::Acquire) & VALID, 0);
    until(|| server.state.env.descriptors.taken() < descriptors).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_on_the_connection_of_a_segment_ends_it() {
    let [server] = servers().await;
    let mut memory = memory(&server).await;
    memory._link.receipt().await.unwrap();
    until(|| server.state.short_circuit.segment_count() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refusal_has_hadoops_status() {
    let [server] = servers().await;
    let closed = write_block(&located(block(1), &[&server]), &some_bytes(700)).await;
    let mut link = link(&server).await;

    let old = OpRequestShortCircuitAccessProto { max_version: 0, ..request(closed.clone(), None) };
    let answer = ask(&mut link, &old).await.unwrap_err();
    assert_eq!(answer.status, Status::ErrorUnsupported as i32);
    assert_eq!(answer.short_circuit_access_version, Some(1));
    assert!(answer.message().contains("too old"), "{answer:?}");

    let nowhere = ShortCircuitShmSlotProto { shm_id: ShortCircuitShmIdProto { hi: 1, lo: 2 }, slot_idx: 0 };
    let answer = ask(&mut link, &request(closed.clone(), Some(nowhere))).await.unwrap_err();
    assert_eq!(answer.status, Status::Error as i32);
    assert_eq!(release(&mut link, nowhere).await, Status::ErrorInvalid);

    // Through the network nothing can be handed over.
    let (mut inbound, _out) = server.send(Opcode::RequestShortCircuitFds, &request(closed, None)).await;
    let answer: BlockOpResponseProto = inbound.message().await.unwrap();
    assert_eq!(answer.status, Status::Error as i32);
    let shm = ShortCircuitShmRequestProto { client_name: "far".into(), trace_info: None };
    let (mut inbound, _out) = server.send(Opcode::RequestShortCircuitShm, &shm).await;
    let answer: ShortCircuitShmResponseProto = inbound.message().await.unwrap();
    assert_eq!(answer.status, Status::ErrorInvalid as i32);
    assert_eq!(server.state.short_circuit.figures.refused.load(Ordering::Relaxed), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hands_nothing_out_says_so() {
    let server = Server::start_with(&["DISK"], |config| config.short_circuit = false).await;
    let closed = write_block(&located(block(1), &[&server]), &some_bytes(700)).await;
    let answer = ask(&mut link(&server).await, &request(closed, None)).await.unwrap_err();
    assert_eq!((answer.status, answer.short_circuit_access_version), (Status::ErrorUnsupported as i32, None));
    let answer = ask_for_memory(&server).await.err().unwrap();
    assert_eq!(answer.status, Status::ErrorUnsupported as i32);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_takes_all_segments_gets_a_share_and_harms_nobody() {
    let [server] = servers().await;
    let closed = write_block(&located(block(1), &[&server]), &some_bytes(700)).await;
    let mut held = Vec::new();
    let refused = loop {
        match ask_for_memory(&server).await {
            Ok(memory) => held.push(memory),
            Err(answer) => break answer,
        }
    };
    assert_eq!(held.len(), SEGMENTS_OF_A_PROCESS_MAX);
    // With any other status a stock client asks again at once, without end.
    assert_eq!(refused.status, Status::ErrorUnsupported as i32);
    ask(&mut link(&server).await, &request(closed, None)).await.unwrap();
    held.pop();
    until(|| server.state.short_circuit.segment_count() < SEGMENTS_OF_A_PROCESS_MAX).await;
    memory(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_no_receipt_keeps_no_slot() {
    let [server] = servers().await;
    let closed = write_block(&located(block(1), &[&server]), &some_bytes(700)).await;
    let memory = memory(&server).await;
    let mut link = link(&server).await;
    let asked = request(closed, Some(memory.slot(3)));
    link.send(Opcode::RequestShortCircuitFds, &asked).await.unwrap();
    let _: BlockOpResponseProto = link.message().await.unwrap();
    drop(link);
    until(|| server.state.short_circuit.slot_count() == 0).await;
    assert!(!memory.is_valid(3));
}

/// A seed that fails is all that is needed to see it again.
#[tokio::test(flavor = "multi_thread")]
async fn nonsense_of_local_clients_never_harms_the_server() {
    let [server] = servers().await;
    let closed = write_block(&located(block(1), &[&server]), &some_bytes(700)).await;
    let memory = memory(&server).await;
    for seed in 1..=150u64 {
        let mut random = random(seed);
        // The memory is the client's as well, and it writes what it likes.
        let word = memory.segment.word(random(SLOTS as u64) as usize).unwrap();
        word.store(random(u64::MAX), Ordering::Relaxed);
        let index = [-1, 0, 1, 127, 128, i32::MAX, i32::MIN][random(7) as usize];
        let slot = ShortCircuitShmSlotProto { shm_id: memory.id, slot_idx: index };
        let mut bytes = bytes::BytesMut::new();
        match random(3) {
            0 => proto::data_transfer::op::encode(
                Opcode::RequestShortCircuitFds,
                &request(closed.clone(), Some(slot)),
                &mut bytes,
            ),
            1 => proto::data_transfer::op::encode(
                Opcode::ReleaseShortCircuitFds,
                &ReleaseShortCircuitAccessRequestProto { slot_id: slot, trace_info: None },
                &mut bytes,
            ),
            _ => proto::data_transfer::op::encode(
                Opcode::RequestShortCircuitShm,
                &ShortCircuitShmRequestProto {
                    client_name: "x".repeat(random(9) as usize),
                    trace_info: None,
                },
                &mut bytes,
            ),
        }
        if random(2) == 0 {
            let at = random(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random(8);
        }
        let mut socket = tokio::net::UnixStream::connect(server.socket()).await.unwrap();
        socket.write_all(&bytes).await.unwrap();
    }
    drop(memory);
    until(|| server.state.short_circuit.segment_count() == 0 && server.state.transfer_count() == 0).await;
    assert_eq!(server.state.short_circuit.slot_count(), 0);
    let facts = server.pool().store.facts(POOL, BlockId(1)).unwrap();
    assert_eq!(facts.state, ReplicaState::Finalized);
    ask(&mut link(&server).await, &request(closed, None)).await.unwrap();
}
