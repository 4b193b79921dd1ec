//! The listener that a block store tells of replicas which went away without an order: [`Observer`].

use base::{Block, BlockId};
use std::sync::Arc;

/// Told of replicas of one pool that went away without the caller's doing.
pub trait Observer: Send + Sync {
    /// An invalidated replica's files are gone, or a replica's files were found missing.
    fn deleted(&self, storage_id: &Arc<str>, block: Block);
    /// A replica was found damaged. It stays where it is: who has asked for it decides.
    fn damaged(&self, storage_id: &Arc<str>, block: Block);
    /// A replica that nobody knew of was found whole, and is one of the pool from now on.
    fn received(&self, storage_id: &Arc<str>, block: Block);
    /// A volume failed and took these with it.
    fn volume_lost(&self, storage_id: &Arc<str>, blocks: Vec<Block>);
    /// A finished replica changes or goes: it is being removed, appended to or cut, was moved to another volume, or its volume
    /// failed. Files of it that a client has opened before are not the replica any more. Told before any of its bytes change. Locks of the store may be held:
    /// the listener must not call it.
    fn unsettled(&self, id: BlockId) {
        let _ = id;
    }
}
