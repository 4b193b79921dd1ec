//! A metadata server that only plays its part: it notes what it is told, and gives the orders that a test wishes.
#![allow(dead_code)]

use base::{Block, BlockId, ExtendedBlock, FsError, GenerationStamp};
use blockstore::{Checksum, NewReplica, StorageType, VolumeConfig};
use datad::{DataConfig, DataServer};
use env::Env;
use parking_lot::Mutex;
use proto::hdfs::{
    BlockProto, DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto, NamespaceInfoProto,
    NnhaStatusHeartbeatProto, RecoveringBlockProto, RollingUpgradeStatusProto, StorageInfoProto,
    VersionResponseProto,
    datanode::{
        BlockCommandProto, BlockReceivedAndDeletedRequestProto, BlockReceivedAndDeletedResponseProto,
        BlockRecoveryCommandProto, BlockReportRequestProto, BlockReportResponseProto,
        CommitBlockSynchronizationRequestProto, CommitBlockSynchronizationResponseProto,
        DatanodeCommandProto, HeartbeatRequestProto, HeartbeatResponseProto, RegisterCommandProto,
        RegisterDatanodeRequestProto, RegisterDatanodeResponseProto, ReportBadBlocksRequestProto,
        ReportBadBlocksResponseProto, block_command_proto::Action, datanode_command_proto::Type,
        received_deleted_block_info_proto::BlockStatus,
    },
};
use rpc::{Call, Replier, RpcError, Server, ServerConfig, Service};
use std::{
    collections::BTreeSet,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub const POOL: &str = "BP-77-127.0.0.1-1700000000000";

#[derive(Default)]
pub struct Log {
    pub registered: Vec<RegisterDatanodeRequestProto>,
    pub heartbeats: Vec<HeartbeatRequestProto>,
    pub full: Vec<BlockReportRequestProto>,
    pub changes: Vec<(BlockProto, BlockStatus)>,
    pub commands: Vec<DatanodeCommandProto>,
    pub recovered: Vec<CommitBlockSynchronizationRequestProto>,
    pub damaged: Vec<LocatedBlockProto>,
    /// The pools that reports have named.
    pub pools: BTreeSet<String>,
    /// The next heartbeat and report get this.
    pub refusal: Option<&'static str>,
    /// The server wants block tokens.
    pub wants_tokens: bool,
    /// The server tells of a rolling upgrade, and whether that is final.
    pub rolling_upgrade: Option<bool>,
}

pub struct Metadata {
    pub cluster: &'static str,
    /// The pool that it names now, which is another one when it has been formatted anew.
    pub pool: Mutex<String>,
    pub is_active: bool,
    pub log: Mutex<Log>,
}

impl Metadata {
    pub fn new(cluster: &'static str) -> Arc<Self> {
        Arc::new(Self::of(cluster, POOL))
    }

    /// The active of a group with this pool.
    pub fn of(cluster: &'static str, pool: &str) -> Self {
        Self { cluster, pool: Mutex::new(pool.into()), is_active: true, log: Mutex::default() }
    }

    fn refuse(&self) -> Result<(), RpcError> {
        match self.log.lock().refusal.take() {
            Some(class) => Err(RpcError::application(class, "as the test wishes")),
            None => Ok(()),
        }
    }

    pub fn changed(&self, id: u64, status: BlockStatus) -> bool {
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
            "versionRequest" => {
                reply.ok(&VersionResponseProto { info: info(this.cluster, &this.pool.lock()) })
            }
            "registerDatanode" => reply.result(this.refuse().and_then(|()| {
                let request: RegisterDatanodeRequestProto = call.decode()?;
                let mut registration = request.registration.clone();
                let mut log = this.log.lock();
                registration.keys.is_block_token_enabled = log.wants_tokens;
                log.registered.push(request);
                Ok(RegisterDatanodeResponseProto { registration })
            })),
            "sendHeartbeat" => reply.result(this.refuse().and_then(|()| {
                let mut log = this.log.lock();
                log.heartbeats.push(call.decode()?);
                Ok(HeartbeatResponseProto {
                    cmds: std::mem::take(&mut log.commands),
                    ha_status: NnhaStatusHeartbeatProto { state: i32::from(!this.is_active), txid: 9 },
                    full_block_report_lease_id: Some(4711),
                    rolling_upgrade_status_v2: log.rolling_upgrade.map(|finalized| {
                        RollingUpgradeStatusProto {
                            block_pool_id: this.pool.lock().clone(),
                            finalized: Some(finalized),
                        }
                    }),
                    ..Default::default()
                })
            })),
            "blockReport" => reply.result(this.refuse().and_then(|()| {
                let report: BlockReportRequestProto = call.decode()?;
                let mut log = this.log.lock();
                log.pools.insert(report.block_pool_id.clone());
                log.full.push(report);
                Ok(BlockReportResponseProto { cmd: None })
            })),
            "blockReceivedAndDeleted" => reply.result(this.refuse().and_then(|()| {
                let request: BlockReceivedAndDeletedRequestProto = call.decode()?;
                this.log.lock().pools.insert(request.block_pool_id);
                let blocks = request.blocks.into_iter().flat_map(|storage| storage.blocks);
                this.log.lock().changes.extend(blocks.map(|info| {
                    let status = info.status();
                    (info.block, status)
                }));
                Ok(BlockReceivedAndDeletedResponseProto {})
            })),
            "reportBadBlocks" => reply.result(call.decode().map(|request: ReportBadBlocksRequestProto| {
                let mut log = this.log.lock();
                log.pools.extend(request.blocks.iter().map(|block| block.b.pool_id.clone()));
                log.damaged.extend(request.blocks);
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

fn info(cluster: &str, pool: &str) -> NamespaceInfoProto {
    NamespaceInfoProto {
        build_version: "test".into(),
        unused: 0,
        block_pool_id: pool.into(),
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

pub fn serve(metadata: &Arc<Metadata>, address: &str) -> Server {
    let service = Arc::new(Front(metadata.clone()));
    Server::bind(ServerConfig::new(address.parse().unwrap(), service)).unwrap()
}

pub fn config(root: &Path, servers: &[&Server]) -> DataConfig {
    let volume = VolumeConfig { path: root.join("data"), storage_type: StorageType::Disk };
    let servers = servers.iter().map(|server| server.local_addr().to_string()).collect();
    DataConfig { heartbeat_interval_ms: 50, ..DataConfig::new(vec![volume], servers) }
}

pub async fn start(root: &Path, servers: &[&Server]) -> DataServer {
    DataServer::start(Env::production(), config(root, servers)).await.unwrap()
}

pub fn block(pool: &str, id: u64) -> ExtendedBlock {
    let block = Block { id: BlockId(id), generation_stamp: GenerationStamp(1001), length: 0 };
    ExtendedBlock { pool: pool.into(), block }
}

/// Stores a block as the transfer service does: it writes the replica, finishes it, and reports it.
pub fn store_block(server: &DataServer, pool: &str, id: u64) {
    let pool = server.state().pool(pool).unwrap();
    let new = NewReplica {
        block: block(&pool.id, id),
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

pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what} within a minute");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The order to delete a block.
pub fn invalidate(pool: &str, id: u64) -> DatanodeCommandProto {
    let block = BlockProto { block_id: id, gen_stamp: 1001, num_bytes: Some(6) };
    DatanodeCommandProto {
        cmd_type: Type::BlockCommand as i32,
        blk_cmd: Some(BlockCommandProto {
            action: Action::Invalidate as i32,
            block_pool_id: pool.into(),
            blocks: vec![block],
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub async fn http(server: &DataServer, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(server.http_addr()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The order to settle the length of an empty block of stamp 1001 under another stamp.
pub fn recovery(pool: &str, block: u64, stamp: u64, locs: Vec<DatanodeInfoProto>) -> DatanodeCommandProto {
    let order = RecoveringBlockProto {
        new_gen_stamp: stamp,
        block: LocatedBlockProto {
            b: ExtendedBlockProto {
                pool_id: pool.into(),
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

/// The order to register anew, as after a restart of the metadata server.
pub fn register_again() -> DatanodeCommandProto {
    DatanodeCommandProto {
        cmd_type: Type::RegisterCommand as i32,
        register_cmd: Some(RegisterCommandProto {}),
        ..Default::default()
    }
}
