//! Block recovery: a file's writer is gone, and the servers of its last block settle the length.
//!
//! A metadata server orders one data server to do it ([`start`]). That one asks each server of the block,
//! itself included, what it has ([`begin`]); picks the length; has each take it ([`finish`]); and tells the
//! metadata server. If it dies half-way, the metadata server orders another one with a higher stamp, which
//! takes over.

use crate::{convert, ipc::refuse, state::State};
use base::{Block, BlockId, ExtendedBlock, FsError, GenerationStamp};
use blockstore::{Candidate, ReplicaState};
use proto::{
    exception,
    hdfs::{
        DatanodeIdProto, DatanodeInfoProto, InitReplicaRecoveryRequestProto,
        InitReplicaRecoveryResponseProto, RecoveringBlockProto, ReplicaStateProto,
        UpdateReplicaUnderRecoveryRequestProto, UpdateReplicaUnderRecoveryResponseProto,
        datanode::{CommitBlockSynchronizationRequestProto, CommitBlockSynchronizationResponseProto},
    },
    protocol::INTER_DATANODE,
};
use rpc::{Call, CallError, Client, ClientOptions, Replier, RpcError};
use std::{sync::Arc, time::Duration};
use thiserror::Error;

/// The number of times that the outcome of a recovery is told while no metadata server takes it: longer than a switch
/// of the active takes. Then the next order begins anew.
const COMMIT_TRIES_MAX: u32 = 30;
const COMMIT_PAUSE: Duration = Duration::from_millis(500);

/// Why a block is not recovered this time. The metadata server orders it again.
#[derive(Debug, Error)]
pub enum RecoveryError {
    #[error("no server of the block answered; the last said: {0}")]
    NobodyAnswered(String),
    #[error("{0} of its replicas were found, all of them still being copied in")]
    OnlyCopies(usize),
    #[error("finished replicas have different lengths, {0} and {1}")]
    LengthsDiffer(u64, u64),
    #[error("a newer recovery is under way: {0}")]
    Superseded(String),
    #[error("no server took the agreed length; the last said: {0}")]
    NobodyFinished(String),
    #[error("the metadata server does not take it: {0}")]
    Commit(CallError),
}

/// A server of the block and what it offers.
struct Member {
    id: DatanodeIdProto,
    candidate: Candidate,
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
    state
        .on_volume_thread(move |store| store.begin_recovery(&block, recovery))
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
    let mut finished = Block { id: target, ..block.block };
    let storage = state
        .on_volume_thread(move |store| {
            if target == block.block.id {
                store.finish_recovery(&block, recovery, length)
            } else {
                store.finish_recovery_as_copy(&block, recovery, length, target)
            }
        })
        .await
        .map_err(|error| refuse(&error))?;
    (finished.generation_stamp, finished.length) = (recovery, length);
    state.reporter.notify_received(&storage, finished, None);
    Ok(storage)
}

/// Sets a recovery off. `orderer` is the metadata server that wants it; whichever is active then is told the
/// outcome.
pub fn start(state: &Arc<State>, orderer: usize, order: RecoveringBlockProto) {
    let state = state.clone();
    tokio::spawn(async move {
        let block = convert::extended_from_proto(&order.block.b);
        match recover(&state, orderer, order).await {
            Ok(length) => tracing::info!(%block, length, "a block was recovered"),
            Err(error) => tracing::warn!(%block, %error, "a block was not recovered"),
        }
    });
}

async fn recover(
    state: &Arc<State>,
    orderer: usize,
    order: RecoveringBlockProto,
) -> Result<u64, RecoveryError> {
    let block = convert::extended_from_proto(&order.block.b);
    let target = order.truncate_block.as_ref().map_or(block.block.id, |block| BlockId(block.block_id));
    let outcome = ExtendedBlock { pool: block.pool.clone(), block: Block { id: target, ..block.block } };
    let members = gather(state, &block, &order).await?;
    let truncated = order.truncate_block.as_ref().and_then(|truncated| truncated.num_bytes);
    let Some((length, members)) = agree(members, truncated)? else {
        if target != block.block.id {
            return Err(RecoveryError::NobodyFinished("there is nothing to copy".into()));
        }
        // No server has a byte of it.
        commit(state, orderer, &block, &order, 0, Vec::new()).await?;
        return Ok(0);
    };
    let mut finished = Vec::new();
    let mut last_error = String::new();
    for member in members {
        match finish(state, &outcome, &order, &member, length).await {
            Ok(storage) => finished.push((member.id, storage)),
            Err(error) => {
                tracing::warn!(%block, server = %member.id.host_name, error, "the agreed length was not taken");
                last_error = error;
            }
        }
    }
    if finished.is_empty() {
        return Err(RecoveryError::NobodyFinished(last_error));
    }
    // In Hadoop's form: even of a copy by the number of the old block.
    commit(state, orderer, &block, &order, length, finished).await?;
    Ok(length)
}

