//! The servers and blocks of the tests, and the part of a metadata service in mending pipelines.

use crate::{
    config::DataConfig,
    identity::Identity,
    metadata::progress::Progress,
    pool::{Member, Pool},
    state::State,
    xceiver,
};
use blockstore::{BlockStore, PoolInfo, StoreConfig, VolumeConfig};
use bytes::{Bytes, BytesMut};
use client::block::{BlockOptions, BlockReader, BlockWriter, PipelineKeeper, WriteError};
use env::Env;
use parking_lot::Mutex;
use proto::{
    data_transfer::{Opcode, op},
    hdfs::{DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto, StorageTypeProto},
};
use rpc::{
    Client, ClientOptions,
    streaming::{self, Inbound, Outgoing},
};
use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, UnixListener},
    task::JoinHandle,
};

pub const POOL: &str = "BP-1-127.0.0.1-1";

pub struct Server {
    pub state: Arc<State>,
    task: JoinHandle<()>,
    local_task: JoinHandle<()>,
    directory: tempfile::TempDir,
}

impl Server {
    pub async fn start() -> Self {
        Self::start_with(&["DISK"], |_| {}).await
    }

    /// A server with a volume of each of these types.
    pub async fn start_with(types: &[&str], adjust: impl FnOnce(&mut DataConfig)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let volume = |(at, kind): (usize, &&str)| -> VolumeConfig {
            let path = directory.path().join(format!("d{at}"));
            std::fs::create_dir(&path).unwrap();
            format!("[{kind}]{}", path.display()).parse().unwrap()
        };
        let configs: Vec<VolumeConfig> = types.iter().enumerate().map(volume).collect();
        let mut config = DataConfig::new(configs.clone(), vec!["127.0.0.1:1".into()]);
        config.transfer_timeout_ms = 5_000;
        adjust(&mut config);
        let volumes = BlockStore::open(Env::production(), StoreConfig::new(configs)).unwrap();
        let pool = PoolInfo { pool: POOL.into(), cluster: "CID-1".into(), namespace_id: 1, created_ms: 1 };
        let pool = volumes.serve_pool(&pool).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let identity = Identity {
            uuid: volumes.uuid().clone(),
            hostname: "localhost".into(),
            transfer_addr: listener.local_addr().unwrap(),
            ipc_port: 0,
            http_port: 0,
        };
        let client =
            Client::connect("127.0.0.1:1", proto::protocol::DATANODE, "test", ClientOptions::default());
        let (_, progress) = tokio::sync::watch::channel(Progress::default());
        let state = Arc::new(State::new(Env::production(), config, volumes, identity));
        state.serve(pool).unwrap().join(Member { client, progress });
        let task = tokio::spawn(xceiver::serve(state.clone(), listener));
        let local = UnixListener::bind(directory.path().join("socket")).unwrap();
        let local_task = tokio::spawn(xceiver::serve_local(state.clone(), local));
        Self { state, task, local_task, directory }
    }

    /// The socket for clients of this machine.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    pub fn pool(&self) -> &Pool {
        self.state.pool(POOL).unwrap()
    }

    pub fn info(&self) -> DatanodeInfoProto {
        self.state.identity.to_info_proto()
    }

    /// Ends all connections and refuses new ones, as a crash does.
    pub async fn kill(&self) {
        self.task.abort();
        self.kill_local().await;
        while !self.task.is_finished() || self.state.transfer_count() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Ends the connections of this machine only.
    pub async fn kill_local(&self) {
        self.local_task.abort();
        while !self.local_task.is_finished() || self.state.short_circuit.segment_count() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The bytes of the replica's block file, wherever it is.
    pub fn file(&self, block_id: u64) -> Option<(PathBuf, Vec<u8>)> {
        let name = format!("blk_{block_id}");
        let mut directories = vec![self.directory.path().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    directories.push(entry.path());
                } else if entry.file_name().to_str() == Some(&name) {
                    return Some((entry.path(), std::fs::read(entry.path()).unwrap()));
                }
            }
        }
        None
    }

    pub async fn connect(&self) -> (Inbound, Outgoing) {
        let patience = Duration::from_secs(5);
        let socket = streaming::connect(self.state.identity.transfer_addr, patience).await.unwrap();
        streaming::split(socket, patience)
    }

    /// Sends an operation on a connection of its own.
    pub async fn send(&self, code: Opcode, message: &impl prost::Message) -> (Inbound, Outgoing) {
        let (inbound, mut out) = self.connect().await;
        let mut bytes = BytesMut::new();
        op::encode(code, message, &mut bytes);
        out.write(&bytes).await.unwrap();
        (inbound, out)
    }
}

pub async fn servers<const N: usize>() -> [Server; N] {
    let mut servers = Vec::new();
    for _ in 0..N {
        servers.push(Server::start().await);
    }
    servers.try_into().unwrap_or_else(|_| unreachable!())
}

