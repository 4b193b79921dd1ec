//! Changes that a client was told of survive a restart, with and without an image; over real sockets and a real disk.

mod cluster;

use cluster::{Cluster, Plan, free_address, refused, set_safe_mode, try_mkdirs};
use proto::hdfs as p;

#[tokio::test(flavor = "multi_thread")]
async fn directories_survive_a_restart() {
    let mut cluster = Cluster::alone().await;
    cluster.mkdirs(1, "/a/b").await;
    cluster.mkdirs(1, "/a/c").await;
    for _ in 0..2 {
        assert_eq!(cluster.names(1, "/a").await, ["b", "c"]);
        cluster.stop(1).await;
        cluster.restart(1).await;
    }
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_and_the_journal_behind_it_make_the_same_tree() {
    let mut cluster = Cluster::alone().await;
    let client = cluster.client(1);
    for number in 0..100 {
        assert!(try_mkdirs(&client, &format!("/before/{number:03}")).await.unwrap());
    }
    set_safe_mode(&client, p::SafeModeActionProto::SafemodeEnter).await;
    refused(try_mkdirs(&client, "/refused").await, "SafeModeException");
    let saved: p::SaveNamespaceResponseProto =
        client.call("saveNamespace", &p::SaveNamespaceRequestProto::default()).await.unwrap();
    assert_eq!(saved.saved, Some(true));
    set_safe_mode(&client, p::SafeModeActionProto::SafemodeLeave).await;
    cluster.mkdirs(1, "/after").await;
    cluster.stop(1).await;
    cluster.restart(1).await;
    assert_eq!(cluster.names(1, "/").await, ["after", "before"]);
    assert_eq!(cluster.names(1, "/before").await.len(), 100);
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_sent_twice_has_one_effect_and_one_answer() {
    let mut cluster = Cluster::alone().await;
    let client = cluster.client(1);
    assert!(try_mkdirs(&client, "/d").await.unwrap());
    let identity = client.new_call();
    let request = p::DeleteRequestProto { src: "/d".into(), recursive: false };
    for _ in 0..2 {
        // Without the retry cache the second answer would be false: there is nothing left to delete.
        let response: p::DeleteResponseProto = client.call_as(identity, "delete", &request).await.unwrap();
        assert!(response.result);
    }
    let other = p::DeleteRequestProto { src: "/other".into(), recursive: false };
    let refused: Result<p::DeleteResponseProto, _> = client.call_as(identity, "delete", &other).await;
    assert!(refused.is_err(), "the same call id with another request");
    cluster.stop(1).await;
}

/// The repeated call stands for one that a frozen server finds in its sockets. Its answer needs a status: a stock
/// client breaks without one.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_repeated_after_its_file_was_deleted_is_told_of_the_file_that_it_made() {
    let mut cluster = Cluster::alone().await;
    let client = cluster.client(1);
    let identity = client.new_call();
    let request = p::CreateRequestProto {
        src: "/d/f".into(),
        masked: p::FsPermissionProto { perm: 0o640 },
        client_name: "writer".into(),
        create_flag: 1,
        create_parent: true,
        replication: 2,
        block_size: 1 << 20,
        ..Default::default()
    };
    let first: p::CreateResponseProto = client.call_as(identity, "create", &request).await.unwrap();
    let first = first.fs.expect("it was made");
    let delete = p::DeleteRequestProto { src: "/d/f".into(), recursive: false };
    let deleted: p::DeleteResponseProto = client.call("delete", &delete).await.unwrap();
    assert!(deleted.result);

    let again: p::CreateResponseProto = client.call_as(identity, "create", &request).await.unwrap();
    let again = again.fs.expect("the same file, though it is gone");
    let told = |fs: &p::HdfsFileStatusProto| p::HdfsFileStatusProto {
        modification_time: 0,
        access_time: 0,
        ..fs.clone()
    };
    assert_eq!(told(&again), told(&first));
    assert_eq!(cluster.names(1, "/d").await, Vec::<String>::new(), "it was not made again");
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_for_it_is_started_again_in_its_process_on_the_same_port() {
    let address = free_address();
    let plan = Plan::alone().adjusted(move |_, config| {
        config.rpc_address = address;
        config.http_address = Some("127.0.0.1:0".parse().unwrap());
    });
    let mut cluster = plan.run_as_processes().start().await;
    cluster.mkdirs(1, "/before").await;
    cluster.replica(1).restart("its memory is not what is on the disk");

    cluster.process(1).wait_for_start(2).await;
    assert_eq!(cluster.address(1), address);
    cluster.mkdirs(1, "/after").await;
    assert_eq!(cluster.names(1, "/").await, ["after", "before"]);
    cluster.stop(1).await;
}

/// While somebody looks at the member, news from the disk is left to that look. It must not stay there until the next
/// change comes along, because a lone client waits for this one.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_answered_however_often_somebody_looks_at_the_group() {
    let mut cluster = Cluster::alone().await;
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let onlookers: Vec<_> = (0..2)
        .map(|_| {
            let (replica, is_over) = (cluster.replica(1), is_over.clone());
            std::thread::spawn(move || {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    replica.status();
                }
            })
        })
        .collect();
    let client = cluster.client(1);
    for n in 0..200 {
        assert!(try_mkdirs(&client, &format!("/{n}")).await.unwrap());
    }
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    onlookers.into_iter().for_each(|onlooker| onlooker.join().unwrap());
    cluster.stop(1).await;
}
