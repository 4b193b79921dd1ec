//! A metadata server from its first start to its end, restarts within the process included.

use crate::{MetaConfig, MetaServer, StartError};
use env::Env;
use std::{future::Future, time::Duration};
use thiserror::Error;

/// Why a running server can go on no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The process had better end: the reason, and what to do.
    Failed(String),
    /// What is in memory is not what is on the disk any more: the server is to be started again.
    Restart(String),
}

#[derive(Debug, Error)]
pub enum RunError {
    #[error("the metadata server could not be started")]
    Start(#[from] StartError),
    #[error("the metadata server has failed: {0}")]
    Failed(String),
}

/// Runs a server until `stop` resolves, and starts it again in this process whenever it asks for that.
/// `started` sees each one.
pub async fn run(
    env: Env,
    config: MetaConfig,
    stop: impl Future<Output = ()>,
    mut started: impl FnMut(&MetaServer),
) -> Result<(), RunError> {
    let mut stop = std::pin::pin!(stop);
    loop {
        let server = tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            server = start(&env, &config) => server?,
        };
        started(&server);
        tokio::select! {
            biased;
            ended = server.ended() => {
                server.shutdown().await;
                match ended {
                    Ended::Failed(reason) => return Err(RunError::Failed(reason)),
                    Ended::Restart(reason) => tracing::warn!(reason, "the metadata server starts again"),
                }
            }
            () = &mut stop => {
                server.shutdown().await;
                return Ok(());
            }
        }
    }
}

/// Waits for the server before to let go of its store: a call may still be on its way out of it.
async fn start(env: &Env, config: &MetaConfig) -> Result<MetaServer, StartError> {
    const TRIES: u32 = 200;
    let mut tries = 0;
    loop {
        match MetaServer::start(env.clone(), config.clone()).await {
            Err(error) if error.is_in_use() && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            answer => return answer,
        }
    }
}
