//! Clients that call a server of another group than the one that answers: the server passes the call on.

mod cluster;

use base::{ClientId, GroupId};
use cluster::{
    Cluster, Plan, exists,
    files::{client_at, create_request, numbered, repeated},
    mkdirs_request, refused, try_mkdirs, until,
};
use metad::MetaConfig;
use proto::{clover::forward as f, common as ha, exception, hdfs as p, protocol};
use rpc::CallError;
use std::time::Instant;

const SECOND: GroupId = GroupId(2);
/// The first member of the second group.
const ELEVENTH: u32 = 11;

async fn two_groups(of_first: u32, of_second: u32) -> (Cluster, Cluster) {
    let (first, _) = Cluster::in_sync(of_first).await;
    let (second, _) = Plan::further_group(&first, SECOND, ELEVENTH, of_second).await.in_sync().await;
    (first, second)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_server_of_every_group_is_a_door() {
    let (first, second) = two_groups(2, 2).await;
    let mut made = Vec::new();
    for member in second.members() {
        let client = second.client(member);
        let path = format!("/by-{member}");
        assert!(try_mkdirs(&client, &path).await.unwrap());
        let file = create_request(&format!("{path}/f"), "DFSClient_door_1");
        let _: p::CreateResponseProto = client.call("create", &file).await.unwrap();
        made.push(path.trim_start_matches('/').to_owned());
        assert_eq!(second.names(member, &path).await, ["f"], "what the client has made, it sees");
        // An error comes back as the root group's active has said it.
        let again: Result<p::CreateResponseProto, CallError> = client.call("create", &file).await;
        refused(again, exception::ALREADY_BEING_CREATED);
    }
    for cluster in [&first, &second] {
        for member in cluster.members() {
            assert_eq!(cluster.names(member, "/").await, made);
        }
    }
    // Each server answers for itself where it is asked about itself.
    for member in second.members() {
        let client = second.client(member);
        let state: p::HaServiceStateResponseProto =
            client.call("getHAServiceState", &p::HaServiceStateRequestProto {}).await.unwrap();
        let leads = second.active(&[]) == Some(member);
        assert_eq!(state.state == ha::HaServiceStateProto::Active as i32, leads);
    }
    second.end().await;
    first.end().await;
}

/// The client does not know whether its call was carried out, and repeats it at another server, of another group.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_that_is_repeated_at_another_door_has_one_effect() {
    let (first, second) = two_groups(2, 2).await;
    let name = ClientId(*b"one and the same");
    let doors: Vec<_> = second
        .members()
        .map(|member| second.address(member))
        .chain([first.address(1), first.address(2)])
        .collect();
    let request = mkdirs_request("/a");
    let made: p::MkdirsResponseProto =
        client_at(doors[0], name).call_as(numbered(1), "mkdirs", &request).await.unwrap();
    assert!(made.result);
    let delete = p::DeleteRequestProto { src: "/a".into(), recursive: true };
    let gone: p::DeleteResponseProto =
        client_at(doors[1], name).call_as(numbered(2), "delete", &delete).await.unwrap();
    assert!(gone.result);
    for door in doors {
        let again: p::DeleteResponseProto =
            client_at(door, name).call_as(repeated(2), "delete", &delete).await.unwrap();
        assert!(again.result, "the answer is the first one's");
        let again: p::MkdirsResponseProto =
            client_at(door, name).call_as(repeated(1), "mkdirs", &request).await.unwrap();
        assert!(again.result);
    }
    assert!(first.names(1, "/").await.is_empty(), "the repeated mkdirs made nothing");
    second.end().await;
    first.end().await;
}

/// Makes a directory as a client does: it asks again where an active has just begun and the other members are not in sync yet.
async fn make(client: &rpc::Client, path: &str, began: Instant) {
    while let Err(error) = try_mkdirs(client, path).await {
        cluster::be_patient(error, began).await;
    }
}

