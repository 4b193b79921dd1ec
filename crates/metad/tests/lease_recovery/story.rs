//! Files that are written, through one data server that is spoken by hand.

use crate::cluster::{
    Cluster, Plan,
    files::{self, DataServer, create_request},
    spoken::STORAGE,
};
use base::{Moment, Timestamp};
use env::{Clock, Env, SystemClock};
use metad::LastResort;
use proto::hdfs::{self as p, datanode as d};
use rpc::{CallError, Client};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

pub const WRITER: &str = "DFSClient_writer_1";
pub const OTHER: &str = "DFSClient_other_1";
pub const MINUTE_MS: u64 = 60_000;

/// The machine's clock, put forward.
#[derive(Default)]
struct SetClock {
    machine: SystemClock,
    ahead_ms: AtomicU64,
}

impl Clock for SetClock {
    fn timestamp(&self) -> Timestamp {
        self.machine.timestamp()
    }

    fn moment(&self) -> Moment {
        self.machine.moment().plus_ms(self.ahead_ms.load(Ordering::Relaxed))
    }
}

/// A server alone whose clock is set by hand, its clients, and a data server.
pub struct Story {
    cluster: Cluster,
    clock: Arc<SetClock>,
    pub files: Client,
    server: DataServer,
}

impl Story {
    /// Starts a server with one registered data server that has reported nothing.
    pub async fn start() -> Self {
        let clock = Arc::new(SetClock::default());
        let of_server = clock.clone();
        let plan = Plan::alone().adjusted(|_, config| config.complete_wait_ms = 0);
        let plan = plan.in_worlds(move |_| {
            (Env { clock: of_server.clone(), ..Env::production() }, LastResort::default())
        });
        Self::of(plan.start().await, clock).await
    }

    async fn of(cluster: Cluster, clock: Arc<SetClock>) -> Self {
        let (files, server) = (cluster.client(1), DataServer::register(&cluster, 1).await);
        let story = Self { cluster, clock, files, server };
        assert!(story.heartbeat().await.is_empty());
        story
    }

    /// The server ends and starts again, from the same journal and with the same clock.
    pub async fn restart(self) -> Self {
        let Self { mut cluster, clock, files, .. } = self;
        drop(files);
        cluster.stop(1).await;
        cluster.restart(1).await;
        Self::of(cluster, clock).await
    }

    pub fn pass(&self, ms: u64) {
        self.clock.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// The recoveries that the data server is told of.
    pub async fn heartbeat(&self) -> Vec<p::RecoveringBlockProto> {
        let response = self.server.heartbeat(&self.cluster, 1).await;
        let commands = response.cmds.into_iter();
        let expected = d::datanode_command_proto::Type::BlockRecoveryCommand as i32;
        let recoveries = commands.inspect(|command| assert_eq!(command.cmd_type, expected));
        recoveries.flat_map(|command| command.recovery_cmd.unwrap().blocks).collect()
    }

    /// Heartbeats until a recovery is ordered.
    pub async fn ordered(&self) -> p::RecoveringBlockProto {
        for _ in 0..100 {
            if let Some(order) = self.heartbeat().await.pop() {
                assert_eq!((order.block.locs.len(), order.block.b.pool_id == self.server.pool), (1, true));
                return order;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("no recovery was ordered");
    }

    pub async fn create(&self, path: &str, holder: &str) -> Result<p::CreateResponseProto, CallError> {
        self.files.call("create", &create_request(path, holder)).await
    }

    /// A file with a block that is being written.
    pub async fn open(&self, path: &str) -> p::ExtendedBlockProto {
        self.create(path, WRITER).await.unwrap();
        self.add_block(path, WRITER, None).await.unwrap().block.b
    }

    pub async fn add_block(
        &self,
        path: &str,
        holder: &str,
        previous: Option<&p::ExtendedBlockProto>,
    ) -> Result<p::AddBlockResponseProto, CallError> {
        let request =
            p::AddBlockRequestProto { previous: previous.cloned(), ..files::add_block_request(path, holder) };
        self.files.call("addBlock", &request).await
    }

    /// Asks for a new generation stamp of the block, as a writer does to mend its pipeline.
    pub async fn new_stamp(
        &self,
        block: &p::ExtendedBlockProto,
    ) -> Result<p::UpdateBlockForPipelineResponseProto, CallError> {
        let request =
            p::UpdateBlockForPipelineRequestProto { block: block.clone(), client_name: WRITER.into() };
        self.files.call("updateBlockForPipeline", &request).await
    }

    pub async fn renew(&self, holder: &str) {
        let request = p::RenewLeaseRequestProto { client_name: holder.into(), namespaces: Vec::new() };
        let _: p::RenewLeaseResponseProto = self.files.call("renewLease", &request).await.unwrap();
    }

    pub async fn recover_lease(&self, path: &str) -> bool {
        files::recover_lease(&self.files, path, OTHER).await
    }

    pub async fn commit(
        &self,
        order: &p::RecoveringBlockProto,
        length: Option<u64>,
    ) -> Result<d::CommitBlockSynchronizationResponseProto, CallError> {
        let (targets, storages) = match length {
            Some(_) => (vec![self.server.with(1).datanode_id.clone()], vec![STORAGE.to_owned()]),
            None => (Vec::new(), Vec::new()),
        };
        let request = d::CommitBlockSynchronizationRequestProto {
            block: order.block.b.clone(),
            new_gen_stamp: order.new_gen_stamp,
            new_length: length.unwrap_or(0),
            close_file: true,
            delete_block: length.is_none(),
            new_taragets: targets,
            new_target_storages: storages,
        };
        files::data(&self.cluster, 1).call("commitBlockSynchronization", &request).await
    }

    pub async fn located(&self, path: &str) -> p::LocatedBlocksProto {
        files::located(&self.files, path).await
    }

    pub async fn stop(mut self) {
        drop(self.files);
        self.cluster.stop(1).await;
    }

    /// A finished file with one block of this length.
    pub async fn finished(&self, path: &str, length: u64) {
        self.open(path).await;
        assert!(!self.recover_lease(path).await);
        let order = self.ordered().await;
        self.commit(&order, Some(length)).await.unwrap();
    }

    pub async fn append(
        &self,
        path: &str,
        holder: &str,
        flag: u32,
    ) -> Result<p::AppendResponseProto, CallError> {
        let request =
            p::AppendRequestProto { src: path.into(), client_name: holder.into(), flag: Some(flag) };
        self.files.call("append", &request).await
    }

    pub async fn truncate(&self, path: &str, length: u64) -> Result<bool, CallError> {
        let request =
            p::TruncateRequestProto { src: path.into(), new_length: length, client_name: OTHER.into() };
        let response: Result<p::TruncateResponseProto, _> = self.files.call("truncate", &request).await;
        response.map(|response| response.result)
    }
}
