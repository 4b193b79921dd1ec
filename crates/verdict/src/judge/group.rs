//! Conditions of a group as a whole: who serves, and whether changes are taken.

use super::Found;
use crate::{
    Code, Group, Leader, Member, Presence, Role,
    words::{duration, list},
};

pub fn judge(group: &Group, found: &mut Found) {
    let is_led = group.leader != Leader::Nobody;
    if !is_led {
        nobody_serves(group, found);
    }
    if let Some(view) = group.view.as_ref().filter(|_| group.is_writable == Some(false)) {
        let (in_sync, needed) = (view.in_sync.len() as u64, view.in_sync_min);
        if in_sync < needed.into() {
            found.error(
                Code::GroupBelowMinimum,
                format!(
                    "Changes are refused: {in_sync} of {} members of group {} {} everything, and a change needs {needed}.",
                    group.members.len(),
                    group.number,
                    if in_sync == 1 { "has" } else { "have" },
                ),
                format!(
                    "Start the other members, or bring a stopped one back; `{}` shows them.",
                    found.command("group", "")
                ),
            );
        }
    }
    if group.view.as_ref().is_some_and(|view| view.in_sync_min == 1) && group.members.len() > 1 {
        found.warn(
            Code::GroupMinimumOne,
            Vec::new(),
            format!(
                "Group {} goes on when a single member is left: a change that only that member has is lost with its disk.",
                group.number
            ),
            format!("`{}` has a change wait for a second member.", found.command("group", "minimum 2")),
        );
    }
    coordinator(group, found);
    if let Some(trouble) = &group.directory_log_trouble {
        found.error(
            Code::DirectoryLogStopped,
            format!("Group {} cannot follow the changes of directories: {trouble}", group.number),
            "`clover admin groups` shows how far it is.",
        );
    }
    if let Some(why) = group.safe_mode.as_ref().filter(|_| is_led) {
        let why = if why.is_empty() { String::new() } else { format!(" {why}") };
        found.error(
            Code::SafeMode,
            format!("Safe mode is on: nothing is changed, copied or deleted.{why}"),
            "After a start it ends when the data servers have reported: `clover admin safe-mode wait` waits for that. One that a person has switched on ends with `clover admin safe-mode leave`.",
        );
    }
}

fn nobody_serves(group: &Group, found: &mut Found) {
    let number = group.number;
    let answering: Vec<&Member> =
        group.members.iter().filter(|member| member.presence == Presence::Answers).collect();
    let told: Vec<String> =
        answering.iter().map(|member| format!("member {} {}", member.number, doing(member.role))).collect();
    let text = match &told[..] {
        [] => format!("No member of group {number} answers."),
        _ => format!("No member of group {number} is active: {}.", list(&told)),
    };
    let epoch = group.view.as_ref().map(|view| format!(" The last epoch was {}.", view.epoch));
    found.error(
        Code::NoActive,
        text + &epoch.unwrap_or_default(),
        match told.is_empty() {
            true => "Start its members: `clover meta --config FILE` on each.",
            false => {
                "Start the members that are away; `clover admin group` shows why none of the others can lead."
            }
        },
    );
}

fn doing(role: Role) -> &'static str {
    match role {
        Role::Unknown => "has told no role",
        Role::Active => "is active",
        Role::Reading => "answers reads only",
        Role::Between => "is taking over",
        Role::Standby => "waits to take over",
        Role::Junior => "is not complete",
        Role::Stopped => "has stopped",
    }
}

fn coordinator(group: &Group, found: &mut Found) {
    let away: Vec<(&Member, u64)> =
        group.members.iter().filter_map(|member| Some((member, member.coordinator_away_ms?))).collect();
    let Some(longest) = away.iter().map(|(_, ms)| *ms).max() else { return };
    let subjects: Vec<String> = away.iter().map(|(member, _)| format!("member {}", member.number)).collect();
    found.warn(
        Code::CoordinatorAway,
        subjects.clone(),
        format!(
            "ZooKeeper does not answer {} for {}: the group goes on, and no other member can take over.",
            list(&subjects),
            duration(longest)
        ),
        "Bring ZooKeeper back; `clover doctor --config FILE` on that machine says whether it is reached.",
    );
}
