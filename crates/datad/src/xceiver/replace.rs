//! REPLACE_BLOCK: a balancer has this server take over a replica.
//!
//! The replica is fetched from a *proxy*, any server that has one, and the metadata server is told of it together with the
//! server whose replica may go in return. Nothing goes before the new replica is finished here, and durable. If the proxy
//! is this server itself, the replica goes to a volume of another type.

use super::{
    lane::Ending,
    on_disk,
    peer::Peer,
    receive::{self, Reception},
    refusal::Refusal,
    request::{self, BLOCK_BYTES_MAX},
};
use crate::{pool::Pool, shift::shift, state::State};
use base::{ExtendedBlock, StorageType};
use blockstore::{NewReplica, ReplicaWriter, StoreError};
use bytes::BytesMut;
use proto::{
    data_transfer::{Opcode, op as wire},
    hdfs::{
        BaseHeaderProto, BlockOpResponseProto, DatanodeInfoProto, OpCopyBlockProto, OpReplaceBlockProto,
        Status,
    },
};
use rpc::streaming::{self, Outgoing};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// The longest hint that is passed on: a uuid has 36 bytes.
const HINT_BYTES_MAX: usize = 128;

/// How long the proxy may need to close the connection after it has sent all.
const PROXY_END: Duration = Duration::from_secs(1);

/// A replica that is to come here.
struct Move {
    block: ExtendedBlock,
    storage_type: StorageType,
    /// The uuid of the server whose replica may go.
    hint: Arc<str>,
    proxy: DatanodeInfoProto,
}

impl Move {
    fn new(op: OpReplaceBlockProto) -> Result<Self, Refusal> {
        if op.del_hint.len() > HINT_BYTES_MAX {
            return Err(Refusal::error(format!("a hint of {} bytes is no uuid", op.del_hint.len())));
        }
        let block = request::block(&op.header.block);
        if block.block.length > BLOCK_BYTES_MAX {
            return Err(Refusal::error(format!("{block} is longer than blocks may be")));
        }
        Ok(Self {
            block,
            storage_type: request::storage_type(op.storage_type),
            hint: op.del_hint.into(),
            proxy: op.source,
        })
    }

    fn is_within(&self, state: &State) -> bool {
        *self.proxy.id.datanode_uuid == *state.identity.uuid
    }
}

pub async fn replace_block(
    state: &Arc<State>,
    op: OpReplaceBlockProto,
    out: &mut Outgoing,
    peer: Peer,
) -> Result<(), Refusal> {
    let moved = Arc::new(Move::new(op)?);
    let pool = state.pool(&moved.block.pool)?.clone();
    let Some(place) = state.moves.begin() else {
        return Err(Refusal::error(format!(
            "Not able to receive block {} from {peer} because threads quota={} is exceeded.",
            moved.block.block.id,
            state.moves.count_max()
        )));
    };
    let outcome = carry_out(state, &pool, &moved, out).await;
    drop(place);
    if let Err(refusal) = outcome {
        state.moves.failed.fetch_add(1, Ordering::Relaxed);
        return Err(match refusal {
            // Hadoop's servers have one status for all failures of a move.
            Refusal::Answer { message, .. } => {
                Refusal::error(format!("opReplaceBlock {} received exception {message}", moved.block))
            }
            gone @ Refusal::Close(_) => gone,
        });
    }
    tracing::info!(block = %moved.block, hint = %moved.hint, proxy = request::address(&moved.proxy), "a replica was moved here");
    out.message(&BlockOpResponseProto { status: Status::Success.into(), ..Default::default() }).await?;
    Ok(())
}

