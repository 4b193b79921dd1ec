//! A file that is being written ends where a data server says that it ends: nothing else may be taken for its end.

use client::{Config, FileSystem};
use proto::{
    exception::{IO, REPLICA_NOT_FOUND},
    hdfs::{
        self, DatanodeIdProto, DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto, LocatedBlocksProto,
    },
    protocol,
};
use rpc::{Call, Replier, RpcError, Server, ServerConfig, Service};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

const WHOLE: u64 = 1_000;

/// The answer of a data server about the length of its replica.
#[derive(Clone, Copy)]
enum Says {
    Length(u64),
    NoReplica,
    Nothing,
}

struct DataServer(Says);

impl Service for DataServer {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(protocol::CLIENT_DATANODE, 1)]
    }

    fn call(&self, _: Call, reply: Replier) {
        match self.0 {
            Says::Length(length) => reply.ok(&hdfs::GetReplicaVisibleLengthResponseProto { length }),
            Says::NoReplica => reply.error(RpcError::application(REPLICA_NOT_FOUND, "Replica not found")),
            Says::Nothing => reply.error(RpcError::application(IO, "the disk is away")),
        }
    }
}

/// Knows one file with a whole block, and one that is being written on these servers. It has heard of `known` bytes of that.
struct Metadata {
    servers: Vec<SocketAddr>,
    known: u64,
    /// The number of answers, from the first on, that name no data server.
    silent: AtomicUsize,
}

fn block(id: u64, length: u64, offset: u64, servers: &[SocketAddr]) -> LocatedBlockProto {
    let info = |address: &SocketAddr| DatanodeInfoProto {
        id: DatanodeIdProto {
            ip_addr: address.ip().to_string(),
            host_name: address.ip().to_string(),
            datanode_uuid: address.to_string(),
            ipc_port: address.port().into(),
            ..Default::default()
        },
        ..Default::default()
    };
    LocatedBlockProto {
        b: ExtendedBlockProto {
            pool_id: "BP-1".into(),
            block_id: id,
            generation_stamp: 1001,
            num_bytes: Some(length),
        },
        offset,
        locs: servers.iter().map(info).collect(),
        ..Default::default()
    }
}

impl Service for Metadata {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(protocol::CLIENT_NAMENODE, 1)]
    }

    fn call(&self, _: Call, reply: Replier) {
        let is_silent = self.silent.load(Relaxed) > 0;
        if is_silent {
            self.silent.fetch_sub(1, Relaxed);
        }
        let servers: &[SocketAddr] = if is_silent { &[] } else { &self.servers };
        reply.ok(&hdfs::GetBlockLocationsResponseProto {
            locations: Some(LocatedBlocksProto {
                file_length: WHOLE,
                blocks: vec![block(7, WHOLE, 0, &self.servers)],
                under_construction: true,
                last_block: Some(block(8, self.known, WHOLE, servers)),
                is_last_block_complete: false,
                ..Default::default()
            }),
        });
    }
}

/// The length of the file, or why it cannot be opened.
async fn open(says: &[Says], known: u64, silent: usize) -> Result<u64, String> {
    let any = "127.0.0.1:0".parse().unwrap();
    let servers: Vec<_> = says
        .iter()
        .map(|says| Server::bind(ServerConfig::new(any, Arc::new(DataServer(*says)))).unwrap())
        .collect();
    let addresses = servers.iter().map(Server::local_addr).collect();
    let metadata = Metadata { servers: addresses, known, silent: AtomicUsize::new(silent) };
    let server = Server::bind(ServerConfig::new(any, Arc::new(metadata))).unwrap();
    let mut config = Config::new();
    config.set("dfs.client.retry.times.get-last-block-length", "2");
    config.set("dfs.client.retry.interval-ms.get-last-block-length", "10");
    let fs = FileSystem::connect(&format!("hdfs://{}", server.local_addr()), &config).unwrap();
    fs.open("/open").await.map(|file| file.length()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_end_is_where_any_data_server_says() {
    assert_eq!(open(&[Says::Nothing, Says::Length(77)], 5, 0).await, Ok(WHOLE + 77));
}

#[tokio::test]
async fn a_block_that_no_server_has_yet_is_empty() {
    assert_eq!(open(&[Says::NoReplica, Says::NoReplica], 0, 0).await, Ok(WHOLE));
    let error = open(&[Says::NoReplica], 5, 0).await.unwrap_err();
    assert!(error.contains("Could not obtain the last block locations"), "bytes are known: {error}");
    let error = open(&[Says::Length(u64::MAX)], 5, 0).await.unwrap_err();
    assert!(error.contains("it has no length yet"), "{error}");
    assert_eq!(
        open(&[Says::NoReplica], 0, 9).await,
        Ok(WHOLE),
        "nothing was written to the server that is not named yet"
    );
}

#[tokio::test]
async fn part_of_a_file_is_not_taken_for_all_of_it() {
    for says in [&[Says::Nothing][..], &[Says::NoReplica, Says::Nothing]] {
        let error = open(says, 5, 0).await.unwrap_err();
        assert!(error.contains("Cannot obtain block length for BP-1:blk_8_1001"), "{error}");
        assert!(error.contains("the disk is away"), "{error}");
    }
}

#[tokio::test]
async fn servers_that_have_not_reported_yet_are_waited_for() {
    assert_eq!(open(&[Says::Length(77)], 5, 2).await, Ok(WHOLE + 77));
    let error = open(&[Says::Length(77)], 5, 3).await.unwrap_err();
    assert!(error.contains("Could not obtain the last block locations of /open"), "{error}");
}
