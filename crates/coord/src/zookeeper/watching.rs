//! Looks after one node: tells when it has changed, whatever happened to the connection meanwhile.

use super::session::Session;
use std::time::Duration;
use zookeeper_client::{EventType, Stat};

/// Before a look that failed is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// The ZooKeeper changes (zxid) that made a node and last wrote it; `None` if there is no node.
type Found = Option<(i64, i64)>;

/// Tells of each change, by whether the node is gone then. One-shot watches, made again after each event and
/// on each new connection: what happened in between shows in the node's numbers. A node that is there at the first look is
/// told of as well: it may have changed since the caller began to watch, and read it.
pub async fn look_after(session: &Session, path: &str, tell: impl Fn(bool)) {
    let mut known: Option<Found> = None;
    loop {
        let link = session.link().await;
        let (stat, watcher) = match link.client.check_and_watch_stat(path).await {
            Ok(found) => found,
            Err(_) => {
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        let found: Found = stat.map(|stat: Stat| (stat.czxid, stat.mzxid));
        if known.map_or(found.is_some(), |known| known != found) {
            tell(found.is_none());
        }
        known = Some(found);
        let event = tokio::select! {
            event = watcher.changed() => event,
            () = session.next_link(link.turn) => continue,
        };
        // Told before it is looked at again, which takes a round trip. The event carries the number of its
        // change, so that it is not told twice.
        let after = match (event.event_type, found) {
            (EventType::NodeDeleted, _) => None,
            (EventType::NodeCreated, _) => Some((event.zxid, event.zxid)),
            (EventType::NodeDataChanged, Some((made, _))) => Some((made, event.zxid)),
            _ => continue,
        };
        tell(after.is_none());
        known = Some(after);
    }
}
