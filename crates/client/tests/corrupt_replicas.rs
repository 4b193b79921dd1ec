//! A file whose replicas are all corrupt: the client asks again where it is, a few times, and then says so.

use base::PacketHeader;
use client::{Config, FileSystem};
use proto::{
    data_transfer::{delimited, packet},
    hdfs::{
        self, BlockOpResponseProto, ChecksumProto, ChecksumTypeProto, DatanodeIdProto, DatanodeInfoProto,
        ExtendedBlockProto, LocatedBlockProto, LocatedBlocksProto, ReadOpChecksumInfoProto, Status,
    },
    protocol,
};
use rpc::{Call, Replier, Server, ServerConfig, Service, streaming};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::net::TcpListener;

const LENGTH: usize = 512;

/// Sends a packet whose checksum is wrong to everybody who reads, and counts them.
async fn corrupt_data_server(reads: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let reads = Arc::clone(&reads);
            tokio::spawn(async move {
                let (mut inbound, mut out) = streaming::split(socket, Duration::from_secs(10));
                let Ok(_) = inbound.op().await else { return };
                reads.fetch_add(1, Relaxed);
                let checksum = ChecksumProto {
                    r#type: ChecksumTypeProto::ChecksumCrc32c as i32,
                    bytes_per_checksum: LENGTH as u32,
                };
                let response = BlockOpResponseProto {
                    status: Status::Success.into(),
                    read_op_checksum_info: Some(ReadOpChecksumInfoProto { checksum, chunk_offset: 0 }),
                    ..Default::default()
                };
                let mut bytes = delimited::encoded(&response).to_vec();
                let header = PacketHeader { data_length: LENGTH as i32, ..Default::default() };
                packet::encode_prefix(&header, 4, &mut bytes);
                bytes.extend_from_slice(&[0xba, 0xad, 0xba, 0xad]);
                bytes.resize(bytes.len() + LENGTH, 7);
                let _ = out.write(&bytes).await;
                inbound.drain(Duration::from_secs(10)).await;
            });
        }
    });
    address
}

fn location(address: SocketAddr) -> DatanodeInfoProto {
    DatanodeInfoProto {
        id: DatanodeIdProto {
            ip_addr: address.ip().to_string(),
            host_name: address.ip().to_string(),
            datanode_uuid: address.to_string(),
            xfer_port: address.port().into(),
            ..Default::default()
        },
        ..Default::default()
    }
}

/// Knows one file with one block on these servers, and nothing of what is reported to it.
struct Metadata {
    servers: Vec<DatanodeInfoProto>,
    asked: AtomicUsize,
    reported: AtomicUsize,
}

impl Service for Metadata {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(protocol::CLIENT_NAMENODE, 1)]
    }

    fn call(&self, call: Call, reply: Replier) {
        match call.method {
            "getBlockLocations" => {
                self.asked.fetch_add(1, Relaxed);
                let block = LocatedBlockProto {
                    b: ExtendedBlockProto {
                        pool_id: "BP-1".into(),
                        block_id: 7,
                        generation_stamp: 1001,
                        num_bytes: Some(LENGTH as u64),
                    },
                    locs: self.servers.clone(),
                    storage_types: vec![0; self.servers.len()],
                    storage_i_ds: vec!["DS-1".into(); self.servers.len()],
                    ..Default::default()
                };
                reply.ok(&hdfs::GetBlockLocationsResponseProto {
                    locations: Some(LocatedBlocksProto {
                        file_length: LENGTH as u64,
                        blocks: vec![block],
                        is_last_block_complete: true,
                        ..Default::default()
                    }),
                });
            }
            "reportBadBlocks" => {
                self.reported.fetch_add(1, Relaxed);
                reply.ok(&hdfs::ReportBadBlocksResponseProto {});
            }
            _ => drop(reply),
        }
    }
}

#[tokio::test]
async fn a_file_whose_replicas_are_all_corrupt_is_given_up_with_its_block_and_its_servers() {
    let reads = Arc::new(AtomicUsize::new(0));
    let (first, second) =
        (corrupt_data_server(Arc::clone(&reads)).await, corrupt_data_server(Arc::clone(&reads)).await);
    let metadata = Arc::new(Metadata {
        servers: vec![location(first), location(second)],
        asked: AtomicUsize::new(0),
        reported: AtomicUsize::new(0),
    });
    let server = Server::bind(ServerConfig::new("127.0.0.1:0".parse().unwrap(), metadata.clone())).unwrap();
    let mut config = Config::new();
    config.set("dfs.client.max.block.acquire.failures", "2");
    let fs = FileSystem::connect(&format!("hdfs://{}", server.local_addr()), &config).unwrap();
    let mut file = fs.open("/all/corrupt").await.unwrap();

    let reading = tokio::time::timeout(Duration::from_secs(30), file.read(LENGTH));
    let error = reading.await.expect("it is not read for ever").unwrap_err().to_string();
    for part in
        ["Could not obtain block: BP-1:blk_7_1001 file=/all/corrupt", &first.to_string(), &second.to_string()]
    {
        assert!(error.contains(part), "{error}");
    }
    // Both were read at first and after each time that it asked where else the block is.
    assert_eq!(reads.load(Relaxed), 2 * (1 + 2));
    assert_eq!(metadata.asked.load(Relaxed), 1 + 2);
    // The master learns of both, once in each round.
    assert_eq!(metadata.reported.load(Relaxed), 2 * (1 + 2));
}
