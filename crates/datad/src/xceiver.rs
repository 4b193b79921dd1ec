//! The transfer port: clients and other data servers write, read and copy blocks here.
//!
//! A connection is one task ([`connection`]). It takes one operation after the other; packets flow through it while
//! disk work, checksums included, runs on the volumes' threads ([`lane`] for writing, [`outbound`] for reading). The
//! machines of `pipeline` decide which message may come when.

mod checksum;
mod connection;
mod copy;
mod lane;
mod mirror;
pub(crate) mod outbound;
mod read;
mod receive;
mod refusal;
mod replace;
pub(crate) mod request;
mod shared;
mod speak;
mod transfer;
mod write;

#[cfg(test)]
mod tests;

use crate::state::State;
use std::{io, sync::Arc, time::Duration};
use tokio::{net::TcpListener, task::JoinSet};

/// Accepts connections until dropped; then every connection ends.
pub async fn serve(state: Arc<State>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => match state.admit_transfer() {
                    Some(guard) => {
                        let state = state.clone();
                        connections.spawn(async move {
                            connection::run(&state, socket, peer).await;
                            drop(guard);
                        });
                    }
                    None => tracing::warn!(
                        %peer,
                        count = state.transfer_count(),
                        limit = state.config.transfer_count_max,
                        descriptors_taken = state.env.descriptors.taken(),
                        descriptors_limit = state.env.descriptors.connections_max(),
                        "a transfer connection was closed at once: there are as many as allowed \
                         (dfs.datanode.max.transfer.threads), or as file descriptors allow (ulimit -n, LimitNOFILE)"
                    ),
                },
                Err(error) => {
                    tracing::warn!(%error, "a transfer connection could not be accepted");
                    // Out of descriptors, most likely: the others must end first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Runs `job` on a thread of the volumes, where it may block.
pub(crate) async fn on_disk<T: Send + 'static>(
    state: &Arc<State>,
    lane: base::BlockId,
    job: impl FnOnce(&Arc<State>) -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, result) = tokio::sync::oneshot::channel();
    let owned = state.clone();
    state.volumes.threads().submit_any(lane.0, move || {
        let _ = sender.send(job(&owned));
    });
    result.await.map_err(|_| io::Error::other("the disk job was lost"))
}
