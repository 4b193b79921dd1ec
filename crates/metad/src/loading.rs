//! The pages of a metadata server while it reads its image and its journal: how far it is, and that it cannot answer yet.
//!
//! They have the socket that the server's own pages get afterwards: connections that come in between wait for these.

use crate::{
    config::MetaConfig,
    jmx,
    start::{Progress, Reached},
};
use env::Env;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
};
use web::{
    Health, Pages, Sources, Web,
    in_sync::InSync,
    loading::{Loading, Part, loading},
    name_node::start_of_name_node,
    prometheus_client::{collector::Collector, encoding::DescriptorEncoder, registry::Registry},
};

/// The HTTP port of a server that is not up yet.
pub struct LoadingPages {
    env: Env,
    config: MetaConfig,
    progress: Arc<Progress>,
    listener: TcpListener,
    /// `None` while the port is lent.
    web: Mutex<Option<Web>>,
}

impl LoadingPages {
    /// Binds the port and shows the pages. To be called within a runtime.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn open(
        env: &Env,
        config: &MetaConfig,
        address: SocketAddr,
        progress: &Arc<Progress>,
    ) -> io::Result<Self> {
        let listener = web::listen(address).await?;
        let web = show(env, config, listener.try_clone()?, progress)?;
        Ok(Self {
            env: env.clone(),
            config: config.clone(),
            progress: progress.clone(),
            listener,
            web: Mutex::new(Some(web)),
        })
    }

    /// Ends the pages. Connections that come from now on wait for the pages that are served on this socket next.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub async fn lend(&self) -> io::Result<TcpListener> {
        let web = self.web.lock().take();
        if let Some(web) = web {
            web.shutdown().await;
        }
        self.listener.try_clone()
    }

    /// Shows the pages again. To be called within a runtime.
    pub fn resume(&self) {
        let shown = self
            .listener
            .try_clone()
            .and_then(|listener| show(&self.env, &self.config, listener, &self.progress));
        match shown {
            Ok(web) => *self.web.lock() = Some(web),
            Err(error) => tracing::warn!(%error, "no pages while this server loads"),
        }
    }
}

fn show(env: &Env, config: &MetaConfig, listener: TcpListener, progress: &Arc<Progress>) -> io::Result<Web> {
    let (told, clock) = (progress.clone(), env.clock.clone());
    let started = start_of_name_node(
        Arc::new(|| false),
        Arc::new(move || jmx::start_of_loading(&told, clock.moment())),
    );
    let not_yet = web::in_sync::in_sync(Arc::new(|| InSync { is_in_sync: false, state: STATE }));
    let beans = jmx::source_of_loading(progress, env);
    let (shown, clock) = (progress.clone(), env.clock.clone());
    let source = Arc::new(move || {
        let reached = shown.reached();
        Loading {
            does: reached.stage.about(),
            since_ms: clock.moment().ms_since(shown.began),
            parts: parts(&reached),
        }
    });
    let for_people = loading(source, config.group.peer_address.is_none());
    let router = started.merge(not_yet).merge(for_people);
    let router = router.merge(web::jmx::jmx(beans.clone())).merge(web::prom(beans));
    // The settings of the port hold from its first connection on; the pages of the program need a server that is up.
    let own = &config.pages;
    let pages = Pages {
        router,
        runtime: own.runtime.clone(),
        connections_max: own.connections_max,
        watch: None,
        hosts: own.hosts.clone(),
        sources: Sources::default(),
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Shares(progress.clone())));
    let (asked, member) = (progress.clone(), config.group.member);
    let health = move || {
        let reached = asked.reached();
        let reason = format!("this server is not up yet: it {}", reached.stage.about());
        let facts = [("role", "metadata".to_owned()), ("member", member.to_string()), ("reason", reason)];
        let facts = facts.map(|(name, value)| (name.to_owned(), value)).into_iter();
        let shares = parts(&reached).into_iter().map(|part| (part.name.to_owned(), part.text()));
        let details = facts.chain(shares).collect::<BTreeMap<_, _>>();
        Health { ok: false, state: STATE.to_owned(), details, ..Health::default() }
    };
    Web::serve(listener, Arc::new(registry), Arc::new(health), pages)
}

/// The state in `/health`, `/ready` and `/in-sync`.
const STATE: &str = "loading";

fn parts(reached: &Reached) -> Vec<Part> {
    vec![
        Part {
            name: "image",
            share: reached.image_share(),
            of: (reached.image_bytes > 0).then(|| web::amounts::size(reached.image_bytes)),
        },
        Part {
            name: "journal",
            share: reached.journal_share(),
            of: (reached.entries_expected > 0).then(|| format!("{} changes", reached.entries_expected)),
        },
    ]
}

/// The two numbers of `/metrics`. They are 1 on a server that is up.
#[derive(Debug)]
struct Shares(Arc<Progress>);

impl Collector for Shares {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let reached = self.0.reached();
        crate::metrics::start_shares(&mut encoder, reached.image_share(), reached.journal_share())
    }
}
