//! Bringing a metadata server up, and down.

use crate::{
    background, checkpoint, clocks,
    config::MetaConfig,
    core::Core,
    datanodes, directories,
    doors::{self, Doors},
    ended::Ended,
    loading::LoadingPages,
    member::GroupMember,
    older_answers,
    outlook::Outlook,
    partition::standby_reads::Numbers as StandbyReadNumbers,
    peers::{Identity, Peers},
    post,
    protocols::{self, Protocols},
    recover::{self, RecoverError, Recovered},
    renew, scrub,
    start::Progress,
    watch::RUNTIME,
};
use base::{FsError, GroupId, MemberId, MemberLife, Proxies, directory_log::Dix};
use coord::{ChangeError, MemberRecord};
use env::{Env, pulse};
use group::Role;
use namespace::homes::Intent;
use proto::{exception, rpc_frame::ErrorCode};
use rpc::RpcError;
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    Recover(#[from] RecoverError),
    #[error("the member cannot be told to the others: {0}")]
    Coordinator(#[from] ChangeError),
    #[error("this member cannot lead: {0}")]
    CannotLead(String),
    #[error(
        "this process may have {limit} file descriptors, and a metadata server needs {} at least to keep some for its \
         journal: raise the limit (ulimit -n, LimitNOFILE)",
        env::descriptors::LIMIT_MIN
    )]
    Descriptors { limit: usize },
    #[error("{0}")]
    DataServersFile(FsError),
    #[error("the RPC address {address} could not be bound")]
    Rpc { address: SocketAddr, source: io::Error },
    #[error("the HTTP address {address} could not be bound")]
    Http { address: SocketAddr, source: io::Error },
    #[error("the address {address} for other members could not be bound")]
    Peers { address: SocketAddr, source: io::Error },
}

impl StartError {
    /// The state in which this member has to wait before it can take part, if the error says so.
    pub(crate) fn into_waiting(self) -> Result<Box<recover::Waiting>, Self> {
        match self {
            Self::Recover(RecoverError::Waits(waiting)) => Ok(waiting),
            other => Err(other),
        }
    }

    /// The server that ran before in this process has not let go of its store yet.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self, Self::Recover(RecoverError::Open(journal::OpenError::InUse { .. })))
    }
}

/// A running metadata server.
pub struct MetaServer {
    pub(crate) core: Arc<Core>,
    datanodes: Arc<datanodes::DatanodeSide>,
    rpc: rpc::Server,
    web: Option<web::Web>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    writer: JoinHandle<()>,
}

/// So many calls that have waited are answered by one task.
const CALLS_A_TASK: usize = 256;

/// Answers calls that have waited, on tasks of their own: it may be asked to under locks.
fn answer_later(core: &Arc<Core>) -> directories::AnswerLater {
    let (answering, runtime) = (Arc::downgrade(core), tokio::runtime::Handle::current());
    Box::new(move |calls| {
        let Some(core) = answering.upgrade() else { return };
        let mut calls = calls.into_iter().peekable();
        while calls.peek().is_some() {
            let (core, some) = (core.clone(), calls.by_ref().take(CALLS_A_TASK).collect::<Vec<_>>());
            drop(runtime.spawn(async move {
                for (call, reply) in some {
                    (core.answer)(&core, call, reply);
                    // Others have a turn in between.
                    tokio::task::consume_budget().await;
                }
            }));
        }
    })
}

impl MetaServer {
    /// Recovers what the directory holds, opens the ports and takes part in the group. A group of one serves
    /// when this returns; a member of several may follow for as long as it lives, and passes calls on.
    ///
    /// # Errors
    /// [`StartError::Descriptors`] if there are too few file descriptors, [`StartError::Recover`] if the directory or
    /// its journal cannot be read or repaired, [`StartError::Coordinator`] if the coordinator refuses,
    /// [`StartError::CannotLead`] if a lone member cannot lead, [`StartError::DataServersFile`] if the list of data
    /// servers cannot be read, [`StartError::Rpc`], [`StartError::Http`] or [`StartError::Peers`] if a port cannot be
    /// bound.
    ///
    /// # Panics
    /// The system cannot start a thread.
    pub async fn start(env: Env, config: MetaConfig) -> Result<Self, StartError> {
        let progress = Arc::new(Progress::new(env.clock.moment()));
        let pages = match config.http_address {
            None => None,
            Some(address) => LoadingPages::open(&env, &config, address, &progress)
                .await
                // The process before this one may have the port for a moment yet. It is tried again when it is needed.
                .inspect_err(|error| tracing::warn!(%address, %error, "no pages while this server loads"))
                .ok()
                .map(Arc::new),
        };
        let loaded = Self::load(env, config, &progress, pages.clone()).await;
        // Before an error is looked at: a member that waits needs the port.
        let listener = match pages {
            None => None,
            // Without a descriptor the port is bound anew, or the start fails there.
            Some(pages) => pages.lend().await.ok(),
        };
        Self::come_up(loaded?, listener).await
    }

