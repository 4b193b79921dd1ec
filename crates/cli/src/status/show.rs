//! The verdict as a person reads it, and as a program does.

use crate::admin::size;
use serde_json::{Value, json};
use verdict::{Facts, Group, Judged, Leader, Presence, Severity, Verdict};

pub fn text(facts: &Facts, judged: &Judged) -> String {
    let mut text = format!("The cluster {}", headline(judged));
    let summaries: Vec<String> =
        facts.groups.iter().map(|group| summary(group, facts.groups.len())).collect();
    if !summaries.is_empty() {
        text += &format!(": {}", summaries.join("; "));
    }
    text += ".\n";
    for condition in &judged.conditions {
        let group = match &condition.groups[..] {
            [group] if facts.groups.len() > 1 => format!(" (group {group})"),
            _ => String::new(),
        };
        text += &format!("\n{:<8} {}{group}\n", condition.severity.as_str(), condition.code);
        text += &format!("         {}\n         -> {}\n", condition.text, condition.remedy);
    }
    text
}

fn headline(judged: &Judged) -> String {
    let count = |severity| judged.conditions.iter().filter(|one| one.severity == severity).count();
    let told = [(count(Severity::Error), "error"), (count(Severity::Warning), "warning")];
    let told = told.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    });
    match judged.verdict {
        Verdict::Healthy => "is healthy".to_owned(),
        Verdict::Warning | Verdict::Error => {
            format!("has {}", told.collect::<Vec<_>>().join(" and "))
        }
    }
}

fn summary(group: &Group, groups: usize) -> String {
    let of = if groups > 1 { format!("group {}: ", group.number) } else { String::new() };
    let in_sync = group.members.iter().filter(|member| member.is_in_sync).count();
    let mut parts = vec![format!("{in_sync} of {} metadata servers in sync", group.members.len())];
    if let Some(data) = &group.data {
        let alive = data.servers.iter().filter(|server| server.is_alive).count();
        let free: u64 = data
            .servers
            .iter()
            .filter(|server| server.is_alive && server.is_in_service)
            .map(|server| server.remaining)
            .sum();
        parts.push(format!("{alive} of {} data servers alive", data.servers.len()));
        parts.push(format!("{} free", size(free)));
    }
    of + &parts.join(", ")
}

pub fn json(facts: &Facts, judged: &Judged) -> Value {
    let mut json = json!(judged);
    json["groups"] = facts.groups.iter().map(group_json).collect();
    json
}

fn group_json(group: &Group) -> Value {
    json!({
        "group": group.number,
        "active": match group.leader {
            Leader::Serves(member) => Some(member),
            Leader::IsHeard | Leader::Nobody => None,
        },
        "epoch": group.view.as_ref().map(|view| view.epoch),
        "in_sync_min": group.view.as_ref().map(|view| view.in_sync_min),
        "writable": group.is_writable,
        "members": group.members.iter().map(|member| json!({
            "member": member.number,
            "address": member.address,
            "answers": member.presence == Presence::Answers,
            "in_sync": member.is_in_sync,
            "release": member.release,
            "clock_ahead_ms": member.clock.map(|clock| clock.ahead_ms),
        })).collect::<Vec<_>>(),
        "data_servers": group.data.as_ref().map(|data| json!({
            "known": data.servers.len(),
            "alive": data.servers.iter().filter(|server| server.is_alive).count(),
        })),
        "blocks": group.data.as_ref().map(|data| json!({
            "missing": data.blocks.missing,
            "corrupt": data.blocks.corrupt,
            "under_replicated": data.blocks.under_replicated,
        })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict::{Blocks, Data, DataServer, Member, View, judge};

    fn facts() -> Facts {
        let member =
            Member { number: 1, address: Some("m1:8020".into()), is_in_sync: true, ..Member::default() };
        let server = DataServer {
            address: "10.0.0.1:9866".into(),
            is_alive: true,
            is_in_service: true,
            capacity: 4 << 30,
            remaining: 3 << 30,
            ..DataServer::default()
        };
        let group = Group {
            number: 1,
            leader: Leader::Serves(1),
            view: Some(View { epoch: 2, in_sync: vec![1], in_sync_min: 1 }),
            members: vec![member],
            data: Some(Data { servers: vec![server], ..Data::default() }),
            ..Group::default()
        };
        Facts { groups: vec![group], ..Facts::default() }
    }

    #[test]
    fn a_healthy_cluster_is_told_in_a_line() {
        let facts = facts();
        let text = text(&facts, &judge(&facts));
        assert_eq!(
            text,
            "The cluster is healthy: 1 of 1 metadata servers in sync, 1 of 1 data servers alive, 3.00 GiB free.\n"
        );
    }

    #[test]
    fn conditions_are_told_with_the_next_command_and_programs_get_their_codes() {
        let mut facts = facts();
        let data = facts.groups[0].data.as_mut().unwrap();
        data.blocks = Blocks { missing: 2, corrupt: 1, under_replicated: 3, ..Blocks::default() };
        let judged = judge(&facts);
        let text = text(&facts, &judged);
        assert!(text.starts_with("The cluster has 1 error and 2 warnings: "), "{text}");
        assert!(text.contains("\nerror    BLOCKS_MISSING\n         2 blocks are lost"), "{text}");
        assert!(
            text.contains("-> Bring the dead data servers back; `clover admin list-corrupt-files`"),
            "{text}"
        );
        let json = json(&facts, &judged);
        assert_eq!(
            (&json["verdict"], &json["conditions"][0]["code"]),
            (&json!("error"), &json!("BLOCKS_MISSING"))
        );
        assert_eq!(
            (&json["groups"][0]["active"], &json["groups"][0]["blocks"]["missing"]),
            (&json!(1), &json!(2))
        );
    }
}
