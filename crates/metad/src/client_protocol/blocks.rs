//! The calls of a writer about its blocks.

use super::{
    answers::Encoded,
    calls::{self, decode},
    steps::{self, End},
};
use crate::{
    core::Core,
    datanodes::wire,
    partition::{Partition, turn::Turn},
};
use ::blocks::{Location, Placement, Reader, ServerFilter};
use base::{Block, BlockId, FsError, FsResult, GenerationStamp, InodeId};
use namespace::{
    Plannable, Planned, Reply,
    ops::{self, add_block::NewBlock},
};
use proto::{answers::Only, hdfs as p};
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn block_of(proto: &p::ExtendedBlockProto) -> Block {
    Block {
        id: BlockId(proto.block_id),
        generation_stamp: GenerationStamp(proto.generation_stamp),
        length: proto.num_bytes(),
    }
}

pub fn add_block(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::AddBlockRequestProto>(&call, reply) else { return };
    let wishes = Wishes {
        excluded: request.exclude_nodes.into_iter().map(|node| node.id.datanode_uuid).collect(),
        favoured: request.favored_nodes,
        avoid_writer: request.flags.contains(&(p::AddBlockFlagProto::NoLocalWrite as i32)),
    };
    let request = ops::add_block::Request {
        path: request.src,
        holder: request.client_name,
        previous: request.previous.as_ref().map(block_of),
        inode: InodeId(request.file_id.unwrap_or(0)),
    };
    calls::turn(core, call, reply, move |turn, call| allocate(turn, call, &request, &wishes));
}

/// The client's wishes about the places of a new block.
struct Wishes {
    /// The ids of data servers.
    excluded: Vec<String>,
    favoured: Vec<String>,
    avoid_writer: bool,
}

/// A block with its places: the whole of the answer.
fn placed(partition: &Partition, block: Block, offset: u64, places: &[Location]) -> Encoded {
    Encoded::of(Only(Some(wire::placed(&partition.cluster.block_pool, block, offset, places))))
}

fn allocate(
    turn: &mut Turn<'_>,
    call: &Call,
    request: &ops::add_block::Request,
    wishes: &Wishes,
) -> FsResult<Encoded> {
    if let Some(essentials) = calls::remembered(turn, call)? {
        return again(turn, call, request, wishes, essentials);
    }
    match steps::follow(turn, call, request)? {
        End::Answered(essentials) => again(turn, call, request, wishes, essentials?),
        End::Allocate(edit, wanted) => {
            let targets = choose(turn, call, request, wishes, wanted)?;
            let essentials = turn.apply_with_targets(edit, &targets).reply;
            let (block, offset) = block_in(essentials)?;
            Ok(placed(turn.partition(), block, offset, &targets))
        }
        End::Wait(_) => Err(FsError::NotReplicatedYet(format!("Not replicated yet: {}", request.path))),
    }
}

fn block_in(essentials: Reply) -> FsResult<(Block, u64)> {
    match essentials {
        Reply::Block { block, offset, .. } => Ok((block, offset)),
        _ => Err(FsError::Io("The call was answered before, but not with a block.".into())),
    }
}

/// Repeats the former answer, with the targets that the block has now. A block that the active before this one
/// allocated may have none that are known here: then it gets new ones, as in HDFS.
fn again(
    turn: &Turn<'_>,
    call: &Call,
    request: &ops::add_block::Request,
    wishes: &Wishes,
    essentials: Reply,
) -> FsResult<Encoded> {
    let (block, offset) = block_in(essentials)?;
    let host = super::reads::host(call);
    let partition = turn.partition();
    let located = partition.blocks.lock().locations(block.id, Reader { host: Some(&host) }, 0, turn.moment);
    let has_places = located.as_ref().is_some_and(|located| !located.locations.is_empty());
    let wanted = if has_places { None } else { partition.blocks.lock().facts(block.id) };
    let Some(wanted) = wanted else {
        let found = wire::found(&partition.cluster.block_pool, block, offset, located.as_ref());
        return Ok(Encoded::of(Only(Some(found))));
    };
    let (inode, replication) = (wanted.inode, wanted.replication);
    let block_size = block_size_of(turn, inode);
    let targets = choose(turn, call, request, wishes, NewBlock { inode, replication, block_size })?;
    partition.blocks.lock().set_pipeline(wanted.block, &targets);
    Ok(placed(partition, block, offset, &targets))
}

/// The size that the file's blocks may reach. With a larger one a server with room enough would be passed over.
fn block_size_of(turn: &Turn<'_>, file: InodeId) -> u64 {
    let own = turn.namespace().block_size_of(file);
    own.unwrap_or(turn.partition().config.defaults.block_size)
}

fn choose(
    turn: &Turn<'_>,
    call: &Call,
    request: &ops::add_block::Request,
    wishes: &Wishes,
    wanted: NewBlock,
) -> FsResult<Vec<Location>> {
    let excluded: Vec<&str> = wishes.excluded.iter().map(String::as_str).collect();
    let favoured: Vec<&str> = wishes.favoured.iter().map(String::as_str).collect();
    let host = super::reads::host(call);
    let placement = Placement {
        writer: Reader { host: Some(&host) },
        replication: wanted.replication.into(),
        block_size: wanted.block_size,
        excluded: &excluded,
        favoured: &favoured,
        existing: &[],
        avoid_writer: wishes.avoid_writer,
        storage_policy: turn.namespace().storage_policy_of(wanted.inode),
    };
    let partition = turn.partition();
    let mut blocks = partition.blocks.lock();
    let targets = blocks.choose_targets(&placement, turn.moment);
    let minimum = usize::from(partition.config.limits.replication_min);
    if targets.len() >= minimum {
        return Ok(targets);
    }
    let live = blocks.servers(ServerFilter::Live).len();
    Err(FsError::Io(format!(
        "File {} could only be written to {} of the {minimum} minReplication nodes. \
         There are {live} datanode(s) running and {} node(s) are excluded in this operation.",
        request.path,
        targets.len(),
        if excluded.is_empty() { "no".to_owned() } else { excluded.len().to_string() },
    )))
}

