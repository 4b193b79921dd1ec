//! Replicas that are not deleted until an operator has looked: how many there are, and the word that they may go.

use super::orders::pass_on;
use crate::{
    client_protocol::calls::{self, decode},
    core::Core,
    partition::Partition,
};
use base::{Epoch, FsError};
use namespace::{Planned, ops::allow_deletions};
use proto::clover::admin as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn allow(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::AllowDeletionsRequestProto>(&call, reply) else { return };
    if !core.partition.member.is_serving() {
        return pass_on(core, call, reply);
    }
    if !request.is_confirmed() {
        let held_since = core.partition.tree().namespace.unknown_replicas().held_since();
        return reply.ok(&held(&core.partition, held_since));
    }
    calls::turn(core, call, reply, move |turn, call| {
        let held_since = turn.namespace().unknown_replicas().held_since();
        let held = held(turn.partition(), held_since);
        match (held_since, request.held_since) {
            (Some(epoch), None) => {
                return Err(FsError::InvalidArgument(format!(
                    "Deletions are held back since epoch {epoch}: look first at what would be deleted"
                )));
            }
            (Some(_), Some(seen)) => {
                let seen = allow_deletions::Request { held_since: Epoch(seen) };
                let planned =
                    turn.plan_own(|namespace, context, _| allow_deletions::plan(namespace, context, &seen))?;
                if let Planned::Edit(edit) = planned {
                    turn.apply(edit);
                }
            }
            (None, _) => {
                let (partition, moment) = (turn.partition().clone(), turn.moment);
                turn.after_commit(move |committed| {
                    if committed.is_ok() {
                        partition.blocks.lock().allow_deletions(moment);
                    }
                });
            }
        }
        tracing::warn!(
            user = %call.caller,
            replicas = held.replicas(),
            bytes = held.bytes(),
            "unknown replicas may be deleted, by an operator's order"
        );
        Ok(p::AllowDeletionsResponseProto { is_done: Some(true), ..held })
    });
}

/// The deletions that wait for the order, as far as the active knows them: it knows nothing of data servers that have
/// not reported to it.
fn held(partition: &Partition, held_since: Option<Epoch>) -> p::AllowDeletionsResponseProto {
    let (stats, in_safe_mode) = {
        let blocks = partition.blocks.lock();
        (blocks.stats(), blocks.in_safe_mode())
    };
    p::AllowDeletionsResponseProto {
        is_done: Some(false),
        held_since: held_since.map(|epoch| epoch.0),
        replicas: Some(stats.held.replicas),
        bytes: Some(stats.held.bytes),
        servers_over_share: Some(stats.servers_over_share),
        skipped_replicas: Some(stats.skipped.replicas),
        skipped_bytes: Some(stats.skipped.bytes),
        stale_storages: Some(stats.stale_storages),
        in_safe_mode: Some(in_safe_mode),
    }
}
