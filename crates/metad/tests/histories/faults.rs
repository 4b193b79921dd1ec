//! What becomes of the servers while histories are played.

use super::{
    cluster::{Cluster, two::Two},
    plan::Dice,
};
use group::Order;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Counts the beginnings and the ends of faults.
#[derive(Default)]
pub struct Weather(AtomicU64);

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Moment(u64);

impl Moment {
    /// A fault has begun that is not over.
    pub fn is_stormy(self) -> bool {
        self.0 % 2 == 1
    }
}

impl Weather {
    pub fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::SeqCst))
    }

    /// All members are in sync.
    pub async fn settle(two: &mut Two) {
        settled(&mut two.first).await;
        settled(&mut two.second).await;
    }

    /// Something happens to the actives of one group, or of both. Then all members are in sync again.
    pub async fn storm(&self, two: &mut Two, seed: u64) {
        let mut dice = Dice::of(seed);
        let groups = [&[1][..], &[2], &[1, 2]][dice.below(3) as usize];
        tokio::time::sleep(Duration::from_millis(dice.below(150))).await;
        let storms = self.0.fetch_add(1, Ordering::SeqCst) / 2;
        let mut clusters = members_of(two, groups);
        let mut actives = Vec::new();
        for cluster in &mut clusters {
            actives.push(settled(cluster).await);
        }
        let mut concerned = clusters.into_iter().zip(actives).collect::<Vec<_>>();
        let what = match storms % 3 {
            0 => {
                for (cluster, active) in &mut concerned {
                    cluster.kill(*active).await;
                }
                tokio::time::sleep(Duration::from_millis(1_500)).await;
                for (cluster, active) in &mut concerned {
                    cluster.restart(*active).await;
                }
                "were killed"
            }
            1 => {
                for (cluster, active) in &mut concerned {
                    // On a busy machine it may be none any more, or lead again.
                    let _ = cluster.say(*active, Order::HandOver { to: None }).await;
                }
                "handed over"
            }
            _ => {
                for (cluster, active) in &mut concerned {
                    cluster.cables.pull(*active);
                }
                for (cluster, active) in &mut concerned {
                    let active = *active;
                    let other_serves = move |cluster: &Cluster| cluster.active(&[active]).is_some();
                    cluster.tend_until("another one serves", other_serves).await;
                }
                tokio::time::sleep(Duration::from_millis(300)).await;
                for (cluster, active) in &mut concerned {
                    cluster.cables.plug_in(*active);
                }
                "were cut off from the other members"
            }
        };
        for (cluster, _) in &mut concerned {
            settled(cluster).await;
        }
        self.0.fetch_add(1, Ordering::SeqCst);
        println!("while seed {seed} was played: the actives of {groups:?} {what}");
    }
}

fn members_of<'a>(two: &'a mut Two, groups: &[u32]) -> Vec<&'a mut Cluster> {
    let clusters = [(1, &mut two.first), (2, &mut two.second)];
    clusters.into_iter().filter(|(group, _)| groups.contains(group)).map(|(_, cluster)| cluster).collect()
}

/// The active, once all members are in sync. Those that ask for it are started again, as their processes would be.
async fn settled(cluster: &mut Cluster) -> u32 {
    let count = cluster.members().count();
    loop {
        cluster.tend_until("all members are in sync", |cluster| cluster.is_in_sync(count)).await;
        if cluster.tend().await.is_empty() {
            return cluster.tend_until_active().await;
        }
    }
}
