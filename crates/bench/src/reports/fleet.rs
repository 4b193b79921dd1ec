//! Data servers that are made up: they register, send heartbeats, and report replicas that nobody stores.

use anyhow::Context;
use proto::{
    block_rows::{BlockRow, storage_report},
    hdfs::{self as p, datanode as d},
    protocol,
};
use rpc::Client;
use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// Hadoop's `dfs.heartbeat.interval`.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// A server that may not report now asks again so much later.
const LEASE_AGAIN: Duration = Duration::from_millis(5);
/// Hadoop's layout of data directories.
const LAYOUT: u32 = -57i32 as u32;
const FIRST_PORT: u32 = 20_000;

/// The servers.
pub struct Fleet {
    pub servers: Vec<DataServer>,
    by_uuid: HashMap<String, usize>,
    /// Ends with this value.
    heartbeats: tokio::task::JoinHandle<()>,
}

pub struct DataServer {
    client: Client,
    registration: d::DatanodeRegistrationProto,
    pool: String,
    storage: p::DatanodeStorageProto,
    /// The full report of this server, encoded once. Until the files are made it is not set, and the server reports no replica.
    told: OnceLock<d::StorageBlockReportProto>,
    /// Of its next report, which Hadoop wants to be another one each time.
    next_report: AtomicU64,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.heartbeats.abort();
    }
}

impl Fleet {
    pub async fn register(address: &str, count: u32, user: &str) -> anyhow::Result<Arc<Self>> {
        let mut servers = Vec::new();
        for number in 0..count {
            servers.push(DataServer::register(address, number, user).await?);
        }
        let beating: Vec<_> = servers.iter().map(DataServer::heart).collect();
        let heartbeats = tokio::spawn(async move {
            loop {
                for (client, heartbeat) in &beating {
                    let beat: Result<d::HeartbeatResponseProto, _> =
                        client.call("sendHeartbeat", heartbeat).await;
                    // The end of a server is told by the calls that are measured.
                    let _ = beat.inspect_err(|error| tracing::debug!(%error, "heartbeat"));
                }
                tokio::time::sleep(HEARTBEAT).await;
            }
        });
        let by_uuid = (0..).zip(&servers).map(|(index, server)| (server.uuid().to_owned(), index)).collect();
        let fleet = Arc::new(Self { servers, by_uuid, heartbeats });
        // As a real server that has just registered, with empty disks.
        fleet.report_all(1).await?;
        Ok(fleet)
    }

    pub fn replicas(&self) -> u64 {
        self.servers.iter().map(DataServer::replicas).sum()
    }

    /// The server that has this uuid.
    pub fn position(&self, uuid: &str) -> Option<usize> {
        self.by_uuid.get(uuid).copied()
    }

    /// Each server reports once.
    pub async fn report_all(self: &Arc<Self>, at_once: u32) -> anyhow::Result<()> {
        let count = self.servers.len();
        self.report_while(at_once, None, move |begun| begun < count).await.map(|_| ())
    }

    /// One report follows the other, at most so many replicas in a second. Returns how many were reported.
    pub async fn report_for(
        self: &Arc<Self>,
        length: Duration,
        at_once: u32,
        rate: Option<u64>,
    ) -> anyhow::Result<u64> {
        let begun = Instant::now();
        self.report_while(at_once, rate, move |_| begun.elapsed() < length).await
    }

    /// The servers report in turn, as long as another one may begin after so many.
    async fn report_while(
        self: &Arc<Self>,
        at_once: u32,
        rate: Option<u64>,
        goes_on: impl Fn(usize) -> bool + Clone + Send + 'static,
    ) -> anyhow::Result<u64> {
        let next = Arc::new(AtomicUsize::new(0));
        let (begun, of_each) = (Instant::now(), self.replicas() as f64 / self.servers.len() as f64);
        let mut under_way = JoinSet::new();
        for _ in 0..at_once {
            let (fleet, next, goes_on) = (self.clone(), next.clone(), goes_on.clone());
            under_way.spawn(async move {
                let mut rows = 0;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if !goes_on(number) {
                        return Ok::<_, anyhow::Error>(rows);
                    }
                    if let Some(rate) = rate {
                        let due = begun + Duration::from_secs_f64(number as f64 * of_each / rate as f64);
                        tokio::time::sleep_until(due.into()).await;
                    }
                    let server = &fleet.servers[number % fleet.servers.len()];
                    server.report().await?;
                    rows += server.replicas();
                }
            });
        }
        let mut rows = 0;
        while let Some(done) = under_way.join_next().await {
            rows += done??;
        }
        Ok(rows)
    }

    /// From now on each server reports the blocks that were placed there.
    pub fn hold(&self, replicas: &[(usize, p::BlockProto)]) -> anyhow::Result<()> {
        let mut rows: Vec<Vec<BlockRow>> = self.servers.iter().map(|_| Vec::new()).collect();
        for (server, block) in replicas {
            rows[*server].push(BlockRow {
                id: block.block_id as i64,
                length: block.num_bytes.unwrap_or(0),
                generation_stamp: block.gen_stamp,
                state: p::ReplicaStateProto::Finalized,
            });
        }
        for (server, rows) in self.servers.iter().zip(rows) {
            let told = storage_report(server.storage.clone(), rows.into_iter());
            server.told.set(told).ok().context("the files were made once")?;
        }
        Ok(())
    }
}

