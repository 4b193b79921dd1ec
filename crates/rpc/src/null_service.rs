//! A service that does nothing, so that its cost is the cost of RPC.

use crate::{Call, Replier, Service};
use proto::protocol;

/// Answers every method of the protocols that a metadata server has, with an empty response. It is the
/// ceiling beside which measurements of a metadata server are put.
pub struct NullService;

impl Service for NullService {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(protocol::CLIENT_NAMENODE, protocol::VERSION), (protocol::DATANODE, protocol::VERSION)]
    }

    fn call(&self, _: Call, reply: Replier) {
        reply.ok_encoded(0, |_| {});
    }
}
