//! Strangers that hold connections, and clients that need a place.

use super::{
    cluster::{Server, block, located, packet, read_range, servers, some_bytes, try_to_write},
    hostile::{is_closed, write_op},
};
use proto::{data_transfer::Opcode, hdfs::BlockOpResponseProto};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_give_their_places_to_clients() {
    const PLACES: usize = 8;
    let server = Server::start_with(&["DISK"], |config| {
        config.transfer_count_max = PLACES;
        // None of them ends by itself.
        config.transfer_timeout_ms = 600_000;
    })
    .await;
    let mut silent = Vec::new();
    for _ in 0..PLACES {
        silent.push(server.connect().await);
    }
    while server.state.transfer_count() < PLACES {
        tokio::task::yield_now().await;
    }
    let data = some_bytes(1000);
    // A stranger has half a second to ask for something; until then there is no place.
    let mut tries = 1;
    let last = loop {
        match try_to_write(&located(block(1), &[&server]), &data).await {
            Ok(last) => break last,
            Err(error) => assert!(tries < 400, "{error}, {tries} times"),
        }
        tries += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(read_range(&located(last, &[&server]), 0, 1000).await, Ok(data));
    let mut closed = 0;
    for (mut inbound, _out) in silent {
        let closing = tokio::time::timeout(Duration::from_millis(100), is_closed(&mut inbound)).await;
        closed += usize::from(closing == Ok(true));
    }
    assert!(closed > 0, "somebody has made room");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_reads_goes_on_while_strangers_come() {
    const PLACES: usize = 4;
    let server = Server::start_with(&["DISK"], |config| config.transfer_count_max = PLACES).await;
    // A writer with its block begun waits for no operation, however long it is silent.
    let (mut inbound, mut out) = server.send(Opcode::WriteBlock, &write_op(1)).await;
    let _: BlockOpResponseProto = inbound.message().await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    let mut strangers = Vec::new();
    for _ in 0..5 * PLACES {
        strangers.push(server.connect().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    out.write(&packet(0, 0, &some_bytes(512), false)).await.unwrap();
    let ack: proto::hdfs::PipelineAckProto = inbound.message().await.unwrap();
    assert_eq!(ack.reply, [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_that_trickles_in_does_not_hold_a_place_for_ever() {
    let [server] = servers().await;
    let (mut inbound, mut out) = server.send(Opcode::WriteBlock, &write_op(1)).await;
    let _: BlockOpResponseProto = inbound.message().await.unwrap();
    let whole = packet(0, 0, &some_bytes(8192), false);
    let trickle = async {
        for byte in whole.chunks(1) {
            if out.write(byte).await.is_err() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    };
    // 8 KiB would take three minutes.
    let patience = Duration::from_millis(server.state.config.transfer_timeout_ms);
    let was_cut = tokio::time::timeout(3 * patience + Duration::from_secs(5), trickle).await;
    assert_eq!(was_cut, Ok(true), "the server has ended the connection");
    assert_eq!(server.state.transfer_count(), 0);
}
