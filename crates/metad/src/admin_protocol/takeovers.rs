//! Takeovers that this member has not seen are asked of those who have.

use super::show;
use crate::core::Core;
use std::sync::Arc;

/// Asks the active of an epoch whose takeover is not known here; and all others once after each start, for
/// takeovers while this member was away, or that its file has lost. Does not wait.
pub fn ask_around(core: &Arc<Core>) {
    let epoch = core.partition.member.standing().epoch;
    let Some(runtime) = core.partition.forwarder.runtime() else { return };
    let Some((active, _)) = core.partition.member.active() else { return };
    let is_first = core.partition.chronicle.has_never_asked();
    let is_new = !core.partition.chronicle.knows(epoch);
    for (member, record) in core.partition.member.records() {
        let is_asked = is_first || (is_new && member == active);
        if !is_asked || member == core.partition.member.me().member || record.rpc_address.is_empty() {
            continue;
        }
        let core = core.clone();
        drop(runtime.spawn(async move {
            let user = core.config.limits.access.superuser.to_string();
            if let Some(answer) = show::ask(record.rpc_address, user).await {
                core.partition.chronicle.learn(&answer.takeovers, epoch);
            }
        }));
    }
}
