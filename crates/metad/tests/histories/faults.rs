//! What becomes of the servers while histories are played.

use super::{
    cluster::{Cluster, two::Two},
    plan::Dice,
};
use group::Order;
use std::sync::atomic::{AtomicU64, Ordering};

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

    /// The actives of one group or both are killed, and start again, or hand over.
    pub async fn storm(&self, two: &mut Two, seed: u64) {
        let mut dice = Dice::of(seed);
        let groups = [&[1][..], &[2], &[1, 2]][dice.below(3) as usize];
        let is_kill = dice.below(2) == 0;
        tokio::time::sleep(std::time::Duration::from_millis(dice.below(150))).await;
        self.0.fetch_add(1, Ordering::SeqCst);
        if is_kill {
            two.kill_actives(groups).await;
        } else {
            for group in groups {
                hand_over(if *group == 1 { &two.first } else { &two.second }).await;
            }
        }
        println!(
            "after seed {seed}: the actives of {groups:?} {}",
            if is_kill { "were killed" } else { "handed over" }
        );
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

async fn hand_over(cluster: &Cluster) {
    let active = cluster.wait_until_in_sync().await;
    // It may be no active any more, on a busy machine.
    if cluster.say(active, Order::HandOver { to: None }).await.is_ok() {
        cluster.wait_for_active(&[active]).await;
    }
}
