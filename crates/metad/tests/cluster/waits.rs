//! Waiting for members to come to something, sooner or later.

use super::Cluster;
use metad::{GroupMember, MetaServer};
use std::time::{Duration, Instant};

/// Longer than anything takes here, on a busy machine too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until `is_so`.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn is_active(replica: &GroupMember) -> bool {
    replica.is_serving() && replica.may_answer()
}

fn in_sync(replica: &GroupMember) -> usize {
    replica.status().view.map_or(0, |(view, _)| view.in_sync.len())
}

impl Cluster {
    /// The member that serves, if it is not one of these.
    pub async fn wait_for_active(&self, but: &[u32]) -> u32 {
        self.wait_until("a member serves", |cluster| cluster.active(but)).await
    }

    /// The member that serves now, if it is not one of these.
    pub fn active(&self, but: &[u32]) -> Option<u32> {
        let serves = |member: &u32| {
            !but.contains(member) && self.look_at(*member).is_some_and(|replica| is_active(&replica))
        };
        self.members().find(serves)
    }

    /// The member leads with too few in sync, and answers what is certain.
    pub async fn wait_for_reading(&self, member: u32) {
        let is_reading = |cluster: &Self| cluster.server(member).replica().is_reading().then_some(());
        self.wait_until("it answers below the minimum", is_reading).await;
    }

    /// Waits until `count` members are in sync, as the active sees it.
    pub async fn wait_in_sync(&self, active: u32, count: usize) {
        self.wait_until("enough members are in sync", |cluster| {
            (in_sync(&cluster.look_at(active)?) == count).then_some(())
        })
        .await;
    }

    /// Whether so many members are in sync, as the active sees it.
    pub fn is_in_sync(&self, count: usize) -> bool {
        let active = self.active(&[]).and_then(|active| self.look_at(active));
        active.is_some_and(|active| in_sync(&active) == count)
    }

    /// Waits until all members are in sync, and returns the member that leads them.
    pub async fn wait_until_in_sync(&self) -> u32 {
        self.wait_until("all members are in sync", |cluster| {
            let active = cluster.active(&[])?;
            (in_sync(&cluster.look_at(active)?) == cluster.count as usize).then_some(active)
        })
        .await
    }

    /// All members that run have the same namespace.
    pub async fn wait_until_equal(&self) {
        self.wait_until("all members have applied the same", |cluster| {
            let mut digests: Vec<_> = cluster.servers.values().map(MetaServer::digest).collect();
            digests.dedup();
            (digests.len() == 1).then_some(())
        })
        .await;
    }

    /// Looks again and again until there is something to see, and tells how the members are if there is nothing for long.
    pub async fn wait_until<T>(&self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(seen) = look(self) {
                return seen;
            }
            if began.elapsed() > PATIENCE {
                for member in self.running() {
                    let status = self.look_at(member).map(|replica| replica.status());
                    eprintln!("{member}: {status:#?}");
                }
                for (member, server) in &self.servers {
                    let ended = server.replica().ended().borrow().clone();
                    eprintln!("{member}: {:?}, ended: {ended:?}", server.digest());
                }
                panic!("not within {PATIENCE:?}: {what}");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}
