//! The client against metadata servers that play a script.

use base::{CallId, ClientId, FsError};
use client::{Config, Error, FileSystem};
use proto::{clover::admin, hdfs, protocol};
use rpc::{Call, Replier, Server, ServerConfig, Service};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

type Answer = dyn Fn(usize, &Call, Replier) + Send + Sync;

/// Answers each call with what `answer` says, and remembers how calls were named.
struct Script {
    answer: Box<Answer>,
    calls: Mutex<Vec<(ClientId, CallId, i32, &'static str)>>,
}

impl Service for Script {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(protocol::CLIENT_NAMENODE, 1), (protocol::ADMIN, 1)]
    }

    fn call(&self, call: Call, reply: Replier) {
        let mut calls = self.calls.lock().unwrap();
        let index = calls.len();
        calls.push((call.origin.client_id, call.origin.call_id, call.origin.retry_count, call.method));
        drop(calls);
        (self.answer)(index, &call, reply);
    }
}

fn serve(answer: impl Fn(usize, &Call, Replier) + Send + Sync + 'static) -> (Server, Arc<Script>) {
    let script = Arc::new(Script { answer: Box::new(answer), calls: Mutex::default() });
    let server = Server::bind(ServerConfig::new("127.0.0.1:0".parse().unwrap(), script.clone())).unwrap();
    (server, script)
}

fn service(servers: &[&Server]) -> FileSystem {
    let mut config = Config::new();
    let names: Vec<String> = (0..servers.len()).map(|index| format!("n{index}")).collect();
    config.set("dfs.nameservices", "ns");
    config.set("dfs.ha.namenodes.ns", &names.join(","));
    for (name, server) in names.iter().zip(servers) {
        config.set(&format!("dfs.namenode.rpc-address.ns.{name}"), &server.local_addr().to_string());
    }
    config.set("dfs.client.failover.sleep.base.millis", "1");
    config.set("dfs.client.failover.max.attempts", "4");
    FileSystem::connect("hdfs://ns", &config).unwrap()
}

fn made(reply: Replier) {
    reply.ok(&hdfs::MkdirsResponseProto { result: true });
}

#[tokio::test]
async fn a_standby_sends_the_same_call_on_to_the_active() {
    let (standby, standby_script) =
        serve(|_, _, reply| reply.fs_error(&FsError::NotActive("standby".into())));
    let (active, active_script) = serve(|_, _, reply| made(reply));
    let fs = service(&[&standby, &active]);
    fs.mkdirs("/a").await.unwrap();
    fs.mkdirs("/b").await.unwrap();

    let (first, second) = (standby_script.calls.lock().unwrap(), active_script.calls.lock().unwrap());
    // The second call goes to the active at once.
    assert_eq!((first.len(), second.len()), (1, 2));
    assert_eq!((first[0].0, first[0].1), (second[0].0, second[0].1), "one call has one name everywhere");
    assert_eq!((first[0].2, second[0].2), (0, 1));
    assert_ne!(second[0].1, second[1].1);
}

#[tokio::test]
async fn the_only_server_that_was_named_names_the_others_of_its_group() {
    let (active, active_script) = serve(|_, _, reply| made(reply));
    let told = active.local_addr().to_string();
    let (standby, standby_script) = serve(move |_, call, reply| match call.method {
        "getGroup" => {
            let member = |member: u32, rpc_address: &str| admin::MemberProto {
                member,
                rpc_address: Some(rpc_address.into()),
                ..Default::default()
            };
            // The first member in the list never answers. It is passed over.
            let members = vec![member(1, "127.0.0.1:1"), member(2, ""), member(3, &told)];
            let view = admin::ViewProto { active: Some(3), members: vec![1, 2, 3], ..Default::default() };
            reply.ok(&admin::GetGroupResponseProto {
                answered_by: 2,
                members,
                view: Some(view),
                ..Default::default()
            });
        }
        _ => reply.fs_error(&FsError::NotActive("nobody is heard of here".into())),
    });
    let fs = FileSystem::connect(&format!("hdfs://{}", standby.local_addr()), &Config::new()).unwrap();
    let began = Instant::now();
    fs.mkdirs("/a").await.unwrap();
    fs.mkdirs("/b").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let (first, second) = (standby_script.calls.lock().unwrap(), active_script.calls.lock().unwrap());
    assert_eq!(first.iter().map(|call| call.3).collect::<Vec<_>>(), ["mkdirs", "getGroup"]);
    assert_eq!(second.len(), 2, "the second call goes to the active at once");
    assert_eq!((first[0].0, first[0].1), (second[0].0, second[0].1), "one call has one name everywhere");
}

