//! Block recovery: a file's writer is gone, and the servers of its last block settle the length.
//!
//! A metadata server orders one data server to do it ([`start`]). That one asks each server of the block,
//! itself included, what it has ([`begin`]), has each take the length that comes of it ([`finish`]), and tells the
//! metadata server. Which length that is, and what is told, `pipeline::recovery` decides.

use crate::{convert, pool::Pool, refusal::refuse, state::State};
use base::{Block, BlockId, Candidate, ExtendedBlock, FsError, GenerationStamp};
use pipeline::recovery::{
    BlockRecovery, Commit, Failure, Outcome, Participant, RecoveryError, RecoveryOrder,
};
use proto::{
    exception,
    hdfs::{
        DatanodeIdProto, InitReplicaRecoveryRequestProto, InitReplicaRecoveryResponseProto,
        RecoveringBlockProto, ReplicaStateProto, UpdateReplicaUnderRecoveryRequestProto,
        UpdateReplicaUnderRecoveryResponseProto,
        datanode::{CommitBlockSynchronizationRequestProto, CommitBlockSynchronizationResponseProto},
    },
    protocol::INTER_DATANODE,
};
use rpc::{Call, CallError, Client, ClientOptions, Replier, RpcError};
use std::{fmt::Display, sync::Arc, time::Duration};
use thiserror::Error;

/// The number of times that the outcome of a recovery is told while no metadata server takes it: longer than a switch
/// of the active takes. Then the next order begins anew.
const COMMIT_TRIES_MAX: u32 = 30;
const COMMIT_PAUSE: Duration = Duration::from_millis(500);

/// Why a block is not recovered this time. The metadata server orders it again.
#[derive(Debug, Error)]
enum NotRecovered {
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error("the metadata server does not take it: {0}")]
    Commit(CallError),
}

/// Answers another data server.
pub fn answer(state: &Arc<State>, call: &Call, reply: Replier) {
    match call.method {
        "initReplicaRecovery" => match call.decode::<InitReplicaRecoveryRequestProto>() {
            Ok(request) => {
                later(state, reply, move |state| async move { serve_begin(&state, request).await })
            }
            Err(error) => reply.error(error),
        },
        "updateReplicaUnderRecovery" => match call.decode::<UpdateReplicaUnderRecoveryRequestProto>() {
            Ok(request) => {
                later(state, reply, move |state| async move { serve_finish(&state, request).await })
            }
            Err(error) => reply.error(error),
        },
        other => reply.error(RpcError::no_such_method(other, INTER_DATANODE)),
    }
}

