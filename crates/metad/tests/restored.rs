//! The directories of all members are put back from a backup, and the coordinator is not.

mod cluster;

use cluster::{Cluster, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_restored_directories_are_kept_and_one_of_them_leads_by_order() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    for number in 0..20 {
        cluster.mkdirs(first, &format!("/kept/{number}")).await;
    }
    cluster.wait_until_equal().await;
    cluster.stop_all().await;
    cluster.members().for_each(|member| cluster.keep(member));
    cluster.restart_all().await;
    let second = cluster.wait_for_active(&[]).await;
    cluster.mkdirs(second, "/later").await;
    cluster.kill_all().await;
    cluster.members().for_each(|member| cluster.put_back(member));

    // Started again and again, nobody leads, and nobody gives up the only copies that there are.
    let mut ends = Vec::new();
    for _ in 0..2 {
        ends.clear();
        cluster.restart_all().await;
        // That nobody leads later either is told in simulated time, by `group`.
        let has_heard_all = |member| cluster.replica(member).status().known.len() >= 2;
        until("all have heard the others", async || cluster.members().all(has_heard_all)).await;
        for member in 1..=3 {
            let status = cluster.server(member).replica().status();
            assert!(
                !cluster.server(member).replica().is_serving(),
                "member {member} lacks what has committed"
            );
            assert_eq!(cluster.set_aside(member), [""; 0], "member {member}");
            assert!(!status.is_eligible, "member {member} is another than the coordinator knew");
            ends.push((status.end.id, member));
        }
        cluster.kill_all().await;
    }

    let (end, elected) = ends.into_iter().max().unwrap();
    assert!(end.sn.0 > 20, "the log was kept");
    cluster.restart(elected).await;
    cluster.elect(elected).await;
    for member in cluster.others(elected) {
        cluster.restart(member).await;
    }
    let active = cluster.wait_until_in_sync().await;
    assert_eq!(cluster.names(active, "/kept").await.len(), 20);
    assert_eq!(cluster.names(active, "/").await, ["kept"], "what came after the backup is lost");
    cluster.mkdirs(active, "/after").await;
    cluster.wait_until_equal().await;
    for member in 1..=3 {
        assert_eq!(cluster.set_aside(member), [""; 0], "nobody had to be renewed");
    }
    cluster.end().await;
}
