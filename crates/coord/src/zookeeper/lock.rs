//! Holds a group's lock: an ephemeral node, made again in each session for as long as it is wanted.

use super::session::Session;
use std::time::Duration;
use tokio::sync::watch;
use zookeeper_client::Error;

/// Before an attempt that failed is made again.
const AGAIN: Duration = Duration::from_millis(200);

/// `wanted` is the node's text while the lock is wanted.
pub async fn keep(session: &Session, path: &str, mut wanted: watch::Receiver<Option<Vec<u8>>>) {
    // The node that this session has written. A node of another session is not ours.
    let mut written: Option<(u64, Vec<u8>)> = None;
    loop {
        let text = wanted.borrow_and_update().clone();
        let link = session.link().await;
        let (stat, watcher) = match link.client.check_and_watch_stat(path).await {
            Ok(found) => found,
            Err(_) => {
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        let is_ours = stat.is_some_and(|stat| stat.ephemeral_owner == link.client.session_id().0);
        let done = match (&text, stat) {
            (Some(text), None) => {
                let made = link.client.create(path, text, &session.ephemeral()).await;
                written = Some((link.turn, text.clone()));
                // The watch tells of what was just made, and the next look finds it well.
                made.map(drop)
            }
            (Some(text), Some(_)) if is_ours && written != Some((link.turn, text.clone())) => {
                let set = link.client.set_data(path, text, None).await;
                written = Some((link.turn, text.clone()));
                set.map(drop)
            }
            (None, Some(_)) if is_ours => link.client.delete(path, None).await,
            _ => Ok(()),
        };
        match done {
            Ok(()) | Err(Error::NodeExists) => {}
            // `NoNode`: it has just gone, or its group is not made yet; no watch tells of that.
            Err(error) => {
                tracing::debug!(path, %error, "the group's lock could not be written");
                written = None;
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        }
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() { return },
            _ = watcher.changed() => {}
            () = session.next_link(link.turn) => {}
        }
    }
}
