//! The operations by which a local client reads without this server: REQUEST_SHORT_CIRCUIT_SHM gives it a segment of
//! shared memory, REQUEST_SHORT_CIRCUIT_FDS the open files of a replica, RELEASE_SHORT_CIRCUIT_FDS takes a slot back.
//!
//! A refusal is an answer, and the connection goes on. The status of a refusal is chosen by its effect on a stock client:
//! after ERROR it asks this server for no files for ten minutes; after ERROR_UNSUPPORTED with a version it reads this one
//! block in another way, so that is the answer wherever the reason is the block (Hadoop's servers answer ERROR where the
//! replica is gone); and a client that is refused a segment with any other status than ERROR_UNSUPPORTED asks for it again at
//! once, without end.

use super::{next::Next, on_disk, peer::Peer, refusal::Refusal, request, segment::HeldSegment};
use crate::{
    short_circuit::{SegmentId, SlotId},
    state::State,
};
use blockstore::{ReplicaReader, ReplicaState, StoreError};
use proto::{
    data_transfer::slot,
    hdfs::{
        BlockOpResponseProto, OpRequestShortCircuitAccessProto, ReleaseShortCircuitAccessRequestProto,
        ReleaseShortCircuitAccessResponseProto, ShortCircuitFdResponse, ShortCircuitShmIdProto,
        ShortCircuitShmRequestProto, ShortCircuitShmResponseProto, ShortCircuitShmSlotProto, Status,
    },
};
use rpc::streaming::{Inbound, Outgoing};
use std::{
    os::fd::AsFd,
    sync::{Arc, atomic::Ordering},
};

const NOT_CONFIGURED: &str = "File descriptor passing was not configured.";

/// A request for files that is refused.
struct No {
    status: Status,
    message: String,
    /// The answer tells the format of the files: the refusal is about this block, not about the server.
    has_version: bool,
}

impl No {
    fn error(message: impl Into<String>) -> Self {
        Self { status: Status::Error, message: message.into(), has_version: false }
    }

    /// This block is to be read in another way.
    fn this_block(message: impl Into<String>) -> Self {
        Self { status: Status::ErrorUnsupported, message: message.into(), has_version: true }
    }
}

impl From<StoreError> for No {
    fn from(error: StoreError) -> Self {
        Self::this_block(error.to_string())
    }
}

/// A slot that is taken for a request; it is given back unless the client gets its files.
struct Registered<'a> {
    state: &'a State,
    slot: Option<SlotId>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            // The segment may be gone meanwhile, and the slot with it.
            let _ = self.state.short_circuit.release(slot);
        }
    }
}

/// REQUEST_SHORT_CIRCUIT_FDS.
pub async fn request_files(
    state: &Arc<State>,
    op: OpRequestShortCircuitAccessProto,
    inbound: &mut Inbound,
    out: &mut Outgoing,
) -> Result<Next, Refusal> {
    let slot = op.slot_id.as_ref().map(slot_id);
    let mut registered = Registered { state, slot: None };
    let reader = match open(state, &op, slot, &mut registered, out).await {
        Ok(reader) => reader,
        Err(no) => {
            state.short_circuit.figures.refused.fetch_add(1, Ordering::Relaxed);
            let answer = BlockOpResponseProto {
                status: no.status.into(),
                message: Some(no.message),
                short_circuit_access_version: no.has_version.then_some(slot::FORMAT_VERSION),
                ..Default::default()
            };
            out.message(&answer).await?;
            return Ok(Next::Operation);
        }
    };
    let answer = BlockOpResponseProto {
        status: Status::Success.into(),
        short_circuit_access_version: Some(slot::FORMAT_VERSION),
        ..Default::default()
    };
    out.message(&answer).await?;
    let says_receipt = match op.supports_receipt_verification() {
        true => ShortCircuitFdResponse::UseReceiptVerification,
        false => ShortCircuitFdResponse::DoNotUseReceiptVerification,
    };
    let meta = reader.meta_file.as_ref().and_then(|file| file.descriptor());
    let (Some(block), Some(meta)) = (reader.block_file.descriptor(), meta) else {
        return Err(Refusal::Close("the replica's files are not the system's".into()));
    };
    out.descriptors(says_receipt as u8, &[block, meta]).await?;
    if op.supports_receipt_verification() {
        // Without it the client may not have the slot in use, and nobody would ever give it back.
        inbound.byte().await?;
    }
    registered.slot = None;
    state.short_circuit.figures.granted.fetch_add(1, Ordering::Relaxed);
    Ok(match op.supports_receipt_verification() {
        true => Next::Operation,
        // Nobody says that the files have arrived. Until they do, the system counts them as this server's, and a client that
        // reads nothing could have any number on their way.
        false => Next::End,
    })
}

