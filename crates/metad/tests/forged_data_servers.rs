//! Made-up data servers: what they claim costs the real ones nothing.

mod cluster;

use cluster::{
    Cluster, SUPERUSER,
    files::{HOLDER, add_block_request, complete_request, create_request, located, replica},
    spoken::{self, STORAGE},
    until,
};
use proto::{
    hdfs::{self as p, datanode as d},
    protocol,
};
use rpc::{CallError, Client, ClientOptions};
use std::net::Ipv4Addr;

/// A server alone, and a client of files.
struct Story {
    cluster: Cluster,
    files: Client,
}

/// A data server that says what a test wants, from an address of its own.
struct Spoken {
    data: Client,
    info: p::NamespaceInfoProto,
    uuid: String,
    registration: d::DatanodeRegistrationProto,
}

impl Story {
    async fn start() -> Self {
        let cluster = Cluster::alone().await;
        let files = cluster.client(1);
        Self { cluster, files }
    }

    /// Not registered yet.
    async fn stranger(&self, host: u8, uuid: &str) -> Spoken {
        let way = self.cluster.address_from(Ipv4Addr::new(127, 0, 0, host), 1).await;
        let data = Client::connect(way, protocol::DATANODE, SUPERUSER, ClientOptions::default());
        let info = spoken::version(&data).await;
        let mut registration = spoken::registration(&info, uuid);
        registration.datanode_id.host_name = format!("host-{host}");
        Spoken { data, info, uuid: uuid.into(), registration }
    }

    async fn data_server(&self, host: u8) -> Spoken {
        let mut server = self.stranger(host, &format!("uuid-{host}")).await;
        server.register().await.unwrap();
        server.report(&[]).await.unwrap();
        server
    }

    /// A closed file whose one block these servers have.
    async fn write(&self, path: &str, servers: &[&Spoken]) -> p::BlockProto {
        let create =
            p::CreateRequestProto { replication: servers.len() as u32, ..create_request(path, HOLDER) };
        let _: p::CreateResponseProto = self.files.call("create", &create).await.unwrap();
        let add = add_block_request(path, HOLDER);
        let added: p::AddBlockResponseProto = self.files.call("addBlock", &add).await.unwrap();
        let block = replica(&added.block.b);
        for server in servers {
            let pool = (&*server.info.block_pool_id, STORAGE);
            spoken::tell(&server.data, &server.registration, pool, block, Status::Received as i32).await;
        }
        let complete = complete_request(path, HOLDER, &added.block.b);
        let closed: p::CompleteResponseProto = self.files.call("complete", &complete).await.unwrap();
        assert!(closed.result);
        block
    }

    /// The uuids of the data servers that hold the one block of a file, as readers are told.
    async fn holders(&self, path: &str) -> Vec<String> {
        let blocks = located(&self.files, path).await.blocks;
        let mut holders: Vec<String> =
            blocks[0].locs.iter().map(|place| place.id.datanode_uuid.clone()).collect();
        holders.sort();
        holders
    }

    async fn stop(mut self) {
        drop(self.files);
        self.cluster.stop(1).await;
    }
}

use d::received_deleted_block_info_proto::BlockStatus as Status;

impl Spoken {
    async fn register(&mut self) -> Result<(), CallError> {
        let mut registration = spoken::registration(&self.info, &self.uuid);
        registration.datanode_id.host_name = self.registration.datanode_id.host_name.clone();
        self.registration = spoken::register(&self.data, registration).await?;
        self.heartbeat().await.map(|_| ())
    }

    async fn heartbeat(&self) -> Result<Vec<d::DatanodeCommandProto>, CallError> {
        spoken::heartbeat(&self.data, &self.registration, STORAGE).await.map(|answer| answer.cmds)
    }

    async fn report(&self, blocks: &[p::BlockProto]) -> Result<Option<d::DatanodeCommandProto>, CallError> {
        let request = d::BlockReportRequestProto {
            registration: self.registration.clone(),
            block_pool_id: self.info.block_pool_id.clone(),
            reports: vec![full_report(blocks)],
            context: None,
        };
        let answer: d::BlockReportResponseProto = self.data.call("blockReport", &request).await?;
        Ok(answer.cmd)
    }

    async fn tell(&self, block: p::BlockProto, status: Status) -> Result<(), CallError> {
        let pool = (&*self.info.block_pool_id, STORAGE);
        spoken::try_to_tell(&self.data, &self.registration, pool, block, status as i32).await
    }

    /// A data server at another address that uses this one's identity. It knows all that a reader of files is told.
    async fn forged(&self, story: &Story, host: u8) -> Spoken {
        let mut forger = story.stranger(host, &self.uuid).await;
        forger.registration.datanode_id = self.registration.datanode_id.clone();
        forger
    }
}

