//! A metadata server from its first start to its end, restarts within the process included.

use crate::{Ended, MetaConfig, MetaServer, StartError, waiting_room};
use env::Env;
use std::{future::Future, time::Duration};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum RunError {
    #[error("the metadata server could not be started")]
    Start(#[from] StartError),
    #[error("the metadata server has failed: {0}")]
    Failed(String),
}

/// Before a server is started again; longer from time to time if it does not last.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(5_000);

/// Runs a server until `stop` resolves, and starts it again in this process whenever it asks for that.
/// `started` sees each one.
///
/// # Errors
/// [`RunError::Start`] if a server cannot be started, within some tries if the one before has not let go of its store
/// yet; [`RunError::Failed`] if one has failed for good.
pub async fn run(
    env: Env,
    config: MetaConfig,
    stop: impl Future<Output = ()>,
    mut started: impl FnMut(&MetaServer),
) -> Result<(), RunError> {
    let mut stop = std::pin::pin!(stop);
    let mut pause = PAUSE_MIN;
    let mut tries = FIRST_TRIES;
    loop {
        let began = env.clock.moment();
        let server = tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            server = start(&env, &config, tries) => server?,
        };
        tries = TRIES;
        started(&server);
        tokio::select! {
            biased;
            ended = server.ended() => {
                server.shutdown().await;
                match ended {
                    Ended::Failed(reason) => return Err(RunError::Failed(reason)),
                    Ended::Restart(reason) => tracing::warn!(reason, "the metadata server starts again"),
                }
                let lived_ms = env.clock.moment().ms_since(began);
                pause = if lived_ms > 60_000 { PAUSE_MIN } else { (2 * pause).min(PAUSE_MAX) };
                tokio::time::sleep(pause).await;
            }
            () = &mut stop => {
                server.shutdown().await;
                return Ok(());
            }
        }
    }
}

/// How often a store in use is tried again by the process that used it itself.
pub(crate) const TRIES: u32 = 200;
/// And by a new one: a killed process of many gigabytes may not be gone yet, but another server in this directory
/// is to be told soon.
const FIRST_TRIES: u32 = 20;

/// Waits for the server before to let go of its store: a call may still be on its way out of it.
pub(crate) async fn start(env: &Env, config: &MetaConfig, tries: u32) -> Result<MetaServer, StartError> {
    let mut tried = 0;
    loop {
        match MetaServer::start(env.clone(), config.clone()).await {
            Err(error) if error.is_in_use() && tried < tries => {
                tried += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => waiting_room::wait(env, config, error.into_waiting()?).await?,
            Ok(server) => return Ok(server),
        }
    }
}
