//! A client asks that replicas be on the media of their storage policies. The data server is spoken by hand, and has two disks of different types.

mod cluster;

use cluster::{
    Cluster, Plan, SUPERUSER,
    files::{self, DataServer, data, files as client, numbered},
    refused,
    spoken::{self, STORAGE},
    until,
};
use proto::{
    exception,
    hdfs::{self as p, datanode as d},
};
use rpc::Client;

/// The second disk.
const COLD_STORAGE: &str = "DS-cold";

fn storage(name: &str) -> p::DatanodeStorageProto {
    let kind = if name == STORAGE { p::StorageTypeProto::Disk } else { p::StorageTypeProto::Archive };
    p::DatanodeStorageProto { storage_type: Some(kind as i32), ..spoken::storage(name) }
}

/// The orders to copy a block: its id, and the storage where it is to go.
async fn ordered(cluster: &Cluster, server: &DataServer, member: u32) -> Vec<(u64, String)> {
    #[allow(deprecated, reason = "the field is required all the same")]
    let report = |name: &str| p::StorageReportProto {
        storage_uuid: name.into(),
        capacity: Some(1 << 50),
        remaining: Some(1 << 49),
        storage: Some(storage(name)),
        ..p::StorageReportProto::default()
    };
    let request = d::HeartbeatRequestProto {
        registration: server.with(member).clone(),
        reports: vec![report(STORAGE), report(COLD_STORAGE)],
        ..d::HeartbeatRequestProto::default()
    };
    let told: d::HeartbeatResponseProto =
        data(cluster, member).call("sendHeartbeat", &request).await.unwrap();
    let commands = told.cmds.into_iter().filter_map(|command| command.blk_cmd);
    let transfers = commands.filter(|command| command.action() == d::block_command_proto::Action::Transfer);
    let each = transfers.flat_map(|command| {
        let ids: Vec<u64> = command.blocks.iter().map(|block| block.block_id).collect();
        let to = command.target_storage_uuids.into_iter().map(|to| to.storage_uuids.concat());
        ids.into_iter().zip(to).collect::<Vec<_>>()
    });
    each.collect()
}

/// The replica is on the second disk now.
async fn moved(cluster: &Cluster, server: &DataServer, member: u32, block: p::BlockProto) {
    #[allow(deprecated, reason = "the field is required all the same")]
    let blocks = d::StorageReceivedDeletedBlocksProto {
        storage_uuid: COLD_STORAGE.into(),
        storage: Some(storage(COLD_STORAGE)),
        blocks: vec![d::ReceivedDeletedBlockInfoProto {
            block,
            status: d::received_deleted_block_info_proto::BlockStatus::Received as i32,
            delete_hint: None,
        }],
    };
    let request = d::BlockReceivedAndDeletedRequestProto {
        registration: server.with(member).clone(),
        block_pool_id: server.pool.clone(),
        blocks: vec![blocks],
    };
    let _: d::BlockReceivedAndDeletedResponseProto =
        data(cluster, member).call("blockReceivedAndDeleted", &request).await.unwrap();
}

async fn make_cold(client: &Client, path: &str, call: i32) {
    let request = p::SetStoragePolicyRequestProto { src: path.into(), policy_name: "COLD".into() };
    let _: p::SetStoragePolicyResponseProto =
        client.call_as(numbered(call), "setStoragePolicy", &request).await.unwrap();
}

async fn satisfy(client: &Client, path: &str, call: i32) -> Result<(), rpc::CallError> {
    let request = p::SatisfyStoragePolicyRequestProto { src: path.into() };
    let answer: Result<p::SatisfyStoragePolicyResponseProto, _> =
        client.call_as(numbered(call), "satisfyStoragePolicy", &request).await;
    answer.map(drop)
}

