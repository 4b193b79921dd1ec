//! Members compare at each checkpoint what they have made of the log. One of them begins with another tree than the others: its
//! configuration names another group of superusers, which is the group of the root.

mod cluster;

use cluster::{Cluster, Plan, until};
use env::Env;
use group::{Agreement, Order, StateDigest};
use journal::aside::{self, Aside};
use metad::{Ended, MetaConfig};
use std::time::Duration;

const EDITS_PER_IMAGE: u64 = 30;

/// Images are made often, and the root of these members has another group.
fn with_another_root(wrong: &'static [u32]) -> impl Fn(u32, &mut MetaConfig) + Send + Sync {
    move |member, config| {
        if wrong.contains(&member) {
            config.limits.access.supergroup = "others".into();
        }
        config.edits_per_image = EDITS_PER_IMAGE;
    }
}

async fn begin(count: u32, wrong: &'static [u32]) -> Cluster {
    Plan::group(count).adjusted(with_another_root(wrong)).in_sync().await.0
}

/// Enough edits for an image.
async fn write(cluster: &Cluster, name: &str) {
    for number in 0..=EDITS_PER_IMAGE {
        let active = cluster.wait_for_active(&[]).await;
        cluster.mkdirs(active, &format!("/{name}/{number}")).await;
    }
}

async fn ended(cluster: &Cluster, member: u32) -> Ended {
    tokio::time::timeout(Duration::from_secs(30), cluster.server(member).ended()).await.expect("it ends")
}

fn put_aside(cluster: &Cluster, member: u32) -> Vec<Aside> {
    aside::list(&*Env::production().disk, &cluster.store(member)).unwrap()
}

fn images(cluster: &Cluster, member: u32) -> usize {
    cluster.server(member).replica().journal().images().len()
}

fn trouble(cluster: &Cluster, member: u32) -> String {
    cluster.server(member).replica().status().trouble.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_one_that_differs_from_two_stops_and_is_renewed_by_them() {
    // The lowest standby makes the images, and the third member none; then the one that leads.
    for (wrong, leads) in [(&[2u32], false), (&[3], false), (&[2], true)] {
        let member = wrong[0];
        let mut cluster = begin(3, wrong).await;
        let wanted = if leads { member } else { 1 };
        let active = cluster.wait_for_active(&[]).await;
        if active != wanted {
            let order = Order::HandOver { to: Some(base::MemberId(wanted)) };
            cluster.say(active, order).await.unwrap();
            until("the wanted one leads", async || cluster.server(wanted).replica().is_serving()).await;
            cluster.wait_in_sync(wanted, 3).await;
        }
        write(&cluster, "before").await;
        let Ended::Restart(reason) = ended(&cluster, member).await else { panic!("it starts again") };
        assert!(reason.starts_with(StateDigest::DIFFERENCE), "{reason}");
        assert!(reason.contains(&format!("on member {member}, and ")), "{reason}");
        for other in cluster.others(member) {
            assert!(cluster.server(other).replica().ended().borrow().is_none(), "member {other} goes on");
        }
        // Its memory was at fault, and is not any more.
        cluster.adjust(with_another_root(&[]));
        assert_eq!(cluster.tend().await, [member]);
        let active = cluster.wait_until_in_sync().await;
        write(&cluster, "after").await;
        cluster.wait_until_equal().await;
        assert_eq!(cluster.names(active, "/before").await.len() as u64, EDITS_PER_IMAGE + 1);
        // Nothing of it is lost: its log, and what it had in memory.
        let kept = put_aside(&cluster, member);
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(kept[0].reason.as_deref(), Some(reason.as_str()));
        assert!(kept[0].images >= 1 && kept[0].segments >= 1, "{kept:?}");
        for other in 1..=3 {
            until("images are made and taken again", async || images(&cluster, other) > 0).await;
            assert_eq!(trouble(&cluster, other), "");
        }
        cluster.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_that_differs_again_ends_for_a_person() {
    let mut cluster = begin(3, &[3]).await;
    write(&cluster, "a").await;
    assert!(matches!(ended(&cluster, 3).await, Ended::Restart(_)));
    // Its configuration is as wrong as before. The log is still there from its first entry, so it makes the same tree.
    cluster.kill(3).await;
    cluster.restart(3).await;
    write(&cluster, "b").await;
    let Ended::Failed(reason) = ended(&cluster, 3).await else {
        panic!("nobody starts it again for nothing")
    };
    assert!(reason.contains("differs again"), "{reason}");
    assert_eq!(put_aside(&cluster, 3).len(), 1, "nothing was given up a second time");
    write(&cluster, "c").await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_nobody_stops_nor_makes_images_until_they_agree() {
    let mut cluster = begin(2, &[2]).await;
    write(&cluster, "a").await;
    for member in [1, 2] {
        until("both say so", async || trouble(&cluster, member).starts_with(StateDigest::DIFFERENCE)).await;
        assert!(matches!(cluster.server(member).replica().agreement(), Agreement::Differs(_)));
    }
    // Changes go on, on both.
    write(&cluster, "b").await;
    let active = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(active, 2).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    for member in [1, 2] {
        assert_eq!(images(&cluster, member), 0, "no start goes by what may be wrong");
        assert!(cluster.server(member).replica().ended().borrow().is_none());
    }
    // Started again, member 2 makes the same of its log as member 1.
    cluster.adjust(with_another_root(&[]));
    cluster.kill(2).await;
    cluster.restart(2).await;
    for member in [1, 2] {
        until("they agree", async || trouble(&cluster, member).is_empty()).await;
    }
    write(&cluster, "c").await;
    cluster.wait_until_equal().await;
    for member in [1, 2] {
        until("images are made again", async || images(&cluster, member) > 0).await;
        assert_eq!(put_aside(&cluster, member), []);
    }
    cluster.end().await;
}
