//! Copying a replica to other servers, as a metadata server orders it.

use crate::state::State;
use base::ExtendedBlock;
use proto::hdfs::DatanodeInfoProto;
use std::sync::Arc;

/// One replica and where it is to go: to the first target, which passes it on to the next.
#[derive(Clone, Debug)]
pub struct Order {
    pub block: ExtendedBlock,
    pub targets: Vec<DatanodeInfoProto>,
    pub storage_ids: Vec<String>,
    /// Numbers of Hadoop's wire.
    pub storage_types: Vec<i32>,
}

/// Sets a copy off. Failures are logged: whoever ordered it notices that the copy does not appear.
pub fn start(state: &Arc<State>, order: Order) {
    let _ = state;
    tracing::warn!(block = %order.block, "copies are not made yet");
}
