//! Conditions of single metadata servers.

use super::{CLOCKS_APART_MS, FLUSH_SLOW_MS, Found};
use crate::{
    Apart, Code, Group, Leader, Member, Presence, Role, Severity, furthest,
    words::{count, list, percent, size},
};

pub fn judge(group: &Group, found: &mut Found) {
    for member in &group.members {
        takes_part(group, member, found);
        disk(member, found);
        process(member, found);
    }
    clocks(group, found);
    versions(group, found);
}

fn name(member: &Member) -> Vec<String> {
    vec![format!("member {}", member.number)]
}

/// `member 2 (10.0.0.2:8020)`.
fn full_name(member: &Member) -> String {
    match &member.address {
        Some(address) => format!("Member {} ({address})", member.number),
        None => format!("Member {}", member.number),
    }
}

fn takes_part(group: &Group, member: &Member, found: &mut Found) {
    let who = full_name(member);
    if let Presence::Silent(reason) = &member.presence {
        let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        found.warn(
            Code::GroupMemberAway,
            name(member),
            format!("{who} does not answer{why}."),
            format!(
                "Start it, or look at its machine; one that never comes back is replaced: `{}`, then `add`.",
                found.command("group", "remove")
            ),
        );
    } else if member.address.is_none() && member.presence == Presence::Unknown {
        found.warn(
            Code::GroupMemberAway,
            name(member),
            format!("{who} was added to the group and has never run."),
            "Make its directory with `clover meta format --join`, and start it.",
        );
    } else if member.role == Role::Stopped {
        let why = member.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        found.warn(
            Code::MemberStopped,
            name(member),
            format!("{who} takes no part in the group{why}."),
            match member.has_disk_failed {
                true => "`clover admin group` says whether it comes back by itself, or what to run there.",
                false => "Look at its log; `clover admin group` shows what it waits for.",
            },
        );
    } else if !member.is_in_sync && group.leader != Leader::Nobody {
        let lag = member.lag.map(|lag| format!(" It lacks {lag} entries."));
        let image = member
            .image
            .map(|(done, total)| format!(" It has fetched {} of an image of {}.", size(done), size(total)));
        found.warn(
            Code::MemberBehind,
            name(member),
            format!(
                "{who} is not in sync: a change does not wait for it, and it cannot take over.{}{}",
                lag.unwrap_or_default(),
                image.unwrap_or_default()
            ),
            "It catches up by itself; `clover status --watch` tells when it has.",
        );
    }
}

fn disk(member: &Member, found: &mut Found) {
    let free = size(member.disk_free_bytes.unwrap_or(0));
    let who = full_name(member);
    if member.is_disk_full {
        found.say(
            Code::MetadataDiskLow,
            Severity::Error,
            name(member),
            format!("{who} refuses changes: the disk of its store has {free} free."),
            "Make room on the disk of name_dir.",
        );
    } else if member.is_disk_low {
        found.warn(
            Code::MetadataDiskLow,
            name(member),
            format!("The disk under the store of member {} has {free} free.", member.number),
            "Make room on the disk of name_dir before changes are refused.",
        );
    }
    if member.damaged_files > 0 {
        found.warn(
            Code::StoreDamaged,
            name(member),
            format!(
                "{} damaged in the store of member {}, and no other member could replace what is damaged.",
                count(member.damaged_files, ("file", "is"), ("files", "are")),
                member.number
            ),
            "Look at the disk; the log of that member names the files. `clover admin group` shows whether the others are complete.",
        );
    }
}

fn process(member: &Member, found: &mut Found) {
    if let Some(mean_ms) = member.flush_ms.filter(|mean_ms| *mean_ms > FLUSH_SLOW_MS) {
        found.warn(
            Code::JournalSlow,
            name(member),
            format!("A flush of the journal of member {} takes {mean_ms} ms in the mean.", member.number),
            "Look at the disk of name_dir: another program may use it, or it fails. `clover doctor --config FILE` there measures it.",
        );
    }
    if let Some(thread) = &member.hanging_thread {
        found.warn(
            Code::ThreadHangs,
            name(member),
            format!("A thread of member {} hangs: {}.", member.number, thread.trim_end_matches('.')),
            "Keep its log and its page /stacks, then restart that member.",
        );
    }
    if member.fatal_requests > 0 {
        found.warn(
            Code::FatalRequests,
            name(member),
            format!(
                "{} refused on member {}, because one like that has ended a server.",
                count(member.fatal_requests, ("request", "is"), ("requests", "are")),
                member.number
            ),
            "The log of that member names them; docs/operating/recovery.md says how they are allowed again.",
        );
    }
}

/// Compares the clocks of members with each other; the clock of the one who has read them does not matter.
fn clocks(group: &Group, found: &mut Found) {
    let read: Vec<_> =
        group.members.iter().filter_map(|member| Some((member.number, member.clock?))).collect();
    let Some(Apart { behind, ahead, apart_ms, surely_ms }) = furthest(&read) else { return };
    if surely_ms <= CLOCKS_APART_MS {
        return;
    }
    found.warn(
        Code::ClockApart,
        vec![format!("member {behind}"), format!("member {ahead}")],
        format!("The clock of member {ahead} is {apart_ms} ms ahead of that of member {behind}."),
        "Have chrony or another NTP client keep the clocks of all servers; `clover doctor` shows each.",
    );
}

fn versions(group: &Group, found: &mut Found) {
    let mut releases: Vec<(&str, Vec<String>)> = Vec::new();
    let members = group
        .members
        .iter()
        .filter_map(|member| Some((member.release.as_deref()?, format!("member {}", member.number))));
    let data = group.data.iter().flat_map(|data| &data.servers).filter(|server| server.is_alive);
    let servers = data.filter_map(|server| Some((server.release.as_deref()?, server.address.clone())));
    for (release, who) in members.chain(servers) {
        match releases.iter_mut().find(|(known, _)| *known == release) {
            Some((_, all)) => all.push(who),
            None => releases.push((release, vec![who])),
        }
    }
    if releases.len() < 2 {
        return;
    }
    releases.sort_by(|one, other| other.1.len().cmp(&one.1.len()).then(one.0.cmp(other.0)));
    let told: Vec<String> =
        releases.iter().map(|(release, who)| format!("{release} on {}", list(who))).collect();
    let few = releases[1..].iter().flat_map(|(_, who)| who.clone()).collect();
    found.warn(
        Code::VersionsApart,
        few,
        format!("Servers run different releases: {}.", told.join("; ")),
        "Normal during an upgrade, which should come to an end: `clover admin upgrade` shows how far it is.",
    );
}

/// The share of a whole that is left, with the amounts.
pub fn left(remaining: u64, capacity: u64) -> String {
    format!("{} of {} ({})", size(remaining), size(capacity), percent(remaining, capacity))
}
