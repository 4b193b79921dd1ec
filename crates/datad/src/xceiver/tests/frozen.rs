//! A server of a pipeline that has stopped in the midst of it: the one before it says so, and not the writer who waits for both.

use super::cluster::{Server, block, packet};
use base::PacketHeader;
use bytes::BytesMut;
use proto::{
    data_transfer::{Opcode, packet as wire},
    hdfs::{
        BaseHeaderProto, BlockOpResponseProto, ChecksumProto, ClientOperationHeaderProto, DatanodeInfoProto,
        OpWriteBlockProto, PipelineAckProto, Status, op_write_block_proto::BlockConstructionStage,
    },
};
use rpc::streaming::{self, Inbound, Outgoing};
use std::time::Duration;
use tokio::net::TcpListener;

/// What a writer sends while it has nothing to say.
fn heartbeat() -> BytesMut {
    let header = PacketHeader { seqno: PacketHeader::HEARTBEAT_SEQNO, ..Default::default() };
    let mut bytes = BytesMut::new();
    wire::encode_prefix(&header, 0, &mut bytes);
    bytes
}

/// The next server of a pipeline: it takes part in the set-up and acknowledges nothing.
async fn frozen_after_set_up(listener: TcpListener) -> (Inbound, Outgoing) {
    let (socket, _) = listener.accept().await.unwrap();
    let (mut inbound, mut out) = streaming::split(socket, Duration::from_secs(60));
    assert_eq!(inbound.op().await.unwrap().code, Opcode::WriteBlock);
    let set_up = BlockOpResponseProto { status: Status::Success.into(), ..Default::default() };
    out.message(&set_up).await.unwrap();
    (inbound, out)
}

fn write_over(mirror: DatanodeInfoProto) -> OpWriteBlockProto {
    OpWriteBlockProto {
        header: ClientOperationHeaderProto {
            base_header: BaseHeaderProto { block: block(1), ..Default::default() },
            client_name: "writer".into(),
        },
        targets: vec![mirror],
        stage: BlockConstructionStage::PipelineSetupCreate.into(),
        pipeline_size: 2,
        requested_checksum: ChecksumProto { r#type: 2, bytes_per_checksum: 512 },
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_that_acknowledges_nothing_is_blamed_while_the_writer_sends_heartbeats() {
    let server = Server::start_with(&["DISK"], |config| config.transfer_timeout_ms = 500).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut mirror = server.info();
    mirror.id.datanode_uuid = "frozen".into();
    mirror.id.xfer_port = listener.local_addr().unwrap().port().into();
    let frozen = tokio::spawn(frozen_after_set_up(listener));
    let (mut inbound, mut out) = server.send(Opcode::WriteBlock, &write_over(mirror)).await;
    inbound.timeout = Duration::from_secs(60);
    let set_up: BlockOpResponseProto = inbound.message().await.unwrap();
    assert_eq!(set_up.status, Status::Success as i32, "{}", set_up.message());
    let _connection = frozen.await.unwrap();
    out.write(&packet(0, 0, b"data", false)).await.unwrap();
    let sends = async {
        loop {
            out.write(&heartbeat()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let said: PipelineAckProto = tokio::select! {
        said = inbound.message() => said.unwrap(),
        () = sends => unreachable!(),
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("nobody is blamed"),
    };
    assert_eq!(said.reply, [Status::Success as i32, Status::Error as i32]);
}
