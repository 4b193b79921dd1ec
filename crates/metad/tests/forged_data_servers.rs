//! Made-up data servers: what they claim costs the real ones nothing.

mod lone;
mod spoken;

use env::Env;
use metad::MetaServer;
use proto::hdfs::{self as p, datanode as d};
use rpc::{CallError, Client, ClientOptions};
use spoken::STORAGE;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

const HOLDER: &str = "DFSClient_test_1";
const LENGTH: u64 = 77;

struct Cluster {
    _directory: tempfile::TempDir,
    server: MetaServer,
    files: Client,
}

/// A data server that says what a test wants, from an address of its own.
struct Spoken {
    data: Client,
    info: p::NamespaceInfoProto,
    uuid: String,
    registration: d::DatanodeRegistrationProto,
}

impl Cluster {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let env = Env::production();
        let address = Ipv4Addr::LOCALHOST.into();
        metad::format(&env, directory.path(), None, address, &Default::default()).unwrap();
        let server = MetaServer::start(env, lone::config(directory.path())).await.unwrap();
        let files = connect(server.rpc_address(), proto::protocol::CLIENT_NAMENODE);
        Self { _directory: directory, server, files }
    }

    /// Not registered yet.
    async fn stranger(&self, host: u8, uuid: &str) -> Spoken {
        let way = way_from(Ipv4Addr::new(127, 0, 0, host), self.server.rpc_address()).await;
        let data = connect(way, proto::protocol::DATANODE);
        let info = spoken::version(&data).await;
        let mut registration = spoken::registration(&info, uuid);
        registration.datanode_id.host_name = format!("host-{host}");
        Spoken { data, info, uuid: uuid.into(), registration }
    }

    async fn data_server(&self, host: u8) -> Spoken {
        let mut server = self.stranger(host, &format!("uuid-{host}")).await;
        server.register().await.unwrap();
        server.report(&[]).await.unwrap();
        server
    }

    /// A closed file whose one block these servers have.
    async fn write(&self, path: &str, servers: &[&Spoken]) -> p::BlockProto {
        let create = p::CreateRequestProto {
            src: path.into(),
            masked: p::FsPermissionProto { perm: 0o644 },
            client_name: HOLDER.into(),
            create_flag: 1,
            create_parent: true,
            replication: servers.len() as u32,
            block_size: 128 << 20,
            ..p::CreateRequestProto::default()
        };
        let _: p::CreateResponseProto = self.files.call("create", &create).await.unwrap();
        let add = p::AddBlockRequestProto {
            src: path.into(),
            client_name: HOLDER.into(),
            ..p::AddBlockRequestProto::default()
        };
        let added: p::AddBlockResponseProto = self.files.call("addBlock", &add).await.unwrap();
        let last = p::ExtendedBlockProto { num_bytes: Some(LENGTH), ..added.block.b };
        let (block_id, gen_stamp) = (last.block_id, last.generation_stamp);
        let block = p::BlockProto { block_id, gen_stamp, num_bytes: Some(LENGTH) };
        for server in servers {
            let pool = (&*server.info.block_pool_id, STORAGE);
            spoken::tell(&server.data, &server.registration, pool, block, Status::Received as i32).await;
        }
        let complete = p::CompleteRequestProto {
            src: path.into(),
            client_name: HOLDER.into(),
            last: Some(last),
            ..p::CompleteRequestProto::default()
        };
        let closed: p::CompleteResponseProto = self.files.call("complete", &complete).await.unwrap();
        assert!(closed.result);
        block
    }

    /// Who is said to have the one block of a file.
    async fn holders(&self, path: &str) -> Vec<String> {
        let request = p::GetBlockLocationsRequestProto { src: path.into(), offset: 0, length: 1 << 30 };
        let response: p::GetBlockLocationsResponseProto =
            self.files.call("getBlockLocations", &request).await.unwrap();
        let blocks = response.locations.unwrap().blocks;
        let mut holders: Vec<String> =
            blocks[0].locs.iter().map(|place| place.id.datanode_uuid.clone()).collect();
        holders.sort();
        holders
    }

    async fn stop(self) {
        drop(self.files);
        self.server.shutdown().await;
    }
}

use d::received_deleted_block_info_proto::BlockStatus as Status;

impl Spoken {
    async fn register(&mut self) -> Result<(), CallError> {
        let mut registration = spoken::registration(&self.info, &self.uuid);
        registration.datanode_id.host_name = self.registration.datanode_id.host_name.clone();
        self.registration = spoken::register(&self.data, registration).await?;
        self.heartbeat().await.map(|_| ())
    }

    async fn heartbeat(&self) -> Result<Vec<d::DatanodeCommandProto>, CallError> {
        spoken::heartbeat(&self.data, &self.registration, STORAGE).await.map(|answer| answer.cmds)
    }

    async fn report(&self, blocks: &[p::BlockProto]) -> Result<Option<d::DatanodeCommandProto>, CallError> {
        let request = d::BlockReportRequestProto {
            registration: self.registration.clone(),
            block_pool_id: self.info.block_pool_id.clone(),
            reports: vec![full_report(blocks)],
            context: None,
        };
        let answer: d::BlockReportResponseProto = self.data.call("blockReport", &request).await?;
        Ok(answer.cmd)
    }

    async fn tell(&self, block: p::BlockProto, status: Status) -> Result<(), CallError> {
        let pool = (&*self.info.block_pool_id, STORAGE);
        spoken::try_to_tell(&self.data, &self.registration, pool, block, status as i32).await
    }

