//! The calls of a balancer: which storages there are, which blocks a data server has, and to move a replica.

use crate::{Error, FileSystem, Result, namenodes::Namenodes};
use base::AdminState;
use bytes::BytesMut;
use proto::{
    data_transfer::{Opcode, op},
    hdfs::{
        self, BaseHeaderProto, BlockOpResponseProto, DatanodeInfoProto, ExtendedBlockProto,
        OpReplaceBlockProto, Status, StorageTypeProto, namenode as n,
    },
    protocol,
};
use rpc::streaming;
use std::{fmt, net::SocketAddr, time::Duration};

/// How long a data server may say nothing while it moves a replica. Its word that the move goes on comes every thirty seconds.
const MOVE_TIMEOUT: Duration = Duration::from_secs(120);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A data server that is alive, as the metadata server names it.
#[derive(Clone, Debug)]
pub struct Server {
    pub uuid: String,
    pub rack: String,
    pub storages: Vec<Storage>,
    info: DatanodeInfoProto,
}

impl Server {
    /// `ip:port` for data.
    pub fn address(&self) -> String {
        format!("{}:{}", self.info.id.ip_addr, self.info.id.xfer_port)
    }

    /// Nothing is moved to or from a server that is to leave service, or has left it, as with Hadoop's balancer.
    pub fn is_in_service(&self) -> bool {
        AdminState::from(self.info.admin_state()).is_in_service()
    }

    /// Whether a person means this server by the name: its host, its address, with a port or without, or its uuid.
    pub fn is_called(&self, name: &str) -> bool {
        let id = &self.info.id;
        let hosts = [&id.host_name, &id.ip_addr];
        hosts.iter().any(|host| name == host.as_str() || name == format!("{host}:{}", id.xfer_port))
            || name == self.uuid
    }
}

/// The room of one storage, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    pub storage_type: StorageTypeProto,
    pub is_failed: bool,
    pub capacity: u64,
    pub remaining: u64,
}

/// A finished block, and the uuids of the servers that have it.
#[derive(Clone, Debug)]
pub struct PlacedBlock {
    pub id: u64,
    pub generation_stamp: u64,
    pub length: u64,
    pub holders: Vec<String>,
}

impl fmt::Display for PlacedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blk_{}_{}", self.id, self.generation_stamp)
    }
}

/// The wish of a balancer about one replica.
#[derive(Debug)]
pub struct Order<'a> {
    pub block: &'a PlacedBlock,
    pub storage_type: StorageTypeProto,
    /// The server whose replica may go.
    pub from: &'a Server,
    /// The server that gets one.
    pub to: &'a Server,
    /// The server that sends it.
    pub proxy: &'a Server,
}

/// A balancer's connection to the metadata servers of a group.
pub struct Balancing {
    namenodes: Namenodes,
    fs: FileSystem,
    pool: String,
}

impl Balancing {
    /// Asks the metadata servers for the name of their block pool.
    ///
    /// # Errors
    /// The call fails: see [`FileSystem::call`].
    pub async fn begin(fs: &FileSystem) -> Result<Self> {
        let namenodes = fs.namenodes_for(protocol::NAMENODE);
        let answer: hdfs::VersionResponseProto =
            namenodes.call("versionRequest", &hdfs::VersionRequestProto {}).await?;
        Ok(Self { namenodes, fs: fs.clone(), pool: answer.info.block_pool_id })
    }