pub fn block(id: u64) -> ExtendedBlockProto {
    ExtendedBlockProto { pool_id: POOL.into(), block_id: id, generation_stamp: 1001, num_bytes: Some(0) }
}

pub fn located(block: ExtendedBlockProto, servers: &[&Server]) -> LocatedBlockProto {
    LocatedBlockProto {
        b: block,
        locs: servers.iter().map(|server| server.info()).collect(),
        storage_types: servers.iter().map(|_| StorageTypeProto::Disk as i32).collect(),
        storage_i_ds: servers.iter().map(|_| "DS-1".into()).collect(),
        ..Default::default()
    }
}

pub fn options() -> BlockOptions {
    BlockOptions { io_timeout: Duration::from_secs(5), ..BlockOptions::new("test-client") }
}

/// Bytes that look like nothing in particular and are the same each time.
pub fn some_bytes(length: usize) -> Vec<u8> {
    let mut random = random(1);
    (0..length).map(|_| random(256) as u8).collect()
}

/// Numbers below the one that is asked for, the same for the same seed, which is not 0.
pub fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

/// Writes a whole block and returns it as closed.
pub async fn write_block(located: &LocatedBlockProto, data: &[u8]) -> ExtendedBlockProto {
    try_to_write(located, data).await.unwrap()
}

/// Writes a whole block like [`write_block`], where the server may refuse it.
pub async fn try_to_write(located: &LocatedBlockProto, data: &[u8]) -> Result<ExtendedBlockProto, String> {
    let told = |error: WriteError| error.to_string();
    let mut writer = BlockWriter::create(located, &options(), None).await.map_err(told)?;
    writer.write(data).await.map_err(told)?;
    writer.close().await.map_err(told)
}

pub async fn read_range(located: &LocatedBlockProto, offset: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut reader =
        BlockReader::open(located, offset, length, &options()).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    while let Some(piece) = reader.next().await.map_err(|error| error.to_string())? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Hands out stamps and further servers, and notes what it is told.
#[derive(Default)]
pub struct Keeper {
    stamps: AtomicU64,
    /// Offered in this order, but for those that are lost or said to be unreachable.
    pub spare: Mutex<Vec<DatanodeInfoProto>>,
    pub lost: Mutex<Vec<DatanodeInfoProto>>,
    pub updates: Mutex<Vec<(ExtendedBlockProto, Vec<DatanodeInfoProto>)>>,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

impl PipelineKeeper for Keeper {
    fn new_stamp<'a>(&'a self, block: &'a ExtendedBlockProto) -> Answer<'a, LocatedBlockProto> {
        let stamp = 2001 + self.stamps.fetch_add(1, Ordering::Relaxed);
        let mut b = block.clone();
        b.generation_stamp = stamp;
        Box::pin(async move { Ok(LocatedBlockProto { b, ..Default::default() }) })
    }

    fn lost(&self, node: &DatanodeInfoProto) {
        self.lost.lock().push(node.clone());
    }

    fn another_server<'a>(
        &'a self,
        block: &'a ExtendedBlockProto,
        nodes: &'a [DatanodeInfoProto],
        storage_ids: &'a [String],
        unreachable: &'a [DatanodeInfoProto],
    ) -> Answer<'a, LocatedBlockProto> {
        let lost = self.lost.lock();
        let is_useless = |node: &DatanodeInfoProto| {
            [nodes, unreachable, lost.as_slice()].iter().any(|list| list.contains(node))
        };
        let spare = self.spare.lock().iter().find(|node| !is_useless(node)).cloned();
        let count = nodes.len() + usize::from(spare.is_some());
        let located = LocatedBlockProto {
            b: block.clone(),
            locs: nodes.iter().cloned().chain(spare).collect(),
            storage_types: vec![StorageTypeProto::Disk as i32; count],
            storage_i_ds: storage_ids.iter().cloned().chain(["DS-2".into()]).take(count).collect(),
            ..Default::default()
        };
        Box::pin(async move { Ok(located) })
    }

    fn update<'a>(
        &'a self,
        _old: &'a ExtendedBlockProto,
        new: &'a ExtendedBlockProto,
        nodes: &'a [DatanodeInfoProto],
        _storage_ids: &'a [String],
    ) -> Answer<'a, ()> {
        self.updates.lock().push((new.clone(), nodes.to_vec()));
        Box::pin(async { Ok(()) })
    }
}

/// One packet with its checksums, as a correct writer sends it.
pub fn packet(seqno: i64, offset: u64, data: &[u8], last: bool) -> Bytes {
    let header = base::PacketHeader {
        offset_in_block: offset as i64,
        seqno,
        last_in_block: last,
        data_length: data.len() as i32,
        sync: false,
    };
    let checksum = pipeline::Checksum::CRC32C_512;
    let mut bytes = BytesMut::new();
    proto::data_transfer::packet::encode_prefix(&header, checksum.sums_bytes(data.len()), &mut bytes);
    checksum.compute(data, &mut bytes);
    bytes.extend_from_slice(data);
    bytes.freeze()
}
