//! One small HTTP server of a role.

use crate::{Facts, Health, HealthSource, Pages, connections, exposition, hosts, stacks};
use axum::{
    Extension, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::IntoResponse,
    routing::get,
};
use prometheus_client::registry::Registry;
use std::{io, net::SocketAddr, sync::Arc};
use tokio::{net::TcpListener, runtime::Handle, sync::watch, task::JoinHandle};

/// A running server; ends with [`Web::shutdown`] or when dropped.
pub struct Web {
    local_addr: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

#[derive(Clone)]
struct Shared {
    registry: Arc<Registry>,
    health: HealthSource,
}

/// Binds a socket for [`Web::serve`]. To be called within a runtime.
///
/// # Errors
/// Those of [`Web::bind`].
pub async fn listen(addr: SocketAddr) -> io::Result<std::net::TcpListener> {
    // More connections may wait for it than for one that the standard library binds.
    TcpListener::bind(addr).await?.into_std()
}

impl Web {
    /// Binds and serves. Port 0 takes any free one; see [`Web::local_addr`].
    ///
    /// # Errors
    /// `AddrInUse` if the port is taken, `AddrNotAvailable` if the address is not one of this machine; or the system's
    /// reason why the address cannot be bound.
    pub async fn bind(addr: SocketAddr, registry: Arc<Registry>, health: HealthSource) -> io::Result<Web> {
        Self::bind_with(addr, registry, health, Pages::default()).await
    }

    /// Binds and serves like [`Web::bind`], with further pages for the server's role.
    ///
    /// # Errors
    /// Those of [`Web::bind`].
    pub async fn bind_with(
        addr: SocketAddr,
        registry: Arc<Registry>,
        health: HealthSource,
        pages: Pages,
    ) -> io::Result<Web> {
        Self::serve(listen(addr).await?, registry, health, pages)
    }

    /// Serves a socket that is bound already. To be called within a runtime.
    ///
    /// # Errors
    /// The system refuses to make the socket non-blocking or to say its address.
    pub fn serve(
        listener: std::net::TcpListener,
        registry: Arc<Registry>,
        health: HealthSource,
        pages: Pages,
    ) -> io::Result<Web> {
        listener.set_nonblocking(true)?;
        let Pages { router: further, runtime, connections_max, watch, hosts, sources } = pages;
        let facts = Facts { health: health.clone(), sources };
        let runtime = runtime.unwrap_or_else(Handle::current);
        let listener = {
            // A socket is watched by the runtime in which it is made.
            let _within = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let local_addr = listener.local_addr()?;
        let router = Router::new()
            .route("/health", get(show_health))
            .route("/ready", get(show_ready))
            .route("/live", get(show_live))
            .route("/metrics", get(show_metrics))
            .with_state(Shared { registry, health })
            .merge(stacks::router())
            .merge(further.layer(Extension(facts.clone())))
            .fallback(not_here)
            // The last layer is the first to see a request: no page is without it.
            .layer(middleware::from_fn_with_state(Arc::new(hosts), hosts::check));
        let (stop, mut stopped) = watch::channel(false);
        let task = runtime.spawn(async move {
            let end = async move {
                // An error means that the handle is gone, which ends the server as well.
                let _ = stopped.wait_for(|stop| *stop).await;
            };
            let watching = async move {
                if let Some(watch) = watch {
                    watch(facts).await;
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                biased;
                () = end => {}
                () = connections::serve(listener, router, connections_max) => {}
                () = watching => {}
            }
        });
        Ok(Web { local_addr, stop, task })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Stops listening; requests under way are dropped.
    pub async fn shutdown(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

async fn show_health(State(shared): State<Shared>) -> impl IntoResponse {
    let health = (shared.health)();
    let status = if health.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{}\n", health.body()))
}

/// Says that the process answers, and asks nothing of the role. A program that restarts processes which do not answer asks here.
async fn show_live() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], "{\"live\":true}\n")
}

/// Answers a load balancer's question whether calls that come here are answered.
async fn show_ready(State(shared): State<Shared>) -> impl IntoResponse {
    let Health { ok, state, details, not_ready, cluster: _ } = (shared.health)();
    let reason = not_ready.or_else(|| (!ok).then(|| details.get("reason").cloned().unwrap_or_default()));
    let status = if reason.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = match reason {
        None => serde_json::json!({ "ready": true, "state": state }),
        Some(reason) => serde_json::json!({ "ready": false, "state": state, "reason": reason }),
    };
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n"))
}

async fn show_metrics(State(shared): State<Shared>, headers: HeaderMap) -> impl IntoResponse {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    match exposition::show(&shared.registry, accept) {
        Ok((kind, text)) => (StatusCode::OK, [(header::CONTENT_TYPE, kind)], text),
        Err(error) => {
            let kind = "text/plain; charset=utf-8";
            (StatusCode::INTERNAL_SERVER_ERROR, [(header::CONTENT_TYPE, kind)], error.to_string())
        }
    }
}

async fn not_here() -> impl IntoResponse {
    (StatusCode::NOT_FOUND, "There is no such page; /live, /health, /ready and /metrics are here.\n")
}

#[cfg(test)]
mod tests;
