//! A replica on its way to other data servers: re-replication, and the mending of a client's pipeline.

use crate::{
    state::State,
    xceiver::{
        outbound::{self, Outbound},
        request,
    },
};
use base::ExtendedBlock;
use blockstore::ReplicaState;
use bytes::BytesMut;
use proto::{
    common::TokenProto,
    data_transfer::{Opcode, op},
    hdfs::{
        BaseHeaderProto, BlockOpResponseProto, CachingStrategyProto, ClientOperationHeaderProto,
        DatanodeInfoProto, OpWriteBlockProto, Status, op_write_block_proto::BlockConstructionStage as Stage,
    },
};
use rpc::streaming::{self, StreamError};
use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use thiserror::Error;

/// Why a replica did not reach its target. The metadata service asks again, this server or another.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The replica to be sent is not here, or is damaged; the metadata server must be told. The text says why.
    #[error("{0}")]
    Replica(String),
    #[error("{target}: {reason}")]
    Target { target: String, reason: String },
}

/// A replica to be copied, with its targets.
pub struct Copy {
    pub block: ExtendedBlock,
    /// The first one is sent the replica and passes it on to the others.
    pub targets: Vec<DatanodeInfoProto>,
    pub target_storage_types: Vec<i32>,
    pub target_storage_ids: Vec<String>,
    pub token: TokenProto,
    /// The client whose pipeline is mended; empty if the replica is copied by order of a metadata server.
    pub client_name: String,
}

/// The order to send one replica to the first target, which passes it on to the next.
#[derive(Clone, Debug)]
pub struct Order {
    pub block: ExtendedBlock,
    pub targets: Vec<DatanodeInfoProto>,
    pub storage_ids: Vec<String>,
    /// Numbers of Hadoop's wire.
    pub storage_types: Vec<i32>,
}

/// Sets a copy off. Failures are logged: the metadata server that ordered it notices that the copy does not appear.
pub fn start(state: &Arc<State>, order: Order) {
    let state = state.clone();
    tokio::spawn(async move {
        let _guard = state.begin_copy();
        let block = order.block.clone();
        let copy = Copy {
            block: order.block,
            targets: order.targets,
            target_storage_types: order.storage_types,
            target_storage_ids: order.storage_ids,
            token: TokenProto::default(),
            client_name: String::new(),
        };
        match send(&state, copy).await {
            Ok(()) => tracing::info!(%block, "a replica was copied"),
            Err(error) => {
                state.counters.transfer_errors.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%block, %error, "a replica could not be copied");
            }
        }
    });
}

/// Sends a replica to the first target. Returns when that one has it for good (a copy) or has said so (for a
/// client), or when it has gone away.
pub(crate) async fn send(state: &Arc<State>, copy: Copy) -> Result<(), TransferError> {
    let Some(target) = copy.targets.first() else { return Ok(()) };
    let pool = state.pool(&copy.block.pool).map_err(|error| TransferError::Replica(error.to_string()))?;
    let reader = outbound::open(state, pool, copy.block.clone())
        .await
        .map_err(|refusal| TransferError::Replica(refusal.message().into()))?;
    if reader.meta_file.is_none() {
        // The copy would be without sums as well.
        outbound::report_damaged(state, pool, &reader, "its meta file is missing");
        return Err(TransferError::Replica(format!("the meta file of {} is missing", reader.block)));
    }
    let is_for_client = !copy.client_name.is_empty();
    let stage = match (is_for_client, reader.state) {
        (true, ReplicaState::BeingWritten) => Stage::TransferRbw,
        (true, _) => Stage::TransferFinalized,
        (false, ReplicaState::Finalized) => Stage::PipelineSetupCreate,
        (false, other) => {
            return Err(TransferError::Replica(format!("the replica of {} is {other}", reader.block)));
        }
    };
    let mut block = copy.block.clone();
    block.block = reader.block;
    block.block.length = reader.visible_length;
    let outbound = Outbound::new(pool, reader, 0, block.block.length, true)
        .map_err(|refusal| TransferError::Replica(refusal.message().into()))?;

    let address = request::address(target);
    let failed = |reason: &dyn std::fmt::Display| TransferError::Target {
        target: address.clone(),
        reason: reason.to_string(),
    };
    let addr = request::socket_addr(target).map_err(|refusal| failed(&refusal.message()))?;
    let patience = Duration::from_millis(state.config.transfer_timeout_ms);
    let socket = streaming::connect(addr, patience).await.map_err(|error| failed(&error))?;
    let (mut inbound, mut out) = streaming::split(socket, patience);
    let mut greeting = BytesMut::new();
    op::encode(Opcode::WriteBlock, &header(state, &copy, &block, stage, &outbound), &mut greeting);
    outbound.send(state, greeting.to_vec(), &mut out).await.map_err(|error| failed(&error))?;

    if is_for_client {
        let ack: BlockOpResponseProto = inbound.message().await.map_err(|error| failed(&error))?;
        return match ack.status {
            0 => Ok(()),
            _ => Err(failed(&format!(
                "{:?} {}",
                Status::try_from(ack.status).unwrap_or(Status::Error),
                ack.message()
            ))),
        };
    }
    // A copy is not acknowledged. The target closes the connection once it has finalised the replica; one that
    // answers instead has refused.
    match inbound.message::<BlockOpResponseProto>().await {
        Err(StreamError::Closed) => Ok(()),
        Ok(response) => Err(failed(&response.message())),
        Err(StreamError::Io(error)) if error.kind() == io::ErrorKind::ConnectionReset => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

fn header(
    state: &State,
    copy: &Copy,
    block: &ExtendedBlock,
    stage: Stage,
    outbound: &Outbound,
) -> OpWriteBlockProto {
    OpWriteBlockProto {
        header: ClientOperationHeaderProto {
            base_header: BaseHeaderProto {
                block: request::block_proto(block),
                token: Some(copy.token.clone()),
                trace_info: None,
            },
            client_name: copy.client_name.clone(),
        },
        targets: copy.targets[1..].to_vec(),
        source: Some(state.identity.to_info_proto()),
        stage: stage.into(),
        requested_checksum: request::checksum_proto(outbound.checksum),
        caching_strategy: Some(CachingStrategyProto { drop_behind: Some(true), readahead: None }),
        storage_type: copy.target_storage_types.first().copied(),
        target_storage_types: copy.target_storage_types.iter().skip(1).copied().collect(),
        storage_id: copy.target_storage_ids.first().cloned(),
        target_storage_ids: copy.target_storage_ids.iter().skip(1).cloned().collect(),
        ..Default::default()
    }
}
