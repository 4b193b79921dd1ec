//! A coordinator out of reach is no failure, but whoever watches a server must see it: nobody could take over.

#[path = "lone/mod.rs"]
mod lone;

use base::{Epoch, GroupId, GroupView, MemberId, MemberLife};
use coord::{
    Basis, ChangeError, Coordinator, Done, Event, MemberRecord, ReadError, Version, Versioned, Watch,
};
use env::Env;
use metad::{CoordinatorConfig, GroupConfig, MetaConfig, MetaServer};
use prost::Message;
use proto::{clover::admin as p, protocol};
use rpc::{Client, ClientOptions};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A coordinator whose events a test may make up.
struct Moody {
    real: coord::Embedded,
    watches: Mutex<Vec<(GroupId, Watch)>>,
}

impl Moody {
    fn tell(&self, event: Event) {
        self.watches.lock().unwrap().iter().for_each(|(group, watch)| watch(*group, event));
    }
}

impl Coordinator for Moody {
    fn read(&self, group: GroupId, done: Done<Result<Option<Versioned>, ReadError>>) {
        self.real.read(group, done);
    }

    fn create(&self, group: GroupId, view: GroupView, done: Done<Result<Version, ChangeError>>) {
        self.real.create(group, view, done);
    }

    fn change(
        &self,
        group: GroupId,
        expected: Basis,
        view: GroupView,
        requires: &[MemberLife],
        done: Done<Result<Version, ChangeError>>,
    ) {
        self.real.change(group, expected, view, requires, done);
    }

    fn read_members(&self, group: GroupId, done: Done<Result<Vec<MemberRecord>, ReadError>>) {
        self.real.read_members(group, done);
    }

    fn write_member(&self, group: GroupId, record: MemberRecord, done: Done<Result<(), ChangeError>>) {
        self.real.write_member(group, record, done);
    }

    fn confirm(
        &self,
        group: GroupId,
        expected: Basis,
        member: MemberId,
        done: Done<Result<(), ChangeError>>,
    ) {
        self.real.confirm(group, expected, member, done);
    }

    fn hold_lock(&self, group: GroupId, member: MemberId, epoch: Epoch) {
        self.real.hold_lock(group, member, epoch);
    }

    fn release_lock(&self, group: GroupId) {
        self.real.release_lock(group);
    }

    fn read_cluster(&self, done: Done<Result<Option<Vec<u8>>, ReadError>>) {
        self.real.read_cluster(done);
    }

    fn create_cluster(&self, text: Vec<u8>, done: Done<Result<(), ChangeError>>) {
        self.real.create_cluster(text, done);
    }

    fn watch(&self, group: GroupId, watch: Watch) {
        self.watches.lock().unwrap().push((group, watch.clone()));
        self.real.watch(group, watch);
    }
}

async fn page(server: &MetaServer, path: &str) -> String {
    let mut connection = tokio::net::TcpStream::connect(server.http_address().unwrap()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn away_ms(server: &MetaServer) -> Option<u64> {
    let client = Client::connect(server.rpc_address(), protocol::ADMIN, "anybody", ClientOptions::default());
    let answer: p::GetGroupResponseProto =
        client.call("getGroup", &p::GetGroupRequestProto::default()).await.unwrap();
    answer.coordinator_away_ms
}

#[tokio::test(flavor = "multi_thread")]
async fn health_metrics_and_the_operators_see_that_the_coordinator_is_out_of_reach() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    let real = coord::Embedded::open(&env, &directory.path().join("coordinator")).unwrap();
    let coordinator = Arc::new(Moody { real, watches: Mutex::default() });
    let config = MetaConfig {
        group: GroupConfig {
            coordinator: CoordinatorConfig::Shared(coordinator.clone()),
            ..GroupConfig::default()
        },
        http_address: Some("127.0.0.1:0".parse().unwrap()),
        ..lone::config(&directory.path().join("name"))
    };
    metad::format(&env, &config.name_directory, None, config.rpc_address.ip(), &config.group).unwrap();
    let server = MetaServer::start(env, config).await.unwrap();
    const METRIC: &str = "\nclover_coordinator_out_of_reach ";
    for (event, is_away) in
        [(None, false), (Some(Event::Disconnected), true), (Some(Event::Connected), false)]
    {
        event.into_iter().for_each(|event| coordinator.tell(event));
        let health = page(&server, "/health").await;
        assert!(health.contains("200 OK"), "it goes on: {health}");
        assert_eq!(health.contains("coordinator_out_of_reach_ms"), is_away, "{health}");
        let expected = format!("{METRIC}{}\n", u8::from(is_away));
        assert!(page(&server, "/metrics").await.contains(&expected), "{expected}");
        assert_eq!(away_ms(&server).await.is_some(), is_away);
    }
    server.shutdown().await;
}

/// It could never join, and from then on it would be missed.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_its_view_for_itself_takes_no_second_one_in() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    let config = lone::config(&directory.path().join("name"));
    metad::format(&env, &config.name_directory, None, config.rpc_address.ip(), &config.group).unwrap();
    let server = MetaServer::start(env, config).await.unwrap();
    let client = Client::connect(server.rpc_address(), protocol::ADMIN, "alice", ClientOptions::default());
    let secret = metad::read_cluster(&Env::production(), &directory.path().join("name")).unwrap().secret;
    let request = p::AddMemberRequestProto { member: 2, in_sync_min: None };
    let challenge: p::ChallengeResponseProto =
        client.call("challenge", &p::ChallengeRequestProto {}).await.unwrap();
    let order = metad::prove_order(&secret.unwrap(), &challenge, "addMember", request.encode_to_vec().into());
    let refusal = client.call::<_, p::AddMemberResponseProto>("order", &order).await.unwrap_err();
    assert!(refusal.to_string().contains("coordinator = embedded"), "{refusal}");
    assert_eq!(server.replica().status().view.unwrap().0.members, [MemberId(1)]);
    server.shutdown().await;
}
