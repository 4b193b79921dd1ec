//! The active's answer to a question for the read point.

use super::{ask, is_one_log};
use crate::{
    client_protocol::{decode, is_proved},
    core::Core,
};
use base::ReadPoint;
use proto::{
    clover::forward::{ReadPointRequestProto, ReadPointResponseProto},
    exception,
};
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

/// Answers another member of the group.
pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<ReadPointRequestProto>(&call, reply) else { return };
    let is_from_the_group = request.scope == core.scope;
    if !is_from_the_group || !core.secret.as_ref().is_some_and(|secret| ask::is_proved(secret, &request)) {
        let message = "the question for a read point is not from a member of this group";
        tracing::warn!(peer = %call.peer, member = request.member, "{message}");
        return reply.error(RpcError::application(exception::ACCESS_CONTROL, message));
    }
    let point = read_point(core);
    reply.ok(&ReadPointResponseProto {
        epoch: point.map(|point| point.epoch.0),
        committed: point.map(|point| point.committed.0),
    });
}

/// Everything that was acknowledged, or shown to anybody, before this call has committed up to this point; `None` if that cannot be proved.
fn read_point(core: &Core) -> Option<ReadPoint> {
    let partition = &core.partition;
    // The epoch is taken first: if this member leads in another one by now, the proof fails.
    let epoch = partition.member.epoch();
    if !partition.member.is_serving() || !is_one_log(partition) {
        return None;
    }
    // The watermark that answers wait for would be too low: another standby may have been told more, and have shown it to somebody.
    let committed = partition.member.log_committed();
    is_proved(core, epoch).then_some(ReadPoint { epoch, committed })
}
