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
mod next;
pub(crate) mod outbound;
mod peer;
mod read;
mod receive;
mod refusal;
mod replace;
pub(crate) mod request;
mod segment;
mod shared;
mod short_circuit;
mod speak;
mod transfer;
pub(crate) mod waiting;
mod write;

#[cfg(test)]
mod tests;

use crate::state::State;
use admission::Admission;
use peer::Peer;
use rpc::streaming::Socket;
use std::{future::Future, io, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, UnixListener},
    task::JoinSet,
};

/// Accepts connections of the network until dropped; then every connection ends.
pub async fn serve(state: Arc<State>, listener: TcpListener) {
    let accept =
        async || listener.accept().await.map(|(socket, peer)| (Socket::from(socket), Peer::Network(peer)));
    serve_all(state, accept).await;
}

/// Accepts connections of this machine, like [`serve`].
pub async fn serve_local(state: Arc<State>, listener: UnixListener) {
    let accept = async || {
        let (socket, _) = listener.accept().await?;
        let peer = Peer::of(&socket);
        Ok((Socket::from(socket), peer))
    };
    serve_all(state, accept).await;
}

async fn serve_all<F>(state: Arc<State>, accept: impl Fn() -> F)
where
    F: Future<Output = io::Result<(Socket, Peer)>>,
{
    let mut connections = JoinSet::new();
    let mut admission = Admission::default();
    loop {
        tokio::select! {
            accepted = accept() => match accepted {
                Ok((socket, peer)) => match admission.admit(&state).await {
                    Some(guard) => {
                        let state = state.clone();
                        connections.spawn(async move {
                            let hold = connection::run(&state, socket, peer).await;
                            drop(guard);
                            // It is no transfer any more, and has a limit of its own.
                            if let Some(hold) = hold {
                                hold.wait().await;
                            }
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
