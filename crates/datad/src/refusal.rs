//! The store's refusals by Hadoop's names.

use blockstore::StoreError;
use proto::exception;
use rpc::RpcError;

/// The answer to a call that the store has refused.
pub fn refuse(error: &StoreError) -> RpcError {
    let class = match error {
        StoreError::NotFound(_) => exception::REPLICA_NOT_FOUND,
        StoreError::UnderRecovery { .. } => exception::RECOVERY_IN_PROGRESS,
        StoreError::Exists { .. } | StoreError::BeingRemoved(_) => exception::REPLICA_ALREADY_EXISTS,
        _ => exception::IO,
    };
    RpcError::application(class, error.to_string())
}
