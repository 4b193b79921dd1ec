//! Orders that take data servers out of service and are kept in the journal: data servers are spoken by hand.

mod cluster;

use base::Level;
use cluster::{
    Cluster, Plan, SUPERUSER, files, refused,
    spoken::{self, STORAGE},
    until,
};
use proto::{
    clover::admin::{self as a, DataServerWishProto as Wish},
    exception::{ACCESS_CONTROL, ILLEGAL_ARGUMENT, UNSUPPORTED_OPERATION},
    hdfs::{self as p, DatanodeReportTypeProto as Kind, datanode as d, datanode_info_proto::AdminState},
    protocol,
};
use rpc::{CallError, Client};

const PLACE: &str = "127.0.0.1:9866";

fn request(server: &str, wish: Wish) -> a::OrderDataServerRequestProto {
    a::OrderDataServerRequestProto {
        server: server.into(),
        wish: wish.into(),
        is_confirmed: Some(true),
        ..a::OrderDataServerRequestProto::default()
    }
}

fn admin(cluster: &Cluster, member: u32, user: &str) -> Client {
    cluster.client_as(member, protocol::ADMIN, user)
}

async fn order(
    cluster: &Cluster,
    member: u32,
    request: a::OrderDataServerRequestProto,
) -> Result<a::OrderDataServerResponseProto, CallError> {
    admin(cluster, member, SUPERUSER).call("orderDataServer", &request).await
}

async fn listed(cluster: &Cluster, member: u32) -> Vec<a::OrderedServerProto> {
    let request = a::GetDataServerOrdersRequestProto {};
    let told: a::GetDataServerOrdersResponseProto =
        admin(cluster, member, SUPERUSER).call("getDataServerOrders", &request).await.unwrap();
    told.servers
}

/// The data server with its session at one member, and without blocks.
async fn begin(cluster: &Cluster, member: u32, uuid: &str, port: u32) {
    let data = files::data(cluster, member);
    let info = spoken::version(&data).await;
    let mut registration = spoken::registration(&info, uuid);
    registration.datanode_id.xfer_port = port;
    let server = spoken::register(&data, registration).await.unwrap();
    let storage = format!("{STORAGE}-{uuid}");
    spoken::heartbeat(&data, &server, &storage).await.unwrap();
    let report = d::BlockReportRequestProto {
        registration: server,
        block_pool_id: info.block_pool_id.clone(),
        reports: vec![d::StorageBlockReportProto {
            storage: p::DatanodeStorageProto { storage_uuid: storage, ..p::DatanodeStorageProto::default() },
            blocks: Vec::new(),
            number_of_blocks: Some(0),
            blocks_buffers: vec![],
        }],
        context: None,
    };
    let _: d::BlockReportResponseProto = data.call("blockReport", &report).await.unwrap();
}

