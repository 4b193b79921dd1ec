//! A data server speaks to all members of a group, and a file being written outlives the active. The data server and
//! the writer are spoken by hand, over real sockets.

mod cluster;

use cluster::{
    Cluster, Plan,
    files::{
        DataServer, HOLDER, add_block_request, complete_request, create_request, data, files, finished,
        located, numbered, recover_lease, repeated, replica,
    },
    refused,
    spoken::{self, STORAGE},
    until,
};
use proto::{
    exception,
    hdfs::{self as p, nnha_status_heartbeat_proto::State},
};
use rpc::CallError;

const SN_BITS: u32 = 40;
const OTHER: &str = "DFSClient_other_1";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_being_written_outlives_the_active() {
    let (mut cluster, active) = Cluster::in_sync(3).await;

    // Everybody is told; one claims to be active, by its epoch.
    let server = DataServer::register(&cluster, 3).await;
    for member in 1..=3 {
        let said = spoken::version(&data(&cluster, member)).await.state();
        let claim = server.heartbeat(&cluster, member).await.ha_status;
        assert_eq!(said == State::Active, member == active);
        assert_eq!(claim.state() == State::Active, member == active);
        if member == active {
            assert_eq!(claim.txid >> SN_BITS, cluster.server(active).replica().epoch().0);
        }
    }

    let writer = files(&cluster, active);
    let create = create_request("/open", HOLDER);
    let _: p::CreateResponseProto = writer.call_as(numbered(5), "create", &create).await.unwrap();
    let add = add_block_request("/open", HOLDER);
    let added: p::AddBlockResponseProto = writer.call_as(numbered(6), "addBlock", &add).await.unwrap();

    // The answer is lost with the active, before any data server has heard of the block.
    cluster.kill(active).await;
    let next = cluster.wait_for_active(&[active]).await;
    let writer = files(&cluster, next);
    let claim = server.heartbeat(&cluster, next).await.ha_status;
    assert_eq!(claim.state(), State::Active);
    assert_eq!(claim.txid >> SN_BITS, cluster.server(next).replica().epoch().0);
    let again: p::AddBlockResponseProto = writer.call_as(repeated(6), "addBlock", &add).await.unwrap();
    assert_eq!(again.block.b, added.block.b, "one call has one block");
    assert_eq!(again.block.storage_i_ds, [STORAGE], "and it can be written somewhere");

    // The data server tells all members; the file is closed, and read through the one that does not lead.
    let standby = (1..=3).find(|member| ![active, next].contains(member)).unwrap();
    server.received(&cluster, &[next, standby], replica(&again.block.b)).await;
    let complete = complete_request("/open", HOLDER, &again.block.b);
    let closed: p::CompleteResponseProto = writer.call_as(numbered(7), "complete", &complete).await.unwrap();
    assert!(closed.result);
    assert_eq!(located(&files(&cluster, standby), "/open").await.blocks[0].locs.len(), 1);

    // The end of a block's recovery can be told to the active alone.
    let order = p::RecoveringBlockProto {
        new_gen_stamp: again.block.b.generation_stamp + 1,
        block: again.block,
        ..p::RecoveringBlockProto::default()
    };
    refused(server.recovered(&cluster, standby, &order, 77).await, exception::STANDBY);

    for member in [next, standby] {
        cluster.stop(member).await;
    }
}

/// The link between the data servers and the active is cut, and the other members are reached as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_active_that_no_data_server_reaches_hands_over() {
    let timing = group::Settings { deaf_ms: 1_500, ..group::Settings::default() };
    let plan = Plan::group(2).timed(timing);
    let plan = plan.adjusted(|_, config| config.blocks.heartbeat_interval_ms = 300);
    let (cluster, active) = plan.in_sync().await;
    let standby = 3 - active;
    let server = DataServer::register(&cluster, 2).await;
    // The rule itself is told in simulated time: `group` waits longer than this story.
    let seen_reached = || {
        let status = cluster.replica(active).status();
        status.peers.iter().map(|peer| peer.data_servers).sum::<u32>()
    };
    until("the active hears that the other is reached as well", async || {
        for member in [active, standby] {
            server.heartbeat(&cluster, member).await;
        }
        seen_reached() == 1
    })
    .await;
    assert!(cluster.replica(active).is_serving(), "both are reached");
    // The data servers are gone, not the link.
    until("the active hears that nobody is reached", async || seen_reached() == 0).await;
    assert!(cluster.replica(active).is_serving(), "nobody is reached");

    until("the one that is reached leads", async || {
        server.heartbeat(&cluster, standby).await;
        cluster.replica(standby).is_serving()
    })
    .await;
    cluster.wait_in_sync(standby, 2).await;
    let claim = server.heartbeat(&cluster, standby).await.ha_status;
    assert_eq!(claim.state(), State::Active);
    cluster.end().await;
}

