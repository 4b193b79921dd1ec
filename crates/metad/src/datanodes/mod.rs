//! Hadoop's `DatanodeProtocol`: what data servers tell, and the commands they get back.

pub mod wire;

use crate::core::Core;
use base::FsError;
use rpc::{Call, Replier};
use std::sync::Arc;

/// The half of the service that talks to data servers.
pub struct DatanodeSide {
    core: Arc<Core>,
}

impl DatanodeSide {
    pub fn start(core: &Arc<Core>) -> Arc<Self> {
        Arc::new(Self { core: core.clone() })
    }

    pub fn call(&self, call: Call, reply: Replier) {
        let _ = &self.core;
        reply.fs_error(&FsError::Unsupported(format!("{} is not built yet.", call.method)));
    }

    pub fn stop(&self) {}
}
