//! A client that watches the namespace is told each committed change once, also when another member takes over.

mod cluster;

use bytes::Bytes;
use cluster::{Cluster, Plan, refusal, refused, two::Two, until};
use prost::Message;
use proto::{
    exception::{ACCESS_CONTROL, UNSUPPORTED_OPERATION},
    hdfs as p, protocol,
};
use rpc::Client;

/// Asks as `DFSInotifyEventInputStream` does.
struct Stream {
    client: Client,
    last: i64,
    /// The first entry that could be told where an earlier one was asked for, each time.
    missing: Vec<i64>,
    told: Vec<(i64, String)>,
}

impl Stream {
    async fn begin(client: Client) -> Self {
        let current: p::GetCurrentEditLogTxidResponseProto =
            client.call("getCurrentEditLogTxid", &p::GetCurrentEditLogTxidRequestProto {}).await.unwrap();
        Self { client, last: current.txid, missing: Vec::new(), told: Vec::new() }
    }

    async fn ask(&self, txid: i64) -> p::EventsListProto {
        let request = p::GetEditsFromTxidRequestProto { txid };
        let answer: p::GetEditsFromTxidResponseProto =
            self.client.call("getEditsFromTxid", &request).await.unwrap();
        answer.events_list
    }

    /// False: nothing is to be told at present.
    async fn poll(&mut self) -> bool {
        let list = self.ask(self.last + 1).await;
        if list.last_txid == -1 {
            assert_eq!((list.first_txid, list.batch.len()), (-1, 0));
            return false;
        }
        assert!(list.last_txid <= list.sync_txid);
        if list.first_txid != self.last + 1 {
            self.missing.push(list.first_txid);
        }
        for batch in list.batch {
            assert!((list.first_txid..=list.last_txid).contains(&batch.txid));
            for event in batch.events {
                self.told.push((batch.txid, text(event)));
            }
        }
        self.last = list.last_txid;
        true
    }

    /// All that is told until the last event is this one.
    async fn until(&mut self, last: &str) -> Vec<String> {
        until(&format!("\"{last}\" is told"), async || {
            self.poll().await;
            self.told.last().is_some_and(|(_, text)| text == last)
        })
        .await;
        std::mem::take(&mut self.told).into_iter().map(|(_, text)| text).collect()
    }
}

fn text(event: p::EventProto) -> String {
    fn read<M: Message + Default>(contents: Bytes) -> M {
        M::decode(contents).unwrap()
    }
    match event.r#type() {
        p::EventType::EventCreate => {
            let it: p::CreateEventProto = read(event.contents);
            format!("create {}", it.path)
        }
        p::EventType::EventRename => {
            let it: p::RenameEventProto = read(event.contents);
            format!("rename {} {}", it.src_path, it.dest_path)
        }
        p::EventType::EventUnlink => {
            let it: p::UnlinkEventProto = read(event.contents);
            format!("unlink {}", it.path)
        }
        p::EventType::EventClose => {
            let it: p::CloseEventProto = read(event.contents);
            format!("close {} {}", it.path, it.file_size)
        }
        p::EventType::EventMetadata => {
            let it: p::MetadataUpdateEventProto = read(event.contents);
            format!("update {} {:?}", it.path, it.r#type())
        }
        other => panic!("{other:?}"),
    }
}

