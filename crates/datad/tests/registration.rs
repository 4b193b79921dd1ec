//! A data server and a metadata server that only plays its part: what is told, when, and what is obeyed.

use base::{Block, BlockId, ExtendedBlock, FsError, GenerationStamp};
use blockstore::{Checksum, NewReplica, StorageType, VolumeConfig};
use datad::{DataConfig, DataServer};
use env::Env;
use parking_lot::Mutex;
use proto::{
    exception,
    hdfs::{
        BlockProto, DatanodeInfoProto, DatanodeInfosProto, ExtendedBlockProto, LocatedBlockProto,
        NamespaceInfoProto, NnhaStatusHeartbeatProto, RecoveringBlockProto, ShutdownDatanodeRequestProto,
        ShutdownDatanodeResponseProto, StorageInfoProto, StorageTypeProto, StorageTypesProto,
        StorageUuidsProto, VersionResponseProto,
        datanode::{
            BlockCommandProto, BlockReceivedAndDeletedRequestProto, BlockReceivedAndDeletedResponseProto,
            BlockRecoveryCommandProto, BlockReportRequestProto, BlockReportResponseProto,
            CommitBlockSynchronizationRequestProto, CommitBlockSynchronizationResponseProto,
            DatanodeCommandProto, HeartbeatRequestProto, HeartbeatResponseProto, RegisterCommandProto,
            RegisterDatanodeRequestProto, RegisterDatanodeResponseProto, ReportBadBlocksRequestProto,
            ReportBadBlocksResponseProto, block_command_proto::Action, datanode_command_proto::Type,
            received_deleted_block_info_proto::BlockStatus,
        },
    },
    protocol::CLIENT_DATANODE,
};
use rpc::{Call, Client, ClientOptions, Replier, RpcError, Server, ServerConfig, Service};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const POOL: &str = "BP-77-127.0.0.1-1700000000000";

#[derive(Default)]
struct Log {
    registered: Vec<RegisterDatanodeRequestProto>,
    heartbeats: Vec<HeartbeatRequestProto>,
    full: Vec<BlockReportRequestProto>,
    changes: Vec<(BlockProto, BlockStatus)>,
    commands: Vec<DatanodeCommandProto>,
    recovered: Vec<CommitBlockSynchronizationRequestProto>,
    damaged: Vec<LocatedBlockProto>,
    /// The next heartbeat and report get this.
    refusal: Option<&'static str>,
}

struct Metadata {
    cluster: &'static str,
    is_active: bool,
    log: Mutex<Log>,
}

impl Metadata {
    fn new(cluster: &'static str) -> Arc<Self> {
        Arc::new(Self { cluster, is_active: true, log: Mutex::default() })
    }

    fn refuse(&self) -> Result<(), RpcError> {
        match self.log.lock().refusal.take() {
            Some(class) => Err(RpcError::application(class, "as the test wishes")),
            None => Ok(()),
        }
    }

    fn changed(&self, id: u64, status: BlockStatus) -> bool {
        self.log.lock().changes.iter().any(|(block, seen)| block.block_id == id && *seen == status)
    }
}

struct Front(Arc<Metadata>);

impl Service for Front {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(proto::protocol::DATANODE, 1)]
    }

    fn call(&self, call: Call, reply: Replier) {
        let this = &self.0;
        match call.method {
            "versionRequest" => reply.ok(&VersionResponseProto { info: info(this.cluster) }),
            "registerDatanode" => reply.result(this.refuse().and_then(|()| {
                let request: RegisterDatanodeRequestProto = call.decode()?;
                let registration = request.registration.clone();
                this.log.lock().registered.push(request);
                Ok(RegisterDatanodeResponseProto { registration })
            })),
            "sendHeartbeat" => reply.result(this.refuse().and_then(|()| {
                let mut log = this.log.lock();
                log.heartbeats.push(call.decode()?);
                Ok(HeartbeatResponseProto {
                    cmds: std::mem::take(&mut log.commands),
                    ha_status: NnhaStatusHeartbeatProto { state: i32::from(!this.is_active), txid: 9 },
                    full_block_report_lease_id: Some(4711),
                    ..Default::default()
                })
            })),
            "blockReport" => reply.result(this.refuse().and_then(|()| {
                this.log.lock().full.push(call.decode()?);
                Ok(BlockReportResponseProto { cmd: None })
            })),
            "blockReceivedAndDeleted" => reply.result(this.refuse().and_then(|()| {
                let request: BlockReceivedAndDeletedRequestProto = call.decode()?;
                let blocks = request.blocks.into_iter().flat_map(|storage| storage.blocks);
                this.log.lock().changes.extend(blocks.map(|info| {
                    let status = info.status();
                    (info.block, status)
                }));
                Ok(BlockReceivedAndDeletedResponseProto {})
            })),
            "reportBadBlocks" => reply.result(call.decode().map(|request: ReportBadBlocksRequestProto| {
                this.log.lock().damaged.extend(request.blocks);
                ReportBadBlocksResponseProto {}
            })),
            "commitBlockSynchronization" => reply.result(call.decode().map(|request| {
                this.log.lock().recovered.push(request);
                CommitBlockSynchronizationResponseProto {}
            })),
            other => reply.fs_error(&FsError::Unsupported(other.into())),
        }
    }
}

