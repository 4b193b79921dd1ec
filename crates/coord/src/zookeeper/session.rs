//! Keeps a session: connects, connects again, and opens a new one when the old has expired.

use super::{ZooKeeperConfig, nodes::Nodes};
use crate::Event;
use std::time::Duration;
use tokio::{sync::watch, time};
use zookeeper_client::{
    Acl, Acls, AuthId, Client, CreateMode, CreateOptions, Error, Permission, SessionState,
};

/// Between attempts to open a session.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a session that is given up may take to say so to the ensemble.
const CLOSE: Duration = Duration::from_millis(500);

/// A connection that stands.
#[derive(Clone)]
pub struct Link {
    pub client: Client,
    /// Rises with each connection: what was watched on an earlier one is to be looked at again.
    pub turn: u64,
}

/// The state that all tasks of a session share.
pub struct Session {
    pub nodes: Nodes,
    acls: Acls<'static>,
    link: watch::Receiver<Option<Link>>,
}

impl Session {
    pub fn new(config: &ZooKeeperConfig, link: watch::Receiver<Option<Link>>) -> Self {
        let acls = if config.auth.is_some() { Acls::creator_all() } else { Acls::anyone_all() };
        Self { nodes: Nodes { root: config.root.clone() }, acls, link }
    }

    /// Waits until a connection stands.
    pub async fn link(&self) -> Link {
        let mut link = self.link.clone();
        loop {
            if let Some(link) = link.borrow_and_update().clone() {
                return link;
            }
            if link.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until another connection stands than this one.
    pub async fn next_link(&self, turn: u64) {
        let mut link = self.link.clone();
        if link.wait_for(|link| link.as_ref().is_some_and(|link| link.turn != turn)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub fn persistent(&self) -> CreateOptions<'static> {
        CreateMode::Persistent.with_acls(self.acls)
    }

    pub fn ephemeral(&self) -> CreateOptions<'static> {
        CreateMode::Ephemeral.with_acls(self.acls)
    }

    /// Makes the root and what is above it.
    pub async fn make_root(&self, client: &Client) -> Result<(), (String, Error)> {
        let root = &self.nodes.root;
        // The nodes above belong to everybody, and nobody may remove them.
        let shared = [Acl::new(Permission::READ | Permission::CREATE, AuthId::anyone())];
        for (end, _) in root.match_indices('/').skip(1) {
            make(client, &root[..end], &CreateMode::Persistent.with_acls(Acls::new(&shared))).await?;
        }
        make(client, root, &self.persistent()).await
    }
}

/// Makes a node if it is missing; the error names the node.
pub async fn make(client: &Client, path: &str, options: &CreateOptions<'_>) -> Result<(), (String, Error)> {
    match client.create(path, b"", options).await {
        Ok(_) | Err(Error::NodeExists) => Ok(()),
        // A parent may be there for everybody to read, and for nobody to write.
        Err(Error::NoAuth) if matches!(client.check_stat(path).await, Ok(Some(_))) => Ok(()),
        Err(error) => Err((path.to_owned(), error)),
    }
}

/// Keeps the link up until it is told to stop; then the session is closed, and its lock is gone at once.
pub struct Keeper<T> {
    pub config: ZooKeeperConfig,
    pub link: watch::Sender<Option<Link>>,
    pub tell: T,
    pub stop: watch::Receiver<bool>,
}

impl<T: Fn(Event)> Keeper<T> {
    pub async fn run(mut self) {
        let mut turn = 0;
        let mut sessions = 0;
        let mut is_said = false;
        while !*self.stop.borrow() {
            let connecting = self.connector().connect(&self.config.servers);
            let connected = tokio::select! {
                biased;
                _ = self.stop.changed() => return,
                connected = connecting => connected,
            };
            match connected {
                Ok(client) => {
                    is_said = false;
                    sessions += 1;
                    self.hold(client, sessions, &mut turn).await;
                }
                Err(error) => {
                    if !is_said {
                        is_said = true;
                        tracing::warn!(servers = self.config.servers, %error, "ZooKeeper cannot be reached");
                        if sessions == 0 {
                            (self.tell)(Event::Disconnected);
                        }
                    }
                    time::sleep(AGAIN).await;
                }
            }
        }
    }

    fn connector(&self) -> zookeeper_client::Connector {
        let session = Duration::from_millis(self.config.session_ms);
        // A server that is silent for so long is left for another: early enough that a claim of the group that
        // waits for it still makes sense, late enough for a pause of its garbage collector.
        let silence = (session / 4).max(Duration::from_millis(250)).min(session * 2 / 5);
        // The first connection is tried again by `run`, at an even pace.
        let connector = Client::connector()
            .with_session_timeout(session)
            .with_connection_timeout(silence)
            .with_fail_eagerly();
        match &self.config.auth {
            Some((user, password)) => connector.with_auth("digest", format!("{user}:{password}").as_bytes()),
            None => connector,
        }
    }

    /// Lives through one session.
    async fn hold(&mut self, client: Client, sessions: u64, turn: &mut u64) {
        let id = client.session_id();
        let granted_ms = client.session_timeout().as_millis() as u64;
        if granted_ms != self.config.session_ms {
            let wanted_ms = self.config.session_ms;
            tracing::warn!(
                wanted_ms,
                granted_ms,
                "ZooKeeper grants another time to sessions than was asked for"
            );
        }
        let mut states = client.state_watcher();
        let mut news = Some(client.state());
        let mut probe = time::interval(Duration::from_millis(self.config.session_ms.max(300)));
        let mut is_new = true;
        loop {
            match news.take() {
                Some(SessionState::SyncConnected) => {
                    *turn += 1;
                    self.link.send_replace(Some(Link { client: client.clone(), turn: *turn }));
                    tracing::info!(session = %id, servers = self.config.servers, "connected to ZooKeeper");
                    if is_new && sessions > 1 {
                        (self.tell)(Event::Expired);
                    }
                    is_new = false;
                    (self.tell)(Event::Connected);
                }
                Some(SessionState::Disconnected) => self.lose("the connection to ZooKeeper is lost"),
                Some(state) if state.is_terminated() => {
                    return self.lose("the session with ZooKeeper has ended");
                }
                _ => {}
            }
            tokio::select! {
                biased;
                _ = self.stop.changed() => {
                    self.link.send_replace(None);
                    drop(client);
                    let closed = async { while !states.changed().await.is_terminated() {} };
                    let _ = time::timeout(CLOSE, closed).await;
                    return;
                }
                state = states.changed() => news = Some(state),
                _ = probe.tick() => {
                    // The client's own task may have ended without a word; its requests then fail at once.
                    if let Err(Error::UnexpectedError(_) | Error::ClientClosed) = answer_to_probe(&client).await {
                        return self.lose("the session with ZooKeeper has broken off");
                    }
                }
            }
        }
    }

    fn lose(&self, what: &str) {
        if self.link.send_replace(None).is_some() {
            tracing::warn!(servers = self.config.servers, "{what}");
            (self.tell)(Event::Disconnected);
        }
    }
}

async fn answer_to_probe(client: &Client) -> Result<(), Error> {
    // Not waited for: a request on a lost connection is answered after the next one is made.
    match time::timeout(Duration::from_millis(50), client.check_stat("/")).await {
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}
