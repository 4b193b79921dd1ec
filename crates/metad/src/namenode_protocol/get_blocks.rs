//! `getBlocks`: what a balancer may move away from a data server.
//!
//! The block map does not list the blocks of a storage. They are found by looking through the records from a random one
//! on, a slice under the lock at a time, on a thread where nobody else waits.

use crate::{
    client_protocol::{decode, refuse_in_safe_mode},
    core::Core,
    partition::Partition,
};
use ::blocks::{Listed, Wanted};
use base::{FsError, FsResult, InodeId, StorageType, Timestamp};
use parking_lot::MutexGuard;
use proto::{
    exception::JAVA_ILLEGAL_ARGUMENT,
    hdfs::{self as p, namenode as n},
};
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

/// Records looked through under one lock of the block map: about a millisecond if each of them is found.
const SLICE_RECORDS: u32 = 2_000;

/// Blocks in one answer, which then has some 25 MB. Stock clients take answers of up to 128 MB.
const BLOCKS_MAX: usize = 100_000;

/// Answers the call on a thread of its own.
pub fn call(core: &Arc<Core>, call: &Call, reply: Replier) {
    let Some((request, reply)) = decode::<n::GetBlocksRequestProto>(call, reply) else { return };
    let is_negative = |number: u64| i64::try_from(number).is_err();
    if request.size == 0 || is_negative(request.size) {
        let text = format!("Unexpected not positive size: {}", request.size as i64);
        return reply.error(RpcError::application(JAVA_ILLEGAL_ARGUMENT, text));
    }
    if is_negative(request.min_block_size()) {
        let text = format!("Unexpected not positive size: {}", request.min_block_size() as i64);
        return reply.error(RpcError::application(JAVA_ILLEGAL_ARGUMENT, text));
    }
    let core = core.clone();
    tokio::task::spawn_blocking(move || match list(&core, &request) {
        Ok(blocks) => {
            reply.ok(&n::GetBlocksResponseProto { blocks: p::BlocksWithLocationsProto { blocks } });
        }
        Err(error) => reply.fs_error(&error),
    });
}

fn list(core: &Core, request: &n::GetBlocksRequestProto) -> FsResult<Vec<p::BlockWithLocationsProto>> {
    let partition = &core.partition;
    refuse_in_safe_mode(partition, || "Cannot execute getBlocks".into())?;
    let uuid = &request.datanode.datanode_uuid;
    let (replicas, records) = {
        let map = partition.blocks.lock();
        (map.replica_count_of(uuid), map.record_count())
    };
    let Some(replicas) = replicas else {
        let at = format!("{}:{}", request.datanode.ip_addr, request.datanode.xfer_port);
        return Err(FsError::InvalidArgument(format!("Datanode {at} not found.")));
    };
    if replicas == 0 {
        return Ok(Vec::new());
    }
    let storage_type = match request.storage_type {
        None => None,
        Some(number) => Some(
            p::StorageTypeProto::try_from(number)
                .map(StorageType::from)
                .map_err(|_| FsError::InvalidArgument(format!("Storage type {number} is not known")))?,
        ),
    };
    let wanted = Wanted { server_uuid: uuid, storage_type, bytes_min: request.min_block_size() };
    let used_since = used_since(core.env.clock.timestamp(), request.time_interval());
    let start = (core.env.random.next_u64() % u64::from(records.max(1))) as u32;
    let mut answer = Answer { bytes: 0, bytes_wanted: request.size, blocks: Vec::new(), used: Vec::new() };
    // New records may come in the meantime: those are not looked for.
    for (from, until) in [(start, records), (0, start)] {
        answer.gather(partition, &wanted, (from, until), used_since);
    }
    Ok(answer.end())
}

/// The time after which a file counts as in use; `None` if it does not matter.
fn used_since(now: Timestamp, interval_ms: u64) -> Option<Timestamp> {
    (interval_ms > 0).then(|| Timestamp::from_ms(now.ms.saturating_sub(interval_ms)))
}

struct Answer {
    bytes: u64,
    bytes_wanted: u64,
    blocks: Vec<p::BlockWithLocationsProto>,
    /// Blocks of files in use: told last, and only if there are too few others.
    used: Vec<Listed>,
}

impl Answer {
    fn is_full(&self) -> bool {
        self.bytes >= self.bytes_wanted || self.blocks.len() >= BLOCKS_MAX
    }

    fn gather(
        &mut self,
        partition: &Partition,
        wanted: &Wanted<'_>,
        (mut from, until): (u32, u32),
        used_since: Option<Timestamp>,
    ) {
        while from < until && !self.is_full() {
            let map = partition.blocks.lock();
            let slice = map.list_blocks(wanted, from, until, SLICE_RECORDS);
            // A thread that waits for the lock gets it before the next slice.
            MutexGuard::unlock_fair(map);
            if slice.next <= from {
                return;
            }
            from = slice.next;
            let is_used = in_use(partition, used_since, &slice.found);
            for (listed, is_used) in slice.found.into_iter().zip(is_used) {
                match is_used {
                    _ if self.is_full() => return,
                    true if self.used.len() < BLOCKS_MAX => self.used.push(listed),
                    true => {}
                    false => self.add(&listed),
                }
            }
        }
    }

    fn add(&mut self, listed: &Listed) {
        self.bytes = self.bytes.saturating_add(listed.block.length);
        self.blocks.push(to_proto(listed));
    }

    fn end(mut self) -> Vec<p::BlockWithLocationsProto> {
        for listed in std::mem::take(&mut self.used) {
            if self.is_full() {
                break;
            }
            self.add(&listed);
        }
        self.blocks
    }
}

/// For each block, whether its file is in use. The tree is held only if that matters.
fn in_use(partition: &Partition, since: Option<Timestamp>, found: &[Listed]) -> Vec<bool> {
    let Some(since) = since.filter(|_| !found.is_empty()) else { return vec![false; found.len()] };
    let tree = partition.tree();
    let is_used = |inode: InodeId| tree.namespace.is_used_since(inode, since);
    found.iter().map(|listed| is_used(listed.inode)).collect()
}

fn to_proto(listed: &Listed) -> p::BlockWithLocationsProto {
    let places = &listed.locations;
    p::BlockWithLocationsProto {
        block: p::BlockProto {
            block_id: listed.block.id.0,
            gen_stamp: listed.block.generation_stamp.0,
            num_bytes: Some(listed.block.length),
        },
        datanode_uuids: places.iter().map(|place| place.server.uuid().to_string()).collect(),
        storage_uuids: places.iter().map(|place| place.storage.to_string()).collect(),
        storage_types: places
            .iter()
            .map(|place| p::StorageTypeProto::from(place.storage_type) as i32)
            .collect(),
        ..Default::default()
    }
}