fn info(cluster: &str) -> NamespaceInfoProto {
    NamespaceInfoProto {
        build_version: "test".into(),
        unused: 0,
        block_pool_id: POOL.into(),
        storage_info: StorageInfoProto {
            layout_version: -67i32 as u32,
            namespce_id: 77,
            cluster_id: cluster.into(),
            // New whenever this runs, so that directories are made.
            c_time: 4_102_444_800_000,
        },
        software_version: "3.5.0".into(),
        capabilities: Some(1),
        state: Some(0),
    }
}

fn serve(metadata: &Arc<Metadata>, address: &str) -> Server {
    let service = Arc::new(Front(metadata.clone()));
    Server::bind(ServerConfig::new(address.parse().unwrap(), service)).unwrap()
}

fn config(root: &Path, servers: &[&Server]) -> DataConfig {
    let volume = VolumeConfig { path: root.join("data"), storage_type: StorageType::Disk };
    let servers = servers.iter().map(|server| server.local_addr().to_string()).collect();
    DataConfig { heartbeat_interval_ms: 50, ..DataConfig::new(vec![volume], servers) }
}

async fn start(root: &Path, servers: &[&Server]) -> DataServer {
    DataServer::start(Env::production(), config(root, servers)).await.unwrap()
}

struct NoRandomness;

