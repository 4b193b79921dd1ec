//! A data server speaks to all members of a group, and a file being written outlives the active. The data server and
//! the writer are spoken by hand, over real sockets.

#[allow(dead_code, reason = "each story uses its own part of it")]
mod cluster;
mod spoken;

use base::{CallId, ClientId};
use cluster::Cluster;
use proto::hdfs::{self as p, datanode as d, nnha_status_heartbeat_proto::State};
use rpc::{CallError, CallIdentity, Client, ClientOptions};
use spoken::STORAGE;

const USER: &str = "alice";
const HOLDER: &str = "DFSClient_group_1";
const SN_BITS: u32 = 40;

fn data(cluster: &Cluster, member: u32) -> Client {
    let address = cluster.server(member).rpc_address();
    Client::connect(address, proto::protocol::DATANODE, USER, ClientOptions::default())
}

/// The same client at every member.
fn files(cluster: &Cluster, member: u32) -> Client {
    let options =
        ClientOptions { client_id: Some(ClientId(*b"one and the same")), ..ClientOptions::default() };
    let address = cluster.server(member).rpc_address();
    Client::connect(address, proto::protocol::CLIENT_NAMENODE, USER, options)
}

/// A client numbers its calls over all members.
fn numbered(call: i32) -> CallIdentity {
    CallIdentity { call_id: CallId(call), retry_count: 0 }
}

/// Registers the data server with a member; what that says of itself.
async fn register(data: &Client) -> (d::DatanodeRegistrationProto, State, String) {
    let info = spoken::version(data).await;
    let registration = spoken::register(data, spoken::registration(&info, "uuid-1")).await.unwrap();
    (registration, info.state(), info.block_pool_id)
}

async fn heartbeat(data: &Client, registration: &d::DatanodeRegistrationProto) -> d::HeartbeatResponseProto {
    spoken::heartbeat(data, registration, STORAGE).await.unwrap()
}