    /// Reads back what the directory holds.
    async fn load(
        env: Env,
        config: MetaConfig,
        progress: &Arc<Progress>,
        pages: Option<Arc<LoadingPages>>,
    ) -> Result<Recovered, StartError> {
        let descriptors = &env.descriptors;
        if descriptors.limit() < env::descriptors::LIMIT_MIN {
            return Err(StartError::Descriptors { limit: descriptors.limit() });
        }
        tracing::info!(
            limit = descriptors.limit(),
            kept_back = descriptors.kept_back(),
            connections = descriptors.connections_max(),
            "file descriptors"
        );
        // A damaged store is repaired for as long as that takes, or until nobody waits for this any more.
        let starting = Starting::default();
        let (is_given_up, progress) = (starting.0.clone(), progress.clone());
        let recovered = tokio::task::spawn_blocking(move || {
            recover::recover(env, config, protocols::answer, &is_given_up, &progress, pages.as_deref())
        })
        .await
        .expect("recovery does not panic")?;
        let core = &recovered.core;
        let reread = core.clone();
        tokio::task::spawn_blocking(move || reread.admission.reread(&*reread.env.disk))
            .await
            .expect("reading a file does not panic")
            .map_err(StartError::DataServersFile)?;

        let prepared = core.clone();
        tokio::task::spawn_blocking(move || older_answers::indexer::prepare(&prepared.partition))
            .await
            .expect("a journal that keeps what it has does not panic");
        Ok(recovered)
    }

    /// Starts the threads, opens the ports and joins the group. `http_listener`: the socket of the HTTP port, if it is bound already.
    async fn come_up(
        recovered: Recovered,
        http_listener: Option<std::net::TcpListener>,
    ) -> Result<Self, StartError> {
        let Recovered { core, life, member_count, records } = recovered;
        doors::route::connect(&core);
        directories::connect(
            &core.partition,
            core.secret.as_ref(),
            core.doors.as_ref().map(Doors::neighbours),
            answer_later(&core),
        );
        let stop = Arc::new(AtomicBool::new(false));
        let watcher = spawn("meta-watch", {
            let core = core.clone();
            move || {
                let failed = |reason: &str| core.partition.member.fail(reason);
                core.threads.run(&core.env, failed);
            }
        });
        let writer = spawn("meta-writer", {
            let core = core.clone();
            move || core.partition.run_writer(&core.threads)
        });
        watch_runtime(&core);
        let helper = |name: &'static str, work: Box<dyn FnOnce() + Send>| {
            let helpers = core.threads.helpers.clone();
            spawn(name, move || {
                let _watched = helpers.begin(name);
                work();
            })
        };
        let mut threads = vec![
            helper("meta-checkpoint", {
                let core = core.clone();
                Box::new(move || checkpoint::run(&core.partition))
            }),
            helper("meta-pool", {
                let (core, stop) = (core.clone(), stop.clone());
                let runtime = tokio::runtime::Handle::current();
                Box::new(move || renew::run(&core.partition, core.secret.as_ref(), &stop, &runtime))
            }),
            helper("meta-scrub", {
                let (core, stop) = (core.clone(), stop.clone());
                let runtime = tokio::runtime::Handle::current();
                Box::new(move || scrub::run(&core.partition, core.secret.as_ref(), &stop, &runtime))
            }),
            helper("meta-older-answers", {
                let core = core.clone();
                Box::new(move || older_answers::lookups::run(&core))
            }),
            helper("meta-call-index", {
                let (core, stop) = (core.clone(), stop.clone());
                Box::new(move || older_answers::indexer::run(&core.partition, &stop))
            }),
            helper("meta-walks", {
                let core = core.clone();
                Box::new(move || crate::client_protocol::run_walks(&core))
            }),
            helper("meta-directories", {
                let (core, stop) = (core.clone(), stop.clone());
                Box::new(move || directories::run(&core.partition, &stop))
            }),
            helper("meta-background", {
                let (core, stop) = (core.clone(), stop.clone());
                Box::new(move || background::run(&core, &stop))
            }),
        ];

