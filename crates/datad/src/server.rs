//! A whole data server: opened, bound, registered.

use crate::{
    config::DataConfig,
    identity::Identity,
    ipc::IpcService,
    jmx,
    metadata::{actor::Actor, progress::Progress},
    metrics, page,
    state::{RpcCalls, State},
    xceiver,
};
use blockstore::{BlockStore, OpenError, Scanners};
use env::Env;
use rpc::{Client, ClientOptions, Server, ServerConfig};
use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use thiserror::Error;
use tokio::{
    net::{TcpListener, UnixListener},
    sync::watch,
    task::JoinHandle,
};
use web::{HealthSource, Pages, Web};

/// Why a data server does not start.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("the data directories cannot be used")]
    Store(#[from] OpenError),
    /// A bug: the thread that opened the data directories panicked.
    #[error("opening the data directories was broken off")]
    BrokenOff(#[source] tokio::task::JoinError),
    #[error("{what} {addr} could not be opened")]
    Bind { what: &'static str, addr: SocketAddr, source: io::Error },
    #[error("the socket for clients of this machine (dfs.domain.socket.path) could not be opened at {}", path.display())]
    DomainSocket { path: PathBuf, source: io::Error },
    #[error(
        "this process may have {limit} file descriptors, and a data server needs {} at least: raise the limit \
         (ulimit -n, LimitNOFILE)",
        env::descriptors::LIMIT_MIN
    )]
    Descriptors { limit: usize },
    #[error("the scanners of the data directories cannot be started")]
    Scanners(#[source] io::Error),
    #[error("{0}")]
    Config(String),
}

/// A running data server; ends with [`DataServer::shutdown`].
pub struct DataServer {
    state: Arc<State>,
    ipc: Server,
    web: Web,
    health: HealthSource,
    progress: Vec<watch::Receiver<Progress>>,
    tasks: Vec<JoinHandle<()>>,
}

impl DataServer {
    /// Opens the data directories and binds all ports, then registers with the metadata servers in the
    /// background (retrying for ever): see [`DataServer::wait_registered`].
    ///
    /// # Errors
    /// [`StartError::Config`] if the configuration names no metadata server, [`StartError::Descriptors`] if too few
    /// file descriptors are allowed, [`StartError::Bind`] if a port cannot be bound, [`StartError::DomainSocket`] if the socket for
    /// clients of this machine cannot be opened where it is configured, [`StartError::Store`] if the data
    /// directories cannot be opened, [`StartError::BrokenOff`] if opening them panics, [`StartError::Scanners`] if no
    /// threads can be started for them.
    pub async fn start(env: Env, config: DataConfig) -> Result<DataServer, StartError> {
        Self::start_with(env, config, Pages::default()).await
    }

    /// Starts like [`DataServer::start`], with further pages on the HTTP port.
    ///
    /// # Errors
    /// Those of [`DataServer::start`].
    pub async fn start_with(
        env: Env,
        config: DataConfig,
        mut pages: Pages,
    ) -> Result<DataServer, StartError> {
        if config.metadata_servers.is_empty() {
            return Err(StartError::Config("no metadata server is configured".into()));
        }
        let transfer = TcpListener::bind(config.transfer_addr)
            .await
            .map_err(|error| bind_error("the transfer port", config.transfer_addr, error))?;
        let service = Arc::new(IpcService::default());
        let descriptors = env.descriptors.clone();
        if descriptors.limit() < env::descriptors::LIMIT_MIN {
            return Err(StartError::Descriptors { limit: descriptors.limit() });
        }
        let calls = Arc::<measures::Calls>::default();
        let ipc_config = ServerConfig {
            descriptors,
            calls: calls.clone(),
            ..ServerConfig::new(config.ipc_addr, service.clone())
        };
        let ipc =
            Server::bind(ipc_config).map_err(|error| bind_error("the RPC port", config.ipc_addr, error))?;
        let http = std::net::TcpListener::bind(config.http_addr)
            .map_err(|error| bind_error("the HTTP port", config.http_addr, error))?;

        let (opening_env, store_config) = (env.clone(), config.store.clone());
        let volumes = tokio::task::spawn_blocking(move || BlockStore::open(opening_env, store_config))
            .await
            .map_err(StartError::BrokenOff)??;
        let transfer_addr = transfer
            .local_addr()
            .map_err(|error| bind_error("the transfer port", config.transfer_addr, error))?;
        let http_addr =
            http.local_addr().map_err(|error| bind_error("the HTTP port", config.http_addr, error))?;
        let local = listen_locally(&config, transfer_addr.port())?;
        let announced = SocketAddr::new(announced_ip(transfer_addr.ip(), &config), transfer_addr.port());
        let hostname = match config.hostname.as_str() {
            "" => announced.ip().to_string(),
            name => name.to_owned(),
        };
        let identity = Identity {
            uuid: volumes.uuid().clone(),
            hostname: hostname.into(),
            transfer_addr: announced,
            ipc_port: ipc.local_addr().port(),
            http_port: http_addr.port(),
        };
        let state = Arc::new(State::new(env, config, volumes, identity));
        let scanners = Scanners::start(&state.volumes, &state.config.scan).map_err(StartError::Scanners)?;
        let _ = state.scanners.set(scanners);
        let _ = state.rpc.set(RpcCalls { calls, load: ipc.load() });
        service.attach(state.clone());

        let (mut progress, mut talks) = (Vec::new(), Vec::new());
        let mut tasks = vec![tokio::spawn(xceiver::serve(state.clone(), transfer))];
        if let Some(listener) = local {
            tasks.push(tokio::spawn(xceiver::serve_local(state.clone(), listener)));
        }
        for address in &state.config.metadata_servers {
            let client = to_metadata_server(address, &state.config.user);
            let (actor, seen) = Actor::new(state.clone(), client);
            progress.push(seen);
            talks.push(actor.talk());
            tasks.push(tokio::spawn(actor.run()));
        }
        let health: HealthSource = {
            let (state, progress) = (state.clone(), progress.clone());
            Arc::new(move || metrics::health(&state, &progress))
        };
        let beans = jmx::source(&state, &progress, &talks);
        let router = pages.router.merge(web::jmx::jmx(beans.clone())).merge(web::prom(beans));
        pages.router = router.merge(web::data_node::data_node(page::source(&state, &progress)));
        let web = Web::serve(http, Arc::new(metrics::registry(&state)), health.clone(), pages)
            .map_err(|error| bind_error("the HTTP port", http_addr, error))?;
        tracing::info!(
            uuid = %state.identity.uuid, transfer = %state.identity.transfer_addr,
            ipc = %ipc.local_addr(), http = %http_addr,
            descriptors = state.env.descriptors.limit(),
            descriptors_kept_back = state.env.descriptors.kept_back(),
            "data server started"
        );
        Ok(DataServer { state, ipc, web, health, progress, tasks })
    }

    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// The address of the transfer port, as announced to others.
    pub fn transfer_addr(&self) -> SocketAddr {
        self.state.identity.transfer_addr
    }

    pub fn ipc_addr(&self) -> SocketAddr {
        self.ipc.local_addr()
    }

    pub fn http_addr(&self) -> SocketAddr {
        self.web.local_addr()
    }

    /// For those who ask how this server is, as `/health` does. A look reads the room of all disks.
    pub fn health(&self) -> HealthSource {
        self.health.clone()
    }

    /// Waits until one metadata server, of any pool, has registered this one and taken its first full block report.
    ///
    /// # Errors
    /// All metadata servers have refused this server for good. The text is the last reason.
    pub async fn wait_registered(&self) -> Result<(), String> {
        let mut reason = String::new();
        let mut waiting: Vec<_> = self.progress.clone();
        while !waiting.is_empty() {
            let mut refused = None;
            for (index, seen) in waiting.iter_mut().enumerate() {
                match &*seen.borrow_and_update() {
                    Progress::Serving => return Ok(()),
                    Progress::Refused(why) => refused = Some((index, why.clone())),
                    Progress::Connecting => {}
                }
            }
            match refused {
                Some((index, why)) => {
                    waiting.remove(index);
                    reason = why;
                }
                // Several may change; whichever does, all are looked at again soon.
                None => {
                    let _ = tokio::time::timeout(Duration::from_millis(20), waiting[0].changed()).await;
                }
            }
        }
        Err(reason)
    }

    /// Waits until the server is asked to end (a shutdown call), or every metadata server refuses it for good. The
    /// answer is the reason.
    pub async fn wait_ended(&self) -> String {
        tokio::select! {
            biased;
            reason = self.state.end_requested() => reason,
            reason = self.all_refused() => reason,
        }
    }

    /// Waits until all metadata servers refuse this one at the same time.
    async fn all_refused(&self) -> String {
        let mut waiting: Vec<_> = self.progress.clone();
        loop {
            let mut reason = None;
            let mut unrefused = None;
            for (index, seen) in waiting.iter_mut().enumerate() {
                match &*seen.borrow_and_update() {
                    Progress::Refused(why) => reason = Some(why.clone()),
                    _ => unrefused = Some(index),
                }
            }
            match (unrefused, reason) {
                (None, Some(reason)) => return reason,
                // A metadata server that has not refused keeps this server going. The others are looked at when its
                // state changes.
                (Some(index), _) if waiting[index].changed().await.is_ok() => {}
                _ => std::future::pending::<()>().await,
            }
        }
    }

    /// Ends all tasks and lets go of ports and directories. Replicas being written stay as a kill would leave
    /// them.
    pub async fn shutdown(self) {
        for task in &self.tasks {
            task.abort();
        }
        for task in self.tasks {
            // Cancelled, as was asked for.
            let _ = task.await;
        }
        self.ipc.shutdown().await;
        self.web.shutdown().await;
        self.state.disk_balancer.stop();
        let state = self.state.clone();
        // It waits a moment, which is no work for this thread. That it panicked is told already.
        let _ = tokio::task::spawn_blocking(move || state.stop_scanners()).await;
        self.state.volumes.close();
    }
}

/// The socket for clients of this machine, where one is configured.
fn listen_locally(config: &DataConfig, transfer_port: u16) -> Result<Option<UnixListener>, StartError> {
    if config.domain_socket_path.is_empty() {
        return Ok(None);
    }
    let path = rpc::local::path::effective(&config.domain_socket_path, transfer_port);
    let listener = rpc::local::path::listen(&path).and_then(UnixListener::from_std);
    match listener {
        Ok(listener) => {
            tracing::info!(path = %path.display(), hands_out_files = config.short_circuit, "listening for clients of this machine");
            Ok(Some(listener))
        }
        Err(source) => Err(StartError::DomainSocket { path, source }),
    }
}

fn to_metadata_server(address: &str, user: &str) -> Client {
    let options = ClientOptions {
        connect_timeout: Duration::from_secs(5),
        call_timeout: Duration::from_secs(60),
        ..ClientOptions::default()
    };
    Client::connect(address, proto::protocol::DATANODE, user, options)
}

fn bind_error(what: &'static str, addr: SocketAddr, error: io::Error) -> StartError {
    StartError::Bind { what, addr, source: error }
}

/// The address that others are told: the one bound, or the one from which the first metadata server is
/// reached when all are bound.
fn announced_ip(bound: IpAddr, config: &DataConfig) -> IpAddr {
    if !bound.is_unspecified() {
        return bound;
    }
    let toward = || -> io::Result<IpAddr> {
        let socket = UdpSocket::bind((bound, 0))?;
        // Nothing is sent: connecting a datagram socket only picks a route.
        socket.connect(&config.metadata_servers[0])?;
        Ok(socket.local_addr()?.ip())
    };
    toward().unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST))
}
