//! WRITE_BLOCK: sets up this server's place in a pipeline, then receives.

use super::{
    lane::Ending,
    mirror::{self, Mirror},
    next::Next,
    on_disk,
    peer::Peer,
    receive::{self, Reception},
    refusal::Refusal,
    request::{self, BLOCK_BYTES_MAX, Write},
};
use crate::{pool::Pool, reporter::Corrupt, slowness::DiskOp, state::State};
use base::{Block, GenerationStamp};
use blockstore::{NewReplica, ReplicaWriter};
use proto::hdfs::{
    BlockOpResponseProto, OpWriteBlockProto, Status, op_write_block_proto::BlockConstructionStage as Stage,
};
use rpc::streaming::{Inbound, Outgoing};
use std::sync::Arc;

/// The replica that a write goes to.
enum Place {
    Open(ReplicaWriter),
    /// The replica was complete already and has its new generation stamp; no data follows.
    Closed,
}

pub async fn write_block(
    state: &Arc<State>,
    header: OpWriteBlockProto,
    inbound: &mut Inbound,
    out: &mut Outgoing,
    peer: Peer,
) -> Result<Next, Refusal> {
    let write = Arc::new(Write::new(state, header)?);
    let pool = state.pool(&write.block.pool)?;
    tracing::debug!(block = %write.block, stage = ?write.stage, %peer, "receiving");
    let open = async {
        let (pool, opened) = (pool.clone(), write.clone());
        on_disk(state, write.block.block.id, move |state| {
            let timer = state.slowness.begin(&state.env);
            let place = open(&pool, &opened)?;
            if let Place::Open(writer) = &place {
                state.slowness.end(&timer, &state.env, (writer.volume(), DiskOp::Metadata), 1);
            }
            Ok::<_, Refusal>(place)
        })
        .await?
    };
    // Both at once: a pipeline of three is then set up in the time of one, not of three after another.
    let (place, mirror) = tokio::join!(open, open_mirror(state, &write));
    let (place, mirror) = match (place, mirror) {
        (Ok(Place::Open(writer)), Err(refusal)) if write.keeps_its_stamp() => {
            finish_again(state, pool, writer).await;
            return Err(refusal);
        }
        (place, mirror) => (place?, mirror?),
    };

    if write.is_acknowledged() {
        out.message(&success()).await?;
    }
    let Place::Open(mut writer) = place else { return Ok(Next::End) };
    if let Some(drops_behind) = write.header.caching_strategy.and_then(|strategy| strategy.drop_behind) {
        writer.set_drops_behind(drops_behind);
    }
    let known_length = write.block.block.length;
    // A copying server says how long the replica is, a client that makes a block how long it may become; some
    // say nothing.
    let says_limit = write.is_copy || write.stage == Stage::PipelineSetupCreate;
    let limit =
        if says_limit && known_length > 0 { known_length.min(BLOCK_BYTES_MAX) } else { BLOCK_BYTES_MAX };
    let ending = match write.stage {
        Stage::TransferRbw if !write.is_copy => Ending::KeepOpen { length_min: known_length },
        Stage::TransferFinalized if !write.is_copy => Ending::FinalizeQuietly,
        _ => Ending::Finalize,
    };
    let reception = Reception {
        state,
        pool,
        checksum: write.checksum,
        limit,
        ending,
        is_acknowledged: write.is_acknowledged(),
        // The last server of the pipeline checks every byte; the others rely on it.
        verifies: mirror.is_none() || !write.is_acknowledged(),
        is_balancing: false,
    };
    let received = receive::receive(reception, writer, inbound, out, mirror).await;
    if write.is_copy && received.as_ref().is_err_and(Refusal::is_corrupt) {
        report_source(pool, &write);
    }
    received?;
    if write.is_transfer() && !write.is_copy {
        out.message(&success()).await?;
    }
    Ok(Next::End)
}

/// No pipeline came of an append that kept its stamp, and nothing was written: the replica is what it was. Its writer does
/// not mend pipelines, and the next one can append only to a finished replica.
async fn finish_again(state: &Arc<State>, pool: &Arc<Pool>, writer: ReplicaWriter) {
    let (block, pool) = (writer.block(), pool.clone());
    let finished = on_disk(state, block.id, move |_| {
        let storage_id = writer.storage_id().clone();
        writer.finalize(true).map(|block| pool.reporter.notify_received(&storage_id, block, None))
    });
    match finished.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(%block, %error, "an append that did not begin leaves its replica open")
        }
        Err(error) => tracing::warn!(%block, %error, "an append that did not begin leaves its replica open"),
    }
}

/// The server that sent a copy has a corrupt replica: nobody else is there to have spoilt it.
fn report_source(pool: &Pool, write: &Write) {
    if let Some(source) = &write.header.source {
        pool.reporter.notify_corrupt(Corrupt {
            block: write.block.block,
            node: source.clone(),
            storage_id: String::new(),
        });
    }
}

fn success() -> BlockOpResponseProto {
    BlockOpResponseProto {
        status: Status::Success.into(),
        first_bad_link: Some(String::new()),
        ..Default::default()
    }
}

/// The connection to the next server; without it a client's pipeline fails, and a copy goes on alone.
async fn open_mirror(state: &State, write: &Write) -> Result<Option<Mirror>, Refusal> {
    if write.header.targets.is_empty() {
        return Ok(None);
    }
    match mirror::open(state, write).await {
        Ok(mirror) => Ok(Some(mirror)),
        Err(_) if write.is_copy => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Opens the replica as the stage asks. Runs where it may block.
fn open(pool: &Pool, write: &Write) -> Result<Place, Refusal> {
    let store = &pool.store;
    let mut block = write.block.clone();
    let known_length = block.block.length;
    let new = |block| -> Result<NewReplica, Refusal> {
        Ok(NewReplica {
            block,
            checksum: request::disk_checksum(write.checksum)?,
            storage_type: write.storage_type,
            size_expected: known_length.min(BLOCK_BYTES_MAX),
        })
    };
    if write.is_copy || write.is_transfer() {
        return Ok(Place::Open(store.create_temporary(&new(block)?)?));
    }
    let (min, max) = (write.length_min, write.length_max);
    let stamp = write.new_stamp;
    let writer = match write.stage {
        Stage::PipelineSetupCreate => {
            if stamp != GenerationStamp(0) {
                block.block.generation_stamp = stamp;
            }
            store.create_rbw(&new(block)?)?
        }
        Stage::PipelineSetupStreamingRecovery => {
            return Ok(Place::Open(store.recover_rbw(&block, stamp, min, max)?));
        }
        Stage::PipelineSetupAppend => store.append(&block, stamp, min)?,
        Stage::PipelineSetupAppendRecovery => store.recover_append(&block, stamp, min)?,
        Stage::PipelineCloseRecovery => {
            let (block, storage_id) = store.recover_close(&block, stamp, min)?;
            pool.reporter.notify_received(&storage_id, block, None);
            return Ok(Place::Closed);
        }
        other => return Err(Refusal::error(format!("Unsupported stage {other:?} while receiving {block}"))),
    };
    let Block { id, generation_stamp, .. } = writer.block();
    let receiving = Block { id, generation_stamp, length: 0 };
    pool.reporter.notify_receiving(writer.storage_id(), receiving, write.keeps_its_stamp());
    Ok(Place::Open(writer))
}