/// The root group's active is killed, then that of the door's own group. The calls wait, and none is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_through_a_door_wait_for_a_takeover() {
    // A busy machine may take seconds to start three members.
    let waits = |_, config: &mut MetaConfig| config.group.hold_ms = 30_000;
    let (mut first, _) = Plan::group(3).adjusted(waits).in_sync().await;
    let plan = Plan::further_group(&first, SECOND, ELEVENTH, 3).await;
    let (mut second, _) = plan.adjusted(waits).in_sync().await;
    let active = first.wait_for_active(&[]).await;
    let doors = second.others(second.wait_for_active(&[]).await);
    let client = second.client(doors[0]);
    assert!(try_mkdirs(&client, "/before").await.unwrap());

    first.kill(active).await;
    let began = Instant::now();
    make(&client, "/while-the-root-group-has-no-active", began).await;

    let active_of_second = second.wait_for_active(&[]).await;
    second.kill(active_of_second).await;
    assert!(exists(&client, "/before").await.unwrap(), "a door needs no active of its own group");
    make(&client, "/while-the-doors-group-has-none", Instant::now()).await;

    // The root group's members have other addresses after a start.
    first.kill_all().await;
    let waiting = {
        let client = client.clone();
        tokio::spawn(async move { make(&client, "/while-the-root-group-starts", Instant::now()).await })
    };
    first.restart_all().await;
    waiting.await.unwrap();
    let expected = [
        "before",
        "while-the-doors-group-has-none",
        "while-the-root-group-has-no-active",
        "while-the-root-group-starts",
    ];
    assert_eq!(second.names(doors[1], "/").await, expected);
    second.end().await;
    first.end().await;
}

/// A root group of one member takes calls from doors, though it has nobody of its own to pass calls on to.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_root_group_of_one_member_is_reached_through_doors() {
    let (first, second) = two_groups(1, 1).await;
    assert!(try_mkdirs(&second.client(ELEVENTH), "/a").await.unwrap());
    assert!(exists(&first.client(1), "/a").await.unwrap());
    second.end().await;
    first.end().await;
}

/// The root group is away for longer than a call may wait. Its client is told so, and of which group.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_is_told_that_the_root_group_is_away() {
    let (mut first, _) = Cluster::in_sync(2).await;
    let plan = Plan::further_group(&first, SECOND, ELEVENTH, 1).await;
    let (second, _) = plan.adjusted(|_, config| config.group.hold_ms = 300).in_sync().await;
    let client = second.client(ELEVENTH);
    assert!(try_mkdirs(&client, "/a").await.unwrap());
    first.kill_all().await;
    let said = refused(try_mkdirs(&client, "/b").await, exception::STANDBY);
    assert!(said.contains("no member of group 1 has led for 300 ms"), "{said}");
    first.restart_all().await;
    until("the root group answers again", async || try_mkdirs(&client, "/b").await.is_ok()).await;
    second.end().await;
    first.end().await;
}

/// Nobody who does not know the cluster's secret passes a call on, and what was sealed for one group is opened by no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_forged_envelope_is_refused() {
    let (first, second) = two_groups(1, 1).await;
    let forged = |scope: &str| f::ForwardRequestProto {
        cluster_id: scope.into(),
        from: ELEVENTH,
        user: cluster::SUPERUSER.into(),
        client_id: vec![1; 16].into(),
        protocol: protocol::CLIENT_NAMENODE.into(),
        method: "mkdirs".into(),
        mac: vec![0; 32].into(),
        ..f::ForwardRequestProto::default()
    };
    let id = first.server(1).cluster().cluster_id.clone();
    for (cluster, member, scope) in [(&first, 1, id.clone()), (&second, ELEVENTH, format!("{id}/group-2"))] {
        let client = cluster.client_as(member, protocol::FORWARD, "clover member 11");
        let answer: Result<f::ForwardResponseProto, CallError> =
            client.call("forward", &forged(&scope)).await;
        let said = refused(answer, exception::ACCESS_CONTROL);
        assert!(said.contains("not from a member of this cluster"), "{said}");
    }
    second.end().await;
    first.end().await;
}