pub fn abandon_block(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::AbandonBlockRequestProto>(&call, reply) else { return };
    let request = ops::abandon_block::Request {
        path: request.src,
        holder: request.holder,
        block: block_of(&request.b),
        pool: request.b.pool_id,
        inode: InodeId(request.file_id.unwrap_or(0)),
    };
    calls::write(core, call, reply, request, |_, _| p::AbandonBlockResponseProto {});
}

/// More places for a block whose pipeline lost a server.
pub fn get_additional_datanode(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetAdditionalDatanodeRequestProto>(&call, reply) else { return };
    calls::turn(core, call, reply, move |turn, call| {
        calls::refuse_in_safe_mode(turn.partition(), || {
            let (pool, block) = (&request.blk.pool_id, block_of(&request.blk));
            format!("Cannot add datanode; src={}, blk={pool}:{block}", request.src)
        })?;
        let inode = InodeId(request.file_id.unwrap_or(0));
        let storage_policy = turn.namespace().storage_policy_of(inode);
        let partition = turn.partition();
        let block_size = block_size_of(turn, inode);
        let mut map = partition.blocks.lock();
        let existing: Vec<Location> = request
            .existings
            .iter()
            .zip(&request.existing_storage_uuids)
            .filter_map(|(node, storage)| map.location(&node.id.datanode_uuid, storage))
            .collect();
        let excluded: Vec<&str> = request.excludes.iter().map(|node| &*node.id.datanode_uuid).collect();
        let host = super::reads::host(call);
        let placement = Placement {
            writer: Reader { host: Some(&host) },
            replication: request.num_additional_nodes as usize,
            block_size,
            excluded: &excluded,
            favoured: &[],
            existing: &existing,
            avoid_writer: false,
            storage_policy,
        };
        let added = map.choose_targets(&placement, turn.moment);
        let targets: Vec<Location> = existing.into_iter().chain(added).collect();
        let block = block_of(&request.blk);
        Ok(placed(partition, block, 0, &targets))
    });
}

pub fn update_block_for_pipeline(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::UpdateBlockForPipelineRequestProto>(&call, reply) else {
        return;
    };
    let asked = block_of(&request.block);
    let request = ops::update_block_for_pipeline::Request {
        block: asked,
        holder: request.client_name,
        pool: request.block.pool_id,
    };
    calls::write(core, call, reply, request, move |turn, essentials| {
        let stamp = match essentials {
            Reply::Block { block, .. } => block.generation_stamp,
            _ => asked.generation_stamp,
        };
        let block = Block { generation_stamp: stamp, ..asked };
        placed(turn.partition(), block, 0, &[])
    });
}

pub fn update_pipeline(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::UpdatePipelineRequestProto>(&call, reply) else { return };
    let update = ops::update_pipeline::Request {
        holder: request.client_name,
        old: block_of(&request.old_block),
        new: block_of(&request.new_block),
    };
    calls::turn(core, call, reply, move |turn, call| {
        if calls::remembered(turn, call)?.is_some() {
            return Ok(p::UpdatePipelineResponseProto {});
        }
        calls::refuse_in_safe_mode(turn.partition(), || update.what())?;
        let fingerprint = steps::fingerprint(call);
        let planned = turn.plan(&call.caller, call.origin, fingerprint, |namespace, context, facts| {
            update.plan(namespace, context, facts)
        })?;
        if let Planned::Edit(edit) = planned {
            let targets: Vec<Location> = {
                let map = turn.partition().blocks.lock();
                let named = request.new_nodes.iter().zip(&request.storage_i_ds);
                named.filter_map(|(node, storage)| map.location(&node.datanode_uuid, storage)).collect()
            };
            turn.apply_with_targets(edit, &targets);
        }
        Ok(p::UpdatePipelineResponseProto {})
    });
}

pub fn fsync(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::FsyncRequestProto>(&call, reply) else { return };
    let request = ops::fsync::Request {
        last_block_length: request.last_block_length(),
        inode: InodeId(request.file_id.unwrap_or(0)),
        path: request.src,
        holder: request.client,
    };
    calls::write(core, call, reply, request, |_, _| p::FsyncResponseProto {});
}

pub fn report_bad_blocks(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ReportBadBlocksRequestProto>(&call, reply) else { return };
    let now = core.moment();
    let mut map = core.partition.blocks.lock();
    for located in &request.blocks {
        if located.b.pool_id != *core.cluster.block_pool {
            continue;
        }
        let block = block_of(&located.b);
        for (index, node) in located.locs.iter().enumerate() {
            let storage = located.storage_i_ds.get(index).map(String::as_str).filter(|id| !id.is_empty());
            tracing::warn!(%block, server = %node.id.datanode_uuid, user = %call.caller, "bad replica reported");
            map.report_bad(block, &node.id.datanode_uuid, storage, now);
        }
    }
    drop(map);
    reply.ok(&p::ReportBadBlocksResponseProto {});
}
