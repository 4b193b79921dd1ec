//! What a member of any group knows of all groups of the namespace.

use crate::{client_protocol::calls::decode, cluster::Cluster, core::Core, neighbours::Record};
use base::GroupId;
use proto::clover::admin as p;
use rpc::{Call, Replier};
use std::sync::Arc;

/// Tells the groups and their members. The coordinator is asked about each of them.
pub fn list(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetGroupsRequestProto>(&call, reply) else { return };
    let mut groups = slots_of_groups(core);
    let Some(doors) = &core.doors else {
        // A server alone, without a secret: there are no other groups.
        let told = groups.drain(..).map(|(group, slots)| blank(&core.cluster, group, slots)).collect();
        return reply.ok(&answer(core, told));
    };
    let (core, neighbours) = (core.clone(), doors.neighbours().clone());
    drop(doors.runtime().spawn(async move {
        let mut told = Vec::new();
        for (group, slots) in groups {
            let blank = blank(&core.cluster, group, slots);
            told.push(match neighbours.look_up(group).await {
                Ok(record) => with_record(blank, record),
                Err(error) => p::NamespaceGroupProto { trouble: Some(error.to_string()), ..blank },
            });
        }
        reply.ok(&answer(&core, told));
    }));
}

/// Tells which group has the files of the directory that a path names, or in which it is.
pub fn home(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetHomeRequestProto>(&call, reply) else { return };
    let context = core.partition.context(&call.caller, None);
    let found = core.partition.tree().namespace.home_of_path(&context, &request.path);
    match found {
        Ok(found) => reply.ok(&p::GetHomeResponseProto {
            directory: found.directory,
            directory_id: found.id.0,
            slot: found.slot.into(),
            group: found.home.0,
            is_directory: found.is_directory,
        }),
        Err(error) => reply.fs_error(&error),
    }
}

/// All groups, the root group first, and how many slots each has.
fn slots_of_groups(core: &Core) -> Vec<(GroupId, u32)> {
    let tree = core.partition.tree();
    let slots = tree.namespace.slots();
    let count = |group: GroupId| {
        slots.iter().filter(|(_, of)| *of == group).map(|(range, _)| u32::from(range.end - range.start)).sum()
    };
    std::iter::once(GroupId::ROOT)
        .chain(tree.namespace.further_groups())
        .map(|group| (group, count(group)))
        .collect()
}

fn answer(core: &Core, groups: Vec<p::NamespaceGroupProto>) -> p::GetGroupsResponseProto {
    p::GetGroupsResponseProto {
        cluster_id: core.cluster.cluster_id.clone(),
        group: core.cluster.group.0,
        member: core.partition.member.me().member.0,
        groups,
    }
}

/// A group of which nothing is known but what the tree says.
fn blank(cluster: &Cluster, group: GroupId, slots: u32) -> p::NamespaceGroupProto {
    p::NamespaceGroupProto {
        group: group.0,
        slots,
        block_pool: cluster.pool_of(group).map_or(String::new(), |pool| pool.to_string()),
        // The group that answers is there.
        is_made: group == cluster.group,
        ..p::NamespaceGroupProto::default()
    }
}

fn with_record(blank: p::NamespaceGroupProto, record: Option<Record>) -> p::NamespaceGroupProto {
    let Some(Record { view, members }) = record else { return blank };
    let member = |member: &base::MemberId| p::NamespaceGroupMemberProto {
        member: member.0,
        rpc_address: members
            .iter()
            .find(|record| record.life.store.member == *member)
            .map(|record| record.rpc_address.clone())
            .filter(|address| !address.is_empty()),
        is_in_sync: Some(view.in_sync.iter().any(|store| store.member == *member)),
    };
    p::NamespaceGroupProto {
        is_made: true,
        epoch: Some(view.epoch.0),
        active: view.active.map(|member| member.0),
        members: view.members.iter().map(member).collect(),
        ..blank
    }
}
