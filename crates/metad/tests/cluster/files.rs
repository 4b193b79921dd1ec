//! Files, by hand: a client that is the same at every member of a group, and a data server that tells all of them
//! everything.

use super::{
    Cluster, SUPERUSER,
    spoken::{self, STORAGE},
};
use base::{CallId, ClientId};
use proto::hdfs::{self as p, datanode as d};
use rpc::{CallError, CallIdentity, Client, ClientOptions};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

pub const HOLDER: &str = "DFSClient_group_1";

/// A client of this name, wherever it calls.
pub fn client_at(address: SocketAddr, client_id: ClientId) -> Client {
    let options = ClientOptions { client_id: Some(client_id), ..ClientOptions::default() };
    Client::connect(address, proto::protocol::CLIENT_NAMENODE, SUPERUSER, options)
}

/// A client with one name at every member. It must number its calls: see [`numbered`].
pub fn files(cluster: &Cluster, member: u32) -> Client {
    client_at(cluster.address(member), ClientId(*b"one and the same"))
}

pub fn data(cluster: &Cluster, member: u32) -> Client {
    let address = cluster.address(member);
    Client::connect(address, proto::protocol::DATANODE, SUPERUSER, ClientOptions::default())
}

/// A client numbers its calls over all members.
pub fn numbered(call: i32) -> CallIdentity {
    CallIdentity { call_id: CallId(call), retry_count: 0 }
}

/// A call once more.
pub fn repeated(call: i32) -> CallIdentity {
    CallIdentity { retry_count: 1, ..numbered(call) }
}