    /// The same words from elsewhere, by somebody who knows all that a reader of files is told.
    async fn forged(&self, cluster: &Cluster, host: u8) -> Spoken {
        let mut forger = cluster.stranger(host, &self.uuid).await;
        forger.registration.datanode_id = self.registration.datanode_id.clone();
        forger
    }
}

/// All replicas of a storage, in the older and simpler of the two forms.
fn full_report(blocks: &[p::BlockProto]) -> d::StorageBlockReportProto {
    let mut numbers = vec![blocks.len() as u64, 0];
    for block in blocks {
        numbers.extend([block.block_id, block.num_bytes.unwrap_or(0), block.gen_stamp]);
    }
    numbers.extend([u64::MAX; 3]);
    d::StorageBlockReportProto { storage: spoken::storage(STORAGE), blocks: numbers, ..Default::default() }
}

fn connect(address: SocketAddr, protocol: &str) -> Client {
    Client::connect(address, protocol, "alice", ClientOptions::default())
}

/// An address from which each connection goes on to `to` as if it came from `ip`.
async fn way_from(ip: Ipv4Addr, to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            tokio::spawn(pass_on(near, ip, to));
        }
    });
    address
}

async fn pass_on(mut near: TcpStream, ip: Ipv4Addr, to: SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((ip, 0).into()).unwrap();
    let mut far = socket.connect(to).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
}

fn is_register(command: &d::DatanodeCommandProto) -> bool {
    command.cmd_type == d::datanode_command_proto::Type::RegisterCommand as i32
}

fn deletion_count(commands: &[d::DatanodeCommandProto]) -> usize {
    let invalidate = d::block_command_proto::Action::Invalidate as i32;
    let orders = commands.iter().filter_map(|command| command.blk_cmd.as_ref());
    orders.filter(|order| order.action == invalidate).map(|order| order.blocks.len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_the_replicas_of_a_live_server_off_the_map() {
    let cluster = Cluster::start().await;
    let real = cluster.data_server(2).await;
    let block = cluster.write("/file", &[&real]).await;
    for host in [3, 2] {
        let forger = real.forged(&cluster, host).await;
        assert!(forger.tell(block, Status::Deleted).await.is_err(), "a replica is gone, says host {host}");
        let answer = forger.report(&[]).await;
        assert!(answer.map_or(true, |command| command.is_some_and(|it| is_register(&it))), "nothing is left");
        let commands = forger.heartbeat().await.unwrap();
        assert!(commands.iter().all(is_register) && commands.len() == 1, "{commands:?}");
        let failed = d::ErrorReportRequestProto {
            registartion: forger.registration.clone(),
            error_code: d::error_report_request_proto::ErrorCode::FatalDiskError as u32,
            msg: "all volumes are gone".into(),
        };
        let _ = forger.data.call::<_, d::ErrorReportResponseProto>("errorReport", &failed).await;
        assert_eq!(cluster.holders("/file").await, ["uuid-2"]);
    }
    assert!(real.heartbeat().await.unwrap().is_empty(), "it is not even asked to register again");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_server_is_not_taken_for_one_that_has_moved() {
    let cluster = Cluster::start().await;
    let mut real = cluster.data_server(2).await;
    let block = cluster.write("/file", &[&real]).await;
    let mut clone = cluster.stranger(3, "uuid-2").await;
    let Err(CallError::Remote { class, message, .. }) = clone.register().await else {
        panic!("it is registered in two places");
    };
    // Hadoop's data servers try again after this class, and end at most others.
    assert_eq!(class, "java.io.IOException");
    assert!(message.contains("127.0.0.2:9866") && message.contains("127.0.0.3:9866"), "{message}");
    assert_eq!(cluster.holders("/file").await, ["uuid-2"]);
    assert!(real.heartbeat().await.unwrap().is_empty());

    // A process that starts again on its host is believed, and the words of the one before it are void.
    let old = real.registration.clone();
    real.register().await.unwrap();
    let new = std::mem::replace(&mut real.registration, old);
    assert!(real.tell(block, Status::Deleted).await.is_err());
    real.registration = new;
    assert_eq!(cluster.holders("/file").await, ["uuid-2"]);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn made_up_servers_that_claim_every_block_delete_none() {
    const FILES: usize = 40;
    let cluster = Cluster::start().await;
    let mut real = Vec::new();
    for host in 2..=4 {
        real.push(cluster.data_server(host).await);
    }
    let servers: Vec<&Spoken> = real.iter().collect();
    let mut blocks = Vec::new();
    for file in 0..FILES {
        blocks.push(cluster.write(&format!("/file-{file}"), &servers).await);
    }
    let mut made_up = Vec::new();
    for host in 5..=7 {
        let server = cluster.data_server(host).await;
        server.report(&blocks).await.unwrap();
        made_up.push(server);
    }
    let mut deletions = [0; 2];
    for _ in 0..8 {
        for (count, servers) in deletions.iter_mut().zip([&real, &made_up]) {
            for server in servers {
                *count += deletion_count(&server.heartbeat().await.unwrap());
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    assert_eq!(deletions, [0, 3 * FILES], "replicas to delete, real and made up");
    for file in 0..FILES {
        let holders = cluster.holders(&format!("/file-{file}")).await;
        assert!(["uuid-2", "uuid-3", "uuid-4"].iter().all(|real| holders.iter().any(|it| it == real)));
    }
    cluster.stop().await;
}
