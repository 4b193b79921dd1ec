//! A request for a page, and what all requests share.

use crate::{
    cluster::{Cluster, Looks},
    history::History,
    orders::HandOver,
    page::Visitor,
    refusal::Refusal,
    sessions::{self, Sessions},
    text,
};
use axum::http::{HeaderMap, StatusCode, request::Parts};
use client::{FileSystem, Location};
use gateway::servers::Servers;
use parking_lot::Mutex;
use proto::clover::admin::GetGroupResponseProto;
use std::{fmt, io, sync::Arc, time::Duration};
use tokio::sync::{Semaphore, SemaphorePermit};
use web::{Connection, Facts, Limit, LogSource, Permit, origin::Origins, settings::SettingsSource};

/// Pages that are made at once. A page of a directory takes 200 KiB or so while it is made.
const PAGES_MAX: usize = 16;
/// How long a page waits for another one to be made, and a file for another one.
const PLACE_WAIT: Duration = Duration::from_secs(5);
/// The user in whose name pages ask as long as no user has signed in; Hadoop's name.
pub use gateway::identity::DEFAULT_USER as STRANGER;
/// The mode bits that are taken away from what is made here.
const UMASK: &str = "022";
/// Sums of directories that are asked for at once, by all pages: the server walks the tree for each.
const SUMS_AT_ONCE: usize = 4;

/// What the program tells of itself, beside its server.
#[derive(Clone, Default)]
pub struct Program {
    pub settings: Option<SettingsSource>,
    pub log: Option<LogSource>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, log } = self;
        f.debug_struct("Program")
            .field("has_settings", &settings.is_some())
            .field("has_log", &log.is_some())
            .finish()
    }
}

#[derive(Clone, Debug)]
pub struct Config {
    pub program: Program,
    /// In this user's name the console asks what `/jmx` tells to all: how the cluster is.
    pub operator: String,
    /// Pages of other origins that may change something, as far as browsers let them.
    pub origins: Origins,
    /// HTTP connections at once, where there is no gateway that says so.
    pub connections_max: usize,
    /// Files that are sent at once, and files that are taken at once; further requests are told to try again.
    pub transfers_max: usize,
}

/// The parts of a console that all its requests use.
pub struct Shared {
    config: Config,
    servers: Servers,
    looks: Looks,
    pub history: History,
    pub sessions: Sessions,
    pages: Semaphore,
    /// The places of files that are sent, to strangers as well, and of those that users send here.
    pub downloads: Limit,
    pub uploads: Limit,
    /// The places of pages that ask for sums of directories.
    pub sums: Arc<Semaphore>,
    hand_over: Mutex<Option<HandOver>>,
}

/// A request for a page, with what is known before it is carried out.
pub struct Asked {
    pub shared: Arc<Shared>,
    pub facts: Facts,
    pub visitor: Visitor,
    pub parts: Parts,
}