/// In an HDFS with several NameNodes, too, clients wait for the reports and do not fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_active_that_has_just_begun_asks_for_patience_until_it_has_its_reports() {
    let (mut cluster, active) = Cluster::in_sync(3).await;
    let server = DataServer::register(&cluster, 3).await;
    // There are two blocks: with one, the share that safe mode waits for would be rounded down to none.
    for (path, call) in [("/e", 10), ("/f", 20)] {
        finished(&cluster, &server, &files(&cluster, active), path, call).await;
    }
    cluster.stop_all().await;
    cluster.restart_all().await;
    let active = cluster.wait_for_active(&[]).await;
    let create = create_request("/g", HOLDER);
    let asked = files(&cluster, active).call_as(numbered(90), "create", &create).await;
    let text = refused(asked.map(|_: p::CreateResponseProto| ()), exception::RETRIABLE);
    assert!(
        text.starts_with("org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot create"),
        "{text}"
    );
    assert!(text.contains("The reported blocks 0 needs additional 1 blocks"), "{text}");
}

/// The answers to append, truncate and concat are lost with the active; the calls are repeated at the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_write_on_have_one_effect_over_a_takeover() {
    let (mut cluster, active) = Cluster::in_sync(3).await;
    let server = DataServer::register(&cluster, 3).await;
    let writer = files(&cluster, active);
    for (path, call) in [("/f", 10), ("/g", 20), ("/h", 30), ("/i", 40)] {
        finished(&cluster, &server, &writer, path, call).await;
    }
    let append = p::AppendRequestProto { src: "/f".into(), client_name: HOLDER.into(), flag: Some(4) };
    let truncate = p::TruncateRequestProto { src: "/g".into(), new_length: 50, client_name: HOLDER.into() };
    let concat = p::ConcatRequestProto { trg: "/h".into(), srcs: vec!["/i".into()] };
    let appended: p::AppendResponseProto = writer.call_as(numbered(50), "append", &append).await.unwrap();
    let truncated: p::TruncateResponseProto =
        writer.call_as(numbered(51), "truncate", &truncate).await.unwrap();
    assert!(!truncated.result);
    let _: p::ConcatResponseProto = writer.call_as(numbered(52), "concat", &concat).await.unwrap();

    cluster.kill(active).await;
    let next = cluster.wait_for_active(&[active]).await;
    let writer = files(&cluster, next);
    let again: p::AppendResponseProto = writer.call_as(repeated(50), "append", &append).await.unwrap();
    let (block, before) = (again.block.unwrap(), appended.block.unwrap());
    assert_eq!((&block.b, &block.storage_i_ds), (&before.b, &before.storage_i_ds));
    assert_eq!(again.stat, appended.stat);
    let again: p::TruncateResponseProto = writer.call_as(repeated(51), "truncate", &truncate).await.unwrap();
    assert!(!again.result);
    let _: p::ConcatResponseProto = writer.call_as(repeated(52), "concat", &concat).await.unwrap();
    // Asked anew they find what was done.
    let anew: Result<p::AppendResponseProto, CallError> =
        writer.call_as(numbered(60), "append", &append).await;
    refused(anew, exception::ALREADY_BEING_CREATED);
    let anew: Result<p::ConcatResponseProto, CallError> =
        writer.call_as(numbered(61), "concat", &concat).await;
    refused(anew, exception::FILE_NOT_FOUND);
    assert_eq!(located(&writer, "/h").await.file_length, 154);
    cluster.end().await;
}

