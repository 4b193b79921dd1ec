//! A data server and a metadata server that only plays its part: what is told, when, and what is obeyed.

mod played;

use base::BlockId;
use blockstore::{Checksum, NewReplica, StorageType};
use datad::{DataConfig, DataServer};
use env::Env;
use played::{
    Metadata, POOL, block, config, eventually, http, invalidate, recovery, register_again, serve, start,
    store_block,
};
use proto::{
    exception,
    hdfs::{
        DatanodeInfoProto, DatanodeInfosProto, ShutdownDatanodeRequestProto, ShutdownDatanodeResponseProto,
        StorageTypeProto, StorageTypesProto, StorageUuidsProto,
        datanode::{block_command_proto::Action, received_deleted_block_info_proto::BlockStatus},
    },
    protocol::CLIENT_DATANODE,
};
use rpc::{Client, ClientOptions};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

struct NoRandomness;

impl env::Random for NoRandomness {
    fn fill(&self, _: &mut [u8]) {
        panic!("there is no randomness");
    }
}

/// A data server that has registered with a metadata server.
struct Registered {
    metadata: Arc<Metadata>,
    rpc: rpc::Server,
    server: DataServer,
    root: tempfile::TempDir,
}

async fn registered() -> Registered {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    Registered { metadata, rpc, server, root }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_while_the_data_directories_are_opened_is_not_told_as_a_wrong_configuration() {
    let root = tempfile::tempdir().unwrap();
    let rpc = serve(&Metadata::new("CID-one"), "127.0.0.1:0");
    let env = Env { random: Arc::new(NoRandomness), ..Env::production() };
    let error = DataServer::start(env, config(root.path(), &[&rpc])).await.err().expect("it cannot start");
    assert!(matches!(error, datad::StartError::BrokenOff(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_where_everybody_could_put_another_one_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let rpc = serve(&Metadata::new("CID-one"), "127.0.0.1:0");
    let unsafe_one =
        DataConfig { domain_socket_path: "/tmp/clover-data._PORT".into(), ..config(root.path(), &[&rpc]) };
    let error = DataServer::start(Env::production(), unsafe_one).await.err().expect("it cannot start");
    let datad::StartError::DomainSocket { path, source } = error else { panic!("{error}") };
    assert!(!path.to_str().unwrap().contains("_PORT"), "{path:?}");
    assert!(source.to_string().starts_with("/tmp can be written by everybody"), "{source}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_registers_then_reports_and_keeps_its_identity() {
    let Registered { metadata, rpc, server, root } = registered().await;
    store_block(&server, POOL, 1_073_741_825);
    let uuid = server.state().identity.uuid.clone();
    {
        let log = metadata.log.lock();
        let registration = &log.registered[0].registration;
        assert_eq!(registration.datanode_id.datanode_uuid, *uuid);
        assert_eq!(registration.storage_info.layout_version as i32, -57);
        assert_eq!(registration.storage_info.namespce_id, 77);
        assert_eq!(registration.datanode_id.xfer_port, u32::from(server.transfer_addr().port()));
        assert!(log.heartbeats[0].request_full_block_report_lease());
        let full = &log.full[0];
        assert_eq!(full.context.as_ref().unwrap().lease_id, Some(4711));
        assert_eq!(full.reports[0].number_of_blocks, Some(0));
        assert!(log.heartbeats[0].reports[0].capacity() > 0);
    }
    assert!(http(&server, "/health").await.contains("\"state\":\"serving\""));
    let metrics = http(&server, "/metrics").await;
    assert!(metrics.contains("clover_data_replicas 1"), "{metrics}");
    server.shutdown().await;

    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    assert_eq!(server.state().identity.uuid, uuid);
    let log = metadata.log.lock();
    assert_eq!(log.full[1].reports[0].number_of_blocks, Some(1));
    assert_eq!(log.full[1].reports[0].storage, log.full[0].reports[0].storage);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_block_is_told_at_once() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let slow = DataConfig { heartbeat_interval_ms: 60_000, ..config(root.path(), &[&rpc]) };
    let server = DataServer::start(Env::production(), slow).await.unwrap();
    server.wait_registered().await.unwrap();
    for id in 1..=20 {
        let started = Instant::now();
        store_block(&server, POOL, id);
        eventually("the block is told", || metadata.changed(id, BlockStatus::Received)).await;
        assert!(started.elapsed() < Duration::from_secs(30), "no heartbeat is waited for");
        assert!(metadata.changed(id, BlockStatus::Receiving));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_invalidated_goes_and_is_told() {
    let Registered { metadata, rpc: _rpc, server, root: _root } = registered().await;
    store_block(&server, POOL, 5);
    metadata.log.lock().commands.push(invalidate(POOL, 5));
    eventually("the removal is told", || metadata.changed(5, BlockStatus::Deleted)).await;
    assert!(server.state().pool(POOL).unwrap().store.read(&block(POOL, 5)).is_err());
}

/// As in Hadoop, whose DataNodes keep such replicas in a trash: a rollback needs them.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_during_a_rolling_upgrade() {
    let Registered { metadata, rpc: _rpc, server, root: _root } = registered().await;
    store_block(&server, POOL, 5);
    store_block(&server, POOL, 6);
    {
        let mut log = metadata.log.lock();
        log.rolling_upgrade = Some(false);
        log.commands.push(invalidate(POOL, 5));
    }
    eventually("the order is given", || metadata.log.lock().commands.is_empty()).await;
    {
        let mut log = metadata.log.lock();
        log.rolling_upgrade = Some(true);
        log.commands.push(invalidate(POOL, 6));
    }
    eventually("the later order is carried out", || metadata.changed(6, BlockStatus::Deleted)).await;
    assert!(server.state().pool(POOL).unwrap().store.read(&block(POOL, 5)).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_block_tokens_is_not_served() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    metadata.log.lock().wants_tokens = true;
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root.path(), &[&rpc]).await;
    let refused = server.wait_registered().await.unwrap_err().to_string();
    assert!(refused.contains("it wants block tokens"), "{refused}");
    assert!(metadata.log.lock().heartbeats.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_about_another_pool_deletes_nothing() {
    let Registered { metadata, rpc: _rpc, server, root: _root } = registered().await;
    store_block(&server, POOL, 5);
    store_block(&server, POOL, 6);
    let mut foreign = invalidate(POOL, 5);
    foreign.blk_cmd.as_mut().unwrap().block_pool_id = "BP-other".into();
    metadata.log.lock().commands.extend([foreign, invalidate(POOL, 6)]);
    eventually("the later order is carried out", || metadata.changed(6, BlockStatus::Deleted)).await;
    let state = server.state();
    assert!(state.pool(POOL).unwrap().store.read(&block(POOL, 5)).is_ok());
    let unknown = state.pool("BP-other").map(drop).unwrap_err();
    assert_eq!(unknown.to_string(), "block pool BP-other is not served here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_told_everything_and_not_obeyed() {
    let root = tempfile::tempdir().unwrap();
    let active = Metadata::new("CID-one");
    let standby = Arc::new(Metadata { is_active: false, ..Metadata::of("CID-one", POOL) });
    let (one, other) = (serve(&active, "127.0.0.1:0"), serve(&standby, "127.0.0.1:0"));
    let server = start(root.path(), &[&one, &other]).await;
    eventually("both have the full report", || {
        !active.log.lock().full.is_empty() && !standby.log.lock().full.is_empty()
    })
    .await;
    store_block(&server, POOL, 5);
    for metadata in [&active, &standby] {
        eventually("both are told", || metadata.changed(5, BlockStatus::Received)).await;
    }
    standby.log.lock().commands.push(invalidate(POOL, 5));
    eventually("the command is on its way", || standby.log.lock().commands.is_empty()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(server.state().pool(POOL).unwrap().store.read(&block(POOL, 5)).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_known_registers_again() {
    let Registered { metadata, rpc: _rpc, server: _server, root: _root } = registered().await;
    let registrations = |count: usize| metadata.log.lock().full.len() >= count;
    // Ordered by the metadata server, as after its restart.
    metadata.log.lock().commands.push(register_again());
    eventually("a second registration and full report", || registrations(2)).await;
    metadata.log.lock().refusal = Some(exception::UNREGISTERED_NODE);
    eventually("a third one", || registrations(3)).await;
    // Any other error is no reason to register again.
    metadata.log.lock().refusal = Some(exception::SAFE_MODE);
    let beats = metadata.log.lock().heartbeats.len();
    eventually("heartbeats go on", || metadata.log.lock().heartbeats.len() > beats + 2).await;
}

/// HDFS's `DataNode.transferBlock`: a replica that is shorter on the disk than it was is reported, for nobody else would find out
/// where it is the only one, and it would be ordered to be copied for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_turns_out_too_short_to_be_copied_is_told() {
    told_when_copied(|directory| {
        let file = std::fs::OpenOptions::new().write(true).open(directory.join("blk_5")).unwrap();
        file.set_len(5).unwrap();
    })
    .await;
}

/// A copy would have no sums either, and nobody could tell any more whether it is what was written.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_without_sums_is_told_and_not_copied() {
    told_when_copied(|directory| std::fs::remove_file(directory.join("blk_5_1001.meta")).unwrap()).await;
}

/// Stores a block, has the directory with its files spoilt, and orders a copy elsewhere.
async fn told_when_copied(spoil: impl FnOnce(&Path)) {
    let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (metadata, other) = (Metadata::new("CID-one"), Metadata::new("CID-one"));
    let (rpc, other_rpc) = (serve(&metadata, "127.0.0.1:0"), serve(&other, "127.0.0.1:0"));
    let server = start(root.path(), &[&rpc]).await;
    let target = start(elsewhere.path(), &[&other_rpc]).await;
    server.wait_registered().await.unwrap();
    target.wait_registered().await.unwrap();
    store_block(&server, POOL, 5);
    spoil(&root.path().join(format!("data/current/{POOL}/current/finalized/subdir0/subdir0")));

    let id = other.log.lock().registered[0].registration.datanode_id.clone();
    let node = DatanodeInfoProto { id, ..Default::default() };
    let mut copy = invalidate(POOL, 5);
    let order = copy.blk_cmd.as_mut().unwrap();
    order.action = Action::Transfer as i32;
    order.targets = vec![DatanodeInfosProto { datanodes: vec![node] }];
    order.target_storage_uuids = vec![StorageUuidsProto { storage_uuids: vec![String::new()] }];
    order.target_storage_types =
        vec![StorageTypesProto { storage_types: vec![StorageTypeProto::Disk.into()] }];
    metadata.log.lock().commands.push(copy);
    eventually("the damage is told", || {
        let log = metadata.log.lock();
        log.damaged.iter().any(|told| {
            let own = &log.registered[0].registration.datanode_id.datanode_uuid;
            told.b.block_id == 5 && told.locs[0].id.datanode_uuid == *own
        })
    })
    .await;
    assert!(target.state().pool(POOL).unwrap().store.read(&block(POOL, 5)).is_err());
}

/// `hdfs dfsadmin -shutdownDatanode` must not fail because the server is faster than its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_ordered_to_end_answers_first() {
    let metadata = Metadata::new("CID-1");
    let listener = serve(&metadata, "127.0.0.1:0");
    let root = tempfile::tempdir().unwrap();
    let server = start(root.path(), &[&listener]).await;
    let address = server.ipc_addr().to_string();
    let user = server.state().config.user.clone();
    let client = Client::connect(address, CLIENT_DATANODE, &user, ClientOptions::default());
    let order = ShutdownDatanodeRequestProto { for_upgrade: false };
    let _: ShutdownDatanodeResponseProto = client.call("shutdownDatanode", &order).await.unwrap();
    let at_once = tokio::time::timeout(Duration::from_millis(50), server.wait_ended()).await;
    assert!(at_once.is_err(), "the answer may still be on its way");
    let reason = tokio::time::timeout(Duration::from_secs(10), server.wait_ended()).await.unwrap();
    assert_eq!(reason, format!("{user} ordered it"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metadata_server_may_come_and_go() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let address = rpc.local_addr().to_string();
    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    rpc.shutdown().await;
    store_block(&server, POOL, 5);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!metadata.changed(5, BlockStatus::Received));
    let _rpc = serve(&metadata, &address);
    eventually("the block is told", || metadata.changed(5, BlockStatus::Received)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_is_refused_with_its_name() {
    let Registered { metadata: _metadata, rpc: _rpc, server, root } = registered().await;
    server.shutdown().await;

    let other = serve(&Metadata::new("CID-other"), "127.0.0.1:0");
    let server = start(root.path(), &[&other]).await;
    let reason = server.wait_registered().await.unwrap_err();
    for part in ["CID-one", "CID-other", "clusterID", "VERSION"] {
        assert!(reason.contains(part), "{part} in: {reason}");
    }
    assert_eq!(server.wait_ended().await, reason);
    assert!(http(&server, "/health").await.starts_with("HTTP/1.1 503"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_for_good_ends_the_server() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    metadata.log.lock().refusal = Some(exception::DISALLOWED_DATANODE);
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root.path(), &[&rpc]).await;
    let reason = server.wait_ended().await;
    assert!(reason.contains("DisallowedDatanodeException"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_without_a_byte_goes_away_once_all_its_servers_say_so() {
    let Registered { metadata, rpc: _rpc, server, root: _root } = registered().await;
    let here = server.state().identity.to_info_proto();
    // Nobody listens there.
    let mut away = here.clone();
    (away.id.datanode_uuid, away.id.ipc_port) = ("another".into(), 1);
    metadata.log.lock().commands.push(recovery(POOL, 5, 1002, vec![here.clone(), away]));
    eventually("the order is fetched", || metadata.log.lock().commands.is_empty()).await;
    metadata.log.lock().commands.push(recovery(POOL, 5, 1003, vec![here]));
    eventually("the recovery is told", || !metadata.log.lock().recovered.is_empty()).await;
    let log = metadata.log.lock();
    let told = &log.recovered[0];
    assert_eq!((told.new_gen_stamp, told.new_length, told.new_taragets.len()), (1003, 0, 0));
    assert!(told.close_file && told.delete_block);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_agree_on_the_length_of_a_block_whose_writer_is_gone() {
    let roots = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let mut servers = Vec::new();
    let mut writers = Vec::new();
    for (root, data) in roots.iter().zip([&b"clover and more"[..], b"clover"]) {
        let server = start(root.path(), &[&rpc]).await;
        server.wait_registered().await.unwrap();
        let new = NewReplica {
            block: block(POOL, 5),
            checksum: Checksum::DEFAULT,
            storage_type: StorageType::Disk,
            size_expected: 100,
        };
        let mut writer = server.state().pool(POOL).unwrap().store.create_rbw(&new).unwrap();
        writer.write(0, data, &Checksum::DEFAULT.sum(data)).unwrap();
        writer.acknowledger().acknowledge(6);
        writers.push(writer);
        servers.push(server);
    }
    let locs = servers.iter().map(|server| server.state().identity.to_info_proto()).collect();
    metadata.log.lock().commands.push(recovery(POOL, 5, 1002, locs));
    eventually("the recovery is told", || !metadata.log.lock().recovered.is_empty()).await;
    {
        let log = metadata.log.lock();
        let told = &log.recovered[0];
        assert_eq!((told.new_gen_stamp, told.new_length, told.new_taragets.len()), (1002, 6, 2));
        assert!(told.close_file && !told.delete_block);
    }
    for server in &servers {
        let facts = server.state().pool(POOL).unwrap().store.facts(POOL, BlockId(5)).unwrap();
        assert_eq!((facts.state, facts.block.length), (blockstore::ReplicaState::Finalized, 6));
    }
    eventually("the replicas are told", || metadata.changed(5, BlockStatus::Received)).await;
}
