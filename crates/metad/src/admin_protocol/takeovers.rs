//! Takeovers that this member has not seen are asked of those who have.

use super::show;
use crate::partition::Partition;
use std::sync::Arc;

/// Asks the active of an epoch whose takeover is not known here; and all others once after each start, for
/// takeovers while this member was away, or that its file has lost. Does not wait.
pub fn ask_around(partition: &Arc<Partition>) {
    let epoch = partition.member.standing().epoch;
    let Some(runtime) = partition.forwarder.runtime() else { return };
    let Some((active, _)) = partition.member.active() else { return };
    let is_first = partition.chronicle.note_asking();
    let is_new = !partition.chronicle.knows(epoch);
    for (member, record) in partition.member.records() {
        let is_asked = is_first || (is_new && member == active);
        if !is_asked || member == partition.member.me().member || record.rpc_address.is_empty() {
            continue;
        }
        let partition = partition.clone();
        drop(runtime.spawn(async move {
            let user = partition.config.limits.access.superuser.to_string();
            if let Some(answer) = show::ask(record.rpc_address, user).await {
                partition.chronicle.learn(&answer.takeovers, epoch);
            }
        }));
    }
}