/// Whether the file or directory still waits, as `hdfs dfs -getfattr` shows it.
async fn waits(client: &Client, path: &str, call: i32) -> bool {
    let request = p::GetXAttrsRequestProto { src: path.into(), x_attrs: Vec::new() };
    let answer: p::GetXAttrsResponseProto =
        client.call_as(numbered(call), "getXAttrs", &request).await.unwrap();
    answer.x_attrs.iter().any(|xattr| xattr.name == "hdfs.sps")
}

/// The question of Hadoop's satisfier, which is a process of its own.
async fn next_path(cluster: &Cluster, user: &str) -> Result<Option<u64>, rpc::CallError> {
    let options = rpc::ClientOptions::default();
    let client = Client::connect(cluster.address(1), proto::protocol::NAMENODE, user, options);
    let request = p::namenode::GetNextSpsPathRequestProto {};
    let answer: p::namenode::GetNextSpsPathResponseProto = client.call("getNextSPSPath", &request).await?;
    Ok(answer.sps_path)
}

/// The active dies when the move is ordered and not told.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_order_to_satisfy_policies_outlives_the_active() {
    let plan = Plan::group(3).adjusted(|_, config| config.blocks.takeover_grace_ms = 100);
    let (mut cluster, active) = plan.in_sync().await;
    let server = DataServer::register(&cluster, 3).await;
    let writer = client(&cluster, active);
    files::finished(&cluster, &server, &writer, "/f", 10).await;
    let block = files::replica(&files::located(&writer, "/f").await.blocks[0].b);
    assert!(ordered(&cluster, &server, active).await.is_empty());
    make_cold(&writer, "/f", 50).await;
    satisfy(&writer, "/f", 51).await.unwrap();
    assert!(waits(&writer, "/f", 52).await);
    // Twice is as good as once.
    satisfy(&writer, "/f", 53).await.unwrap();
    let to_cold = vec![(block.block_id, COLD_STORAGE.to_owned())];
    until("the move is ordered", async || ordered(&cluster, &server, active).await == to_cold).await;

    cluster.kill(active).await;
    let next = cluster.wait_for_active(&[active]).await;
    let reader = client(&cluster, next);
    until("the next active orders it again", async || ordered(&cluster, &server, next).await == to_cold)
        .await;
    assert!(waits(&reader, "/f", 60).await);
    moved(&cluster, &server, next, block).await;
    let mut call = 100;
    until("the note goes", async || {
        call += 1;
        ordered(&cluster, &server, next).await;
        !waits(&reader, "/f", call).await
    })
    .await;
    let located = files::located(&reader, "/f").await;
    assert_eq!(located.blocks[0].storage_types, [p::StorageTypeProto::Archive as i32]);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_is_well_the_note_goes_at_once() {
    let cluster = Plan::alone().start().await;
    let server = DataServer::register(&cluster, 1).await;
    let writer = client(&cluster, 1);
    files::finished(&cluster, &server, &writer, "/f", 10).await;
    satisfy(&writer, "/f", 50).await.unwrap();
    let mut call = 100;
    until("the note goes", async || {
        call += 1;
        !waits(&writer, "/f", call).await
    })
    .await;
    refused(satisfy(&writer, "/none", 51).await, exception::FILE_NOT_FOUND);
    // Hadoop's own satisfier has nothing to do.
    satisfy(&writer, "/f", 52).await.unwrap();
    assert_eq!(next_path(&cluster, SUPERUSER).await.unwrap(), None);
    refused(next_path(&cluster, "bob").await, exception::ACCESS_CONTROL);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_may_switch_it_off() {
    let plan = Plan::alone().adjusted(|_, config| config.satisfies_policies = false);
    let cluster = plan.start().await;
    let text = refused(satisfy(&client(&cluster, 1), "/", 1).await, exception::UNSUPPORTED_ACTION);
    assert!(text.starts_with("Cannot request to satisfy storage policy when"), "{text}");
    let text = refused(next_path(&cluster, SUPERUSER).await, exception::IO);
    assert!(text.starts_with("SPS service mode is NONE"), "{text}");
    cluster.end().await;
}
