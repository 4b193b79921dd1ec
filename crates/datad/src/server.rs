//! A whole data server: opened, bound, registered.

use crate::{config::DataConfig, state::State};
use blockstore::OpenError;
use env::Env;
use std::{io, net::SocketAddr, sync::Arc};
use thiserror::Error;

/// Why a data server does not start.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("data directories: {0}")]
    Store(#[from] OpenError),
    #[error("{what} {addr}: {error}")]
    Bind { what: &'static str, addr: SocketAddr, error: io::Error },
    #[error("{0}")]
    Config(String),
}

/// A running data server; ends with [`DataServer::shutdown`].
pub struct DataServer {
    state: Arc<State>,
}

impl DataServer {
    /// Opens the data directories and binds all ports, then registers with the metadata servers in the
    /// background (retrying for ever): see [`DataServer::wait_registered`].
    pub async fn start(env: Env, config: DataConfig) -> Result<DataServer, StartError> {
        let _ = (env, config);
        todo!()
    }

    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    pub fn transfer_addr(&self) -> SocketAddr {
        self.state.identity.transfer_addr
    }

    pub fn ipc_addr(&self) -> SocketAddr {
        todo!()
    }

    pub fn http_addr(&self) -> SocketAddr {
        todo!()
    }

    /// Until one metadata server has this one registered and its first full block report; or the reason why
    /// it never will (another cluster, say).
    pub async fn wait_registered(&self) -> Result<(), String> {
        todo!()
    }

    /// Until the server ends by itself (a shutdown call, or a metadata server that refuses it for good).
    pub async fn wait_ended(&self) -> String {
        todo!()
    }

    pub async fn shutdown(self) {
        todo!()
    }
}
