//! The groups as a person reads them, and as a program does.

use super::look::{Group, Look};
use crate::table;
use serde_json::{Value, json};

pub fn text(look: &Look) -> String {
    let mut lines = headline(look);
    lines.push(String::new());
    let head = [
        "GROUP",
        "STATE",
        "ACTIVE",
        "IN SYNC",
        "DATA SERVERS",
        "SLOTS",
        "BEHIND",
        "WAITING",
        "EXPORTED",
        "ORDERS",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(look.groups.iter().map(|group| row(look, group)));
    lines.extend(table::lines(&rows));
    let advice: Vec<_> = look.groups.iter().flat_map(|group| advice(look, group)).collect();
    if !advice.is_empty() {
        lines.push(String::new());
        lines.extend(advice);
    }
    lines.join("\n") + "\n"
}

fn headline(look: &Look) -> Vec<String> {
    let whose = &look.cluster_id;
    if look.groups.len() == 1 {
        return vec![format!(
            "One group holds the whole namespace of {whose}. `clover admin group` shows its members."
        )];
    }
    let first = format!("{} groups hold the namespace of {whose} together.", look.groups.len());
    let second = match look.root_log() {
        None => "The root group has no active that answers: no directory can be changed.".to_owned(),
        Some(log) => {
            let doubt = match log.end - log.visible {
                0 => "all visible".to_owned(),
                count => format!("{count} not visible yet"),
            };
            format!(
                "The directory log has {} entries, {doubt}; the root group keeps {} of them for others.",
                log.end,
                log.kept()
            )
        }
    };
    vec![first, second]
}

fn row(look: &Look, group: &Group) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let log = group.log.as_ref();
    let in_sync: Vec<String> = group.in_sync().iter().map(ToString::to_string).collect();
    vec![
        group.known.group.to_string(),
        state(look, group).to_owned(),
        or_dash(group.active().map(|member| format!("member {member}"))),
        or_dash(Some(in_sync.join(",")).filter(|text| !text.is_empty())),
        or_dash(group.data_servers().map(|count| count.to_string())),
        group.known.slots.to_string(),
        or_dash(behind(look, group).map(|count| count.to_string())),
        or_dash(log.and_then(|log| log.waiting).map(|count| count.to_string())),
        or_dash(log.and_then(|log| log.exported).map(|count| count.to_string())),
        or_dash(log.and_then(|log| log.messages).map(|count| count.to_string())),
    ]
}

/// Entries of the directory log that are visible, and not applied and committed by the group. The root group is never behind.
fn behind(look: &Look, group: &Group) -> Option<u64> {
    if group.known.group == base::GroupId::ROOT.0 {
        return None;
    }
    let committed = look.follower(group.known.group)?.committed?;
    Some(look.root_log()?.visible.saturating_sub(committed))
}

fn state(look: &Look, group: &Group) -> &'static str {
    let is_root = group.known.group == base::GroupId::ROOT.0;
    match &group.log {
        _ if !group.known.is_made => "not made",
        _ if group.itself.is_none() => "silent",
        None => "no active",
        Some(log) if log.trouble.is_some() => "stopped",
        Some(log) if !log.leads => "no active",
        Some(_) if is_root => "orders directories",
        Some(log) if log.is_serving && group.known.slots > 0 => "serves files",
        Some(log) if log.is_serving => "follows",
        Some(_) if look.root_log().is_none() => "waits for group 1",
        Some(_) => "catches up",
    }
}

/// What a person may do about a group.
fn advice(look: &Look, group: &Group) -> Option<String> {
    let number = group.known.group;
    let trouble = group.log.as_ref().and_then(|log| log.trouble.as_ref()).or(group.known.trouble.as_ref());
    if let Some(trouble) = trouble {
        return Some(format!("Group {number}: {trouble}"));
    }
    match state(look, group) {
        "not made" => Some(format!(
            "Group {number} was added and not made: `clover meta format --group {number} --join --config FILE` on its first \
             server. Until then the root group keeps all changes of directories for it."
        )),
        "silent" | "no active" => Some(format!(
            "Group {number} serves nobody: `clover admin group --group {number}` shows its members."
        )),
        "follows" => Some(format!(
            "Group {number} has all directories and no files: `clover admin groups give-slots {number}` lets new directories \
             have their files there."
        )),
        _ => None,
    }
}

pub fn json(look: &Look) -> Value {
    let log = look.root_log();
    json!({
        "cluster_id": look.cluster_id,
        "directory_log": {
            "end": log.map(|log| log.end),
            "visible": log.map(|log| log.visible),
            "kept": log.and_then(|log| log.kept),
            "kept_bytes": log.and_then(|log| log.kept_bytes),
        },
        "groups": look.groups.iter().map(|group| group_json(look, group)).collect::<Vec<_>>(),
    })
}

fn group_json(look: &Look, group: &Group) -> Value {
    let (known, log, follower) = (&group.known, group.log.as_ref(), look.follower(group.known.group));
    let member = |member: &proto::clover::admin::NamespaceGroupMemberProto| {
        json!({
            "member": member.member,
            "rpc_address": member.rpc_address,
            "in_sync": member.is_in_sync,
        })
    };
    json!({
        "group": known.group,
        "state": state(look, group),
        "epoch": known.epoch,
        "active": group.active(),
        "in_sync": group.in_sync(),
        "members": known.members.iter().map(member).collect::<Vec<_>>(),
        "data_servers": group.data_servers(),
        "block_pool": known.block_pool,
        "slots": known.slots,
        "has_session": follower.map(|follower| follower.has_session),
        "is_leased": follower.map(|follower| follower.is_leased),
        "received": follower.map(|follower| follower.received),
        "applied": follower.and_then(|follower| follower.committed),
        "behind": behind(look, group),
        "in_doubt": log.and_then(|log| log.in_doubt),
        "waiting": log.and_then(|log| log.waiting),
        "holds": log.and_then(|log| log.holds),
        "exported_files": log.and_then(|log| log.exported),
        "orders_to_others": log.and_then(|log| log.messages),
        "trouble": log.and_then(|log| log.trouble.clone()).or(known.trouble.clone()),
    })
}
