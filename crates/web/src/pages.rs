//! Pages that a program adds to those of its server.

use crate::{
    connections::CONNECTIONS_MAX,
    facts::{Facts, Sources},
    hosts::Hosts,
};
use axum::Router;
use std::{fmt, future::Future, pin::Pin, sync::Arc};
use tokio::runtime::Handle;

/// Work that is done beside a server for as long as its port is open. It is told of the server, and dropped with it.
pub type Watch = Arc<dyn Fn(Facts) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Further pages of a server, and what they need.
#[derive(Clone)]
pub struct Pages {
    pub router: Router,
    /// The threads that serve all connections of the HTTP port. `None`: those on which the server is started.
    pub runtime: Option<Handle>,
    /// Further connections wait for a place.
    pub connections_max: usize,
    pub watch: Option<Watch>,
    /// The names by which browsers may call the server, for all of its pages.
    pub hosts: Hosts,
    /// The sources that the server has for pages; it adds them itself. A page finds them, as [`Facts`], in the extensions of a request.
    pub sources: Sources,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            router: Router::new(),
            runtime: None,
            connections_max: CONNECTIONS_MAX,
            watch: None,
            hosts: Hosts::default(),
            sources: Sources::default(),
        }
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { router, runtime, connections_max, watch, hosts, sources: _ } = self;
        f.debug_struct("Pages")
            .field("has_routes", &router.has_routes())
            .field("has_runtime", &runtime.is_some())
            .field("connections_max", connections_max)
            .field("has_watch", &watch.is_some())
            .field("hosts", hosts)
            .finish()
    }
}
