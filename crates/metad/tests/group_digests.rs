//! Members compare at each checkpoint what they have made of the log. One of them begins with another tree than the others: its
//! configuration names another group of superusers, which is the group of the root.
//!
//! Who stops, who goes on, and which images count is told in `group`, in simulated time. Here a member with servers meets
//! it all once.

mod cluster;

use cluster::{Cluster, Plan, until};
use env::Env;
use group::StateDigest;
use journal::aside::{self, Aside};
use metad::{Ended, MetaConfig};
use std::time::Duration;

const EDITS_PER_IMAGE: u64 = 30;
/// The member that differs.
const WRONG: u32 = 3;

/// Images are made often, and the root of these members has another group.
fn with_another_root(wrong: &'static [u32]) -> impl Fn(u32, &mut MetaConfig) + Send + Sync {
    move |member, config| {
        if wrong.contains(&member) {
            config.limits.access.supergroup = "others".into();
        }
        config.edits_per_image = EDITS_PER_IMAGE;
    }
}

/// Enough edits for an image.
async fn write(cluster: &Cluster, name: &str) {
    for number in 0..=EDITS_PER_IMAGE {
        let active = cluster.wait_for_active(&[]).await;
        cluster.mkdirs(active, &format!("/{name}/{number}")).await;
    }
}

async fn ended(cluster: &Cluster) -> Ended {
    tokio::time::timeout(Duration::from_secs(30), cluster.server(WRONG).ended()).await.expect("it ends")
}

fn put_aside(cluster: &Cluster) -> Vec<Aside> {
    aside::list(&*Env::production().disk, &cluster.store(WRONG)).unwrap()
}

fn images(cluster: &Cluster, member: u32) -> usize {
    cluster.server(member).replica().journal().images().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_that_differs_is_renewed_and_ends_for_a_person_if_it_differs_again() {
    let plan = Plan::group(3).adjusted(with_another_root(&[WRONG]));
    let mut cluster = plan.in_sync().await.0;
    write(&cluster, "a").await;
    let Ended::Restart(reason) = ended(&cluster).await else { panic!("it starts again") };
    assert!(StateDigest::is_difference(&reason), "{reason}");
    assert!(reason.contains(&format!("on member {WRONG}, and ")), "{reason}");
    for other in cluster.others(WRONG) {
        assert!(cluster.server(other).replica().ended().borrow().is_none(), "member {other} goes on");
    }
    // Its configuration is as wrong as before. The log is still there from its first entry, so it makes the same tree.
    cluster.kill(WRONG).await;
    cluster.restart(WRONG).await;
    // Nothing of it is lost: its log, and what it had in memory.
    let kept = put_aside(&cluster);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0].reason.as_deref(), Some(reason.as_str()));
    assert!(kept[0].images >= 1 && kept[0].segments >= 1, "{kept:?}");
    write(&cluster, "b").await;
    let Ended::Failed(reason) = ended(&cluster).await else { panic!("nobody starts it again for nothing") };
    assert!(reason.contains("differs again"), "{reason}");
    assert_eq!(put_aside(&cluster).len(), 1, "nothing was given up a second time");

    // A person has found out what is wrong.
    cluster.adjust(with_another_root(&[]));
    cluster.kill(WRONG).await;
    cluster.restart(WRONG).await;
    let active = cluster.wait_until_in_sync().await;
    write(&cluster, "c").await;
    cluster.wait_until_equal().await;
    assert_eq!(cluster.names(active, "/a").await.len() as u64, EDITS_PER_IMAGE + 1);
    for member in 1..=3 {
        until("images are made and taken again", async || images(&cluster, member) > 0).await;
        until("they agree", async || cluster.server(member).replica().status().trouble.is_none()).await;
    }
    cluster.end().await;
}
