//! Three members in one process, over real sockets and real disks, with one coordinator between them.

mod cluster;

use cluster::Cluster;
use group::{Order, Role};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_the_active_has_acknowledged_all_members_have_and_another_goes_on_without_it() {
    let mut cluster = Cluster::start(3).await;
    let first = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(first, 3).await;
    for number in 0..50 {
        cluster.mkdirs(first, &format!("/before/{number}")).await;
    }
    cluster.wait_until_equal().await;

    let stopped = std::time::Instant::now();
    cluster.stop(first).await;
    let second = cluster.wait_for_active(&[first]).await;
    println!("serving again {} ms after the order to stop", stopped.elapsed().as_millis());
    for takeover in cluster.server(second).replica().status().last_takeovers {
        println!("{takeover:?}");
    }
    let mut names = cluster.names(second, "/before").await;
    names.sort_by_key(|name| name.parse::<u32>().unwrap());
    assert_eq!(names, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
    cluster.mkdirs(second, "/after").await;
    cluster.wait_until_equal().await;

    cluster.restart(first).await;
    cluster.wait_in_sync(second, 3).await;
    cluster.mkdirs(second, "/whole").await;
    cluster.wait_until_equal().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_group_is_handed_over_while_clients_write() {
    let cluster = Cluster::start(3).await;
    let first = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(first, 3).await;
    cluster.mkdirs(first, "/before").await;

    let (sender, answer) = tokio::sync::oneshot::channel();
    let done = Box::new(move |answer| drop(sender.send(answer)));
    cluster.server(first).replica().order(Order::HandOver { to: None }, done);
    println!("{:?}", answer.await.unwrap());
    let second = cluster.wait_for_active(&[first]).await;
    for takeover in cluster.server(second).replica().status().last_takeovers {
        println!("{takeover:?}");
    }
    cluster.mkdirs(second, "/after").await;
    cluster.wait_in_sync(second, 3).await;
    cluster.wait_until_equal().await;
    assert_eq!(cluster.server(first).replica().role(), Role::Following, "it goes on as a standby");
    assert!(cluster.server(first).replica().ended().borrow().is_none(), "nothing had to be built anew");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_that_was_stopped_as_a_whole_comes_back_with_everything() {
    let mut cluster = Cluster::start(3).await;
    let first = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(first, 3).await;
    cluster.mkdirs(first, "/kept").await;
    for member in 1..=3 {
        cluster.stop(member).await;
    }
    for member in 1..=3 {
        cluster.restart(member).await;
    }
    let active = cluster.wait_for_active(&[]).await;
    assert_eq!(cluster.names(active, "/").await, ["kept"]);
    cluster.wait_in_sync(active, 3).await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_alone_of_three_takes_no_writes() {
    let mut cluster = Cluster::start(3).await;
    let first = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(first, 3).await;
    cluster.mkdirs(first, "/kept").await;
    for member in (1..=3).filter(|member| *member != first) {
        cluster.stop(member).await;
    }
    let client = cluster.client(first);
    let refused = tokio::time::timeout(Duration::from_secs(3), cluster::try_mkdirs(&client, "/lost")).await;
    assert!(!matches!(refused, Ok(Ok(true))), "one copy is not enough to acknowledge: {refused:?}");
    let second = (1..=3).find(|member| *member != first).unwrap();
    cluster.restart(second).await;
    let active = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(active, 2).await;
    cluster.mkdirs(active, "/more").await;
    let names = cluster.names(active, "/").await;
    assert!(names.contains(&"kept".to_owned()) && names.contains(&"more".to_owned()), "{names:?}");
    cluster.end().await;
}