/// Calls at one door after another until there is an answer or a refusal, always under one name.
pub async fn insist<Q: prost::Message, A: prost::Message + Default + prost::Name>(
    door: &impl Fn(usize) -> SocketAddr,
    at: &mut usize,
    name: ClientId,
    call: i32,
    method: &'static str,
    request: &Q,
) -> Result<A, CallError> {
    let mut identity = numbered(call);
    let began = Instant::now();
    loop {
        *at += 1;
        let client = client_at(door(*at), name);
        let answer =
            tokio::time::timeout(Duration::from_secs(3), client.call_as(identity, method, request)).await;
        match answer {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => {
                let text = error.to_string();
                let is_passing = !matches!(error, CallError::Remote { .. })
                    || ["Standby", "Retriable", "gave up"].iter().any(|passing| text.contains(passing));
                if !is_passing {
                    return Err(error);
                }
            }
            Err(_) => {}
        }
        assert!(began.elapsed() < Duration::from_secs(50), "{method} is not answered");
        identity.retry_count += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A data server that every member knows.
pub struct DataServer {
    /// The sessions of the data server, one with each member: the first is that with the first member.
    registrations: Vec<d::DatanodeRegistrationProto>,
    pub pool: String,
}

impl DataServer {
    pub async fn register(cluster: &Cluster, members: u32) -> Self {
        let mut server = Self { registrations: Vec::new(), pool: String::new() };
        for member in 1..=members {
            let data = data(cluster, member);
            let info = spoken::version(&data).await;
            let registration = spoken::registration(&info, "uuid-1");
            let registration = spoken::register(&data, registration).await.unwrap();
            let told = spoken::heartbeat(&data, &registration, STORAGE).await.unwrap();
            assert!(told.cmds.is_empty(), "nothing is known of it");
            server.pool = info.block_pool_id;
            server.registrations.push(registration);
        }
        server
    }

    /// Registers with the member again, as a data server does that was started anew.
    pub async fn register_again(&mut self, cluster: &Cluster, member: u32) {
        let registration = self.with(member).clone();
        let again = spoken::register(&data(cluster, member), registration).await.unwrap();
        self.registrations[member as usize - 1] = again;
    }

    /// The registration by which the member knows this data server.
    pub fn with(&self, member: u32) -> &d::DatanodeRegistrationProto {
        &self.registrations[member as usize - 1]
    }

    pub async fn heartbeat(&self, cluster: &Cluster, member: u32) -> d::HeartbeatResponseProto {
        spoken::heartbeat(&data(cluster, member), self.with(member), STORAGE).await.unwrap()
    }

    /// Tells these members of a finished replica.
    pub async fn received(&self, cluster: &Cluster, members: &[u32], block: p::BlockProto) {
        let status = d::received_deleted_block_info_proto::BlockStatus::Received as i32;
        for member in members {
            let data = data(cluster, *member);
            spoken::tell(&data, self.with(*member), (&self.pool, STORAGE), block, status).await;
        }
    }

    /// Heartbeats to a member until that orders a recovery.
    pub async fn ordered(&self, cluster: &Cluster, member: u32) -> p::RecoveringBlockProto {
        for _ in 0..100 {
            let commands = self.heartbeat(cluster, member).await.cmds;
            let orders = commands.into_iter().filter_map(|command| command.recovery_cmd);
            if let Some(order) = orders.flat_map(|orders| orders.blocks).next() {
                return order;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("no recovery was ordered");
    }

    /// Tells a member that it and nobody else has finished a recovery with so many bytes.
    pub async fn recovered(
        &self,
        cluster: &Cluster,
        member: u32,
        order: &p::RecoveringBlockProto,
        length: u64,
    ) -> Result<d::CommitBlockSynchronizationResponseProto, CallError> {
        let outcome = d::CommitBlockSynchronizationRequestProto {
            block: order.block.b.clone(),
            new_gen_stamp: order.new_gen_stamp,
            new_length: length,
            close_file: true,
            delete_block: false,
            new_taragets: vec![self.with(member).datanode_id.clone()],
            new_target_storages: vec![STORAGE.to_owned()],
        };
        data(cluster, member).call("commitBlockSynchronization", &outcome).await
    }
}

pub fn create_request(path: &str, holder: &str) -> p::CreateRequestProto {
    p::CreateRequestProto {
        src: path.into(),
        masked: p::FsPermissionProto { perm: 0o644 },
        client_name: holder.into(),
        create_flag: 1,
        create_parent: true,
        replication: 1,
        block_size: 128 << 20,
        ..p::CreateRequestProto::default()
    }
}

pub fn add_block_request(path: &str, holder: &str) -> p::AddBlockRequestProto {
    p::AddBlockRequestProto {
        src: path.into(),
        client_name: holder.into(),
        ..p::AddBlockRequestProto::default()
    }
}

/// The request to close a file whose last block has 77 bytes.
pub fn complete_request(path: &str, holder: &str, last: &p::ExtendedBlockProto) -> p::CompleteRequestProto {
    p::CompleteRequestProto {
        src: path.into(),
        client_name: holder.into(),
        last: Some(p::ExtendedBlockProto { num_bytes: Some(77), ..last.clone() }),
        ..p::CompleteRequestProto::default()
    }
}

/// A replica of 77 bytes.
pub fn replica(block: &p::ExtendedBlockProto) -> p::BlockProto {
    p::BlockProto { block_id: block.block_id, gen_stamp: block.generation_stamp, num_bytes: Some(77) }
}

/// A file with one block of 77 bytes, in three calls numbered from `call` on.
pub async fn finished(cluster: &Cluster, server: &DataServer, writer: &Client, path: &str, call: i32) {
    let create = create_request(path, HOLDER);
    let _: p::CreateResponseProto = writer.call_as(numbered(call), "create", &create).await.unwrap();
    let add = add_block_request(path, HOLDER);
    let added: p::AddBlockResponseProto = writer.call_as(numbered(call + 1), "addBlock", &add).await.unwrap();
    server.received(cluster, &cluster.running(), replica(&added.block.b)).await;
    let complete = complete_request(path, HOLDER, &added.block.b);
    let closed: p::CompleteResponseProto =
        writer.call_as(numbered(call + 2), "complete", &complete).await.unwrap();
    assert!(closed.result);
}

pub async fn located(client: &Client, path: &str) -> p::LocatedBlocksProto {
    let request = p::GetBlockLocationsRequestProto { src: path.into(), offset: 0, length: 1 << 30 };
    let response: p::GetBlockLocationsResponseProto =
        client.call("getBlockLocations", &request).await.unwrap();
    response.locations.unwrap()
}

pub async fn recover_lease(client: &Client, path: &str, holder: &str) -> bool {
    let request = p::RecoverLeaseRequestProto { src: path.into(), client_name: holder.into() };
    let response: p::RecoverLeaseResponseProto = client.call("recoverLease", &request).await.unwrap();
    response.result
}