/// Takes the slot, and opens the files after that: whatever happens to the replica from then on, the slot tells.
async fn open(
    state: &Arc<State>,
    op: &OpRequestShortCircuitAccessProto,
    slot: Option<SlotId>,
    registered: &mut Registered<'_>,
    out: &Outgoing,
) -> Result<ReplicaReader, No> {
    if !out.is_local() {
        return Err(No::error("You cannot pass file descriptors over anything but a UNIX domain socket."));
    }
    if !state.config.short_circuit {
        return Err(No {
            status: Status::ErrorUnsupported,
            message: NOT_CONFIGURED.into(),
            has_version: false,
        });
    }
    if op.max_version < slot::FORMAT_VERSION {
        return Err(No::this_block(format!(
            "Your client is too old to read this block!  Its format version is {}, but the highest format \
             version you can read is {}",
            slot::FORMAT_VERSION,
            op.max_version
        )));
    }
    let block = request::block(&op.header.block);
    let pool = state.pool(&block.pool)?;
    if let Some(slot) = slot {
        let taken = state.short_circuit.register(&pool.id, block.block.id, slot);
        taken.map_err(|refused| No::error(refused.to_string()))?;
        registered.slot = Some(slot);
    }
    let (store, wanted) = (pool.store.clone(), block.clone());
    let opened = on_disk(state, block.block.id, move |_| store.read(&wanted)).await;
    let reader = opened.map_err(|error| No::this_block(error.to_string()))??;
    if reader.state != ReplicaState::Finalized {
        // Its last sum changes with every packet: the two files never fit for long.
        return Err(No::this_block(format!("{block} is being written")));
    }
    if reader.meta_file.is_none() {
        return Err(No::this_block(format!("Meta file for {block} not found.")));
    }
    Ok(reader)
}

/// RELEASE_SHORT_CIRCUIT_FDS.
pub async fn release_files(
    state: &Arc<State>,
    op: ReleaseShortCircuitAccessRequestProto,
    out: &mut Outgoing,
) -> Result<Next, Refusal> {
    let (status, error) = match state.short_circuit.release(slot_id(&op.slot_id)) {
        _ if !state.config.short_circuit => {
            (Status::ErrorUnsupported, Some("unsupported operation".to_owned()))
        }
        Ok(()) => (Status::Success, None),
        Err(refused) => (Status::ErrorInvalid, Some(refused.to_string())),
    };
    out.message(&ReleaseShortCircuitAccessResponseProto { status: status.into(), error }).await?;
    Ok(Next::Operation)
}

/// REQUEST_SHORT_CIRCUIT_SHM.
pub async fn request_segment(
    state: &Arc<State>,
    op: ShortCircuitShmRequestProto,
    out: &mut Outgoing,
    peer: Peer,
) -> Result<Next, Refusal> {
    let Peer::Local(process) = peer else {
        let text = format!(
            "Bad request from {peer}: must request a shared memory segment over a UNIX domain socket."
        );
        return no_segment(Status::ErrorInvalid, text, out).await;
    };
    let (held, file) = match HeldSegment::make(state, process) {
        Ok(made) => made,
        Err(why) => {
            tracing::info!(%peer, why, "a client gets no shared memory segment");
            return no_segment(Status::ErrorUnsupported, why, out).await;
        }
    };
    tracing::debug!(%peer, client = op.client_name, "a client has a shared memory segment");
    out.message(&ShortCircuitShmResponseProto {
        status: Status::Success.into(),
        error: None,
        id: Some(ShortCircuitShmIdProto { hi: held.id().high, lo: held.id().low }),
    })
    .await?;
    out.descriptors(0, &[file.as_fd()]).await?;
    Ok(Next::Hold(Box::new(held)))
}

async fn no_segment(status: Status, error: String, out: &mut Outgoing) -> Result<Next, Refusal> {
    let answer = ShortCircuitShmResponseProto { status: status.into(), error: Some(error), id: None };
    out.message(&answer).await?;
    Ok(Next::Operation)
}

fn slot_id(slot: &ShortCircuitShmSlotProto) -> SlotId {
    let segment = SegmentId { high: slot.shm_id.hi, low: slot.shm_id.lo };
    SlotId { segment, index: slot.slot_idx }
}
