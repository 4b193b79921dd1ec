//! The choice of connections that may stay when file descriptors run short.
//!
//! When there is none left for connections, those that have been idle for long are closed, strangers first, as
//! Hadoop's servers do beyond their idle threshold; a client connects again when it has something to say. A
//! connection that arrives meanwhile is closed at once. Its client then tries again, here or elsewhere, instead of
//! waiting for a server that does not hear it.

use super::{Shared, serve};
use crate::server::Outbox;
use env::descriptors::Place;
use std::{
    cmp::Reverse,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::net::TcpListener;

/// A connection that has said who calls may be idle for so long while descriptors are short. Hadoop's clients close
/// theirs after as long.
const IDLE: Duration = Duration::from_secs(10);

/// How long a connection may be idle before it has said who calls, when descriptors run short. A client that means it
/// says so at once.
const IDLE_STRANGER: Duration = Duration::from_secs(2);

/// How long a newcomer is kept waiting for those that are being closed.
const PATIENCE: Duration = Duration::from_millis(50);

/// One in so many connections is closed in one go, and at least one.
const CLOSED_AT_ONCE: usize = 64;

/// Between two looks at all connections, and two lines of the log.
const PERIOD: Duration = Duration::from_millis(1_000);

/// The pause when there is no descriptor left even to refuse with. Connections that close in the meantime make room.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);

pub async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let (mut looked, mut told) = (None, None);
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => match admit(&shared, &mut looked).await {
                Some(place) => drop(tokio::spawn(serve(stream, peer, Arc::clone(&shared), place))),
                None if is_due(&mut told) => {
                    let descriptors = &shared.descriptors;
                    tracing::warn!(
                        %peer,
                        connections = descriptors.taken(),
                        kept_back = descriptors.kept_back(),
                        refused_so_far = descriptors.refused(),
                        "a connection was closed at once: what is left of the file descriptors is for the journal; \
                         raise the limit (ulimit -n, LimitNOFILE)"
                    );
                }
                None => {}
            },
            Err(error) => {
                if is_due(&mut told) {
                    tracing::warn!(%error, "cannot accept a connection");
                }
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
            }
        }
    }
}

/// Whether so much time has passed since the last time that this was so.
fn is_due(last: &mut Option<Instant>) -> bool {
    let is_due = last.is_none_or(|last| last.elapsed() >= PERIOD);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}

async fn admit(shared: &Arc<Shared>, looked: &mut Option<Instant>) -> Option<Place> {
    if let Some(place) = shared.descriptors.take_quietly(1) {
        return Some(place);
    }
    // A look at all of them is not for each newcomer, or newcomers would keep the server busy.
    if is_due(looked) && close_idle(shared) > 0 {
        tokio::time::sleep(PATIENCE).await;
    }
    shared.descriptors.take(1)
}

/// Closes those that have been idle for longest: how many.
fn close_idle(shared: &Shared) -> usize {
    let now = Instant::now();
    let mut idle: Vec<(bool, Duration, Arc<Outbox>)> = Vec::new();
    let count = {
        let connections = shared.connections.lock();
        let Some(connections) = connections.as_ref() else { return 0 };
        for outbox in connections.values() {
            let Some((since, is_stranger)) = outbox.idle_since() else { continue };
            let idle_for = now.saturating_duration_since(since);
            if idle_for >= if is_stranger { IDLE_STRANGER } else { IDLE } {
                idle.push((is_stranger, idle_for, Arc::clone(outbox)));
            }
        }
        connections.len()
    };
    idle.sort_unstable_by_key(|(is_stranger, idle_for, _)| Reverse((*is_stranger, *idle_for)));
    idle.truncate((count / CLOSED_AT_ONCE).max(1));
    for (_, _, outbox) in &idle {
        outbox.shut();
    }
    if !idle.is_empty() {
        tracing::info!(
            closed = idle.len(),
            of = count,
            "idle connections are closed: file descriptors are short"
        );
    }
    idle.len()
}