        threads.push(watcher);
        if core.racks.has_script() {
            threads.push(helper("meta-racks", {
                let (core, stop) = (core.clone(), stop.clone());
                Box::new(move || {
                    core.racks.run(&core.env, &stop, |racks| {
                        let mut map = core.partition.blocks.lock();
                        racks.iter().for_each(|(host, rack)| map.learn_rack(&host.to_string(), rack));
                    });
                })
            }));
        }
        if core.audit.is_some() {
            threads.push(helper("meta-audit", {
                let (core, stop) = (core.clone(), stop.clone());
                Box::new(move || core.audit.iter().for_each(|log| log.run(&core.env, &stop)))
            }));
        }

        if let Some(ways) = core.ways.clone() {
            drop(tokio::spawn(post::run(core.partition.clone(), ways, stop.clone())));
        }
        drop(tokio::spawn(clocks::reading::run(Arc::downgrade(&core), stop.clone())));
        let datanodes = datanodes::DatanodeSide::start(&core);
        let web = match core.config.http_address {
            None => None,
            Some(address) => {
                let failed = |source| StartError::Http { address, source };
                let listener = match http_listener {
                    Some(listener) => listener,
                    None => web::listen(address).await.map_err(failed)?,
                };
                Some(crate::metrics::serve(&core, listener).map_err(failed)?)
            }
        };
        let address = core.config.rpc_address;
        let service = Arc::new(Protocols { core: core.clone(), datanodes: datanodes.clone() });
        let resolver = core.clone();
        let mut rpc_config = rpc::ServerConfig::new(address, service);
        rpc_config.limits.frame_bytes_max = core.config.call_queue.frame_bytes_max;
        rpc_config.limits.request_bytes_max = core.config.call_queue.request_bytes_max;
        rpc_config.descriptors = core.env.descriptors.clone();
        rpc_config.calls = core.calls.clone();
        rpc_config.http_hint = web.as_ref().map(|web| web.local_addr().to_string());
        rpc_config.caller_resolver = Some(Arc::new(move |user: &str, real_user: Option<&str>, from| {
            // May run a command, once for a user and a while: the connection's task may wait for it.
            let caller = tokio::task::block_in_place(|| {
                resolver.user_groups.caller(user, real_user, resolver.moment())
            });
            match real_user {
                Some(real)
                    if !resolver.config.proxies.allows(real, user, || caller.groups.to_vec(), from) =>
                {
                    Err(RpcError::fatal(
                        ErrorCode::FatalUnauthorized,
                        exception::AUTHORIZATION,
                        Proxies::refusal(real, user),
                    ))
                }
                _ => Ok(caller),
            }
        }));
        let rpc = rpc::Server::bind(rpc_config).map_err(|source| StartError::Rpc { address, source })?;
        // Nobody else sets it.
        let _ = (core.load.set(rpc.load()), core.rpc_address.set(rpc.local_addr()));
        let server = Self { core, datanodes, rpc, web, stop, threads, writer };
        match server.join_group(life, member_count, records).await {
            Ok(()) => {
                let (rpc, cluster) = (server.rpc_address(), &server.core.cluster.cluster_id);
                tracing::info!(%rpc, cluster, member = %life.store.member, "metadata server runs");
                Ok(server)
            }
            Err(error) => {
                server.shutdown().await;
                Err(error)
            }
        }
    }

    /// All ports are open: others may hear where, and this member may claim.
    async fn join_group(
        &self,
        life: MemberLife,
        member_count: usize,
        mut records: Vec<MemberRecord>,
    ) -> Result<(), StartError> {
        let core = &self.core;
        let peers = self.open_peers(life)?;
        let mine = self.record(life, peers.as_ref());
        records.retain(|record| record.life.store.member != life.store.member);
        records.push(mine.clone());
        let (coordinator, group) = (core.partition.member.coordinator().clone(), core.cluster.group);
        tokio::task::spawn_blocking(move || tell(&*coordinator, group, &mine))
            .await
            .expect("the coordinator does not panic")?;
        core.partition.member.start(peers, records);
        if member_count > 1 {
            return Ok(());
        }
        let (mut standing, mut ended) = (core.partition.member.subscribe(), core.partition.member.ended());
        tokio::select! {
            biased;
            _ = standing.wait_for(|standing| standing.is_serving()) => Ok(()),
            ended = ended.wait_for(Option::is_some) => {
                let ended = ended.ok().and_then(|ended| ended.clone());
                Err(StartError::CannotLead(match ended {
                    Some(Ended::Failed(reason) | Ended::Restart(reason)) => reason,
                    None => "it has stopped".into(),
                }))
            }
        }
    }

    fn open_peers(&self, life: MemberLife) -> Result<Option<Peers>, StartError> {
        let core = &self.core;
        let (Some(address), Some(secret)) = (core.config.group.peer_address, core.secret.clone()) else {
            return Ok(None);
        };
        let identity = Identity {
            cluster_id: core.cluster.cluster_id.clone(),
            group: core.cluster.group,
            store: life.store,
            boot: life.boot,
        };
        let pulses = core.threads.pulses.clone();
        let level = core.partition.tree().namespace.group_level().level;
        Peers::start(core.env.clone(), identity, secret, address, level, core.partition.member.hear(), pulses)
            .map(Some)
            .map_err(|source| StartError::Peers { address, source })
    }

    /// The record that this member publishes for the others.
    fn record(&self, life: MemberLife, peers: Option<&Peers>) -> MemberRecord {
        let advertised = self.core.config.group.advertised.clone();
        let or = |told: Option<String>, bound: Option<SocketAddr>| {
            told.or(bound.map(|address| address.to_string())).unwrap_or_default()
        };
        MemberRecord {
            life,
            peer_address: or(advertised.peer, peers.map(Peers::local_addr)),
            rpc_address: or(advertised.rpc, Some(self.rpc_address())),
            http_address: or(advertised.http, self.http_address()),
        }
    }

    pub fn member(&self) -> MemberId {
        self.core.partition.member.me().member
    }

    pub fn rpc_address(&self) -> SocketAddr {
        self.rpc.local_addr()
    }

    pub fn http_address(&self) -> Option<SocketAddr> {
        self.web.as_ref().map(web::Web::local_addr)
    }

    /// For those who look at this server from outside for as long as it runs.
    pub fn outlook(&self) -> Outlook {
        Outlook(Arc::downgrade(&self.core))
    }

    pub fn cluster(&self) -> &crate::Cluster {
        &self.core.cluster
    }

    /// Data servers that are alive.
    pub fn live_data_servers(&self) -> usize {
        self.core.partition.blocks.lock().servers(::blocks::ServerFilter::Live).len()
    }

    /// The reads that came here while this member did not lead.
    pub fn standby_reads(&self) -> StandbyReadNumbers {
        self.core.partition.standby_reads.numbers()
    }

    pub fn in_safe_mode(&self) -> bool {
        self.core.partition.blocks.lock().in_safe_mode()
    }

    /// Resolves when this server cannot go on.
    pub async fn ended(&self) -> Ended {
        let mut ended = self.core.partition.member.ended();
        match ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().expect("waited for"),
            Err(_) => Ended::Failed("the member is gone".into()),
        }
    }

    /// Resolves when the process had better end: the reason.
    pub async fn failed(&self) -> String {
        let (Ended::Failed(reason) | Ended::Restart(reason)) = self.ended().await;
        reason
    }

    /// This server's membership in its group.
    pub fn replica(&self) -> &GroupMember {
        &self.core.partition.member
    }

    /// The last entry applied, and a digest of the namespace at it: equal on all members at one entry.
    pub fn digest(&self) -> (base::TxId, u64) {
        let tree = self.core.partition.tree();
        (tree.namespace.applied(), tree.namespace.digest())
    }

    /// A digest of the files and directories alone: a new epoch does not change it.
    pub fn content_digest(&self) -> u64 {
        self.core.partition.tree().namespace.content_digest()
    }

    /// The place in the directory log that this member has come to, and a digest of the directories that all groups hold: equal in all groups
    /// at one place.
    pub fn directories_digest(&self) -> (Dix, u64) {
        let tree = self.core.partition.tree();
        (tree.namespace.directory_log().dix, tree.namespace.directories_digest())
    }

    /// The group that holds the files of a directory. `None`: there is no directory at this path.
    pub fn home_of(&self, path: &str) -> Option<GroupId> {
        let tree = self.core.partition.tree();
        tree.namespace.is_directory(path).then(|| tree.namespace.decider(path, Intent::Look))
    }

    /// Lets another member lead if this one does, takes no more calls, finishes those that have begun, closes the
    /// journal.
    pub async fn shutdown(self) {
        self.hand_over().await;
        self.stop_at_once().await;
    }

    /// Hands over the lead. Calls that arrive meanwhile are held, and passed on to the next active.
    async fn hand_over(&self) {
        const PATIENCE: Duration = Duration::from_millis(1_500);
        let member = &self.core.partition.member;
        if member.peer_address().is_none() || !member.is_serving() {
            return;
        }
        let mut standing = member.subscribe();
        member.step_down();
        let leads = |role: &Role| matches!(role, Role::Serving { .. } | Role::HandingOver { .. });
        let over = standing.wait_for(|standing| !leads(&standing.role));
        if tokio::time::timeout(PATIENCE, over).await.is_err() {
            tracing::warn!("nobody follows yet; this member stops all the same");
        }
    }

    /// Stops without handing over the lead. The other members are not told, and have to notice the silence.
    pub async fn stop_at_once(self) {
        self.core.threads.stop();
        self.core.partition.member.give_up_lease();
        self.rpc.shutdown().await;
        self.core.partition.forwarder.close();
        self.core.doors.iter().for_each(Doors::close);
        self.datanodes.stop();
        if let Some(web) = self.web {
            web.shutdown().await;
        }
        self.stop.store(true, Ordering::Release);
        self.core.partition.member.stop();
        self.core.partition.checkpoint.close();
        self.core.walks.close();
        self.core.partition.older_answers.close();
        self.core.partition.close();
        let (core, threads, writer) = (self.core, self.threads, self.writer);
        let ended = tokio::task::spawn_blocking(move || {
            let _ = writer.join();
            for thread in threads {
                let _ = thread.join();
            }
            // No other program looks at the tree now: a writer that has panicked may have left it unfit.
            #[cfg(feature = "failpoints")]
            crate::points::tell_end(&core.partition.tree().namespace);
            core.partition.member.close()
        })
        .await;
        match ended {
            Ok(Ok(())) => tracing::info!("metadata server stopped"),
            Ok(Err(error)) => tracing::warn!(%error, "the journal was not closed cleanly"),
            Err(error) => tracing::error!(%error, "stopping failed"),
        }
    }
}

/// Dropped when the caller no longer waits for a start. The recovery under way ends then.
#[derive(Default)]
struct Starting(Arc<AtomicBool>);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).expect("a thread can be started")
}

/// Counts the turns that the tasks which answer calls get. If tasks keep all workers busy for long, no call is
/// answered, although other threads go on saying that this member lives.
fn watch_runtime(core: &Core) {
    let threads = core.threads.clone();
    let turns = threads.helpers.add(RUNTIME);
    tokio::spawn(async move {
        while !threads.is_over() {
            tokio::time::sleep(pulse::IDLE).await;
            turns.step();
        }
    });
}

/// Writes the member's record, again while nobody knows whether it was written.
fn tell(
    coordinator: &dyn coord::Coordinator,
    group: GroupId,
    record: &MemberRecord,
) -> Result<(), ChangeError> {
    const TRIES: u32 = 60;
    let mut tries = 0;
    loop {
        match coord::wait(|done| coordinator.write_member(group, record.clone(), done)) {
            Err(ChangeError::Unknown { reason }) if tries < TRIES => {
                tries += 1;
                tracing::warn!(reason, "the coordinator has not taken this member's record yet");
                std::thread::sleep(Duration::from_millis(500));
            }
            answer => return answer,
        }
    }
}
