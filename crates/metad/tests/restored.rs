//! The directories of all members are put back from a backup, and the coordinator is not.

#[allow(dead_code, reason = "not every story needs all of it")]
mod cluster;

use cluster::Cluster;
use group::Order;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_restored_directories_are_kept_and_one_of_them_leads_by_order() {
    let mut cluster = Cluster::start(3).await;
    let first = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(first, 3).await;
    for number in 0..20 {
        cluster.mkdirs(first, &format!("/kept/{number}")).await;
    }
    cluster.wait_until_equal().await;
    for member in 1..=3 {
        cluster.stop(member).await;
    }
    let backup = |cluster: &Cluster, member| cluster.name_directory(member).with_extension("backup");
    for member in 1..=3 {
        cluster::copy(&cluster.name_directory(member), &backup(&cluster, member));
    }
    for member in 1..=3 {
        cluster.restart(member).await;
    }
    let second = cluster.wait_for_active(&[]).await;
    cluster.mkdirs(second, "/later").await;
    for member in 1..=3 {
        cluster.kill(member).await;
    }
    for member in 1..=3 {
        std::fs::remove_dir_all(cluster.name_directory(member)).unwrap();
        std::fs::rename(backup(&cluster, member), cluster.name_directory(member)).unwrap();
    }

    // Started again and again, nobody leads, and nobody gives up the only copies that there are.
    let mut ends = Vec::new();
    for _ in 0..2 {
        ends.clear();
        for member in 1..=3 {
            cluster.restart(member).await;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        for member in 1..=3 {
            let status = cluster.server(member).replica().status();
            assert!(
                !cluster.server(member).replica().is_serving(),
                "member {member} lacks what has committed"
            );
            assert_eq!(set_aside(&cluster, member), [""; 0], "member {member}");
            assert!(!status.is_eligible, "member {member} is another than the coordinator knew");
            ends.push((status.end.id, member));
        }
        for member in 1..=3 {
            cluster.kill(member).await;
        }
    }

    let (end, elected) = ends.into_iter().max().unwrap();
    assert!(end.sn.0 > 20, "the log was kept");
    cluster.restart(elected).await;
    elect(&cluster, elected).await;
    for member in (1..=3).filter(|member| *member != elected) {
        cluster.restart(member).await;
    }
    let active = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(active, 3).await;
    assert_eq!(cluster.names(active, "/kept").await.len(), 20);
    assert_eq!(cluster.names(active, "/").await, ["kept"], "what came after the backup is lost");
    cluster.mkdirs(active, "/after").await;
    cluster.wait_until_equal().await;
    for member in 1..=3 {
        assert_eq!(set_aside(&cluster, member), [""; 0], "nobody had to be renewed");
    }
    cluster.end().await;
}

/// It must have listened for a while before it believes that nobody leads.
async fn elect(cluster: &Cluster, member: u32) {
    let began = Instant::now();
    loop {
        let (sender, answer) = tokio::sync::oneshot::channel();
        let told = Box::new(move |answer| drop(sender.send(answer)));
        cluster.server(member).replica().order(Order::UncleanElect, told);
        match answer.await.unwrap() {
            Ok(_) => return,
            Err(reason) => assert!(began.elapsed() < Duration::from_secs(10), "{reason}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What was put aside in the store of this member.
fn set_aside(cluster: &Cluster, member: u32) -> Vec<String> {
    let names = std::fs::read_dir(cluster.name_directory(member).join("group-1")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("set-aside")).collect()
}
