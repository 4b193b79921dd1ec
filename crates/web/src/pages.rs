//! Pages that a program adds to those of its server.

use crate::connection::CONNECTIONS_MAX;
use axum::Router;
use std::fmt;
use tokio::runtime::Handle;

/// Further pages of a server, and what they need.
#[derive(Clone)]
pub struct Pages {
    pub router: Router,
    /// The threads that serve all connections of the HTTP port. `None`: those on which the server is started.
    pub runtime: Option<Handle>,
    /// Further connections wait to be accepted.
    pub connections_max: usize,
}

impl Default for Pages {
    fn default() -> Self {
        Self { router: Router::new(), runtime: None, connections_max: CONNECTIONS_MAX }
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { router, runtime, connections_max } = self;
        f.debug_struct("Pages")
            .field("has_routes", &router.has_routes())
            .field("has_runtime", &runtime.is_some())
            .field("connections_max", connections_max)
            .finish()
    }
}
