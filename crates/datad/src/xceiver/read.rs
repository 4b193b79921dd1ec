//! READ_BLOCK: a range of a replica, with the checksums that the disk has for it.

use super::{
    next::Next,
    outbound::{self, Outbound},
    peer::Peer,
    refusal::Refusal,
    request,
};
use crate::{pool::Pool, state::State};
use blockstore::{ReplicaReader, ReplicaState};
use proto::{
    data_transfer::Opcode,
    hdfs::{ClientReadStatusProto, OpReadBlockProto, Status},
};
use rpc::streaming::{Inbound, Outgoing};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// A reader may ask for bytes that were acknowledged to the writer a moment ago and are still on their way to
/// this server's disk: for so long they are waited for.
const WAIT_FOR_LENGTH: Duration = Duration::from_secs(3);

/// Between looks at a replica that has not grown enough.
const WAIT_STEP: Duration = Duration::from_millis(10);

pub async fn read_block(
    state: &Arc<State>,
    op: OpReadBlockProto,
    inbound: &mut Inbound,
    out: &mut Outgoing,
    peer: Peer,
) -> Result<Next, Refusal> {
    let block = request::block(&op.header.base_header.block);
    let pool = state.pool(&block.pool)?;
    let began = state.env.clock.moment();
    // Negative numbers arrive as numbers beyond any block.
    let reader = open_with_length(state, pool, &block, op.offset.saturating_add(op.len)).await?;
    let outbound = Outbound::new(pool, reader, op.offset, op.len, op.send_checksums())?;
    let counters = &state.counters;
    let volume = outbound.volume();
    outbound.send_with_answer(state, out).await?;

    counters.operated(Opcode::ReadBlock, began, state.env.clock.moment());
    counters.blocks_read.fetch_add(1, Ordering::Relaxed);
    counters.bytes_read.fetch_add(op.len, Ordering::Relaxed);

    // The reader's verdict. A reader that goes away instead has the bytes that it wanted.
    match inbound.message::<ClientReadStatusProto>().await {
        Ok(said) => {
            if said.status == Status::ErrorChecksum as i32 {
                tracing::warn!(%block, %peer, "the reader found the replica corrupt");
                state.suspect(pool, volume, block.block.id);
            }
            Ok(Next::Operation)
        }
        Err(_) => Ok(Next::End),
    }
}

/// Opens the replica, and again until one being written has grown to `length`.
async fn open_with_length(
    state: &Arc<State>,
    pool: &Arc<Pool>,
    block: &base::ExtendedBlock,
    length: u64,
) -> Result<ReplicaReader, Refusal> {
    let mut waited = Duration::ZERO;
    loop {
        let reader = outbound::open(state, pool, block.clone()).await?;
        let may_grow = reader.state == ReplicaState::BeingWritten && length <= request::BLOCK_BYTES_MAX;
        if reader.block.length >= length || !may_grow || waited >= WAIT_FOR_LENGTH {
            return Ok(reader);
        }
        tokio::time::sleep(WAIT_STEP).await;
        waited += WAIT_STEP;
    }
}
