//! Three members in one process, over real sockets and real disks, with one coordinator between them.

mod cluster;

use cluster::{
    Cluster,
    files::{files, numbered},
};
use group::{Order, Role};
use proto::{exception, hdfs as p};
use rpc::CallIdentity;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_the_active_has_acknowledged_all_members_have_and_another_goes_on_without_it() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    for number in 0..50 {
        cluster.mkdirs(first, &format!("/before/{number}")).await;
    }
    cluster.wait_until_equal().await;

    let stopped = std::time::Instant::now();
    cluster.kill(first).await;
    let second = cluster.wait_for_active(&[first]).await;
    println!("serving again {} ms after the active began to end", stopped.elapsed().as_millis());
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
    let (cluster, first) = Cluster::in_sync(3).await;
    cluster.mkdirs(first, "/before").await;

    println!("{:?}", cluster.say(first, Order::HandOver { to: None }).await);
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
    let (mut cluster, first) = Cluster::in_sync(3).await;
    cluster.mkdirs(first, "/kept").await;
    cluster.stop_all().await;
    cluster.restart_all().await;
    let active = cluster.wait_for_active(&[]).await;
    assert_eq!(cluster.names(active, "/").await, ["kept"]);
    cluster.wait_in_sync(active, 3).await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_alone_of_three_takes_no_writes() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
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