impl DataServer {
    async fn register(address: &str, number: u32, user: &str) -> anyhow::Result<Self> {
        let client = Client::connect(address, protocol::DATANODE, user, Default::default());
        let version: p::VersionResponseProto =
            client.call("versionRequest", &p::VersionRequestProto {}).await.context("asking who it is")?;
        let port = FIRST_PORT + 3 * number;
        let registration = d::DatanodeRegistrationProto {
            datanode_id: p::DatanodeIdProto {
                ip_addr: "127.0.0.1".into(),
                host_name: "localhost".into(),
                datanode_uuid: format!("5eed0000-0000-4000-8000-{number:012}"),
                xfer_port: port,
                info_port: port + 1,
                ipc_port: port + 2,
                info_secure_port: None,
            },
            storage_info: p::StorageInfoProto { layout_version: LAYOUT, ..version.info.storage_info.clone() },
            keys: p::ExportedBlockKeysProto::default(),
            software_version: version.info.software_version.clone(),
        };
        let request = d::RegisterDatanodeRequestProto { registration };
        let answer: d::RegisterDatanodeResponseProto =
            client.call("registerDatanode", &request).await.context("registering a data server")?;
        Ok(Self {
            client,
            registration: answer.registration,
            pool: version.info.block_pool_id,
            storage: p::DatanodeStorageProto {
                storage_uuid: format!("DS-5eed0000-0000-4000-8000-{number:012}"),
                state: Some(p::datanode_storage_proto::StorageState::Normal as i32),
                storage_type: Some(p::StorageTypeProto::Disk as i32),
            },
            told: OnceLock::new(),
            next_report: AtomicU64::new(1),
        })
    }

    pub fn uuid(&self) -> &str {
        &self.registration.datanode_id.datanode_uuid
    }

    /// The replicas that it reports.
    fn replicas(&self) -> u64 {
        self.told.get().and_then(|told| told.number_of_blocks).unwrap_or(0)
    }

    fn heartbeat(&self, wants_lease: bool) -> d::HeartbeatRequestProto {
        #[allow(deprecated, reason = "servers that do not describe their storages name them here")]
        let report = p::StorageReportProto {
            storage_uuid: self.storage.storage_uuid.clone(),
            capacity: Some(1 << 50),
            remaining: Some(1 << 49),
            storage: Some(self.storage.clone()),
            ..p::StorageReportProto::default()
        };
        d::HeartbeatRequestProto {
            registration: self.registration.clone(),
            reports: vec![report],
            request_full_block_report_lease: Some(wants_lease),
            ..d::HeartbeatRequestProto::default()
        }
    }

    fn heart(&self) -> (Client, d::HeartbeatRequestProto) {
        (self.client.clone(), self.heartbeat(false))
    }

    /// Tells of replicas that writers have finished.
    pub async fn received(&self, blocks: &[p::BlockProto]) -> anyhow::Result<()> {
        let received = |block: &p::BlockProto| d::ReceivedDeletedBlockInfoProto {
            block: *block,
            status: d::received_deleted_block_info_proto::BlockStatus::Received as i32,
            delete_hint: None,
        };
        #[allow(deprecated, reason = "servers that do not describe their storages name them here")]
        let blocks = d::StorageReceivedDeletedBlocksProto {
            storage_uuid: self.storage.storage_uuid.clone(),
            storage: Some(self.storage.clone()),
            blocks: blocks.iter().map(received).collect(),
        };
        let request = d::BlockReceivedAndDeletedRequestProto {
            registration: self.registration.clone(),
            block_pool_id: self.pool.clone(),
            blocks: vec![blocks],
        };
        let told: Result<d::BlockReceivedAndDeletedResponseProto, _> =
            self.client.call("blockReceivedAndDeleted", &request).await;
        told.map(|_| ()).context("telling of new replicas")
    }

    /// A full report, under a lease as a real server's.
    async fn report(&self) -> anyhow::Result<()> {
        let heartbeat = self.heartbeat(true);
        let lease = loop {
            let answer: d::HeartbeatResponseProto =
                self.client.call("sendHeartbeat", &heartbeat).await.context("asking for a lease")?;
            match answer.full_block_report_lease_id {
                None | Some(0) => tokio::time::sleep(LEASE_AGAIN).await,
                Some(lease) => break lease,
            }
        };
        let nothing = || storage_report(self.storage.clone(), std::iter::empty());
        let told = self.told.get().cloned().unwrap_or_else(nothing);
        let request = d::BlockReportRequestProto {
            registration: self.registration.clone(),
            block_pool_id: self.pool.clone(),
            reports: vec![told],
            context: Some(d::BlockReportContextProto {
                total_rpcs: 1,
                cur_rpc: 0,
                id: self.next_report.fetch_add(1, Ordering::Relaxed) as i64,
                lease_id: Some(lease),
            }),
        };
        let told: d::BlockReportResponseProto =
            self.client.call("blockReport", &request).await.context("a full report")?;
        if let Some(command) = told.cmd {
            let wants = d::datanode_command_proto::Type::RegisterCommand as i32;
            anyhow::ensure!(command.cmd_type != wants, "the server does not know {} any more", self.uuid());
        }
        Ok(())
    }
}