async fn received(
    data: &Client,
    registration: &d::DatanodeRegistrationProto,
    pool: &str,
    block: p::BlockProto,
) {
    let status = d::received_deleted_block_info_proto::BlockStatus::Received as i32;
    spoken::tell(data, registration, (pool, STORAGE), block, status).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_being_written_outlives_the_active() {
    let mut cluster = Cluster::start(3).await;
    let active = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(active, 3).await;

    // Everybody is told; one claims to be active, by its epoch.
    let mut registration = None;
    let mut pool = String::new();
    for member in 1..=3 {
        let data = data(&cluster, member);
        let (registered, state, its_pool) = register(&data).await;
        let claim = heartbeat(&data, &registered).await.ha_status;
        assert_eq!(state == State::Active, member == active);
        assert_eq!(claim.state() == State::Active, member == active);
        if member == active {
            assert_eq!(claim.txid >> SN_BITS, cluster.server(active).replica().epoch().0);
        }
        (registration, pool) = (Some(registered), its_pool);
    }
    let registration = registration.unwrap();

    let writer = files(&cluster, active);
    let create = p::CreateRequestProto {
        src: "/open".into(),
        masked: p::FsPermissionProto { perm: 0o644 },
        client_name: HOLDER.into(),
        create_flag: 1,
        create_parent: true,
        replication: 1,
        block_size: 128 << 20,
        ..p::CreateRequestProto::default()
    };
    let _: p::CreateResponseProto = writer.call_as(numbered(5), "create", &create).await.unwrap();
    let add = p::AddBlockRequestProto {
        src: "/open".into(),
        client_name: HOLDER.into(),
        ..p::AddBlockRequestProto::default()
    };
    let name = numbered(6);
    let added: p::AddBlockResponseProto = writer.call_as(name, "addBlock", &add).await.unwrap();

    // The answer is lost with the active, before any data server has heard of the block.
    cluster.kill(active).await;
    let next = cluster.wait_for_active(&[active]).await;
    let writer = files(&cluster, next);
    let claim = heartbeat(&data(&cluster, next), &registration).await.ha_status;
    assert_eq!(claim.state(), State::Active);
    assert_eq!(claim.txid >> SN_BITS, cluster.server(next).replica().epoch().0);
    let name = CallIdentity { retry_count: 1, ..name };
    let again: p::AddBlockResponseProto = writer.call_as(name, "addBlock", &add).await.unwrap();
    assert_eq!(again.block.b, added.block.b, "one call has one block");
    assert_eq!(again.block.storage_i_ds, [STORAGE], "and it can be written somewhere");

    // The data server tells all members; the file is closed, and read through the one that does not lead.
    let last = p::ExtendedBlockProto { num_bytes: Some(77), ..again.block.b };
    let block =
        p::BlockProto { block_id: last.block_id, gen_stamp: last.generation_stamp, num_bytes: Some(77) };
    let standby = (1..=3).find(|member| ![active, next].contains(member)).unwrap();
    for member in [next, standby] {
        received(&data(&cluster, member), &registration, &pool, block).await;
    }
    let complete = p::CompleteRequestProto {
        src: "/open".into(),
        client_name: HOLDER.into(),
        last: Some(last.clone()),
        ..p::CompleteRequestProto::default()
    };
    let closed: p::CompleteResponseProto = writer.call_as(numbered(7), "complete", &complete).await.unwrap();
    assert!(closed.result);
    let locate = p::GetBlockLocationsRequestProto { src: "/open".into(), offset: 0, length: 1 << 30 };
    let reader = files(&cluster, standby);
    let located: p::GetBlockLocationsResponseProto =
        reader.call_as(numbered(8), "getBlockLocations", &locate).await.unwrap();
    assert_eq!(located.locations.unwrap().blocks[0].locs.len(), 1);

    // What ends a block's recovery is for the active alone.
    let outcome = d::CommitBlockSynchronizationRequestProto {
        block: last,
        new_gen_stamp: block.gen_stamp + 1,
        new_length: 77,
        close_file: true,
        ..d::CommitBlockSynchronizationRequestProto::default()
    };
    let answer: Result<d::CommitBlockSynchronizationResponseProto, CallError> =
        data(&cluster, standby).call("commitBlockSynchronization", &outcome).await;
    assert_eq!(answer.unwrap_err().class(), Some(proto::exception::STANDBY));

    for member in [next, standby] {
        cluster.stop(member).await;
    }
}

/// Registers the data server with all members.
async fn register_everywhere(cluster: &Cluster) -> (d::DatanodeRegistrationProto, String) {
    let mut known = None;
    for member in 1..=3 {
        let data = data(cluster, member);
        let (registration, _, pool) = register(&data).await;
        heartbeat(&data, &registration).await;
        known = Some((registration, pool));
    }
    known.unwrap()
}

/// A file with one block of 77 bytes, in calls numbered from `call` on.
async fn finished(
    cluster: &Cluster,
    (registration, pool): &(d::DatanodeRegistrationProto, String),
    writer: &Client,
    path: &str,
    call: i32,
) {
    let create = p::CreateRequestProto {
        src: path.into(),
        masked: p::FsPermissionProto { perm: 0o644 },
        client_name: HOLDER.into(),
        create_flag: 1,
        create_parent: true,
        replication: 1,
        block_size: 128 << 20,
        ..p::CreateRequestProto::default()
    };
    let _: p::CreateResponseProto = writer.call_as(numbered(call), "create", &create).await.unwrap();
    let add = p::AddBlockRequestProto {
        src: path.into(),
        client_name: HOLDER.into(),
        ..p::AddBlockRequestProto::default()
    };
    let added: p::AddBlockResponseProto = writer.call_as(numbered(call + 1), "addBlock", &add).await.unwrap();
    let last = p::ExtendedBlockProto { num_bytes: Some(77), ..added.block.b };
    let block =
        p::BlockProto { block_id: last.block_id, gen_stamp: last.generation_stamp, num_bytes: Some(77) };
    for member in 1..=3 {
        received(&data(cluster, member), registration, pool, block).await;
    }
    let complete = p::CompleteRequestProto {
        src: path.into(),
        client_name: HOLDER.into(),
        last: Some(last),
        ..p::CompleteRequestProto::default()
    };
    let closed: p::CompleteResponseProto =
        writer.call_as(numbered(call + 2), "complete", &complete).await.unwrap();
    assert!(closed.result);
}

/// The answers to append, truncate and concat are lost with the active; the calls are repeated at the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_write_on_have_one_effect_over_a_takeover() {
    let mut cluster = Cluster::start(3).await;
    let active = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(active, 3).await;
    let known = register_everywhere(&cluster).await;
    let writer = files(&cluster, active);
    for (path, call) in [("/f", 10), ("/g", 20), ("/h", 30), ("/i", 40)] {
        finished(&cluster, &known, &writer, path, call).await;
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
    let repeated = |call| CallIdentity { retry_count: 1, ..numbered(call) };
    let again: p::AppendResponseProto = writer.call_as(repeated(50), "append", &append).await.unwrap();
    let (block, before) = (again.block.unwrap(), appended.block.unwrap());
    assert_eq!((&block.b, &block.storage_i_ds), (&before.b, &before.storage_i_ds));
    assert_eq!(again.stat, appended.stat);
    let again: p::TruncateResponseProto = writer.call_as(repeated(51), "truncate", &truncate).await.unwrap();
    assert!(!again.result);
    let _: p::ConcatResponseProto = writer.call_as(repeated(52), "concat", &concat).await.unwrap();
    // Asked anew they find what was done.
    let refused: Result<p::AppendResponseProto, CallError> =
        writer.call_as(numbered(60), "append", &append).await;
    assert_eq!(refused.unwrap_err().class(), Some(proto::exception::ALREADY_BEING_CREATED));
    let refused: Result<p::ConcatResponseProto, CallError> =
        writer.call_as(numbered(61), "concat", &concat).await;
    assert_eq!(refused.unwrap_err().class(), Some(proto::exception::FILE_NOT_FOUND));
    let locate = p::GetBlockLocationsRequestProto { src: "/h".into(), offset: 0, length: 1 << 30 };
    let located: p::GetBlockLocationsResponseProto =
        writer.call_as(numbered(62), "getBlockLocations", &locate).await.unwrap();
    assert_eq!(located.locations.unwrap().file_length, 154);
    cluster.end().await;
}
