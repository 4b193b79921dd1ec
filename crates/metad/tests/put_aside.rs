//! Stores that a member has put aside. If there is no room to put a second one aside, the member waits for a person;
//! and a person puts one back.

mod cluster;

use cluster::{Cluster, Process, free_address, page, until};
use env::Env;
use journal::aside;
use metad::MetaConfig;

fn kept(cluster: &Cluster, member: u32) -> Vec<u64> {
    let all = aside::list(&*Env::production().disk, &cluster.store(member)).unwrap();
    all.into_iter().map(|one| one.generation).collect()
}

async fn write(cluster: &Cluster, name: &str) {
    let active = cluster.wait_for_active(&[]).await;
    for number in 0..20 {
        cluster.mkdirs(active, &format!("/{name}/{number}")).await;
    }
}

/// A member that does not lead, and its whole group is in sync.
async fn standby(cluster: &Cluster) -> u32 {
    let active = cluster.wait_until_in_sync().await;
    cluster.others(active)[0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_second_time_without_room_waits_for_a_person_and_says_so() {
    let mut cluster = Cluster::start(3).await;
    write(&cluster, "a").await;
    let member = standby(&cluster).await;
    cluster.kill(member).await;
    journal::distrust(&cluster.env_of(member), &cluster.store(member), "the first time").unwrap();
    cluster.restart(member).await;
    let active = cluster.wait_until_in_sync().await;
    cluster.wait_until_equal().await;

    cluster.kill(member).await;
    journal::distrust(&cluster.env_of(member), &cluster.store(member), "the second time").unwrap();
    cluster.disk_of(member).set_full(true);
    let pages = free_address();
    let config =
        MetaConfig { http_address: Some(pages), rpc_address: free_address(), ..cluster.config(member) };
    let process = Process::begin(cluster.env_of(member), config);
    let mut said = String::new();
    until("it says that it waits", async || {
        said = page(pages, "/health").await.unwrap_or_default();
        said.contains("waiting")
    })
    .await;
    for part in ["clover meta aside list", "make room", "0 are free", "1 earlier ones are kept"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // The group goes on without it.
    write(&cluster, "b").await;
    assert!(process.starts() == 0 && !process.is_finished(), "it waits");
    assert_eq!(kept(&cluster, member).len(), 1);

    cluster.disk_of(member).set_full(false);
    // It goes on by itself.
    process.wait_for_start(1).await;
    cluster.wait_in_sync(active, 3).await;
    assert_eq!(kept(&cluster, member).len(), 2, "both are kept");
    process.stop().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_that_was_put_back_is_brought_up_to_date_by_the_active() {
    let mut cluster = Cluster::start(3).await;
    write(&cluster, "a").await;
    let member = standby(&cluster).await;
    cluster.wait_until_equal().await;
    cluster.kill(member).await;
    let (env, store) = (cluster.env_of(member), cluster.store(member));
    let number = journal::distrust(&env, &store, "in haste").unwrap();
    cluster.restart(member).await;
    write(&cluster, "b").await;
    let active = cluster.wait_until_in_sync().await;
    cluster.wait_until_equal().await;
    cluster.kill(member).await;
    write(&cluster, "c").await;

    let put_back = journal::restore(&env, &store, number).unwrap();
    assert_eq!((put_back.put_aside, put_back.generation), (Some(number + 1), number + 2));
    // Its cable is out, so that the active cannot bring it up to date before the test has looked.
    cluster.cables.pull(member);
    cluster.restart(member).await;
    let status = cluster.server(member).replica().status();
    assert_eq!(status.end.id, put_back.last.unwrap(), "it begins with what was put aside");
    assert!(!status.is_eligible);
    cluster.cables.plug_in(member);
    cluster.wait_in_sync(active, 3).await;
    cluster.wait_until_equal().await;
    assert_eq!(kept(&cluster, member), [number + 1]);
    cluster.end().await;
}