impl env::Random for NoRandomness {
    fn fill(&self, _: &mut [u8]) {
        panic!("there is no randomness");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_while_the_data_directories_are_opened_is_not_told_as_a_wrong_configuration() {
    let root = tempfile::tempdir().unwrap();
    let rpc = serve(&Metadata::new("CID-one"), "127.0.0.1:0");
    let env = Env { random: Arc::new(NoRandomness), ..Env::production() };
    let error = DataServer::start(env, config(root.path(), &[&rpc])).await.err().expect("it cannot start");
    assert!(matches!(error, datad::StartError::BrokenOff(_)), "{error}");
}

fn block(id: u64) -> ExtendedBlock {
    let block = Block { id: BlockId(id), generation_stamp: GenerationStamp(1001), length: 0 };
    ExtendedBlock { pool: POOL.into(), block }
}

/// Stores a block as the transfer service does: it writes the replica, finishes it, and reports it.
fn store_block(server: &DataServer, id: u64) {
    let pool = server.state().pool(POOL).unwrap();
    let new = NewReplica {
        block: block(id),
        checksum: Checksum::DEFAULT,
        storage_type: StorageType::Disk,
        size_expected: 100,
    };
    let mut writer = pool.store.create_rbw(&new).unwrap();
    let storage = writer.storage_id().clone();
    pool.reporter.notify_receiving(&storage, writer.block(), false);
    writer.write(0, b"clover", &Checksum::DEFAULT.sum(b"clover")).unwrap();
    let finished = writer.finalize(false).unwrap();
    pool.reporter.notify_received(&storage, finished, None);
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(10), "{what} within 10 s");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn invalidate(id: u64) -> DatanodeCommandProto {
    let block = BlockProto { block_id: id, gen_stamp: 1001, num_bytes: Some(6) };
    DatanodeCommandProto {
        cmd_type: Type::BlockCommand as i32,
        blk_cmd: Some(BlockCommandProto {
            action: Action::Invalidate as i32,
            block_pool_id: POOL.into(),
            blocks: vec![block],
            ..Default::default()
        }),
        ..Default::default()
    }
}

async fn http(server: &DataServer, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(server.http_addr()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_registers_then_reports_and_keeps_its_identity() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    store_block(&server, 1_073_741_825);
    let uuid = server.state().identity.uuid.clone();
    {
        let log = metadata.log.lock();
        let registration = &log.registered[0].registration;
        assert_eq!(registration.datanode_id.datanode_uuid, *uuid);
        assert_eq!(registration.storage_info.layout_version as i32, -57);
        assert_eq!(registration.storage_info.namespce_id, 77);
        assert_eq!(registration.datanode_id.xfer_port, u32::from(server.transfer_addr().port()));
        assert!(log.heartbeats[0].request_full_block_report_lease());
        let full = &log.full[0];
        assert_eq!(full.context.as_ref().unwrap().lease_id, Some(4711));
        assert_eq!(full.reports[0].number_of_blocks, Some(0));
        assert!(log.heartbeats[0].reports[0].capacity() > 0);
    }
    assert!(http(&server, "/health").await.contains("\"state\":\"serving\""));
    let metrics = http(&server, "/metrics").await;
    assert!(metrics.contains("clover_data_replicas 1"), "{metrics}");
    server.shutdown().await;

    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    assert_eq!(server.state().identity.uuid, uuid);
    let log = metadata.log.lock();
    assert_eq!(log.full[1].reports[0].number_of_blocks, Some(1));
    assert_eq!(log.full[1].reports[0].storage, log.full[0].reports[0].storage);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_block_is_told_at_once() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let slow = DataConfig { heartbeat_interval_ms: 60_000, ..config(root.path(), &[&rpc]) };
    let server = DataServer::start(Env::production(), slow).await.unwrap();
    server.wait_registered().await.unwrap();
    for id in 1..=20 {
        let started = Instant::now();
        store_block(&server, id);
        eventually("the block is told", || metadata.changed(id, BlockStatus::Received)).await;
        assert!(started.elapsed() < Duration::from_secs(1), "no heartbeat is waited for");
        assert!(metadata.changed(id, BlockStatus::Receiving));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_invalidated_goes_and_is_told() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    store_block(&server, 5);
    metadata.log.lock().commands.push(invalidate(5));
    eventually("the removal is told", || metadata.changed(5, BlockStatus::Deleted)).await;
    assert!(server.state().pool(POOL).unwrap().store.read(&block(5)).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_about_another_pool_deletes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    store_block(&server, 5);
    store_block(&server, 6);
    let mut foreign = invalidate(5);
    foreign.blk_cmd.as_mut().unwrap().block_pool_id = "BP-other".into();
    metadata.log.lock().commands.extend([foreign, invalidate(6)]);
    eventually("the later order is carried out", || metadata.changed(6, BlockStatus::Deleted)).await;
    let state = server.state();
    assert!(state.pool(POOL).unwrap().store.read(&block(5)).is_ok());
    let unknown = state.pool("BP-other").map(drop).unwrap_err();
    assert_eq!(unknown.to_string(), "block pool BP-other is not served here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_told_everything_and_not_obeyed() {
    let root = tempfile::tempdir().unwrap();
    let active = Metadata::new("CID-one");
    let standby =
        Arc::new(Metadata { cluster: "CID-one", is_active: false, log: Mutex::new(Log::default()) });
    let (one, other) = (serve(&active, "127.0.0.1:0"), serve(&standby, "127.0.0.1:0"));
    let server = start(root.path(), &[&one, &other]).await;
    eventually("both have the full report", || {
        !active.log.lock().full.is_empty() && !standby.log.lock().full.is_empty()
    })
    .await;
    store_block(&server, 5);
    for metadata in [&active, &standby] {
        eventually("both are told", || metadata.changed(5, BlockStatus::Received)).await;
    }
    standby.log.lock().commands.push(invalidate(5));
    eventually("the command is on its way", || standby.log.lock().commands.is_empty()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(server.state().pool(POOL).unwrap().store.read(&block(5)).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_known_registers_again() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    let registrations = |count: usize| metadata.log.lock().full.len() >= count;
    // Ordered by the metadata server, as after its restart.
    metadata.log.lock().commands.push(DatanodeCommandProto {
        cmd_type: Type::RegisterCommand as i32,
        register_cmd: Some(RegisterCommandProto {}),
        ..Default::default()
    });
    eventually("a second registration and full report", || registrations(2)).await;
    metadata.log.lock().refusal = Some(exception::UNREGISTERED_NODE);
    eventually("a third one", || registrations(3)).await;
    // Any other error is no reason to register again.
    metadata.log.lock().refusal = Some(exception::SAFE_MODE);
    let beats = metadata.log.lock().heartbeats.len();
    eventually("heartbeats go on", || metadata.log.lock().heartbeats.len() > beats + 2).await;
}

/// HDFS's `DataNode.transferBlock`: a replica that is shorter on the disk than it was is reported, for nobody else would find out
/// where it is the only one, and it would be ordered to be copied for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_turns_out_too_short_to_be_copied_is_told() {
    told_when_copied(|directory| {
        let file = std::fs::OpenOptions::new().write(true).open(directory.join("blk_5")).unwrap();
        file.set_len(5).unwrap();
    })
    .await;
}

/// A copy would have no sums either, and nobody could tell any more whether it is what was written.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_without_sums_is_told_and_not_copied() {
    told_when_copied(|directory| std::fs::remove_file(directory.join("blk_5_1001.meta")).unwrap()).await;
}

/// Stores a block, has the directory with its files spoilt, and orders a copy elsewhere.
async fn told_when_copied(spoil: impl FnOnce(&Path)) {
    let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (metadata, other) = (Metadata::new("CID-one"), Metadata::new("CID-one"));
    let (rpc, other_rpc) = (serve(&metadata, "127.0.0.1:0"), serve(&other, "127.0.0.1:0"));
    let server = start(root.path(), &[&rpc]).await;
    let target = start(elsewhere.path(), &[&other_rpc]).await;
    server.wait_registered().await.unwrap();
    target.wait_registered().await.unwrap();
    store_block(&server, 5);
    spoil(&root.path().join(format!("data/current/{POOL}/current/finalized/subdir0/subdir0")));

    let id = other.log.lock().registered[0].registration.datanode_id.clone();
    let node = DatanodeInfoProto { id, ..Default::default() };
    let mut copy = invalidate(5);
    let order = copy.blk_cmd.as_mut().unwrap();
    order.action = Action::Transfer as i32;
    order.targets = vec![DatanodeInfosProto { datanodes: vec![node] }];
    order.target_storage_uuids = vec![StorageUuidsProto { storage_uuids: vec![String::new()] }];
    order.target_storage_types =
        vec![StorageTypesProto { storage_types: vec![StorageTypeProto::Disk.into()] }];
    metadata.log.lock().commands.push(copy);
    eventually("the damage is told", || {
        let log = metadata.log.lock();
        log.damaged.iter().any(|told| {
            let own = &log.registered[0].registration.datanode_id.datanode_uuid;
            told.b.block_id == 5 && told.locs[0].id.datanode_uuid == *own
        })
    })
    .await;
    assert!(target.state().pool(POOL).unwrap().store.read(&block(5)).is_err());
}

/// `hdfs dfsadmin -shutdownDatanode` must not fail because the server is faster than its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_ordered_to_end_answers_first() {
    let metadata = Metadata::new("CID-1");
    let listener = serve(&metadata, "127.0.0.1:0");
    let root = tempfile::tempdir().unwrap();
    let server = start(root.path(), &[&listener]).await;
    let address = server.ipc_addr().to_string();
    let user = server.state().config.user.clone();
    let client = Client::connect(address, CLIENT_DATANODE, &user, ClientOptions::default());
    let order = ShutdownDatanodeRequestProto { for_upgrade: false };
    let _: ShutdownDatanodeResponseProto = client.call("shutdownDatanode", &order).await.unwrap();
    let at_once = tokio::time::timeout(Duration::from_millis(50), server.wait_ended()).await;
    assert!(at_once.is_err(), "the answer may still be on its way");
    let reason = tokio::time::timeout(Duration::from_secs(10), server.wait_ended()).await.unwrap();
    assert_eq!(reason, format!("{user} ordered it"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metadata_server_may_come_and_go() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let address = rpc.local_addr().to_string();
    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    rpc.shutdown().await;
    store_block(&server, 5);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!metadata.changed(5, BlockStatus::Received));
    let _rpc = serve(&metadata, &address);
    eventually("the block is told", || metadata.changed(5, BlockStatus::Received)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_is_refused_with_its_name() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    server.shutdown().await;

    let other = serve(&Metadata::new("CID-other"), "127.0.0.1:0");
    let server = start(root.path(), &[&other]).await;
    let reason = server.wait_registered().await.unwrap_err();
    for part in ["CID-one", "CID-other", "clusterID", "VERSION"] {
        assert!(reason.contains(part), "{part} in: {reason}");
    }
    assert_eq!(server.wait_ended().await, reason);
    assert!(http(&server, "/health").await.starts_with("HTTP/1.1 503"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_for_good_ends_the_server() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    metadata.log.lock().refusal = Some(exception::DISALLOWED_DATANODE);
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root.path(), &[&rpc]).await;
    let reason = server.wait_ended().await;
    assert!(reason.contains("DisallowedDatanodeException"), "{reason}");
}

/// The order to settle the length of an empty block of stamp 1001 under another stamp.
fn recovery(block: u64, stamp: u64, locs: Vec<DatanodeInfoProto>) -> DatanodeCommandProto {
    let order = RecoveringBlockProto {
        new_gen_stamp: stamp,
        block: LocatedBlockProto {
            b: ExtendedBlockProto {
                pool_id: POOL.into(),
                block_id: block,
                generation_stamp: 1001,
                num_bytes: Some(0),
            },
            locs,
            ..Default::default()
        },
        ..Default::default()
    };
    DatanodeCommandProto {
        cmd_type: Type::BlockRecoveryCommand as i32,
        recovery_cmd: Some(BlockRecoveryCommandProto { blocks: vec![order] }),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_without_a_byte_goes_away_once_all_its_servers_say_so() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    let here = server.state().identity.to_info_proto();
    // Nobody listens there.
    let mut away = here.clone();
    (away.id.datanode_uuid, away.id.ipc_port) = ("another".into(), 1);
    metadata.log.lock().commands.push(recovery(5, 1002, vec![here.clone(), away]));
    eventually("the order is fetched", || metadata.log.lock().commands.is_empty()).await;
    metadata.log.lock().commands.push(recovery(5, 1003, vec![here]));
    eventually("the recovery is told", || !metadata.log.lock().recovered.is_empty()).await;
    let log = metadata.log.lock();
    let told = &log.recovered[0];
    assert_eq!((told.new_gen_stamp, told.new_length, told.new_taragets.len()), (1003, 0, 0));
    assert!(told.close_file && told.delete_block);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_agree_on_the_length_of_a_block_whose_writer_is_gone() {
    let roots = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let mut servers = Vec::new();
    let mut writers = Vec::new();
    for (root, data) in roots.iter().zip([&b"clover and more"[..], b"clover"]) {
        let server = start(root.path(), &[&rpc]).await;
        server.wait_registered().await.unwrap();
        let new = NewReplica {
            block: block(5),
            checksum: Checksum::DEFAULT,
            storage_type: StorageType::Disk,
            size_expected: 100,
        };
        let mut writer = server.state().pool(POOL).unwrap().store.create_rbw(&new).unwrap();
        writer.write(0, data, &Checksum::DEFAULT.sum(data)).unwrap();
        writer.acknowledger().acknowledge(6);
        writers.push(writer);
        servers.push(server);
    }
    let locs = servers.iter().map(|server| server.state().identity.to_info_proto()).collect();
    metadata.log.lock().commands.push(recovery(5, 1002, locs));
    eventually("the recovery is told", || !metadata.log.lock().recovered.is_empty()).await;
    {
        let log = metadata.log.lock();
        let told = &log.recovered[0];
        assert_eq!((told.new_gen_stamp, told.new_length, told.new_taragets.len()), (1002, 6, 2));
        assert!(told.close_file && !told.delete_block);
    }
    for server in &servers {
        let facts = server.state().pool(POOL).unwrap().store.facts(POOL, BlockId(5)).unwrap();
        assert_eq!((facts.state, facts.block.length), (blockstore::ReplicaState::Finalized, 6));
    }
    eventually("the replicas are told", || metadata.changed(5, BlockStatus::Received)).await;
}