/// The balancer hears from time to time that the move goes on. If it hears nothing more, because it is gone, the move ends.
async fn carry_out(
    state: &Arc<State>,
    pool: &Arc<Pool>,
    moved: &Arc<Move>,
    out: &mut Outgoing,
) -> Result<(), Refusal> {
    let work = async {
        match moved.is_within(state) {
            true => {
                let shifted = shift(state, pool, &moved.block, moved.storage_type).await;
                Ok(shifted.map_err(|error| Refusal::error(error.to_string()))??)
            }
            false => fetch(state, pool, moved).await,
        }
    };
    tokio::pin!(work);
    let pause = Duration::from_millis((state.config.transfer_timeout_ms / 2).max(1));
    loop {
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = tokio::time::sleep(pause) => {
                let going_on = BlockOpResponseProto { status: Status::InProgress.into(), ..Default::default() };
                out.message(&going_on).await?;
            }
        }
    }
}

/// Receives the replica from the proxy.
async fn fetch(state: &Arc<State>, pool: &Arc<Pool>, moved: &Arc<Move>) -> Result<(), Refusal> {
    let block = &moved.block;
    // An older replica of the block does not give way, as it does to a copy that the metadata server has ordered: anybody may
    // name a stamp here.
    if let Ok(found) = pool.store.facts(&pool.id, block.block.id) {
        return Err(StoreError::Exists { block: found.block, state: found.state }.into());
    }
    let addr = request::socket_addr(&moved.proxy)?;
    let patience = Duration::from_millis(state.config.transfer_timeout_ms);
    let of_proxy = |error: &dyn std::fmt::Display| Refusal::error(format!("from {addr}: {error}"));
    let socket = streaming::connect(addr, patience).await.map_err(|error| of_proxy(&error))?;
    let (mut inbound, mut out) = streaming::split(socket, patience);
    let header = BaseHeaderProto { block: request::block_proto(block), ..Default::default() };
    let mut bytes = BytesMut::new();
    wire::encode(Opcode::CopyBlock, &OpCopyBlockProto { header }, &mut bytes);
    out.write(&bytes).await.map_err(|error| of_proxy(&error))?;
    let response: BlockOpResponseProto = inbound.message().await.map_err(|error| of_proxy(&error))?;
    if response.status != Status::Success as i32 {
        let status = Status::try_from(response.status).unwrap_or(Status::Error);
        return Err(of_proxy(&format!("{status:?} {}", response.message())));
    }
    let Some(info) = response.read_op_checksum_info.filter(|info| info.chunk_offset == 0) else {
        return Err(of_proxy(&"the answer does not say how the replica is checksummed from its beginning"));
    };
    let checksum = request::checksum(&info.checksum)?;
    let writer = {
        let (pool, moved, state) = (pool.clone(), moved.clone(), state.clone());
        on_disk(&state.clone(), block.block.id, move |_| begin(&state, &pool, &moved, checksum)).await??
    };
    let length = block.block.length;
    let reception = Reception {
        state,
        pool,
        checksum,
        limit: if length > 0 { length } else { BLOCK_BYTES_MAX },
        ending: Ending::FinalizeMoved { length, hint: moved.hint.clone() },
        is_acknowledged: false,
        verifies: true,
        is_balancing: true,
    };
    let received = receive::receive(reception, writer, &mut inbound, &mut out, None).await;
    // A proxy that goes away is none of the balancer's connections: the balancer is told.
    received.map_err(|refusal| match refusal {
        Refusal::Close(reason) => of_proxy(&reason),
        told => told,
    })?;
    state.moves.received.fetch_add(1, Ordering::Relaxed);
    // The proxy closes once it has given up its place among its moves, and may be asked for the next.
    inbound.drain(PROXY_END).await;
    Ok(())
}

/// Makes the replica, on a volume of the type asked for and no other. Runs where it may block.
fn begin(
    state: &State,
    pool: &Pool,
    moved: &Move,
    checksum: pipeline::Checksum,
) -> Result<ReplicaWriter, Refusal> {
    let size_expected = moved.block.block.length;
    let writer = pool.store.create_temporary(&NewReplica {
        block: moved.block.clone(),
        checksum: request::disk_checksum(checksum)?,
        storage_type: moved.storage_type,
        size_expected,
    })?;
    match state.storage_type(writer.storage_id()) == moved.storage_type {
        true => Ok(writer),
        false => Err(Refusal::error(format!("no volume of type {} has room", moved.storage_type))),
    }
}
