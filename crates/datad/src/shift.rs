//! A replica goes from one volume of this server to another of a wanted type: for a balancer, or by an order of the metadata server.

use crate::{pool::Pool, state::State, transfer::Order, xceiver::request};
use base::{ExtendedBlock, ReplicaState, StorageType};
use blockstore::{StoreError, StoreResult};
use std::{
    io,
    sync::{Arc, atomic::Ordering},
};

/// Moves the replica, and tells the metadata server.
///
/// # Errors
/// The inner one: the replica is not there, is not finished, or is another one, no volume of the type has room, or a disk fails. The outer one: no
/// thread could be begun.
pub(crate) async fn shift(
    state: &State,
    pool: &Arc<Pool>,
    block: &ExtendedBlock,
    storage_type: StorageType,
) -> io::Result<StoreResult<()>> {
    let (pool, block, moves) = (pool.clone(), block.clone(), state.moves.clone());
    // The metadata server is told by the thread that moves: it goes on when the asker is gone.
    let work = move || {
        let from = pool.store.storage_of(block.block.id)?;
        let to = pool.store.move_to_type(&block, storage_type)?;
        tell(&pool, &block, (&from, &to))?;
        moves.shifted.fetch_add(1, Ordering::Relaxed);
        Ok::<(), StoreError>(())
    };
    state.apart(move |_| work()).await
}

/// The replica has gone from one volume to another. It may be lost already, because that volume has failed: then the metadata server has to
/// hear that it is not on the first one either.
///
/// # Errors
/// [`StoreError::NotFound`] if the replica is lost.
pub(crate) fn tell(
    pool: &Pool,
    block: &ExtendedBlock,
    (from, to): (&Arc<str>, &Arc<str>),
) -> StoreResult<()> {
    match pool.store.facts(&pool.id, block.block.id) {
        Ok(facts) => pool.reporter.notify_received(to, facts.block, None),
        Err(error) => {
            pool.reporter.notify_deleted(from, block.block);
            return Err(error);
        }
    }
    Ok(())
}

/// Whether the order is to move a replica within this server: its one target is this server.
pub(crate) fn is_within(state: &State, order: &Order) -> bool {
    matches!(&order.targets[..], [target] if *target.id.datanode_uuid == *state.identity.uuid)
}

/// Carries out an order to move a replica within this server. A failure is logged: the metadata server notices that the replica stays where it
/// is, and has it copied to another server.
pub(crate) fn start(state: &Arc<State>, order: Order) {
    let state = state.clone();
    tokio::spawn(async move {
        let block = order.block.clone();
        match by_order(&state, order).await {
            Ok(()) => tracing::info!(%block, "a replica was moved to a volume of another type"),
            Err(error) => {
                state.moves.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%block, error, "a replica could not be moved to a volume of another type");
            }
        }
    });
}

async fn by_order(state: &Arc<State>, order: Order) -> Result<(), String> {
    let _counted = state.begin_copy();
    let Some(_place) = state.moves.begin() else {
        return Err(format!("{} moves are under way", state.moves.count_max()));
    };
    let pool = state.pool(&order.block.pool).map_err(|error| error.to_string())?.clone();
    let storage_type = request::storage_type(order.storage_types.first().copied());
    let moved = shift(state, &pool, &order.block, storage_type).await.map_err(|error| error.to_string())?;
    match moved {
        // It is on such a volume already, and the metadata server does not know.
        Err(StoreError::Exists { block, state: ReplicaState::Finalized }) => {
            if let Ok(storage_id) = pool.store.storage_of(block.id) {
                pool.reporter.notify_received(&storage_id, block, None);
            }
            Ok(())
        }
        Ok(()) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