/// Everyone who has something of the block that can be used.
async fn gather(
    state: &Arc<State>,
    block: &ExtendedBlock,
    order: &RecoveringBlockProto,
) -> Result<Vec<Member>, RecoveryError> {
    let mut members = Vec::new();
    let mut answers = 0;
    let mut last_error = String::from("nobody is said to have it");
    for server in &order.block.locs {
        match begin(state, block, order, server).await {
            Ok(found) => {
                answers += 1;
                members.extend(found.map(|candidate| Member { id: server.id.clone(), candidate }));
            }
            Err(error) if error.contains("RecoveryInProgressException") => {
                return Err(RecoveryError::Superseded(error));
            }
            Err(error) => {
                tracing::warn!(%block, server = %server.id.host_name, error, "no part in the recovery");
                last_error = error;
            }
        }
    }
    if answers == 0 { Err(RecoveryError::NobodyAnswered(last_error)) } else { usable(members, block.block) }
}

/// The members that have bytes of the block that a client wrote. A replica that is being copied in does not count,
/// but shows that another server has the block: if only such replicas are found, the block must not be deleted as one
/// of which no server has a byte.
fn usable(mut members: Vec<Member>, block: Block) -> Result<Vec<Member>, RecoveryError> {
    members.retain(|Member { candidate, .. }| {
        candidate.block.length > 0 && candidate.block.generation_stamp >= block.generation_stamp
    });
    let found = members.len();
    members.retain(|member| member.candidate.state <= ReplicaState::WaitingRecovery);
    if found > 0 && members.is_empty() { Err(RecoveryError::OnlyCopies(found)) } else { Ok(members) }
}

/// The length that all can have, and who takes it. A finished replica settles it. Otherwise it is the
/// shortest of those in the best state: whatever was acknowledged is on all of them.
fn agree(members: Vec<Member>, truncated: Option<u64>) -> Result<Option<(u64, Vec<Member>)>, RecoveryError> {
    let Some(best) = members.iter().map(|member| member.candidate.state).min() else { return Ok(None) };
    let lengths = || {
        let of_best = members.iter().filter(move |member| member.candidate.state == best);
        of_best.map(|member| member.candidate.block.length)
    };
    let shortest = lengths().min().expect("one is in the best state");
    if best == ReplicaState::Finalized
        && let Some(other) = lengths().find(|length| *length != shortest)
    {
        return Err(RecoveryError::LengthsDiffer(shortest, other));
    }
    let takes_part = |member: &Member| {
        let Candidate { block, state } = member.candidate;
        let is_as_good = best == ReplicaState::Finalized
            && state == ReplicaState::BeingWritten
            && block.length == shortest;
        state == best || is_as_good
    };
    let members = members.into_iter().filter(takes_part).collect();
    Ok(Some((truncated.unwrap_or(shortest), members)))
}

async fn begin(
    state: &Arc<State>,
    block: &ExtendedBlock,
    order: &RecoveringBlockProto,
    server: &DatanodeInfoProto,
) -> Result<Option<Candidate>, String> {
    if is_here(state, &server.id) {
        let found = begin_here(state, block.clone(), GenerationStamp(order.new_gen_stamp)).await;
        return found.map_err(|error| error.to_string());
    }
    let request = InitReplicaRecoveryRequestProto { block: order.clone() };
    let answer: InitReplicaRecoveryResponseProto = peer(state, &server.id)
        .call("initReplicaRecovery", &request)
        .await
        .map_err(|error| error.to_string())?;
    match (answer.replica_found, answer.state, answer.block) {
        (false, ..) => Ok(None),
        (true, Some(state), Some(block)) => {
            let state = ReplicaStateProto::try_from(state).map_err(|error| error.to_string())?;
            let state = convert::replica_state_from_proto(state);
            Ok(Some(Candidate { block: convert::block_from_proto(&block), state }))
        }
        (true, ..) => Err("it has the replica but does not say what it is".into()),
    }
}

