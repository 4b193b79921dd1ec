//! Files with one block each, made as a writer and three data servers make them.

use super::fleet::Fleet;
use anyhow::Context;
use proto::{hdfs as p, protocol};
use rpc::Client;
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// Files that are open at once in one worker's hands.
const BATCH: u64 = 100;
const WORKERS: usize = 32;
const CLIENTS: usize = 4;
const FILES_A_DIRECTORY: u64 = 1_000;
const HOLDER: &str = "clover-bench-reports";
const REPLICATION: u32 = 3;
const CREATE: u32 = 1;
const BLOCK_BYTES: u64 = 128 << 20;
const CLOSE_AGAIN: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes the files, and tells the fleet's servers which replicas they have.
pub async fn make(address: &str, user: &str, count: u64, fleet: &Arc<Fleet>) -> anyhow::Result<()> {
    let client = || Client::connect(address, protocol::CLIENT_NAMENODE, user, Default::default());
    let clients: Vec<Client> = (0..CLIENTS).map(|_| client()).collect();
    let next = Arc::new(AtomicU64::new(0));
    let mut workers = JoinSet::new();
    for index in 0..WORKERS {
        let (client, next, fleet) = (clients[index % CLIENTS].clone(), next.clone(), fleet.clone());
        workers.spawn(async move {
            let mut placed = Vec::new();
            loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= count {
                    return Ok::<_, anyhow::Error>(placed);
                }
                placed.extend(make_batch(&client, first..count.min(first + BATCH), &fleet).await?);
            }
        });
    }
    let mut placed = Vec::new();
    while let Some(done) = workers.join_next().await {
        placed.extend(done??);
    }
    fleet.hold(&placed)
}

/// A replica: the position of its server, and the block.
type Replica = (usize, p::BlockProto);

async fn make_batch(client: &Client, numbers: Range<u64>, fleet: &Fleet) -> anyhow::Result<Vec<Replica>> {
    let mut open = Vec::new();
    let mut at_servers: BTreeMap<usize, Vec<p::BlockProto>> = BTreeMap::new();
    for number in numbers {
        let path = format!("/reports/{:06}/file-{number}", number / FILES_A_DIRECTORY);
        let located = begin(client, &path).await.with_context(|| format!("writing {path}"))?;
        // Lengths differ as those of small files do.
        let length = 1_000 + number % 1_000;
        let block = p::ExtendedBlockProto { num_bytes: Some(length), ..located.b };
        for place in &located.locs {
            let uuid = &place.id.datanode_uuid;
            let server = fleet.position(uuid).with_context(|| format!("{uuid} is not of this bench"))?;
            at_servers.entry(server).or_default().push(p::BlockProto {
                block_id: block.block_id,
                gen_stamp: block.generation_stamp,
                num_bytes: block.num_bytes,
            });
        }
        open.push((path, block));
    }
    for (server, blocks) in &at_servers {
        fleet.servers[*server].received(blocks).await?;
    }
    for (path, block) in open {
        let request = p::CompleteRequestProto {
            src: path.clone(),
            client_name: HOLDER.into(),
            last: Some(block),
            ..p::CompleteRequestProto::default()
        };
        let begun = Instant::now();
        loop {
            let done: p::CompleteResponseProto =
                client.call("complete", &request).await.with_context(|| format!("closing {path}"))?;
            if done.result {
                break;
            }
            // Hadoop's NameNode takes what a data server tells into a queue, and answers before it has looked.
            anyhow::ensure!(begun.elapsed() < PATIENCE, "{path} could not be closed");
            tokio::time::sleep(CLOSE_AGAIN).await;
        }
    }
    let flat =
        |(server, blocks): (usize, Vec<p::BlockProto>)| blocks.into_iter().map(move |block| (server, block));
    Ok(at_servers.into_iter().flat_map(flat).collect())
}

/// Makes a file and its block.
async fn begin(client: &Client, path: &str) -> anyhow::Result<p::LocatedBlockProto> {
    let request = p::CreateRequestProto {
        src: path.into(),
        masked: p::FsPermissionProto { perm: 0o644 },
        client_name: HOLDER.into(),
        create_flag: CREATE,
        create_parent: true,
        replication: REPLICATION,
        block_size: BLOCK_BYTES,
        ..p::CreateRequestProto::default()
    };
    let _: p::CreateResponseProto = client.call("create", &request).await?;
    let request = p::AddBlockRequestProto {
        src: path.into(),
        client_name: HOLDER.into(),
        ..p::AddBlockRequestProto::default()
    };
    let added: p::AddBlockResponseProto = client.call("addBlock", &request).await?;
    Ok(added.block)
}
