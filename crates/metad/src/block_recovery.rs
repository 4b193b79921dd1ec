//! A file's writer is gone and its last block unfinished, or a client cuts the block: its data servers settle its length.
//!
//! The namespace decides that, for a client that asks for it or wants to have the file ([`recover`], [`cut`]), or for the server
//! itself when the writer's lease has expired ([`release`]). It gives the block a new stamp and the file another holder. Once that
//! has committed, a data server is told ([`order`]). It has all of them agree on a length, and reports it:
//! `datanodes/recovery.rs`.

use crate::partition::turn::Turn;
use base::{Block, BlockId, GenerationStamp};
use namespace::ops::{
    release_lease::{Plan, Recovery},
    truncate::Cutting,
};

/// Carries out what was planned for a file whose writer was silent for too long.
pub fn release(turn: &mut Turn<'_>, plan: Plan) {
    match plan {
        Plan::Closed => {}
        Plan::Close(edit) => {
            turn.apply(edit);
        }
        Plan::Recover(recovery) => recover(turn, recovery),
        Plan::Waiting(block) => tracing::debug!(%block, "a file stays open: its last block is not reported"),
    }
}

/// Has the data servers of a block recover it, unless they are at it.
pub fn recover(turn: &mut Turn<'_>, recovery: Recovery) {
    let Recovery { edit, block, stamp, truncation, source } = recovery;
    if is_begun(turn, block, source) {
        turn.apply(edit);
        order(turn, block, stamp, truncation, source);
    }
}

/// Has the data servers cut the last block of a file that a client truncates, and the client's lease begin anew, as Hadoop's
/// `addLease` does. If none of the servers is there now the recovery is begun again with the others.
pub fn cut(turn: &mut Turn<'_>, cutting: &Cutting) {
    let partition = turn.partition();
    partition.renewals.lock().renew(&cutting.holder, partition.moment());
    let source = turn.namespace().truncation_source_of(cutting.inode).map(|source| source.id);
    if let Some((block, stamp, length)) = turn.namespace().truncation_of(cutting.inode)
        && is_begun(turn, block, source)
    {
        order(turn, block, stamp, Some(length), source);
    }
}

/// Counts a recovery as begun, unless one is under way: that is left alone.
fn is_begun(turn: &Turn<'_>, block: Block, source: Option<BlockId>) -> bool {
    turn.partition().blocks.lock().begin_recovery(block.id, source, turn.moment)
}

/// Orders a recovery when the edit that begins it has committed: a stamp that a data server has seen must not be
/// given out again.
fn order(
    turn: &mut Turn<'_>,
    block: Block,
    stamp: GenerationStamp,
    truncation: Option<u64>,
    source: Option<BlockId>,
) {
    let partition = turn.partition().clone();
    tracing::info!(%block, %stamp, ?truncation, ?source, "block recovery begins");
    turn.after_commit(move |committed| {
        if committed.is_ok() && !partition.blocks.lock().recover(block.id, stamp, truncation, source) {
            tracing::warn!(%block, "no live server has the block: its recovery waits for one");
        }
    });
}
