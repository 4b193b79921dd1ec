//! The groups that hold the namespace together.

use super::orders::pass_on;
use crate::{
    client_protocol::{
        Answer,
        calls::{self, decode},
    },
    core::Core,
    partition::turn::Turn,
};
use base::{FsError, FsResult, GroupId};
use namespace::{
    Planned,
    ops::{add_group, give_slots},
};
use proto::clover::admin as p;
use rpc::{Call, Replier};
use std::sync::Arc;

/// Lets a further group hold a part of the namespace. Its first member can be made once this is answered: it begins with the root group's
/// directories as they are then, or later.
pub fn add(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::AddGroupRequestProto>(&call, reply) else { return };
    let group = GroupId(request.group);
    at_root(core, call, reply, move |turn, call| {
        let planned = turn.plan_own(|namespace, context, _| add_group::plan(namespace, context, group))?;
        let is_new = matches!(planned, Planned::Edit(_));
        if let Planned::Edit(edit) = planned {
            turn.apply(edit);
            tracing::warn!(user = %call.caller, %group, "a further group holds a part of the namespace from here on");
        }
        Ok(p::AddGroupResponseProto { is_new: Some(is_new), sn: Some(turn.applied().0) })
    });
}

/// Gives a further group slots: from here on it is the home of directories that are made in them.
pub fn give_slots(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GiveSlotsRequestProto>(&call, reply) else { return };
    let group = GroupId(request.group);
    at_root(core, call, reply, move |turn, call| {
        let planned = turn.plan_own(|namespace, context, _| give_slots::plan(namespace, context, group))?;
        if let Planned::Edit(edit) = planned {
            turn.apply(edit);
            tracing::warn!(user = %call.caller, %group, "the group is the home of new directories from here on");
        }
        let slots = turn.namespace().slots().into_iter().filter(|(_, of)| *of == group);
        Ok(p::GiveSlotsResponseProto {
            slots: slots.map(|(slots, _)| u32::from(slots.end - slots.start)).sum(),
        })
    });
}

/// Carries out an order that only the root group's active takes.
fn at_root<A: Answer>(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    operate: impl FnOnce(&mut Turn<'_>, &Call) -> FsResult<A> + Send + 'static,
) {
    if core.cluster.group != GroupId::ROOT {
        let why = format!("This server is of group {}: the root group takes this order.", core.cluster.group);
        return reply.fs_error(&FsError::InvalidArgument(why));
    }
    if !core.partition.member.is_serving() {
        return pass_on(core, call, reply);
    }
    calls::turn(core, call, reply, operate);
}

/// Tells how far each group has followed the directory log. The root group's active knows that of all groups, the active of another group knows its own, and other
/// members know nothing of it.
pub fn show(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetDirectoryLogRequestProto>(&call, reply) else { return };
    let shown = core.partition.directories.show();
    let groups = shown.groups.into_iter().map(|standing| p::DirectoryLogFollowerProto {
        group: standing.group.0,
        has_session: standing.has_session,
        is_leased: standing.is_leased,
        received: standing.received.0,
        committed: standing.committed.map(|dix| dix.0),
    });
    let groups = groups.collect();
    let tree = core.partition.tree();
    let (kept, kept_bytes) = tree.namespace.kept_directory_entries();
    let (exported, messages) = (tree.namespace.exported_files(), tree.namespace.messages_waiting());
    drop(tree);
    reply.ok(&p::GetDirectoryLogResponseProto {
        group: core.cluster.group.0,
        member: core.partition.member.me().member.0,
        leads: core.partition.member.is_serving(),
        end: shown.end.0,
        visible: shown.visible.0,
        is_serving: shown.is_serving,
        groups,
        kept: Some(kept),
        kept_bytes: Some(kept_bytes as u64),
        trouble: shown.trouble,
        in_doubt: Some(shown.in_doubt as u64),
        waiting: Some(shown.waiting as u64),
        holds: Some(shown.holds as u64),
        exported: Some(exported),
        messages: Some(messages),
    });
}
