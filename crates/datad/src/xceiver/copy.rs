//! COPY_BLOCK: a balancer has another data server fetch a replica from this one.

use super::{
    outbound::{self, Outbound},
    peer::Peer,
    refusal::Refusal,
    request,
};
use crate::state::State;
use blockstore::ReplicaState;
use proto::hdfs::OpCopyBlockProto;
use rpc::streaming::Outgoing;
use std::sync::{Arc, atomic::Ordering};

/// Hadoop's servers end a copy with a character, two bytes, once the sender has given up its place among the moves.
const LAST_WORD: [u8; 2] = [0, b'd'];

pub async fn copy_block(
    state: &Arc<State>,
    op: OpCopyBlockProto,
    out: &mut Outgoing,
    peer: Peer,
) -> Result<(), Refusal> {
    let block = request::block(&op.header.block);
    let pool = state.pool(&block.pool)?;
    let Some(place) = state.moves.begin() else {
        return Err(Refusal::error(format!(
            "Not able to copy block {} to {peer} because threads quota={} is exceeded.",
            block.block.id,
            state.moves.count_max()
        )));
    };
    let reader = outbound::open(state, pool, block.clone()).await?;
    if reader.state != ReplicaState::Finalized {
        return Err(Refusal::error(format!(
            "the replica of {} is {}: it stays here",
            reader.block, reader.state
        )));
    }
    if reader.block.generation_stamp != block.block.generation_stamp {
        // The receiver would give it the stamp that was asked for.
        return Err(Refusal::error(format!(
            "the replica here is {}, and {block} was asked for",
            reader.block
        )));
    }
    if reader.meta_file.is_none() {
        outbound::report_damaged(state, pool, &reader, "its meta file is missing");
        return Err(Refusal::error(format!("the meta file of {} is missing", reader.block)));
    }
    let length = reader.block.length;
    let outbound = Outbound::new(pool, reader, 0, length, true)?.at_balancing_rate();
    outbound.send_with_answer(state, out).await?;
    drop(place);
    out.write(&LAST_WORD).await?;
    state.moves.sent.fetch_add(1, Ordering::Relaxed);
    tracing::debug!(%block, %peer, "a replica was sent to be moved");
    Ok(())
}