    /// The data servers that are alive, with their storages.
    ///
    /// # Errors
    /// This user is no superuser; or the call fails: see [`FileSystem::call`].
    pub async fn servers(&self) -> Result<Vec<Server>> {
        let request =
            hdfs::GetDatanodeStorageReportRequestProto { r#type: hdfs::DatanodeReportTypeProto::Live as i32 };
        let answer: hdfs::GetDatanodeStorageReportResponseProto =
            self.fs.call("getDatanodeStorageReport", &request).await?;
        let server = |report: hdfs::DatanodeStorageReportProto| Server {
            uuid: report.datanode_info.id.datanode_uuid.clone(),
            rack: report.datanode_info.location().to_owned(),
            storages: report.storage_reports.into_iter().map(storage).collect(),
            info: report.datanode_info,
        };
        Ok(answer.datanode_storage_reports.into_iter().map(server).collect())
    }

    /// Finished blocks of a server, from a random one on, until they have so many bytes together.
    ///
    /// # Errors
    /// This user is no superuser, or safe mode is on; or the call fails: see [`FileSystem::call`].
    pub async fn blocks(
        &self,
        server: &Server,
        storage_type: StorageTypeProto,
        bytes: u64,
        bytes_min: u64,
    ) -> Result<Vec<PlacedBlock>> {
        let request = n::GetBlocksRequestProto {
            datanode: server.info.id.clone(),
            size: bytes.clamp(1, i64::MAX as u64),
            min_block_size: Some(bytes_min),
            time_interval: None,
            storage_type: Some(storage_type.into()),
        };
        let answer: n::GetBlocksResponseProto = self.namenodes.call("getBlocks", &request).await?;
        let placed = |listed: hdfs::BlockWithLocationsProto| PlacedBlock {
            id: listed.block.block_id,
            generation_stamp: listed.block.gen_stamp,
            length: listed.block.num_bytes(),
            holders: listed.datanode_uuids,
        };
        Ok(answer.blocks.blocks.into_iter().map(placed).collect())
    }

    /// Has a replica made on another server, which tells the metadata server whose replica may go for it. Returns when the new one
    /// is finished; that the other one goes is the metadata server's business.
    ///
    /// # Errors
    /// [`Error::Move`] if the server cannot be reached, refuses, or says nothing more.
    pub async fn move_replica(&self, order: &Order<'_>) -> Result<()> {
        self.ask(order).await.map_err(|reason| Error::Move {
            block: order.block.to_string(),
            from: order.from.address(),
            to: order.to.address(),
            reason,
        })
    }

    async fn ask(&self, order: &Order<'_>) -> std::result::Result<(), String> {
        let said = |error: &dyn fmt::Display| error.to_string();
        let address: SocketAddr =
            order.to.address().parse().map_err(|_| "its address makes no sense".to_owned())?;
        let socket = streaming::connect(address, CONNECT_TIMEOUT).await.map_err(|error| said(&error))?;
        let (mut inbound, mut out) = streaming::split(socket, MOVE_TIMEOUT);
        let block = ExtendedBlockProto {
            pool_id: self.pool.clone(),
            block_id: order.block.id,
            generation_stamp: order.block.generation_stamp,
            num_bytes: Some(order.block.length),
        };
        let request = OpReplaceBlockProto {
            header: BaseHeaderProto { block, ..Default::default() },
            del_hint: order.from.uuid.clone(),
            source: order.proxy.info.clone(),
            storage_type: Some(order.storage_type.into()),
            storage_id: None,
        };
        let mut bytes = BytesMut::new();
        op::encode(Opcode::ReplaceBlock, &request, &mut bytes);
        out.write(&bytes).await.map_err(|error| said(&error))?;
        loop {
            let answer: BlockOpResponseProto = inbound.message().await.map_err(|error| said(&error))?;
            match Status::try_from(answer.status) {
                Ok(Status::InProgress) => {}
                Ok(Status::Success) => return Ok(()),
                Ok(status) => return Err(format!("{status:?} {}", answer.message())),
                Err(_) => return Err(format!("an unknown status {}: {}", answer.status, answer.message())),
            }
        }
    }

    /// Writes a small file through this server alone, and deletes it: so the metadata server sees that the server stores what it is
    /// sent. Without that no replica is deleted for one that was moved there.
    ///
    /// # Errors
    /// The file cannot be made, written or closed.
    pub async fn write_through(&self, path: &str, server: &Server) -> Result<()> {
        let options = crate::CreateOptions {
            overwrite: true,
            replication: Some(1),
            block_size: Some(1 << 20),
            favoured: vec![server.address()],
            ..Default::default()
        };
        let mut writer = self.fs.create(path, &options).await?;
        writer
            .write(b"A balancer has written this to see that a data server stores what it is sent.\n")
            .await?;
        writer.close().await?;
        self.fs.delete(path, false).await.map(drop)
    }
}

fn storage(report: hdfs::StorageReportProto) -> Storage {
    let storage_type =
        report.storage.as_ref().map_or(StorageTypeProto::Disk, |storage| storage.storage_type());
    Storage {
        storage_type,
        is_failed: report.failed(),
        capacity: report.capacity(),
        remaining: report.remaining(),
    }
}