/// Whether the path exists; `None` if the member refuses to answer because of a change in doubt.
async fn look(cluster: &Cluster, member: u32, path: &str) -> Option<bool> {
    match cluster::exists(&cluster.client(member), path).await {
        Ok(found) => Some(found),
        Err(error) => {
            let class = error.class().unwrap_or_default().to_owned();
            assert_eq!(class, "org.apache.hadoop.ipc.RetriableException", "{error}");
            None
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_takes_over_alone_answers_what_is_certain_and_takes_nothing() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    cluster.mkdirs(first, "/kept/inside").await;
    cluster.wait_until_equal().await;
    let [second, third] = cluster.others(first)[..] else { panic!("they are three") };
    cluster.kill(first).await;
    cluster.kill(second).await;
    cluster.wait_for_reading(third).await;
    assert!(!cluster.server(third).replica().is_serving());
    assert_eq!(cluster.names(third, "/kept").await, ["inside"]);
    assert_eq!(look(&cluster, third, "/nothing").await, Some(false));
    let refused = cluster::try_mkdirs(&cluster.client(third), "/more").await.unwrap_err().to_string();
    assert!(refused.contains("RetriableException") && refused.contains("1 of the 2 copies"), "{refused}");

    cluster.restart(second).await;
    let active = cluster.wait_for_active(&[]).await;
    cluster.mkdirs(active, "/more").await;
    assert_eq!(cluster.names(active, "/").await, ["kept", "more"]);
    cluster.wait_in_sync(active, 2).await;
    cluster.wait_until_equal().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_takes_over_alone_does_not_tell_what_may_have_committed_or_not() {
    for _ in 0..5 {
        let (mut cluster, first) = Cluster::in_sync(3).await;
        cluster.mkdirs(first, "/kept/inside").await;
        // A change in a directory also shows in the listing of its parent, and no further up.
        cluster.mkdirs(first, "/changed/deep").await;
        cluster.wait_until_equal().await;
        let [second, third] = cluster.others(first)[..] else { panic!("they are three") };
        // The third one gets it, the second one does not, and then both who could tell are gone.
        cluster.cables.pull(second);
        let client = cluster.client(first);
        let call = tokio::spawn(async move { cluster::try_mkdirs(&client, "/changed/deep/in-doubt").await });
        tokio::time::sleep(Duration::from_millis(40)).await;
        cluster.kill_both(first, second).await;
        let acknowledged = matches!(call.await.unwrap(), Ok(true));
        cluster.wait_for_reading(third).await;
        let status = cluster.server(third).replica().status();
        let is_in_doubt = status.end.id.sn.0 > status.committed.0 + 1;
        let seen = look(&cluster, third, "/changed/deep/in-doubt").await;
        assert!(seen != Some(false) || !acknowledged, "what was acknowledged is not denied");
        assert_eq!(look(&cluster, third, "/kept/inside").await, Some(true));
        if is_in_doubt {
            assert_eq!(seen, None);
            assert_eq!(look(&cluster, third, "/changed/deep").await, None, "it has another child, or not");
            cluster.cables.plug_in(second);
            cluster.restart(second).await;
            let active = cluster.wait_for_active(&[]).await;
            let names = cluster.names(active, "/changed/deep").await;
            assert!(!acknowledged || names.contains(&"in-doubt".to_owned()), "{names:?}");
            cluster.wait_in_sync(active, 2).await;
            cluster.wait_until_equal().await;
            cluster.end().await;
            return;
        }
        // On a busy machine the second one was taken out first, and all that is there has committed.
        cluster.end().await;
    }
    panic!("nothing was in doubt in five tries");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_active_that_was_cut_off_gives_up_what_it_alone_had() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    cluster.mkdirs(first, "/before").await;
    cluster.wait_until_equal().await;

    cluster.cables.pull(first);
    let client = cluster.client(first);
    let lonely = tokio::spawn(async move { cluster::try_mkdirs(&client, "/lonely").await });
    let second = cluster.wait_for_active(&[first]).await;
    cluster.mkdirs(second, "/after").await;
    assert!(!cluster.server(first).replica().may_answer(), "nobody reads from a deposed active");

    cluster.cables.plug_in(first);
    let mut restarted = Vec::new();
    while restarted.is_empty() {
        restarted = cluster.tend().await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(restarted, [first], "its memory was ahead of the group");
    cluster.wait_in_sync(second, 3).await;
    cluster.wait_until_equal().await;
    println!("the lonely call: {:?}", lonely.await.unwrap());
    let names = cluster.names(second, "/").await;
    println!("{names:?}");
    assert!(names.contains(&"before".to_owned()) && names.contains(&"after".to_owned()), "{names:?}");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_that_was_acknowledged_is_lost_while_the_lead_goes_round() {
    let (mut cluster, _) = Cluster::in_sync(3).await;
    let writers: Vec<_> = (0..4).map(|writer| cluster.write_until_told(writer)).collect();
    for round in 0..3 {
        let active = cluster.wait_until_in_sync().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        if round == 1 {
            println!("{:?}", cluster.say(active, Order::HandOver { to: None }).await);
        } else {
            if round == 0 {
                cluster.kill(active).await
            } else {
                cluster.stop(active).await
            }
            cluster.wait_for_active(&[active]).await;
            cluster.restart(active).await;
        }
        cluster.tend().await;
    }
    cluster.say_stop();
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    println!("{} acknowledged", acknowledged.len());
    cluster.tend().await;
    let active = cluster.wait_until_in_sync().await;
    let mut names: std::collections::BTreeSet<String> = Default::default();
    for writer in 0..4 {
        names.extend(
            cluster
                .names(active, &format!("/{writer}"))
                .await
                .into_iter()
                .map(|name| format!("/{writer}/{name}")),
        );
    }
    for path in &acknowledged {
        assert!(names.contains(path), "{path} was acknowledged");
    }
    cluster.wait_until_equal().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_that_was_restored_from_a_copy_is_renewed_and_not_believed() {
    let (mut cluster, active) = Cluster::in_sync(3).await;
    let third = (1..=3).rev().find(|member| *member != active).unwrap();
    cluster.stop(third).await;
    cluster.keep(third);
    cluster.restart(third).await;
    cluster.wait_in_sync(active, 3).await;
    cluster.mkdirs(active, "/later").await;
    cluster.stop(third).await;

    cluster.put_back(third);
    cluster.restart(third).await;
    assert_eq!(cluster.server(third).replica().me().generation, 1, "a life of its own");
    cluster.wait_in_sync(active, 3).await;
    cluster.wait_until_equal().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_with_a_rotten_entry_is_repaired_with_the_others_copy_and_keeps_its_place() {
    let (mut cluster, active) = Cluster::in_sync(3).await;
    for number in 0..20 {
        cluster.mkdirs(active, &format!("/kept/{number}")).await;
    }
    let third = (1..=3).rev().find(|member| *member != active).unwrap();
    cluster.stop(third).await;
    // The first entry behind the head of the log, with many whole ones behind it: no torn tail.
    let log = cluster.store(third).join("log");
    let mut segments: Vec<_> = std::fs::read_dir(&log)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("spare"))
        .collect();
    segments.sort();
    let mut bytes = std::fs::read(&segments[0]).unwrap();
    bytes[4096 + 100] ^= 1;
    std::fs::write(&segments[0], bytes).unwrap();

    cluster.restart(third).await;
    assert_eq!(cluster.server(third).replica().me().generation, 0, "nothing was given up");
    cluster.wait_in_sync(active, 3).await;
    cluster.wait_until_equal().await;
    assert_eq!(cluster.names(third, "/kept").await.len(), 20);
    cluster.end().await;
}

/// A member may hold a call until it leads again, or its sockets may have it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_late_copy_of_a_call_that_an_earlier_active_has_refused_is_not_carried_out() {
    let (cluster, first) = Cluster::in_sync(3).await;
    let delete = p::DeleteRequestProto { src: "/made/later".into(), recursive: true };
    let deleted = async |member: u32, retry_count: i32| {
        let copy = CallIdentity { retry_count, ..numbered(7) };
        let answer = files(&cluster, member).call_as(copy, "delete", &delete).await;
        answer.map(|told: p::DeleteResponseProto| told.result)
    };
    assert!(!deleted(first, 1).await.unwrap(), "nothing is there");
    cluster.mkdirs(first, "/made/later").await;
    // The member that has told it remembers the answer.
    assert!(!deleted(first, 0).await.unwrap());

    println!("{:?}", cluster.say(first, Order::HandOver { to: None }).await);
    let second = cluster.wait_for_active(&[first]).await;
    // The next one has a note that it was told.
    let late = deleted(second, 0).await.unwrap_err();
    assert_eq!(late.class(), Some(exception::RETRIABLE), "{late}");
    assert_eq!(cluster.names(second, "/made").await, ["later"]);
    // A client that still waits for an answer asks once more.
    assert!(deleted(second, 2).await.unwrap());
    assert!(deleted(second, 0).await.unwrap(), "now the call has had its effect");
    cluster.wait_until_equal().await;
    cluster.end().await;
}