fn later<M, F>(state: &Arc<State>, reply: Replier, work: impl FnOnce(Arc<State>) -> F + Send + 'static)
where
    M: prost::Message,
    F: Future<Output = Result<M, RpcError>> + Send + 'static,
{
    let work = work(state.clone());
    tokio::spawn(async move { reply.result(work.await) });
}

async fn serve_begin(
    state: &Arc<State>,
    request: InitReplicaRecoveryRequestProto,
) -> Result<InitReplicaRecoveryResponseProto, RpcError> {
    let recovery = GenerationStamp(request.block.new_gen_stamp);
    let block = convert::extended_from_proto(&request.block.block.b);
    let candidate = begin_here(state, block, recovery).await?;
    Ok(InitReplicaRecoveryResponseProto {
        replica_found: candidate.is_some(),
        state: candidate.map(|candidate| convert::replica_state_to_proto(candidate.state) as i32),
        block: candidate.map(|candidate| convert::block_to_proto(candidate.block)),
    })
}

async fn serve_finish(
    state: &Arc<State>,
    request: UpdateReplicaUnderRecoveryRequestProto,
) -> Result<UpdateReplicaUnderRecoveryResponseProto, RpcError> {
    let block = convert::extended_from_proto(&request.block);
    let new_id = request.new_block_id.unwrap_or(0);
    let target = if new_id == 0 { block.block.id } else { BlockId(new_id) };
    let recovery = GenerationStamp(request.recovery_id);
    let storage = finish_here(state, block, recovery, request.new_length, target).await?;
    Ok(UpdateReplicaUnderRecoveryResponseProto { storage_uuid: Some(storage.to_string()) })
}

async fn begin_here(
    state: &Arc<State>,
    block: ExtendedBlock,
    recovery: GenerationStamp,
) -> Result<Option<Candidate>, RpcError> {
    let pool = state.pool(&block.pool).map_err(|error| refuse(&error))?.clone();
    state
        .on_volume_thread(move || pool.store.begin_recovery(&block, recovery))
        .await
        .map_err(|error| refuse(&error))
}

async fn finish_here(
    state: &Arc<State>,
    block: ExtendedBlock,
    recovery: GenerationStamp,
    length: u64,
    target: BlockId,
) -> Result<Arc<str>, RpcError> {
    let pool = state.pool(&block.pool).map_err(|error| refuse(&error))?;
    let mut finished = Block { id: target, ..block.block };
    let store = pool.store.clone();
    let storage = state
        .on_volume_thread(move || {
            if target == block.block.id {
                store.finish_recovery(&block, recovery, length)
            } else {
                store.finish_recovery_as_copy(&block, recovery, length, target)
            }
        })
        .await
        .map_err(|error| refuse(&error))?;
    (finished.generation_stamp, finished.length) = (recovery, length);
    pool.reporter.notify_received(&storage, finished, None);
    Ok(storage)
}

/// Sets a recovery off. `orderer` is the metadata server of `pool` that wants it; whichever is active then is told the
/// outcome.
pub fn start(state: &Arc<State>, pool: &Arc<Pool>, orderer: usize, order: RecoveringBlockProto) {
    let (state, pool) = (state.clone(), pool.clone());
    tokio::spawn(async move {
        let block = convert::extended_from_proto(&order.block.b);
        match recover(&state, &pool, orderer, order).await {
            Ok(length) => tracing::info!(%block, length, "a block was recovered"),
            Err(error) => tracing::warn!(%block, %error, "a block was not recovered"),
        }
    });
}

async fn recover(
    state: &Arc<State>,
    pool: &Pool,
    orderer: usize,
    order: RecoveringBlockProto,
) -> Result<u64, NotRecovered> {
    let block = convert::extended_from_proto(&order.block.b);
    let servers = &order.block.locs;
    let target = order.truncate_block.as_ref().map_or(block.block.id, |block| BlockId(block.block_id));
    let mut recovery = BlockRecovery::new(RecoveryOrder {
        block: block.block,
        stamp: GenerationStamp(order.new_gen_stamp),
        truncation: order.truncate_block.as_ref().and_then(|truncated| truncated.num_bytes),
        target,
        servers: servers.iter().map(|server| server.id.datanode_uuid.as_str().into()).collect(),
    });
    while let Some(server) = recovery.ask() {
        let id = &servers[server].id;
        let answer = begin(state, &block, &order, id).await;
        if let Err(error) = &answer {
            tracing::warn!(%block, server = %id.host_name, %error, "no part in the recovery");
        }
        recovery.answered(server, answer);
    }
    let outcome = match recovery.decide()? {
        Outcome::Delete => Commit::deletion(),
        Outcome::Agreed(mut agreement) => {
            for Participant { server, replica } in agreement.participants() {
                let id = &servers[server].id;
                let old = ExtendedBlock { pool: block.pool.clone(), block: replica };
                let finished = finish(state, old, target, &order, id, agreement.length()).await;
                if let Err(error) = &finished {
                    tracing::warn!(%block, server = %id.host_name, error, "the agreed length was not taken");
                }
                agreement.finished(server, finished);
            }
            agreement.commit()?
        }
    };
    let length = outcome.length;
    commit(pool, orderer, &block, &order, outcome).await.map_err(NotRecovered::Commit)?;
    Ok(length)
}

async fn begin(
    state: &Arc<State>,
    block: &ExtendedBlock,
    order: &RecoveringBlockProto,
    server: &DatanodeIdProto,
) -> Result<Option<Candidate>, Failure> {
    if is_here(state, server) {
        let found = begin_here(state, block.clone(), GenerationStamp(order.new_gen_stamp)).await;
        return found.map_err(|error| failure(Some(&error.class), &error));
    }
    let request = InitReplicaRecoveryRequestProto { block: order.clone() };
    let answer: InitReplicaRecoveryResponseProto = peer(state, server)
        .call("initReplicaRecovery", &request)
        .await
        .map_err(|error| failure(error.class(), &error))?;
    match (answer.replica_found, answer.state, answer.block) {
        (false, ..) => Ok(None),
        (true, Some(state), Some(block)) => {
            let state =
                ReplicaStateProto::try_from(state).map_err(|error| Failure::Unknown(error.to_string()))?;
            let state = convert::replica_state_from_proto(state);
            Ok(Some(Candidate { block: convert::block_from_proto(&block), state }))
        }
        (true, ..) => Err(Failure::Unknown("it has the replica but does not say what it is".into())),
    }
}

fn failure(class: Option<&str>, error: &dyn Display) -> Failure {
    match class {
        Some(exception::RECOVERY_IN_PROGRESS) => Failure::Superseded(error.to_string()),
        _ => Failure::Unknown(error.to_string()),
    }
}

/// Has a server take the length. `target` is the id of the block that comes of `old`: another one, if that is a copy.
/// The answer is the storage that has the finished replica.
async fn finish(
    state: &Arc<State>,
    old: ExtendedBlock,
    target: BlockId,
    order: &RecoveringBlockProto,
    server: &DatanodeIdProto,
    length: u64,
) -> Result<String, String> {
    if is_here(state, server) {
        let storage = finish_here(state, old, GenerationStamp(order.new_gen_stamp), length, target).await;
        return storage.map(|storage| storage.to_string()).map_err(|error| error.to_string());
    }
    let request = UpdateReplicaUnderRecoveryRequestProto {
        block: convert::extended_to_proto(&old.pool, old.block),
        recovery_id: order.new_gen_stamp,
        new_length: length,
        new_block_id: Some(target.0),
    };
    let answer: UpdateReplicaUnderRecoveryResponseProto = peer(state, server)
        .call("updateReplicaUnderRecovery", &request)
        .await
        .map_err(|error| error.to_string())?;
    Ok(answer.storage_uuid.unwrap_or_default())
}

/// Tells the outcome in Hadoop's form: even of a copy by the number of the old block.
async fn commit(
    pool: &Pool,
    orderer: usize,
    block: &ExtendedBlock,
    order: &RecoveringBlockProto,
    outcome: Commit,
) -> Result<(), CallError> {
    let id = |server: usize| order.block.locs[server].id.clone();
    let (new_targets, new_target_storages) =
        outcome.finished.into_iter().map(|(server, storage)| (id(server), storage)).unzip();
    let request = CommitBlockSynchronizationRequestProto {
        block: convert::extended_to_proto(&block.pool, block.block),
        new_gen_stamp: order.new_gen_stamp,
        new_length: outcome.length,
        close_file: true,
        delete_block: outcome.delete,
        new_taragets: new_targets,
        new_target_storages,
    };
    tell_the_active(pool, orderer, &request).await
}

/// A takeover may have come between the order and its outcome. The stamp had committed before the order was given, so
/// the active knows of it, whichever member that is; and telling it twice has one effect.
async fn tell_the_active(
    pool: &Pool,
    orderer: usize,
    request: &CommitBlockSynchronizationRequestProto,
) -> Result<(), CallError> {
    let mut tries = 0;
    loop {
        let active = pool.leadership.active().unwrap_or(orderer);
        let metadata = pool.member(active).client;
        let answer: Result<CommitBlockSynchronizationResponseProto, CallError> =
            metadata.call("commitBlockSynchronization", request).await;
        tries += 1;
        match answer {
            Ok(_) => return Ok(()),
            Err(error) if tries < COMMIT_TRIES_MAX && is_passing(&error) => {
                tracing::info!(server = metadata.address(), %error, "the outcome of a recovery will be told again");
                tokio::time::sleep(COMMIT_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether another server, or the same one later, may take the order.
fn is_passing(error: &CallError) -> bool {
    match error {
        CallError::Remote { class, message, .. } => {
            matches!(exception::from_remote(class, message), FsError::NotActive(_) | FsError::Retry(_))
        }
        CallError::Decode(_) => false,
        _ => true,
    }
}

fn is_here(state: &State, id: &DatanodeIdProto) -> bool {
    *id.datanode_uuid == *state.identity.uuid
}

fn peer(state: &State, id: &DatanodeIdProto) -> Client {
    let options = ClientOptions {
        connect_timeout: Duration::from_secs(5),
        call_timeout: Duration::from_secs(30),
        ..ClientOptions::default()
    };
    Client::connect(format!("{}:{}", id.ip_addr, id.ipc_port), INTER_DATANODE, &state.config.user, options)
}
