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

    /// Something happens to the actives of one group, or of both.
    pub async fn storm(&self, two: &mut Two, seed: u64) {
        let mut dice = Dice::of(seed);
        let groups = [&[1][..], &[2], &[1, 2]][dice.below(3) as usize];
        let fault = dice.below(5);
        tokio::time::sleep(Duration::from_millis(dice.below(150))).await;
        self.0.fetch_add(1, Ordering::SeqCst);
        let what = match fault {
            0..2 => {
                two.kill_actives(groups).await;
                "were killed"
            }
            2..4 => {
                for cluster in members_of(two, groups) {
                    hand_over(cluster).await;
                }
                "handed over"
            }
            _ => {
                for cluster in members_of(two, groups) {
                    cut_off(cluster).await;
                }
                "were cut off from the other members"
            }
        };
        self.0.fetch_add(1, Ordering::SeqCst);
        println!("while seed {seed} was played: the actives of {groups:?} {what}");
    }
}

fn members_of<'a>(two: &'a mut Two, groups: &[u32]) -> Vec<&'a mut Cluster> {
    let clusters = [(1, &mut two.first), (2, &mut two.second)];
    clusters.into_iter().filter(|(group, _)| groups.contains(group)).map(|(_, cluster)| cluster).collect()
}

async fn hand_over(cluster: &mut Cluster) {
    let active = cluster.wait_until_in_sync().await;
    // It may be no active any more, on a busy machine.
    if cluster.say(active, Order::HandOver { to: None }).await.is_ok() {
        cluster.wait_for_active(&[active]).await;
    }
}

/// It goes on, until it notices that another one leads. Then it is back.
async fn cut_off(cluster: &mut Cluster) {
    let active = cluster.wait_until_in_sync().await;
    cluster.cables.pull(active);
    cluster.wait_for_active(&[active]).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    cluster.cables.plug_in(active);
    cluster.tend_until("all members are in sync", |cluster| cluster.is_in_sync(3)).await;
}