/// A file of 77 bytes that is being cut to 50: inside its block, or into a copy of it where a snapshot shows the block.
/// The data server has its order, and the active that gave it is gone.
struct Cut {
    cluster: Cluster,
    server: DataServer,
    next: u32,
    old: p::ExtendedBlockProto,
    order: p::RecoveringBlockProto,
}

impl Cut {
    async fn begin(is_in_snapshot: bool) -> Self {
        let (mut cluster, active) = Cluster::in_sync(3).await;
        let server = DataServer::register(&cluster, 3).await;
        let writer = files(&cluster, active);
        finished(&cluster, &server, &writer, "/d/f", 10).await;
        if is_in_snapshot {
            let allow = p::AllowSnapshotRequestProto { snapshot_root: "/d".into() };
            let _: p::AllowSnapshotResponseProto =
                writer.call_as(numbered(20), "allowSnapshot", &allow).await.unwrap();
            let create =
                p::CreateSnapshotRequestProto { snapshot_root: "/d".into(), snapshot_name: Some("s".into()) };
            let _: p::CreateSnapshotResponseProto =
                writer.call_as(numbered(21), "createSnapshot", &create).await.unwrap();
        }
        let old = located(&writer, "/d/f").await.blocks[0].b.clone();
        let truncate =
            p::TruncateRequestProto { src: "/d/f".into(), new_length: 50, client_name: HOLDER.into() };
        let truncated: p::TruncateResponseProto =
            writer.call_as(numbered(30), "truncate", &truncate).await.unwrap();
        assert!(!truncated.result);
        let order = server.ordered(&cluster, active).await;
        let outcome = order.truncate_block.as_ref().expect("it is told how long the block will be");
        assert_eq!((outcome.num_bytes(), order.block.b.block_id), (50, old.block_id));
        assert_eq!(outcome.block_id != old.block_id, is_in_snapshot);

        cluster.kill(active).await;
        let next = cluster.wait_for_active(&[active]).await;
        assert!(located(&files(&cluster, next), "/d/f").await.under_construction);
        Self { cluster, server, next, old, order }
    }

