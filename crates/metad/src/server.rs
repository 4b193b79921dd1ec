//! Bringing a metadata server up, and down.

use crate::{
    background, checkpoint,
    config::MetaConfig,
    core::Core,
    datanodes,
    format::{self, ClusterError, Layout},
    protocols::Protocols,
    replica::{ClaimError, Replica},
    run::Ended,
};
use ::blocks::{BlockMap, BlockState};
use base::{EntryKind, MemberStore, TxId};
use coord::Coordinator;
use env::Env;
use group::{EpochStart, Restored};
use namespace::{Edit, Namespace};
use parking_lot::Mutex;
use std::{
    error::Error as StdError,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("the metadata store could not be opened")]
    Open(#[from] journal::OpenError),
    #[error("the metadata store could not be read back")]
    Recover(#[from] journal::RecoverError),
    #[error("the store in {directory} belongs to cluster {found}, the directory to {expected}")]
    AnotherCluster { directory: String, found: String, expected: String },
    #[error("the coordinator's directory could not be opened")]
    Coordinator(#[from] coord::OpenError),
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("the RPC address {address} could not be bound")]
    Rpc { address: SocketAddr, source: io::Error },
    #[error("the HTTP address {address} could not be bound")]
    Http { address: SocketAddr, source: io::Error },
}

/// A running metadata server.
pub struct MetaServer {
    core: Arc<Core>,
    datanodes: Arc<datanodes::DatanodeSide>,
    rpc: rpc::Server,
    web: Option<web::Web>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    writer: JoinHandle<()>,
}

impl MetaServer {
    /// Recovers what the directory holds, claims the group and serves. The calling thread blocks while the
    /// image and the journal are read.
    pub async fn start(env: Env, config: MetaConfig) -> Result<Self, StartError> {
        let starting = env.clone();
        let core = tokio::task::spawn_blocking(move || recover(starting, config))
            .await
            .expect("recovery does not panic")?;

        let stop = Arc::new(AtomicBool::new(false));
        let writer = spawn("meta-writer", {
            let core = core.clone();
            move || core.run_writer()
        });
        let threads = vec![
            spawn("meta-checkpoint", {
                let core = core.clone();
                move || checkpoint::run(&core)
            }),
            spawn("meta-background", {
                let (core, stop) = (core.clone(), stop.clone());
                move || background::run(&core, &stop)
            }),
        ];

        let datanodes = datanodes::DatanodeSide::start(&core);
        let web = match core.config.http_address {
            None => None,
            Some(address) => Some(
                crate::metrics::serve(&core, address)
                    .await
                    .map_err(|source| StartError::Http { address, source })?,
            ),
        };
        let address = core.config.rpc_address;
        let service = Arc::new(Protocols { core: core.clone(), datanodes: datanodes.clone() });
        let resolver = core.clone();
        let mut rpc_config = rpc::ServerConfig::new(address, service);
        rpc_config.limits.frame_bytes_max = core.config.call_queue.frame_bytes_max;
        rpc_config.http_hint = web.as_ref().map(|web| web.local_addr().to_string());
        rpc_config.caller_resolver = Some(Arc::new(move |user: &str, real_user: Option<&str>| {
            // May run a command, once for a user and a while: the connection's task may wait for it.
            Ok(tokio::task::block_in_place(|| resolver.groups.caller(user, real_user, resolver.moment())))
        }));
        let rpc = rpc::Server::bind(rpc_config).map_err(|source| StartError::Rpc { address, source })?;
        tracing::info!(rpc = %rpc.local_addr(), cluster = core.cluster.cluster_id, "metadata server serves");
        Ok(Self { core, datanodes, rpc, web, stop, threads, writer })
    }

    pub fn rpc_address(&self) -> SocketAddr {
        self.rpc.local_addr()
    }

    pub fn http_address(&self) -> Option<SocketAddr> {
        self.web.as_ref().map(web::Web::local_addr)
    }

    pub fn cluster(&self) -> &crate::Cluster {
        &self.core.cluster
    }

    /// Data servers that are alive.
    pub fn live_data_servers(&self) -> usize {
        self.core.blocks.lock().servers(::blocks::ServerFilter::Live).len()
    }

    pub fn in_safe_mode(&self) -> bool {
        self.core.blocks.lock().in_safe_mode()
    }

    /// Resolves when this server cannot go on.
    pub async fn ended(&self) -> Ended {
        Ended::Failed(self.failed().await)
    }

    /// This server's membership in its group.
    pub fn replica(&self) -> &Replica {
        &self.core.replica
    }

    /// Resolves when the journal has failed and the process had better end: the reason.
    pub async fn failed(&self) -> String {
        loop {
            if let Some(reason) = self.core.commit.failure() {
                return reason;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }

    /// Takes no more calls, finishes those that have begun, closes the journal.
    pub async fn shutdown(self) {
        self.rpc.shutdown().await;
        self.datanodes.stop();
        if let Some(web) = self.web {
            web.shutdown().await;
        }
        self.stop.store(true, Ordering::Release);
        self.core.checkpoint.close();
        self.core.close();
        let (core, threads, writer) = (self.core, self.threads, self.writer);
        let ended = tokio::task::spawn_blocking(move || {
            let _ = writer.join();
            for thread in threads {
                let _ = thread.join();
            }
            core.replica.close()
        })
        .await;
        match ended {
            Ok(Ok(())) => tracing::info!("metadata server stopped"),
            Ok(Err(error)) => tracing::error!(%error, "the journal could not be closed cleanly"),
            Err(error) => tracing::error!(%error, "stopping failed"),
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).expect("a thread can be started")
}

/// Image, then journal, then the claim; nothing is served before the claim's first entry has committed.
fn recover(env: Env, config: MetaConfig) -> Result<Arc<Core>, StartError> {
    let began = env.clock.moment();
    let cluster = format::read_cluster(&env, &config.name_directory)?;
    let layout = Layout::of(&config.name_directory);
    let mut recovery = journal::open(&env, &layout.store, journal::Settings::default())?;
    let state = recovery.state().clone();
    if state.identity.cluster_id != cluster.cluster_id {
        return Err(StartError::AnotherCluster {
            directory: layout.store.display().to_string(),
            found: state.identity.cluster_id,
            expected: cluster.cluster_id,
        });
    }

    let seed = env.random.next_u64();
    let image = recovery.load_image(|reader| {
        let size = reader.file_bytes();
        checkpoint::read(seed, reader, size)
    })?;
    let mut namespace = match image {
        Some((at, namespace)) => {
            tracing::info!(%at, files = namespace.counts().files, "image read");
            namespace
        }
        None => {
            let access = &config.limits.access;
            // The root has the time of the cluster, so that every member starts from the same tree.
            let created = base::Timestamp::from_ms(cluster.created_ms);
            Namespace::new(seed, &access.superuser, &access.supergroup, created)
        }
    };
    let (journal, recovered) = recovery.replay(|entry| replay_entry(&mut namespace, &entry))?;
    for entry in &recovered.tail {
        replay_entry(&mut namespace, entry).map_err(|source| journal::RecoverError::Apply {
            file: layout.store.clone(),
            offset: 0,
            id: entry.id,
            source,
        })?;
    }
    for finding in &recovered.findings {
        tracing::warn!(file = %finding.file.display(), offset = finding.offset, "{}", finding.what);
    }

    let coordinator = coord::Embedded::open(&env, &layout.coordinator)?;
    // Alone in its group, a member has committed whatever is durable on it.
    let commit = Arc::new(crate::commit::CommitWatch::new(recovered.end.id.sn));
    let replica = Replica::new(
        env.clone(),
        format::GROUP,
        MemberStore { member: state.identity.member, generation: state.generation },
        Restored {
            promised: state.promised,
            end: recovered.end,
            known_commit: state.known_commit,
            boot: journal.state().boot,
        },
        journal,
        Arc::new(coordinator) as Arc<dyn Coordinator>,
        commit.clone(),
    );
    let epoch = replica.claim()?;
    let steps = group::IdSteps::default();
    let at = replica.end().id;
    namespace.start_epoch(at, steps.inode, steps.block, steps.generation_stamp);

    let blocks = load_blocks(&env, &config, &namespace);
    tracing::info!(
        %epoch,
        replayed = recovered.replayed,
        files = namespace.counts().files,
        took_ms = env.clock.moment().ms_since(began),
        "namespace recovered"
    );
    Ok(Arc::new(Core::new(env, config, cluster, namespace, blocks, replica, commit)))
}

/// One entry of the journal, as every member applies it.
fn replay_entry(
    namespace: &mut Namespace,
    entry: &base::Entry,
) -> Result<(), Box<dyn StdError + Send + Sync>> {
    let at: TxId = entry.id;
    match entry.kind {
        EntryKind::Operation => {
            let edit = Edit::decode(&entry.payload)?;
            namespace.apply(at, &edit);
        }
        EntryKind::EpochStart => {
            let start =
                EpochStart::decode(&entry.payload).ok_or("the first entry of an epoch is malformed")?;
            let steps = start.id_steps;
            namespace.start_epoch(at, steps.inode, steps.block, steps.generation_stamp);
        }
        EntryKind::Checkpoint => namespace.skip_to(at),
    }
    Ok(())
}

/// The block map, told of every block; where they are the data servers will say.
fn load_blocks(env: &Env, config: &MetaConfig, namespace: &Namespace) -> Arc<Mutex<BlockMap>> {
    let now = env.clock.moment();
    let mut settings = config.blocks.clone();
    settings.racks.extend(config.racks.iter().cloned());
    let mut blocks = BlockMap::new(settings, env.random.next_u64(), now);
    blocks.reserve(namespace.counts().blocks as usize);
    let (id, stamp) = namespace.last_allocated();
    blocks.set_last_allocated(id, stamp);
    namespace.for_each_block(&mut |block, inode, replication, committed| {
        let state = if committed { BlockState::Complete } else { BlockState::UnderConstruction };
        blocks.add_block(block, inode, replication, state, &[], now);
    });
    blocks.activate(now);
    blocks.set_commanding(true, now);
    Arc::new(Mutex::new(blocks))
}
