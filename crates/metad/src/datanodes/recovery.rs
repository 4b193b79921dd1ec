//! A file's writer is gone and its last block unfinished: the block's data servers settle its length.
//!
//! The namespace gives the block a new stamp and the file another holder; once that has committed, a data
//! server is told ([`start_recovery`]). It has all of them agree, and says what they agreed on
//! ([`commit_block_synchronization`]): then the block is finished and the file closed.

use super::wire;
use crate::{client_protocol, core::Core, turn::Turn};
use base::{Block, FsError, GenerationStamp};
use blocks::Location;
use namespace::{Edit, Planned, ops};
use proto::hdfs::datanode as d;
use rpc::{Call, Replier};
use std::sync::Arc;

/// Applies the edit that begins a recovery, and orders it when the edit has committed: a stamp that a data
/// server has seen must not be given out again.
pub fn start_recovery(turn: &mut Turn<'_>, edit: &Edit, block: Block, stamp: GenerationStamp) {
    turn.apply(edit);
    let core = turn.core().clone();
    turn.after_commit(move |committed| {
        if committed.is_ok() && !core.blocks.lock().recover(block.id, stamp) {
            tracing::warn!(%block, "no live server has the block: its recovery waits for one");
        }
    });
}

pub fn commit_block_synchronization(core: &Arc<Core>, call: Call, reply: Replier) {
    let decoded = client_protocol::decode::<d::CommitBlockSynchronizationRequestProto>(&call, reply);
    let Some((request, reply)) = decoded else { return };
    client_protocol::turn(core, call, reply, move |turn, _| {
        let block = wire::block_of(&request.block);
        if request.block.pool_id != *turn.core().cluster.block_pool {
            return Err(FsError::Io(format!("{block} is of the foreign pool {}", request.block.pool_id)));
        }
        client_protocol::refuse_in_safe_mode(turn.core(), || {
            "Cannot commitBlockSynchronization while in safe mode".to_owned()
        })?;
        let finish = ops::commit_block_synchronization::Request {
            block: block.id,
            stamp: GenerationStamp(request.new_gen_stamp),
            length: request.new_length,
            close_file: request.close_file,
            delete_block: request.delete_block,
        };
        let planned = turn.plan_own(|namespace, context, _| {
            ops::commit_block_synchronization::plan(namespace, context, &finish)
        })?;
        if let Planned::Edit(edit) = planned {
            let places: Vec<Location> = {
                let map = turn.core().blocks.lock();
                let named = request.new_taragets.iter().zip(&request.new_target_storages);
                named.filter_map(|(server, storage)| map.location(&server.datanode_uuid, storage)).collect()
            };
            turn.apply_with_targets(&edit, &places);
            tracing::info!(%block, length = request.new_length, stamp = request.new_gen_stamp, "block recovered");
        }
        Ok(d::CommitBlockSynchronizationResponseProto {})
    });
}
