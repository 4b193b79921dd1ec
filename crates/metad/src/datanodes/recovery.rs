//! The data servers of a block have agreed on its length ([`commit_block_synchronization`]): the block is finished and the file
//! closed. `block_recovery.rs` has told them to.

use super::{identity, wire};
use crate::{client_protocol::calls, core::Core, partition::turn::Turn};
use base::{Block, BlockId, FsError, GenerationStamp};
use blocks::{BlockState, Location};
use namespace::{Planned, ops};
use proto::hdfs::datanode as d;
use rpc::{Call, Replier};
use std::sync::Arc;

/// Changes the namespace, so only the active takes it. A data server that sent it to another member looks for the
/// active, as Hadoop's do.
pub fn commit_block_synchronization(core: &Arc<Core>, call: Call, reply: Replier) {
    if !core.partition.member.standing().is_serving() {
        return reply.fs_error(&FsError::NotActive(
            "Operation category WRITE is not supported in state standby: this member of the group is not active."
                .into(),
        ));
    }
    let decoded = calls::decode::<d::CommitBlockSynchronizationRequestProto>(&call, reply);
    let Some((request, reply)) = decoded else { return };
    let speaker = identity::ip_of(call.peer.ip());
    calls::turn(core, call, reply, move |turn, _| {
        let block = wire::block_of(&request.block);
        if !turn.partition().has_pool(&request.block.pool_id) {
            return Err(FsError::Io(format!("{block} is of the foreign pool {}", request.block.pool_id)));
        }
        calls::refuse_in_safe_mode(turn.partition(), || {
            "Cannot commitBlockSynchronization while in safe mode".to_owned()
        })?;
        let outcome = outcome_of(turn, block.id);
        if is_finished(turn, outcome) {
            return Ok(d::CommitBlockSynchronizationResponseProto {});
        }
        // The message carries no registration, so the address counts.
        if !turn.partition().blocks.lock().may_end_recovery(outcome, &speaker) {
            return Err(FsError::Io(format!(
                "{speaker} is not the address of a data server that was told to recover {block}."
            )));
        }
        let finish = ops::commit_block_synchronization::Request {
            block: outcome,
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
                let mut map = turn.partition().blocks.lock();
                map.end_recovery(outcome);
                let named = request.new_taragets.iter().zip(&request.new_target_storages);
                named.filter_map(|(server, storage)| map.location(&server.datanode_uuid, storage)).collect()
            };
            turn.apply_with_targets(edit, &places);
            if finish.close_file && !finish.delete_block {
                let agreed =
                    Block { id: finish.block, generation_stamp: finish.stamp, length: finish.length };
                turn.partition().blocks.lock().recovered(agreed, &places, turn.moment);
            }
            tracing::info!(%block, length = request.new_length, stamp = request.new_gen_stamp, "block recovered");
        }
        Ok(d::CommitBlockSynchronizationResponseProto {})
    });
}

/// The block that a recovery was to settle. Where a block is copied, Hadoop's data servers name the one that they
/// have copied, and only the new one is unfinished.
fn outcome_of(turn: &Turn<'_>, named: BlockId) -> BlockId {
    let inode = turn.partition().blocks.lock().inode_of(named);
    let copied_to = inode.and_then(|inode| {
        let source = turn.namespace().truncation_source_of(inode).filter(|source| source.id == named);
        source.and(turn.namespace().truncation_of(inode)).map(|(copy, ..)| copy.id)
    });
    copied_to.unwrap_or(named)
}

/// A call that is repeated, or comes too late, finds its work done.
fn is_finished(turn: &Turn<'_>, block: BlockId) -> bool {
    let facts = turn.partition().blocks.lock().facts(block);
    facts.is_some_and(|facts| facts.state == BlockState::Complete)
}
