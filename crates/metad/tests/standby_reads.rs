//! Reads at members that do not lead: answered there, and never older than what was acknowledged.

mod cluster;

use cluster::{
    Cluster, Plan, exists,
    files::{
        DataServer, HOLDER, add_block_request, complete_request, create_request, files, finished, located,
        replica,
    },
    refused, try_mkdirs, until,
};
use proto::{
    clover::forward::{ReadPointRequestProto, ReadPointResponseProto},
    common::HaServiceStateProto,
    exception, hdfs as p, protocol,
};
use rpc::CallError;
use std::time::Instant;

fn standbys(cluster: &Cluster, active: u32) -> Vec<u32> {
    cluster.running().into_iter().filter(|member| *member != active).collect()
}

/// Reads that a member has answered itself, without leading.
fn answered(cluster: &Cluster, member: u32) -> u64 {
    cluster.server(member).standby_reads().answered
}

/// Asks until it is done: on a busy machine a member falls out of sync for a moment.
async fn patiently<T>(mut ask: impl AsyncFnMut() -> Result<T, CallError>) -> T {
    let began = Instant::now();
    loop {
        match ask().await {
            Ok(done) => return done,
            Err(error) => cluster::be_patient(error, began).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_acknowledged_is_seen_at_every_standby_at_once() {
    let (cluster, active) = Cluster::in_sync(3).await;
    let standbys = standbys(&cluster, active);
    let (writer, readers) = (cluster.client(active), [standbys[0], standbys[1]].map(|it| cluster.client(it)));
    for round in 0..100 {
        let path = format!("/round-{round}");
        patiently(async || try_mkdirs(&writer, &path).await).await;
        for reader in &readers {
            assert!(exists(reader, &path).await.unwrap(), "{path} was acknowledged");
        }
        let delete = p::DeleteRequestProto { src: path.clone(), recursive: true };
        let _: p::DeleteResponseProto = patiently(async || writer.call("delete", &delete).await).await;
        for reader in &readers {
            assert!(!exists(reader, &path).await.unwrap(), "that {path} is gone was acknowledged");
        }
    }
    for standby in standbys {
        let numbers = cluster.server(standby).standby_reads();
        assert!(numbers.answered > 0, "{numbers:?}");
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_that_come_together_share_a_question() {
    const READS: u64 = 2_000;
    let (cluster, active) = Cluster::in_sync(2).await;
    cluster.mkdirs(active, "/there").await;
    let standby = standbys(&cluster, active)[0];
    let client = cluster.client(standby);
    // On a busy machine a question may take too long, and then reads are handed on for a while.
    until("all of them are answered there", async || {
        let before = cluster.server(standby).standby_reads();
        let mut reads = tokio::task::JoinSet::new();
        for _ in 0..READS {
            let client = client.clone();
            reads.spawn(async move { exists(&client, "/there").await });
        }
        for found in reads.join_all().await {
            assert!(found.unwrap());
        }
        let numbers = cluster.server(standby).standby_reads();
        let asked = numbers.questions - before.questions;
        numbers.answered - before.answered == READS && asked < READS / 2
    })
    .await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_standby_that_the_log_does_not_reach_hands_its_reads_to_the_active() {
    let (cluster, active) = Cluster::in_sync(3).await;
    let standby = standbys(&cluster, active)[0];
    assert!(!exists(&cluster.client(standby), "/new").await.unwrap());
    // Members' ports are cut. The RPC port of the active can still be reached.
    cluster.cables.pull(standby);
    cluster.wait_in_sync(active, 2).await;
    cluster.mkdirs(active, "/new").await;
    let before = answered(&cluster, standby);
    assert!(exists(&cluster.client(standby), "/new").await.unwrap(), "the active answers");
    assert_eq!(answered(&cluster, standby), before, "its own tree is older");
    cluster.cables.plug_in(standby);
    cluster.wait_in_sync(active, 3).await;
    until("it answers again", async || {
        assert!(exists(&cluster.client(standby), "/new").await.unwrap());
        answered(&cluster, standby) > before
    })
    .await;
    cluster.end().await;
}

/// A member that is behind is tried now and then only: its reads must not all wait for what does not come.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_standby_that_is_behind_is_not_asked_for_each_read() {
    let (cluster, active) = Cluster::in_sync(3).await;
    let standby = standbys(&cluster, active)[0];
    cluster.cables.pull(standby);
    cluster.wait_in_sync(active, 2).await;
    cluster.mkdirs(active, "/new").await;
    let client = cluster.client(standby);
    for _ in 0..200 {
        assert!(exists(&client, "/new").await.unwrap());
    }
    let numbers = cluster.server(standby).standby_reads();
    assert!(numbers.questions < 50, "{numbers:?}");
    assert_eq!(state(&cluster, standby).await, HaServiceStateProto::Standby, "readers are not to come here");
    cluster.end().await;
}

async fn group_of_root(client: &rpc::Client) -> String {
    let asked = p::GetFileInfoRequestProto { src: "/".into() };
    let told: p::GetFileInfoResponseProto = client.call("getFileInfo", &asked).await.unwrap();
    told.fs.unwrap().group
}

/// With two members nobody knows who is right. Clients are told one thing, whichever they ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_standby_whose_state_is_known_to_differ_answers_nothing() {
    let plan = Plan::group(2).adjusted(|member, config| {
        if member == 2 {
            config.limits.access.supergroup = "others".into();
        }
        config.edits_per_image = 30;
    });
    let (cluster, active) = plan.in_sync().await;
    for number in 0..=70 {
        cluster.mkdirs(active, &format!("/{number}")).await;
    }
    let standby = standbys(&cluster, active)[0];
    until("they know", async || matches!(cluster.replica(standby).agreement(), group::Agreement::Differs(_)))
        .await;
    let told = [active, standby].map(|member| cluster.client(member));
    assert_eq!(group_of_root(&told[0]).await, group_of_root(&told[1]).await);
    assert_ne!(state(&cluster, standby).await, HaServiceStateProto::Observer);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_go_on_while_members_take_over() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    cluster.mkdirs(first, "/before").await;
    let last = standbys(&cluster, first)[1];
    let client = cluster.client(last);
    assert!(exists(&client, "/before").await.unwrap());
    cluster.kill(first).await;
    // It is held until another member leads, and then answered.
    assert!(exists(&client, "/before").await.unwrap());
    let second = cluster.wait_for_active(&[first]).await;
    cluster.mkdirs(second, "/after").await;
    assert!(exists(&client, "/after").await.unwrap());
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn places_are_told_once_the_data_server_has_told_the_standby() {
    let (cluster, active) = Cluster::in_sync(2).await;
    let standby = standbys(&cluster, active)[0];
    let server = DataServer::register(&cluster, 2).await;
    let writer = files(&cluster, active);
    finished(&cluster, &server, &writer, "/known", 10).await;
    let before = answered(&cluster, standby);
    let reader = files(&cluster, standby);
    until("the standby tells the place", async || {
        assert_eq!(located(&reader, "/known").await.blocks[0].locs.len(), 1);
        answered(&cluster, standby) > before
    })
    .await;
    let before = answered(&cluster, standby);

    // Of this one only the active hears.
    let create = create_request("/half-known", HOLDER);
    let _: p::CreateResponseProto = writer.call("create", &create).await.unwrap();
    let add = add_block_request("/half-known", HOLDER);
    let added: p::AddBlockResponseProto = writer.call("addBlock", &add).await.unwrap();
    server.received(&cluster, &[active], replica(&added.block.b)).await;
    let complete = complete_request("/half-known", HOLDER, &added.block.b);
    let closed: p::CompleteResponseProto = writer.call("complete", &complete).await.unwrap();
    assert!(closed.result);
    let told = located(&reader, "/half-known").await;
    assert_eq!(
        (told.blocks[0].locs.len(), told.is_last_block_complete),
        (1, true),
        "the active knows the place"
    );
    assert_eq!(answered(&cluster, standby), before, "and has answered");
    cluster.end().await;
}

async fn state(cluster: &Cluster, member: u32) -> HaServiceStateProto {
    let told: p::HaServiceStateResponseProto =
        cluster.client(member).call("getHAServiceState", &p::HaServiceStateRequestProto {}).await.unwrap();
    told.state()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_that_answers_reads_says_that_it_is_an_observer() {
    let (cluster, active) = Cluster::in_sync(2).await;
    let standby = standbys(&cluster, active)[0];
    until("it is one", async || state(&cluster, standby).await == HaServiceStateProto::Observer).await;
    assert_eq!(state(&cluster, active).await, HaServiceStateProto::Active);
    cluster.end().await;
}

/// The active answers all reads, nobody asks for points, and no client is told to bring its reads to the standby.
async fn all_reads_go_to_the_active(plan: Plan) {
    let (cluster, active) = plan.in_sync().await;
    cluster.mkdirs(active, "/there").await;
    let standby = standbys(&cluster, active)[0];
    assert!(exists(&cluster.client(standby), "/there").await.unwrap());
    let numbers = cluster.server(standby).standby_reads();
    assert_eq!((numbers.answered, numbers.questions), (0, 0));
    assert_eq!(state(&cluster, standby).await, HaServiceStateProto::Standby);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_are_handed_on_where_the_setting_says_so() {
    let plan = Plan::group(2).adjusted(|_, config| config.group.standby_reads = false);
    all_reads_go_to_the_active(plan).await;
}

/// A point is proved by the lease, on which no answer rests there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn where_reads_are_confirmed_by_the_coordinator_the_active_answers_them() {
    let plan = Plan::group(2).adjusted(|_, config| config.group.confirm_reads = true);
    all_reads_go_to_the_active(plan).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_is_told_a_point_who_does_not_know_the_secret() {
    let (cluster, active) = Cluster::in_sync(2).await;
    let stranger = cluster.client_as(active, protocol::FORWARD, "stranger");
    let forged = ReadPointRequestProto {
        scope: cluster.server(active).cluster().scope(),
        member: 2,
        mac: vec![7; 32].into(),
    };
    let answer: Result<ReadPointResponseProto, _> = stranger.call("readPoint", &forged).await;
    let message = refused(answer, exception::ACCESS_CONTROL);
    assert!(message.contains("not from a member"), "{message}");
    cluster.end().await;
}
