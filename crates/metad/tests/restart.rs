//! What a client was told survives a restart, with and without an image; over real sockets and a real disk.

mod lone;

use env::Env;
use metad::{MetaConfig, MetaServer};
use proto::hdfs as p;
use std::path::Path;

const SUPERUSER: &str = "alice";

fn config(directory: &Path) -> MetaConfig {
    MetaConfig { http_address: Some("127.0.0.1:0".parse().unwrap()), ..lone::config(directory) }
}

async fn start(directory: &Path) -> (MetaServer, rpc::Client) {
    let server = MetaServer::start(Env::production(), config(directory)).await.unwrap();
    let client = rpc::Client::connect(
        server.rpc_address(),
        proto::protocol::CLIENT_NAMENODE,
        SUPERUSER,
        rpc::ClientOptions::default(),
    );
    (server, client)
}

async fn mkdirs(client: &rpc::Client, path: &str) -> bool {
    let request = p::MkdirsRequestProto {
        src: path.into(),
        masked: p::FsPermissionProto { perm: 0o755 },
        create_parent: true,
        unmasked: None,
    };
    let response: p::MkdirsResponseProto = client.call("mkdirs", &request).await.unwrap();
    response.result
}

async fn names(client: &rpc::Client, path: &str) -> Vec<String> {
    let request = p::GetListingRequestProto {
        src: path.into(),
        start_after: bytes::Bytes::new(),
        need_location: false,
    };
    let response: p::GetListingResponseProto = client.call("getListing", &request).await.unwrap();
    let listing = response.dir_list.expect("the directory is there");
    listing.partial_listing.iter().map(|entry| String::from_utf8(entry.path.to_vec()).unwrap()).collect()
}

fn format(directory: &Path) {
    metad::format(&Env::production(), directory, None, "127.0.0.1".parse().unwrap(), &Default::default())
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    format(directory.path());
    let (server, client) = start(directory.path()).await;
    assert!(mkdirs(&client, "/a/b").await);
    assert!(mkdirs(&client, "/a/c").await);
    assert_eq!(names(&client, "/a").await, ["b", "c"]);
    drop(client);
    server.shutdown().await;

    let (server, client) = start(directory.path()).await;
    assert_eq!(names(&client, "/a").await, ["b", "c"]);
    drop(client);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_and_the_journal_behind_it_make_the_same_tree() {
    let directory = tempfile::tempdir().unwrap();
    format(directory.path());
    let (server, client) = start(directory.path()).await;
    for number in 0..100 {
        assert!(mkdirs(&client, &format!("/before/{number:03}")).await);
    }
    set_safe_mode(&client, p::SafeModeActionProto::SafemodeEnter).await;
    let refused: Result<p::MkdirsResponseProto, _> = client
        .call(
            "mkdirs",
            &p::MkdirsRequestProto {
                src: "/refused".into(),
                masked: p::FsPermissionProto { perm: 0o755 },
                create_parent: true,
                unmasked: None,
            },
        )
        .await;
    assert!(refused.unwrap_err().class().unwrap().ends_with("SafeModeException"));
    let saved: p::SaveNamespaceResponseProto =
        client.call("saveNamespace", &p::SaveNamespaceRequestProto::default()).await.unwrap();
    assert_eq!(saved.saved, Some(true));
    set_safe_mode(&client, p::SafeModeActionProto::SafemodeLeave).await;
    assert!(mkdirs(&client, "/after").await);
    drop(client);
    server.shutdown().await;

    let (server, client) = start(directory.path()).await;
    assert_eq!(names(&client, "/").await, ["after", "before"]);
    assert_eq!(names(&client, "/before").await.len(), 100);
    drop(client);
    server.shutdown().await;
}

async fn set_safe_mode(client: &rpc::Client, action: p::SafeModeActionProto) {
    let request = p::SetSafeModeRequestProto { action: action as i32, checked: Some(false) };
    let _: p::SetSafeModeResponseProto = client.call("setSafeMode", &request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_sent_twice_has_one_effect_and_one_answer() {
    let directory = tempfile::tempdir().unwrap();
    format(directory.path());
    let (server, client) = start(directory.path()).await;
    assert!(mkdirs(&client, "/d").await);
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
    drop(client);
    server.shutdown().await;
}

/// As from the sockets of a server that was frozen: a stock client breaks on an answer without a status.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_repeated_after_its_file_was_deleted_is_told_of_the_file_that_it_made() {
    let directory = tempfile::tempdir().unwrap();
    format(directory.path());
    let (server, client) = start(directory.path()).await;
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
    assert_eq!(names(&client, "/d").await, Vec::<String>::new(), "it was not made again");
    drop(client);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_for_it_is_started_again_in_its_process_on_the_same_port() {
    let directory = tempfile::tempdir().unwrap();
    format(directory.path());
    let mut config = config(directory.path());
    config.rpc_address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (sender, mut started) = tokio::sync::mpsc::unbounded_channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(async move {
        let stop = async { drop(stopped.await) };
        let tell =
            move |server: &MetaServer| drop(sender.send((server.rpc_address(), server.replica().clone())));
        metad::run(Env::production(), config, stop, tell).await
    });
    let connect = |address| {
        let options = rpc::ClientOptions::default();
        rpc::Client::connect(address, proto::protocol::CLIENT_NAMENODE, SUPERUSER, options)
    };

    let (address, replica) = started.recv().await.unwrap();
    assert!(mkdirs(&connect(address), "/before").await);
    replica.restart("its memory is not what is on the disk");
    drop(replica);

    let (again, _) = started.recv().await.unwrap();
    assert_eq!(again, address);
    assert!(mkdirs(&connect(again), "/after").await);
    assert_eq!(names(&connect(again), "/").await, ["after", "before"]);
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

/// What the disk says while somebody looks at the member is left to whoever looks: it must not stay there until the
/// next change comes along, for a lone client waits for this one.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_answered_however_often_somebody_looks_at_the_group() {
    let directory = tempfile::tempdir().unwrap();
    format(directory.path());
    let (server, client) = start(directory.path()).await;
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let onlookers: Vec<_> = (0..2)
        .map(|_| {
            let (replica, is_over) = (server.replica().clone(), is_over.clone());
            std::thread::spawn(move || {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    replica.status();
                }
            })
        })
        .collect();
    for n in 0..200 {
        assert!(mkdirs(&client, &format!("/{n}")).await);
    }
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    onlookers.into_iter().for_each(|onlooker| onlooker.join().unwrap());
    drop(client);
    server.shutdown().await;
}