/// The states of all data servers, by the port of their data transfer.
async fn states(cluster: &Cluster, member: u32) -> Vec<(u32, AdminState)> {
    let request = p::GetDatanodeReportRequestProto { r#type: Kind::All as i32 };
    let told: p::GetDatanodeReportResponseProto =
        cluster.client(member).call("getDatanodeReport", &request).await.unwrap();
    let mut states: Vec<_> = told.di.iter().map(|one| (one.id.xfer_port, one.admin_state())).collect();
    states.sort();
    states
}

async fn wait_for(cluster: &Cluster, member: u32, expected: &[(u32, AdminState)]) {
    until("the data servers are in these states", async || states(cluster, member).await == expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_holds_on_the_next_active_and_after_a_start_of_all() {
    let (mut cluster, active) = Cluster::in_sync(3).await;
    for member in 1..=3 {
        begin(&cluster, member, "uuid-1", 9866).await;
    }
    // A standby passes it on.
    let standby = cluster.others(active)[0];
    let look = a::OrderDataServerRequestProto { is_confirmed: None, ..request("worker", Wish::Decommission) };
    let seen = order(&cluster, standby, look).await.unwrap();
    assert_eq!((&*seen.server.address, seen.is_changed()), (PLACE, false));
    assert_eq!(
        (seen.server.host_name(), seen.server.is_alive(), seen.server.journal),
        ("worker", true, None)
    );
    assert_eq!((seen.others_in_service(), seen.default_replication()), (0, 3));
    assert_eq!(listed(&cluster, active).await, [], "to look changes nothing");

    let done = order(&cluster, standby, request("worker", Wish::Decommission)).await.unwrap();
    assert!(done.is_changed() && done.server.journal() == Wish::Decommission, "{done:?}");
    assert_eq!((done.server.by(), done.server.named()), (SUPERUSER, "worker"));
    // It obeys with the answer, and has no blocks, so that none needs it.
    assert_ne!(states(&cluster, active).await, [(9866, AdminState::Normal)]);
    wait_for(&cluster, active, &[(9866, AdminState::Decommissioned)]).await;
    let again = order(&cluster, active, request(PLACE, Wish::Decommission)).await.unwrap();
    assert!(!again.is_changed() && again.server.journal() == Wish::Decommission, "{again:?}");

    cluster.kill(active).await;
    let next = cluster.wait_for_active(&[active]).await;
    assert_eq!(
        states(&cluster, next).await,
        [(9866, AdminState::DecommissionInprogress)],
        "it has not reported anew"
    );
    begin(&cluster, next, "uuid-1", 9866).await;
    wait_for(&cluster, next, &[(9866, AdminState::Decommissioned)]).await;
    assert_eq!(listed(&cluster, next).await[0].by(), SUPERUSER);
    cluster.restart(active).await;
    cluster.wait_until_in_sync().await;
    cluster.wait_until_equal().await;

    cluster.stop_all().await;
    cluster.restart_all().await;
    let active = cluster.wait_until_in_sync().await;
    assert_eq!(states(&cluster, active).await, [], "it knows of no data server yet");
    assert_eq!(listed(&cluster, active).await[0].admin_state, None);
    begin(&cluster, active, "uuid-1", 9866).await;
    assert_ne!(
        states(&cluster, active).await,
        [(9866, AdminState::Normal)],
        "it registers, and has to leave at once"
    );
    wait_for(&cluster, active, &[(9866, AdminState::Decommissioned)]).await;

    let back = order(&cluster, active, request("uuid-1", Wish::InService)).await.unwrap();
    assert!(back.is_changed() && back.server.journal.is_none(), "{back:?}");
    assert_eq!(states(&cluster, active).await, [(9866, AdminState::Normal)]);
    assert_eq!(listed(&cluster, active).await, []);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_superusers_order_and_only_a_server_that_is_known() {
    let cluster = Cluster::alone().await;
    for (uuid, port) in [("uuid-1", 9866), ("uuid-2", 9867)] {
        begin(&cluster, 1, uuid, port).await;
    }
    for confirmed in [None, Some(true)] {
        let request =
            a::OrderDataServerRequestProto { is_confirmed: confirmed, ..request(PLACE, Wish::Decommission) };
        let answer: Result<a::OrderDataServerResponseProto, _> =
            admin(&cluster, 1, "bob").call("orderDataServer", &request).await;
        refused(answer, ACCESS_CONTROL);
    }
    let answer: Result<a::GetDataServerOrdersResponseProto, _> =
        admin(&cluster, 1, "bob").call("getDataServerOrders", &a::GetDataServerOrdersRequestProto {}).await;
    refused(answer, ACCESS_CONTROL);

    for word in ["worker", "127.0.0.1", "localhost"] {
        let text = refused(order(&cluster, 1, request(word, Wish::Decommission)).await, ILLEGAL_ARGUMENT);
        assert!(text.contains("any of 2 data servers: 127.0.0.1:9866, 127.0.0.1:9867"), "{word}: {text}");
    }
    for word in ["127.0.0.1:9868", "worker:9868", "uuid-3"] {
        let text = refused(order(&cluster, 1, request(word, Wish::Decommission)).await, ILLEGAL_ARGUMENT);
        assert!(text.contains("has registered here") && text.contains("--expected"), "{word}: {text}");
    }
    for (word, until_ms) in [("", None), ("a\nb", None), ("worker:9867", Some(1))] {
        let request = a::OrderDataServerRequestProto { until_ms, ..request(word, Wish::Maintenance) };
        refused(order(&cluster, 1, request).await, ILLEGAL_ARGUMENT);
    }
    assert_eq!(listed(&cluster, 1).await, []);

    order(&cluster, 1, request("worker:9867", Wish::Decommission)).await.unwrap();
    wait_for(&cluster, 1, &[(9866, AdminState::Normal), (9867, AdminState::Decommissioned)]).await;
    let expected = |word: &str| a::OrderDataServerRequestProto {
        is_expected: Some(true),
        ..request(word, Wish::Maintenance)
    };
    let text = refused(order(&cluster, 1, expected("127.0.0.2")).await, ILLEGAL_ARGUMENT);
    assert!(text.contains("with the port of its data transfer"), "{text}");
    order(&cluster, 1, expected("127.0.0.1:9868")).await.unwrap();
    begin(&cluster, 1, "uuid-3", 9868).await;
    let all =
        [(9866, AdminState::Normal), (9867, AdminState::Decommissioned), (9868, AdminState::InMaintenance)];
    wait_for(&cluster, 1, &all).await;
    assert_eq!(listed(&cluster, 1).await.len(), 2);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_ends_at_its_time_and_the_order_is_told_to_be_over() {
    let cluster = Cluster::alone().await;
    begin(&cluster, 1, "uuid-1", 9866).await;
    let request =
        a::OrderDataServerRequestProto { for_ms: Some(700), ..request("worker", Wish::Maintenance) };
    let done = order(&cluster, 1, request).await.unwrap();
    assert!(done.server.until_ms() > 0 && !done.server.is_over(), "{done:?}");
    assert_ne!(states(&cluster, 1).await, [(9866, AdminState::Normal)]);
    wait_for(&cluster, 1, &[(9866, AdminState::Normal)]).await;
    let told = listed(&cluster, 1).await;
    assert!(told.len() == 1 && told[0].is_over() && told[0].journal() == Wish::Maintenance, "{told:?}");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_journal_each_take_a_server_out_and_the_stronger_order_holds() {
    let mut cluster = Plan::alone().made();
    let excluded = cluster.beside("excluded");
    std::fs::write(&excluded, "").unwrap();
    let list = excluded.clone();
    cluster.adjust(move |_, config| config.excluded_data_servers_file = Some(list.clone()));
    cluster.restart(1).await;
    begin(&cluster, 1, "uuid-1", 9866).await;
    let refresh = async || {
        let _: p::RefreshNodesResponseProto =
            cluster.client(1).call("refreshNodes", &p::RefreshNodesRequestProto {}).await.unwrap();
    };
    order(&cluster, 1, request("worker", Wish::Maintenance)).await.unwrap();
    wait_for(&cluster, 1, &[(9866, AdminState::InMaintenance)]).await;
    std::fs::write(&excluded, "127.0.0.1").unwrap();
    refresh().await;
    wait_for(&cluster, 1, &[(9866, AdminState::Decommissioned)]).await;
    let told = listed(&cluster, 1).await;
    assert_eq!((told[0].journal(), told[0].files()), (Wish::Maintenance, Wish::Decommission));

    let back = order(&cluster, 1, request("worker", Wish::InService)).await.unwrap();
    assert_eq!((back.server.journal, back.server.files()), (None, Wish::Decommission));
    assert_eq!(states(&cluster, 1).await, [(9866, AdminState::Decommissioned)], "the file still says so");
    let told = listed(&cluster, 1).await;
    assert!(told.len() == 1 && told[0].journal.is_none(), "{told:?}");
    order(&cluster, 1, request("worker", Wish::Decommission)).await.unwrap();
    std::fs::write(&excluded, "").unwrap();
    refresh().await;
    assert_eq!(states(&cluster, 1).await, [(9866, AdminState::Decommissioned)], "the journal still says so");
    order(&cluster, 1, request("worker", Wish::InService)).await.unwrap();
    assert_eq!(states(&cluster, 1).await, [(9866, AdminState::Normal)]);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_with_members_that_may_not_know_of_orders_takes_none() {
    let (cluster, active) = Plan::group(2).at_level(Level::SEVERAL_GROUPS).in_sync().await;
    begin(&cluster, active, "uuid-1", 9866).await;
    let text =
        refused(order(&cluster, active, request("worker", Wish::Decommission)).await, UNSUPPORTED_OPERATION);
    assert!(text.contains("level 4") && text.contains("clover admin upgrade finalize"), "{text}");
    let raise = a::RaiseLevelRequestProto { is_confirmed: Some(true), level: None };
    let _: a::RaiseLevelResponseProto = cluster.order(active, "raiseLevel", &raise).await.unwrap();
    order(&cluster, active, request("worker", Wish::Decommission)).await.unwrap();
    wait_for(&cluster, active, &[(9866, AdminState::Decommissioned)]).await;
    cluster.end().await;
}