impl Asked {
    /// The parameter of that name, the first if there are several.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let query = self.parts.uri.query().unwrap_or_default();
        let found = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name);
        found.map(|(_, value)| value.into_owned())
    }

    /// The file system in the visitor's name.
    ///
    /// # Errors
    /// The metadata server is not ready.
    pub async fn files(&self) -> Result<FileSystem, Refusal> {
        self.shared.files_of(&self.visitor.user).await
    }

    /// How the cluster is, which every visitor may see.
    ///
    /// # Errors
    /// The metadata server is not ready.
    pub async fn cluster(&self) -> Result<Arc<Cluster>, Refusal> {
        let fs = self.shared.files_of(&self.shared.config.operator).await?;
        let member = |address: &str| {
            let location = Location { authority: address.to_owned(), servers: vec![address.to_owned()] };
            self.shared.servers.shared(&location, &self.shared.config.operator)
        };
        Ok(self.shared.looks.cluster(&fs, member).await)
    }

    /// The group as it is at this moment, for a change that depends on it.
    ///
    /// # Errors
    /// The metadata server is not ready.
    pub async fn group(&self) -> Result<GetGroupResponseProto, Refusal> {
        Ok(self.shared.files_of(&self.shared.config.operator).await?.group().await?)
    }

    /// Whether a superuser of the file system has signed in, by the word of the server.
    pub async fn is_superuser(&self) -> bool {
        let Some(superusers) = self.facts.sources.superusers.clone() else { return false };
        let user = self.visitor.user.clone();
        // It may run a command that tells the user's groups.
        self.visitor.is_signed_in
            && tokio::task::spawn_blocking(move || superusers(&user)).await.unwrap_or(false)
    }

    /// # Errors
    /// No superuser has signed in. `why`: a sentence for the visitor.
    pub async fn require_superuser(&self, why: &str) -> Result<(), Refusal> {
        match self.is_superuser().await {
            true => Ok(()),
            false => Err(Refusal::new(StatusCode::FORBIDDEN, "For superusers", why)),
        }
    }

    /// # Errors
    /// The request was sent by a page of another origin, which may change nothing here.
    pub fn check_origin(&self) -> Result<(), Refusal> {
        let origin = self.shared.config.origins.judge(&self.parts.headers);
        origin.check_change().map_err(Refusal::from)
    }

    /// # Errors
    /// The visitor may change nothing here: the request was sent by a page of another origin, or no user has signed in.
    pub fn check_change(&self) -> Result<(), Refusal> {
        self.check_origin()?;
        match self.visitor.is_signed_in {
            true => Ok(()),
            false => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "Sign in first",
                "Only users who have signed in change something here.",
            )),
        }
    }

    /// A place among the transfers of a kind.
    ///
    /// # Errors
    /// All are taken, and none becomes free soon.
    pub async fn place(&self, kind: &Limit, connection: &Connection) -> Result<Permit, Refusal> {
        kind.take(connection).await.ok_or_else(|| {
            Refusal::busy(format!(
                "{} files are under way here already, which are as many as there may be.",
                kind.count_max()
            ))
        })
    }
}

impl Shared {
    /// # Errors
    /// The user of this process has no name.
    pub fn new(config: Config) -> io::Result<Self> {
        Ok(Self {
            servers: Servers::new(None, UMASK).map_err(io::Error::other)?,
            looks: Looks::default(),
            history: History::default(),
            sessions: Sessions::new(text::now_ms()),
            pages: Semaphore::new(PAGES_MAX),
            downloads: Limit::new(config.transfers_max, PLACE_WAIT),
            uploads: Limit::new(config.transfers_max, PLACE_WAIT),
            sums: Arc::new(Semaphore::new(SUMS_AT_ONCE)),
            hand_over: Mutex::default(),
            config,
        })
    }

    /// Says which metadata server to ask from now on.
    pub fn locate(&self, location: Location) {
        self.servers.locate(location);
    }

    pub fn program(&self) -> &Program {
        &self.config.program
    }

    pub fn set_hand_over(&self, hand_over: HandOver) {
        *self.hand_over.lock() = Some(hand_over);
    }

    /// The way to have another member become active, if this server has one.
    pub fn hand_over(&self) -> Option<HandOver> {
        self.hand_over.lock().clone()
    }

    pub fn connections_max(&self) -> usize {
        self.config.connections_max
    }

    /// A place among the pages that are made.
    ///
    /// # Errors
    /// All are taken, and none becomes free soon.
    pub async fn page_place(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        match tokio::time::timeout(PLACE_WAIT, self.pages.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(Refusal::busy("Many pages are being made here.")),
        }
    }

    async fn files_of(&self, user: &str) -> Result<FileSystem, Refusal> {
        let location = self.servers.location(None).await?;
        Ok(self.servers.shared(&location, user))
    }

    /// The user in whose name a request is carried out.
    pub fn visitor(&self, headers: &HeaderMap) -> Visitor {
        let session = sessions::cookie(headers, &self.sessions.cookie());
        match session.and_then(|session| self.sessions.user(&session, text::now_ms())) {
            Some(user) => Visitor { user, is_signed_in: true },
            None => Visitor { user: STRANGER.to_owned(), is_signed_in: false },
        }
    }
}