/// `outcome` is what comes of it: another block, if that is a copy. The answer is the storage that has the finished
/// replica.
async fn finish(
    state: &Arc<State>,
    outcome: &ExtendedBlock,
    order: &RecoveringBlockProto,
    member: &Member,
    length: u64,
) -> Result<String, String> {
    let old = ExtendedBlock { pool: outcome.pool.clone(), block: member.candidate.block };
    if is_here(state, &member.id) {
        let storage =
            finish_here(state, old, GenerationStamp(order.new_gen_stamp), length, outcome.block.id).await;
        return storage.map(|storage| storage.to_string()).map_err(|error| error.to_string());
    }
    let request = UpdateReplicaUnderRecoveryRequestProto {
        block: convert::extended_to_proto(&old.pool, old.block),
        recovery_id: order.new_gen_stamp,
        new_length: length,
        new_block_id: Some(outcome.block.id.0),
    };
    let answer: UpdateReplicaUnderRecoveryResponseProto = peer(state, &member.id)
        .call("updateReplicaUnderRecovery", &request)
        .await
        .map_err(|error| error.to_string())?;
    Ok(answer.storage_uuid.unwrap_or_default())
}

async fn commit(
    state: &State,
    orderer: usize,
    block: &ExtendedBlock,
    order: &RecoveringBlockProto,
    length: u64,
    finished: Vec<(DatanodeIdProto, String)>,
) -> Result<(), RecoveryError> {
    let is_nowhere = finished.is_empty();
    let (new_targets, new_target_storages) = finished.into_iter().unzip();
    let request = CommitBlockSynchronizationRequestProto {
        block: convert::extended_to_proto(&block.pool, block.block),
        new_gen_stamp: order.new_gen_stamp,
        new_length: length,
        close_file: true,
        delete_block: is_nowhere,
        new_taragets: new_targets,
        new_target_storages,
    };
    tell_the_active(state, orderer, &request).await
}

/// A takeover may have come between the order and its outcome. The stamp had committed before the order was given, so
/// the active knows of it, whichever member that is; and telling it twice has one effect.
async fn tell_the_active(
    state: &State,
    orderer: usize,
    request: &CommitBlockSynchronizationRequestProto,
) -> Result<(), RecoveryError> {
    let mut tries = 0;
    loop {
        let active = state.leadership.active().unwrap_or(orderer);
        let metadata = &state.metadata_servers[active];
        let answer: Result<CommitBlockSynchronizationResponseProto, CallError> =
            metadata.call("commitBlockSynchronization", request).await;
        tries += 1;
        match answer {
            Ok(_) => return Ok(()),
            Err(error) if tries < COMMIT_TRIES_MAX && is_passing(&error) => {
                tracing::info!(server = metadata.address(), %error, "the outcome of a recovery will be told again");
                tokio::time::sleep(COMMIT_PAUSE).await;
            }
            Err(error) => return Err(RecoveryError::Commit(error)),
        }
    }
}

/// Another server, or the same one later, may take it.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn member(state: ReplicaState, length: u64) -> Member {
        let block = Block { id: BlockId(1), generation_stamp: GenerationStamp(1001), length };
        Member { id: DatanodeIdProto::default(), candidate: Candidate { block, state } }
    }

    /// The length agreed on and how many take part.
    fn outcome(members: Vec<Member>) -> Option<(u64, usize)> {
        agree(members, None).unwrap().map(|(length, members)| (length, members.len()))
    }

    /// HDFS: a block of which replicas were found, but none in a state to recover, is not given up.
    #[test]
    fn a_block_that_is_being_copied_is_not_taken_for_one_that_was_never_written() {
        use ReplicaState::{BeingWritten, Temporary};
        let of = |members| usable(members, member(BeingWritten, 0).candidate.block);
        assert!(matches!(
            of(vec![member(Temporary, 5), member(BeingWritten, 0)]),
            Err(RecoveryError::OnlyCopies(1))
        ));
        assert_eq!(of(vec![member(Temporary, 0), member(BeingWritten, 0)]).unwrap().len(), 0);
        assert_eq!(of(vec![member(Temporary, 9), member(BeingWritten, 7)]).unwrap().len(), 1);
    }

    #[test]
    fn the_shortest_of_the_best_is_what_was_acknowledged() {
        use ReplicaState::{BeingWritten, Finalized, WaitingRecovery};
        assert_eq!(outcome(vec![]), None);
        assert_eq!(outcome(vec![member(BeingWritten, 9), member(BeingWritten, 7)]), Some((7, 2)));
        assert_eq!(outcome(vec![member(WaitingRecovery, 5), member(BeingWritten, 7)]), Some((7, 1)));
        let with_finished = vec![member(Finalized, 8), member(BeingWritten, 8), member(BeingWritten, 7)];
        assert_eq!(outcome(with_finished), Some((8, 2)));
        let differ = agree(vec![member(Finalized, 8), member(Finalized, 9)], None);
        assert!(matches!(differ, Err(RecoveryError::LengthsDiffer(8, 9))));
    }
}