async fn write(client: &Client, path: &str) {
    let created: p::CreateResponseProto =
        client.call("create", &cluster::files::create_request(path, "writer")).await.unwrap();
    let request = p::CompleteRequestProto {
        src: path.into(),
        client_name: "writer".into(),
        file_id: created.fs.map(|status| status.file_id()),
        last: None,
    };
    let closed: p::CompleteResponseProto = client.call("complete", &request).await.unwrap();
    assert!(closed.result);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_the_present_and_tells_each_change_in_order() {
    let mut cluster = Cluster::alone().await;
    cluster.mkdirs(1, "/before").await;
    let mut stream = Stream::begin(cluster.client(1)).await;
    assert!(!stream.poll().await);
    let client = cluster.client(1);
    cluster.mkdirs(1, "/a/b").await;
    write(&client, "/a/f").await;
    let rename = p::RenameRequestProto { src: "/a/f".into(), dst: "/a/b".into() };
    let _: p::RenameResponseProto = client.call("rename", &rename).await.unwrap();
    let mode = p::FsPermissionProto { perm: 0o700 };
    let request = p::SetPermissionRequestProto { src: "/a".into(), permission: mode };
    let _: p::SetPermissionResponseProto = client.call("setPermission", &request).await.unwrap();
    let delete = p::DeleteRequestProto { src: "/a".into(), recursive: true };
    let _: p::DeleteResponseProto = client.call("delete", &delete).await.unwrap();
    let expected = [
        "create /a",
        "create /a/b",
        "create /a/f",
        "close /a/f 0",
        "rename /a/f /a/b/f",
        "update /a MetaTypePerms",
        "unlink /a",
    ];
    assert_eq!(stream.until("unlink /a").await, expected);
    assert_eq!(stream.missing, [0; 0]);
    // A second stream goes on anywhere.
    let list = stream.ask(stream.last - 1).await;
    assert_eq!((list.first_txid, list.last_txid), (stream.last - 1, stream.last));
    let list = stream.ask(1).await;
    assert!(list.first_txid > 1, "what was changed before the first question is missing, and that is said");
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_no_more_events_than_it_may_and_the_next_one_goes_on() {
    let mut cluster = Plan::alone().adjusted(|_, config| config.call_queue.events_max = 3).start().await;
    let mut stream = Stream::begin(cluster.client(1)).await;
    let names: Vec<_> = (0..8).map(|number| format!("/{number}")).collect();
    for name in &names {
        cluster.mkdirs(1, name).await;
    }
    let list = stream.ask(stream.last + 1).await;
    assert_eq!(list.batch.len(), 3);
    let expected: Vec<_> = names.iter().map(|name| format!("create {name}")).collect();
    assert_eq!(stream.until("create /7").await, expected);
    assert_eq!(stream.missing, [0; 0]);
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_superuser_may_watch() {
    let mut cluster = Cluster::alone().await;
    let bob = cluster.client_as(1, protocol::CLIENT_NAMENODE, "bob");
    let request = p::GetEditsFromTxidRequestProto { txid: 1 };
    let (class, _) = refusal(bob.call_encoded("getEditsFromTxid", &request.encode_to_vec()).await);
    assert_eq!(class, ACCESS_CONTROL);
    let (class, _) = refusal(bob.call_encoded("getCurrentEditLogTxid", &[]).await);
    assert_eq!(class, ACCESS_CONTROL);
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_behind_a_restart() {
    let mut cluster = Cluster::alone().await;
    cluster.mkdirs(1, "/before").await;
    let mut stream = Stream::begin(cluster.client(1)).await;
    let note = cluster.name_directory(1).join("watched");
    until("it is noted that a client watches", async || note.exists()).await;
    cluster.mkdirs(1, "/told").await;
    assert_eq!(stream.until("create /told").await, ["create /told"]);
    for round in 0..2 {
        let names: Vec<_> = (0..10).map(|number| format!("/{round}-{number}")).collect();
        for name in &names {
            cluster.mkdirs(1, name).await;
        }
        match round {
            0 => cluster.stop(1).await,
            _ => cluster.kill(1).await,
        }
        cluster.restart(1).await;
        stream.client = cluster.client(1);
        let after = format!("/{round}-after");
        cluster.mkdirs(1, &after).await;
        let expected: Vec<_> = names.iter().chain([&after]).map(|name| format!("create {name}")).collect();
        assert_eq!(stream.until(&format!("create {after}")).await, expected);
        assert_eq!(stream.missing, [0; 0]);
    }
    cluster.stop(1).await;
}

/// The standbys keep events as well, so the one that takes over goes on where the other ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_event_is_lost_or_told_twice_when_another_member_takes_over() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    cluster.mkdirs(first, "/before").await;
    let mut stream = Stream::begin(cluster.client(first)).await;
    cluster.mkdirs(first, "/told").await;
    assert_eq!(stream.until("create /told").await, ["create /told"]);
    for number in 0..20 {
        cluster.mkdirs(first, &format!("/{number}")).await;
    }
    cluster.kill(first).await;
    let second = cluster.wait_for_active(&[first]).await;
    stream.client = cluster.client(second);
    cluster.mkdirs(second, "/after").await;
    let mut expected: Vec<_> = (0..20).map(|number| format!("create /{number}")).collect();
    expected.push("create /after".into());
    assert_eq!(stream.until("create /after").await, expected);
    assert_eq!(stream.missing, [0; 0]);

    // A member that comes back hears of the stream, too.
    cluster.restart(first).await;
    cluster.wait_in_sync(second, 3).await;
    for number in 20..30 {
        cluster.mkdirs(second, &format!("/{number}")).await;
    }
    cluster.wait_until_equal().await;
    let others = cluster.others(second);
    cluster.kill(second).await;
    let third = cluster.wait_for_active(&[second]).await;
    assert!(others.contains(&third));
    stream.client = cluster.client(third);
    cluster.mkdirs(third, "/last").await;
    let mut expected: Vec<_> = (20..30).map(|number| format!("create /{number}")).collect();
    expected.push("create /last".into());
    assert_eq!(stream.until("create /last").await, expected);
    assert_eq!(stream.missing, [0; 0]);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_namespace_of_several_groups_cannot_be_watched_and_every_door_says_why() {
    let two = Two::start(1, "/d").await;
    for client in two.clients() {
        let answer: Result<p::GetEditsFromTxidResponseProto, _> =
            client.call("getEditsFromTxid", &p::GetEditsFromTxidRequestProto { txid: 1 }).await;
        let said = refused(answer, UNSUPPORTED_OPERATION);
        assert!(said.contains("this namespace has several"), "{said}");
        let current: p::GetCurrentEditLogTxidResponseProto =
            client.call("getCurrentEditLogTxid", &p::GetCurrentEditLogTxidRequestProto {}).await.unwrap();
        assert!(current.txid > 0);
    }
    two.end().await;
}
