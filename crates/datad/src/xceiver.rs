//! The transfer port: clients and other data servers write, read and copy blocks here.
//!
//! A connection is one task ([`connection`]). It takes one operation after the other; packets flow through it while
//! disk work, checksums included, runs on the volumes' threads ([`lane`] for writing, [`outbound`] for reading). The
//! machines of `pipeline` decide which message may come when.

mod admission;
mod checksum;
mod connection;
mod copy;
pub(crate) mod fill_room;
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
pub(crate) mod waiting;
mod write;

#[cfg(test)]
mod tests;

use crate::state::State;
use admission::Admission;
use std::{io, sync::Arc, time::Duration};
use tokio::{net::TcpListener, task::JoinSet};

/// Accepts connections until dropped; then every connection ends.
pub async fn serve(state: Arc<State>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    let mut admission = Admission::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => match admission.admit(&state).await {
                    Some(guard) => {
                        let state = state.clone();
                        connections.spawn(async move {
                            connection::run(&state, socket, peer).await;
                            drop(guard);
                        });
                    }
                    None => admission.tell_refusal(&state, peer),
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