/// All replicas of a storage, in the older and simpler of the two forms.
fn full_report(blocks: &[p::BlockProto]) -> d::StorageBlockReportProto {
    let mut numbers = vec![blocks.len() as u64, 0];
    for block in blocks {
        numbers.extend([block.block_id, block.num_bytes.unwrap_or(0), block.gen_stamp]);
    }
    numbers.extend([u64::MAX; 3]);
    d::StorageBlockReportProto { storage: spoken::storage(STORAGE), blocks: numbers, ..Default::default() }
}

fn is_register(command: &d::DatanodeCommandProto) -> bool {
    command.cmd_type == d::datanode_command_proto::Type::RegisterCommand as i32
}

fn deletion_count(commands: &[d::DatanodeCommandProto]) -> usize {
    let invalidate = d::block_command_proto::Action::Invalidate as i32;
    let orders = commands.iter().filter_map(|command| command.blk_cmd.as_ref());
    orders.filter(|order| order.action == invalidate).map(|order| order.blocks.len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_the_replicas_of_a_live_server_off_the_map() {
    let story = Story::start().await;
    let real = story.data_server(2).await;
    let block = story.write("/file", &[&real]).await;
    for host in [3, 2] {
        let forger = real.forged(&story, host).await;
        assert!(forger.tell(block, Status::Deleted).await.is_err(), "a replica is gone, says host {host}");
        let answer = forger.report(&[]).await;
        assert!(answer.map_or(true, |command| command.is_some_and(|it| is_register(&it))), "nothing is left");
        let commands = forger.heartbeat().await.unwrap();
        assert!(commands.iter().all(is_register) && commands.len() == 1, "{commands:?}");
        let failed = d::ErrorReportRequestProto {
            registartion: forger.registration.clone(),
            error_code: d::error_report_request_proto::ErrorCode::FatalDiskError as u32,
            msg: "all volumes are gone".into(),
        };
        let _ = forger.data.call::<_, d::ErrorReportResponseProto>("errorReport", &failed).await;
        assert_eq!(story.holders("/file").await, ["uuid-2"]);
    }
    assert!(real.heartbeat().await.unwrap().is_empty(), "it is not even asked to register again");
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_server_is_not_taken_for_one_that_has_moved() {
    let story = Story::start().await;
    let mut real = story.data_server(2).await;
    let block = story.write("/file", &[&real]).await;
    let mut clone = story.stranger(3, "uuid-2").await;
    let Err(CallError::Remote { class, message, .. }) = clone.register().await else {
        panic!("it is registered in two places");
    };
    // Hadoop's data servers try again after this class, and end at most others.
    assert_eq!(class, "java.io.IOException");
    assert!(message.contains("127.0.0.2:9866") && message.contains("127.0.0.3:9866"), "{message}");
    assert_eq!(story.holders("/file").await, ["uuid-2"]);
    assert!(real.heartbeat().await.unwrap().is_empty());

    // A process that starts again on its host is believed, and the words of the one before it are void.
    let old = real.registration.clone();
    real.register().await.unwrap();
    let new = std::mem::replace(&mut real.registration, old);
    assert!(real.tell(block, Status::Deleted).await.is_err());
    real.registration = new;
    assert_eq!(story.holders("/file").await, ["uuid-2"]);
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn made_up_servers_that_claim_every_block_delete_none() {
    const FILES: usize = 40;
    let story = Story::start().await;
    let mut real = Vec::new();
    for host in 2..=4 {
        real.push(story.data_server(host).await);
    }
    let servers: Vec<&Spoken> = real.iter().collect();
    let mut blocks = Vec::new();
    for file in 0..FILES {
        blocks.push(story.write(&format!("/file-{file}"), &servers).await);
    }
    let mut made_up = Vec::new();
    for host in 5..=7 {
        let server = story.data_server(host).await;
        server.report(&blocks).await.unwrap();
        made_up.push(server);
    }
    let mut deletions = [0; 2];
    until("what nobody could prove is to go", async || {
        for (count, servers) in deletions.iter_mut().zip([&real, &made_up]) {
            for server in servers {
                *count += deletion_count(&server.heartbeat().await.unwrap());
            }
        }
        deletions[1] >= 3 * FILES
    })
    .await;
    assert_eq!(deletions, [0, 3 * FILES], "replicas to delete, real and made up");
    for file in 0..FILES {
        let holders = story.holders(&format!("/file-{file}")).await;
        assert!(["uuid-2", "uuid-3", "uuid-4"].iter().all(|real| holders.iter().any(|it| it == real)));
    }
    story.stop().await;
}