#[tokio::test]
async fn a_server_that_asks_for_patience_is_asked_again() {
    let (server, script) = serve(|index, _, reply| match index {
        0..2 => reply.fs_error(&FsError::Retry("safe mode".into())),
        _ => made(reply),
    });
    service(&[&server]).mkdirs("/a").await.unwrap();
    assert_eq!(script.calls.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn patience_and_standbys_have_an_end() {
    let (server, script) = serve(|_, _, reply| reply.fs_error(&FsError::NotActive("never".into())));
    let error = service(&[&server]).mkdirs("/a").await.unwrap_err();
    assert!(matches!(error, Error::Fs(FsError::NotActive(_))), "{error}");
    let calls = script.calls.lock().unwrap();
    // It was asked for the others of its group once.
    assert_eq!((calls.iter().filter(|call| call.3 == "mkdirs").count(), calls.len()), (5, 6));
}

#[tokio::test]
async fn nobody_at_home_is_told_with_the_addresses_tried() {
    let mut config = Config::new();
    config.set("dfs.client.failover.max.attempts", "1");
    // A port that was free a moment ago.
    let (server, _) = serve(|_, _, reply| made(reply));
    let address = server.local_addr();
    server.shutdown().await;
    let fs = FileSystem::connect(&format!("hdfs://{address}"), &config).unwrap();
    let error = fs.mkdirs("/a").await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn refusals_keep_their_meaning() {
    let (server, _) =
        serve(|_, _, reply| reply.fs_error(&FsError::AccessDenied("Permission denied: x".into())));
    let error = service(&[&server]).mkdirs("/a").await.unwrap_err();
    assert!(error.is_access_denied());
    assert_eq!(error.to_string(), "Permission denied: x");
}

fn entry(name: &str) -> hdfs::HdfsFileStatusProto {
    hdfs::HdfsFileStatusProto {
        file_type: hdfs::hdfs_file_status_proto::FileType::IsFile as i32,
        path: name.to_owned().into(),
        permission: hdfs::FsPermissionProto { perm: 0o644 },
        ..Default::default()
    }
}

fn page(names: &[&str], remaining: u32) -> hdfs::GetListingResponseProto {
    let partial_listing = names.iter().map(|name| entry(name)).collect();
    let dir_list = Some(hdfs::DirectoryListingProto { partial_listing, remaining_entries: remaining });
    hdfs::GetListingResponseProto { dir_list }
}

#[tokio::test]
async fn a_listing_goes_on_after_the_last_name_of_each_page() {
    let (server, _) = serve(|_, call, reply| {
        let request: hdfs::GetListingRequestProto = call.decode().unwrap();
        match &request.start_after[..] {
            b"" => reply.ok(&page(&["a", "b"], 1)),
            b"b" => reply.ok(&page(&["c"], 0)),
            other => panic!("asked after {other:?}"),
        }
    });
    let entries = service(&[&server]).list("/d").collect().await.unwrap();
    let paths: Vec<_> = entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["/d/a", "/d/b", "/d/c"]);
}

#[tokio::test]
async fn a_listing_that_does_not_move_on_is_refused() {
    for names in [&["a"][..], &[]] {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let (server, _) = serve(move |_, _, reply| {
            reply.ok(&page(&names.iter().map(String::as_str).collect::<Vec<_>>(), 1));
        });
        let error = service(&[&server]).list("/d").collect().await.unwrap_err();
        assert!(matches!(error, Error::Nonsense { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_not_an_empty_one() {
    let (server, _) = serve(|_, _, reply| reply.ok(&hdfs::GetListingResponseProto { dir_list: None }));
    let error = service(&[&server]).list("/d").next().await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

fn defaults(reply: Replier) {
    let server_defaults = hdfs::FsServerDefaultsProto {
        block_size: 1 << 20,
        bytes_per_checksum: 512,
        write_packet_size: 65_536,
        replication: 1,
        ..Default::default()
    };
    reply.ok(&hdfs::GetServerDefaultsResponseProto { server_defaults });
}

fn created(reply: Replier) {
    let mut status = entry("");
    (status.file_id, status.blocksize) = (Some(16_386), Some(1 << 20));
    reply.ok(&hdfs::CreateResponseProto { fs: Some(status) });
}

#[tokio::test]
async fn closing_asks_again_until_the_last_block_is_there() {
    let (server, script) = serve(|index, call, reply| match call.method {
        "getServerDefaults" => defaults(reply),
        "create" => created(reply),
        "complete" => reply.ok(&hdfs::CompleteResponseProto { result: index > 4 }),
        other => panic!("{other} is not called"),
    });
    let writer = service(&[&server]).create("/f", &Default::default()).await.unwrap();
    writer.close().await.unwrap();
    assert_eq!(script.calls.lock().unwrap().iter().filter(|call| call.3 == "complete").count(), 4);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_left_out_of_the_next_pipeline() {
    // Two ports where nobody listens.
    let closed: Vec<u32> = (0..2)
        .map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().into())
        .collect();
    let excluded: Arc<Mutex<Vec<Vec<u32>>>> = Arc::default();
    let seen = excluded.clone();
    let (server, script) = serve(move |_, call, reply| match call.method {
        "getServerDefaults" => defaults(reply),
        "create" => created(reply),
        "abandonBlock" => reply.ok(&hdfs::AbandonBlockResponseProto {}),
        "addBlock" => {
            let request: hdfs::AddBlockRequestProto = call.decode().unwrap();
            let mut seen = seen.lock().unwrap();
            seen.push(request.exclude_nodes.iter().map(|node| node.id.xfer_port).collect());
            match closed.get(seen.len() - 1) {
                Some(port) => reply.ok(&hdfs::AddBlockResponseProto { block: block_at(*port) }),
                None => reply.fs_error(&FsError::Io(
                    "could only be written to 0 of the 1 minReplication nodes".into(),
                )),
            }
        }
        other => panic!("{other} is not called"),
    });
    let mut writer = service(&[&server]).create("/f", &Default::default()).await.unwrap();
    let error = writer.write(b"x").await.unwrap_err();
    assert!(error.to_string().contains("minReplication"), "{error}");
    let excluded = excluded.lock().unwrap();
    assert_eq!(excluded.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 2]);
    let methods: Vec<_> = script.calls.lock().unwrap().iter().map(|call| call.3).collect();
    assert_eq!(methods[2..], ["addBlock", "abandonBlock", "addBlock", "abandonBlock", "addBlock"]);
}

/// The server may have taken the append up and only its answer be lost: the block is not what it was.
#[tokio::test]
async fn a_file_that_cannot_be_appended_to_is_closed_by_its_servers_and_not_by_the_client() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let last = move || {
        let mut last = block_at(closed.into());
        last.b.num_bytes = Some(300);
        last
    };
    let (server, script) = serve(move |_, call, reply| match call.method {
        "getServerDefaults" => defaults(reply),
        "append" => {
            let mut stat = entry("");
            (stat.file_id, stat.blocksize, stat.length) = (Some(16_386), Some(1 << 20), 300);
            reply.ok(&hdfs::AppendResponseProto { block: Some(last()), stat: Some(stat) });
        }
        "updateBlockForPipeline" => {
            let mut block = last();
            block.b.generation_stamp += 1;
            reply.ok(&hdfs::UpdateBlockForPipelineResponseProto { block });
        }
        "getAdditionalDatanode" => reply.fs_error(&FsError::Io("there is no other".into())),
        "recoverLease" => {
            let request: hdfs::RecoverLeaseRequestProto = call.decode().unwrap();
            assert_eq!(request.src, "/f");
            reply.ok(&hdfs::RecoverLeaseResponseProto { result: false });
        }
        other => panic!("{other} is not called"),
    });
    assert!(service(&[&server]).append("/f", false).await.is_err());
    assert_eq!(script.calls.lock().unwrap().last().map(|call| call.3), Some("recoverLease"));
}

fn block_at(port: u32) -> hdfs::LocatedBlockProto {
    let id = hdfs::DatanodeIdProto {
        ip_addr: "127.0.0.1".into(),
        host_name: "localhost".into(),
        datanode_uuid: format!("uuid-{port}"),
        xfer_port: port,
        ..Default::default()
    };
    hdfs::LocatedBlockProto {
        b: hdfs::ExtendedBlockProto {
            pool_id: "BP-1".into(),
            block_id: 1_073_741_825,
            generation_stamp: 1_001,
            num_bytes: None,
        },
        locs: vec![hdfs::DatanodeInfoProto { id, ..Default::default() }],
        storage_types: vec![hdfs::StorageTypeProto::Disk as i32],
        storage_i_ds: vec!["DS-1".into()],
        ..Default::default()
    }
}