    /// The file is as it was to become, on every member that is left, and so is the snapshot.
    async fn ends_as_wished(self, is_in_snapshot: bool) {
        let Self { cluster, next, old, order, .. } = self;
        let outcome = order.truncate_block.unwrap();
        assert!(cluster.runs(next));
        for member in cluster.running() {
            let client = files(&cluster, member);
            let now = located(&client, "/d/f").await;
            assert_eq!((now.file_length, now.under_construction), (50, false));
            let block = &now.blocks[0];
            assert_eq!((block.b.block_id, &block.storage_i_ds[0][..]), (outcome.block_id, STORAGE));
            if is_in_snapshot {
                let past = located(&client, "/d/.snapshot/s/f").await;
                assert_eq!((past.file_length, &past.blocks[0].b), (77, &old));
                assert_eq!(past.blocks[0].storage_i_ds, [STORAGE]);
            }
        }
        cluster.wait_until_equal().await;
        cluster.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_the_active_ordered_before_it_was_gone_is_told_to_the_next() {
    for is_in_snapshot in [false, true] {
        let cut = Cut::begin(is_in_snapshot).await;
        let Cut { cluster, server, next, order, .. } = &cut;
        server.recovered(cluster, *next, order, 50).await.unwrap();
        server.recovered(cluster, *next, order, 50).await.expect("it is done");
        told(&cut).await;
        cut.ends_as_wished(is_in_snapshot).await;
    }
}

/// The data server forgot its order, as one does that was killed as well: it is registered anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_lost_with_active_and_data_server_is_ordered_anew() {
    for is_in_snapshot in [false, true] {
        let mut cut = Cut::begin(is_in_snapshot).await;
        cut.server.register_again(&cut.cluster, cut.next).await;
        let Cut { cluster, server, next, order, .. } = &cut;
        server.heartbeat(cluster, *next).await;
        let anew = replica(&cut.old);
        server.received(cluster, &[*next], anew).await;
        // Somebody wants the file; the server itself would come back to it later.
        assert!(!recover_lease(&files(cluster, *next), "/d/f", OTHER).await);
        let again = server.ordered(cluster, *next).await;
        assert!(again.new_gen_stamp > order.new_gen_stamp);
        let outcomes = [&again, order].map(|order| order.truncate_block.as_ref().unwrap());
        assert_eq!(outcomes[0].block_id, outcomes[1].block_id, "the copy has one number");
        assert_eq!(outcomes[0].num_bytes(), 50);
        let message = refused(server.recovered(cluster, *next, order, 50).await, exception::IO);
        assert!(message.contains("does not match current recovery id"), "{message}");
        server.recovered(cluster, *next, &again, 50).await.unwrap();
        cut.order = again;
        told(&cut).await;
        cut.ends_as_wished(is_in_snapshot).await;
    }
}

/// All members hear of the replica that came of it.
async fn told(cut: &Cut) {
    let outcome = cut.order.truncate_block.as_ref().unwrap();
    let block =
        p::BlockProto { block_id: outcome.block_id, gen_stamp: cut.order.new_gen_stamp, num_bytes: Some(50) };
    cut.server.received(&cut.cluster, &cut.cluster.running(), block).await;
}

/// The holder of a file keeps it over a takeover. A client that is taking a file from a dead writer goes on after one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_has_one_holder_over_a_takeover() {
    let (mut cluster, active) = Cluster::in_sync(3).await;
    let server = DataServer::register(&cluster, 3).await;
    let writer = files(&cluster, active);
    let mut added = Vec::new();
    for (path, call) in [("/kept", 10), ("/taken", 20)] {
        let create = create_request(path, HOLDER);
        let _: p::CreateResponseProto = writer.call_as(numbered(call), "create", &create).await.unwrap();
        let add = add_block_request(path, HOLDER);
        let answer: p::AddBlockResponseProto =
            writer.call_as(numbered(call + 1), "addBlock", &add).await.unwrap();
        added.push(answer.block.b);
    }
    server.received(&cluster, &[1, 2, 3], replica(&added[0])).await;
    assert!(!recover_lease(&writer, "/taken", OTHER).await);
    let order = server.ordered(&cluster, active).await;
    assert_eq!(order.block.b.block_id, added[1].block_id);

    cluster.kill(active).await;
    let next = cluster.wait_for_active(&[active]).await;
    let writer = files(&cluster, next);
    // Nobody else gets it, and its holder goes on.
    let create = create_request("/kept", OTHER);
    let other: Result<p::CreateResponseProto, CallError> =
        writer.call_as(numbered(30), "create", &create).await;
    refused(other, exception::ALREADY_BEING_CREATED);
    let append = p::AppendRequestProto { src: "/kept".into(), client_name: OTHER.into(), flag: Some(4) };
    let other: Result<p::AppendResponseProto, CallError> =
        writer.call_as(numbered(31), "append", &append).await;
    refused(other, exception::ALREADY_BEING_CREATED);
    let complete = complete_request("/kept", HOLDER, &added[0]);
    let closed: p::CompleteResponseProto = writer.call_as(numbered(32), "complete", &complete).await.unwrap();
    assert!(closed.result);

    // The writer that lost its file is told so, whatever has become of the recovery.
    let add = add_block_request("/taken", HOLDER);
    let lost: Result<p::AddBlockResponseProto, CallError> =
        writer.call_as(numbered(33), "addBlock", &add).await;
    refused(lost, exception::LEASE_EXPIRED);
    server.recovered(&cluster, next, &order, 33).await.unwrap();
    assert!(recover_lease(&writer, "/taken", OTHER).await);
    let complete = complete_request("/taken", HOLDER, &added[1]);
    let lost: Result<p::CompleteResponseProto, CallError> =
        writer.call_as(numbered(34), "complete", &complete).await;
    refused(lost, exception::LEASE_EXPIRED);
    let taken = located(&writer, "/taken").await;
    assert_eq!((taken.file_length, taken.under_construction), (33, false));
    cluster.wait_until_equal().await;
    cluster.end().await;
}
