//! The group as a person reads it, and as a program does.

use crate::table;
use jiff::{Timestamp, tz::TimeZone};
use proto::{
    SyncState,
    clover::admin::{
        GetGroupResponseProto, LogPlaceProto, MemberProto, StoreProto, TakeoverProto, ViewProto,
    },
};
use serde_json::{Value, json};

/// Takeovers shown, the latest first.
const TAKEOVERS_MAX: usize = 5;

pub fn text(group: &GetGroupResponseProto) -> String {
    let mut lines = headline(group);
    lines.push(String::new());
    lines.extend(table::lines(&members(group)));
    let stopped = group.members.iter().filter(|member| role(member) == "stopped");
    lines.extend(stopped.map(|member| {
        format!(
            "Member {} has stopped: {}",
            member.member,
            member.reason.as_deref().unwrap_or("no reason given")
        )
    }));
    lines.extend(failed_disks(group));
    if !group.takeovers.is_empty() {
        lines.push(String::new());
        lines.push("Takeovers, the latest first; stages in ms since the old active was given up:".to_owned());
        lines.extend(table::lines(&takeovers(group)));
    }
    // A member that was never there has taken over nothing.
    let silent = group
        .silent
        .iter()
        .filter(|silent| group.members.iter().any(|one| one.member == **silent && one.rpc_address.is_some()));
    lines.extend(silent.map(|member| {
        format!("Member {member} does not answer: a takeover that only it knows of is not shown.")
    }));
    lines.join("\n") + "\n"
}

/// Lines about the members whose disks have failed, and what a person has to do about them.
fn failed_disks(group: &GetGroupResponseProto) -> Vec<String> {
    let (failed, others): (Vec<_>, Vec<_>) = group.members.iter().partition(|member| member.disk_failed());
    if failed.is_empty() {
        return Vec::new();
    }
    let numbers = |members: &[&MemberProto]| {
        let mut numbers: Vec<u32> = members.iter().map(|member| member.member).collect();
        numbers.sort_unstable();
        numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let leads = |member: &&MemberProto| {
        ["active", "reads only", "starting", "claiming", "handing over"].contains(&role(member))
    };
    if others.iter().any(leads) {
        let line = "goes on by itself under the member that leads, with what its disk still holds.";
        return vec![format!("A member whose disk has failed ({}) {line}", numbers(&failed))];
    }
    let mut lines = vec![format!("THE DISKS OF MEMBERS {} HAVE FAILED, and nobody leads.", numbers(&failed))];
    if !others.is_empty() {
        lines.push(format!(
            "Start or bring back {} first: if one of them can lead, the others go on by themselves, and nothing is at risk.",
            numbers(&others)
        ));
    }
    let complete = failed.iter().filter(|member| group.sync_of(member.member) != SyncState::Out);
    let longest = complete.filter_map(|member| Some((member.end.as_ref()?, *member)));
    let Some((end, member)) = longest.max_by_key(|(end, member)| {
        // Among equal ends, the member that led last is preferred: it need not find out whether the active is gone.
        let led = group.view.as_ref().and_then(|view| view.active) == Some(member.member);
        (end.epoch, end.sn, led, member.member)
    }) else {
        lines.push(
            "No complete member among them can read its log back: `clover inspect NAME_DIR` shows why."
                .into(),
        );
        return lines;
    };
    lines.push(format!(
        "{} look at the disk of member {}, whose log goes furthest ({}), and run there:",
        if others.is_empty() { "To go on," } else { "Where none of these comes back," },
        member.member,
        place(end)
    ));
    lines.push("  clover meta accept-disk --config FILE".to_owned());
    lines.push(
        "It takes the log as the disk shows it. All that was acknowledged is there, unless the disk has lost more than it \
         said: that would then be lost for ever. The other members go on by themselves."
            .to_owned(),
    );
    lines
}

/// Whether anybody answers clients.
pub fn is_served(group: &GetGroupResponseProto) -> bool {
    group.members.iter().any(|member| ["active", "reads only"].contains(&role(member)))
}

/// The first lines: which member leads, whether changes are taken, and what an operator should know.
pub fn headline(group: &GetGroupResponseProto) -> Vec<String> {
    let mut lines = Vec::new();
    lines.push(format!("Group {} of {}: {}", group.group, group.cluster_id, group.headline()));
    let (Some(view), Some(sync)) = (&group.view, group.sync_sentence()) else { return lines };
    lines.push(match group.committed {
        Some(sn) => format!("{sync} Committed up to sn {sn}."),
        None => sync,
    });
    if view.in_sync_min == 1 && view.members.len() > 1 {
        lines.push(format!("WARNING: {}.", metad::ONE_COPY));
    }
    if group.is_writable == Some(false) {
        lines.push(format!(
            "CHANGES ARE REFUSED: {} in sync, {} needed. Start the others, or bring a stopped one back.",
            view.in_sync.len(),
            view.in_sync_min
        ));
    }
    for member in group.members.iter().filter(|member| member.is_disk_low()) {
        lines.push(format!(
            "THE DISK OF MEMBER {} IS NEARLY FULL: {} free. Make room, before changes are refused.",
            member.member,
            size(member.disk_free_bytes())
        ));
    }
    if let Some(away_ms) = group.coordinator_away_ms {
        lines.push(format!(
            "THE COORDINATOR IS OUT OF REACH of member {} for {}: it goes on, but nobody can take over, and members \
             cannot be added or removed. Bring ZooKeeper back.",
            group.answered_by,
            duration(away_ms)
        ));
    }
    // A member that has the epoch knows as much as an active, even if it cannot serve yet.
    let is_substitute = view.active != Some(group.answered_by);
    if let Some(reason) =
        group.active_unreachable.as_deref().filter(|reason| is_substitute && !reason.is_empty())
    {
        lines.push(format!(
            "Member {} tells what it knows; the active cannot be asked: {reason}",
            group.answered_by
        ));
    }
    if let Some(count) = group.unclean_elections.filter(|count| *count > 0) {
        lines.push(format!("UNCLEAN ELECTIONS: {count}; acknowledged changes may have been lost then."));
    }
    lines
}

fn members(group: &GetGroupResponseProto) -> Vec<Vec<String>> {
    let headings =
        ["MEMBER", "ROLE", "IN SYNC", "LAST ENTRY", "LAG", "HEARD", "CLIENTS", "PEERS", "HTTP", "STATE"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    let mut members: Vec<&MemberProto> = group.members.iter().collect();
    members.sort_by_key(|member| member.member);
    for member in members {
        let address = |address: &Option<String>| match address.as_deref() {
            None | Some("") => "-".to_owned(),
            Some(address) => address.to_owned(),
        };
        rows.push(vec![
            member.member.to_string(),
            role(member).to_owned(),
            group.sync_of(member.member).word().to_owned(),
            member.end.as_ref().map_or("-".to_owned(), place),
            member.lag.map_or("-".to_owned(), |lag| lag.to_string()),
            heard(group, member),
            address(&member.rpc_address),
            address(&member.peer_address),
            address(&member.http_address),
            state(member),
        ]);
    }
    rows
}

pub fn role(member: &MemberProto) -> &'static str {
    member.role().word()
}

fn heard(group: &GetGroupResponseProto, member: &MemberProto) -> String {
    match member.heard_ms_ago {
        _ if member.member == group.answered_by => "itself".to_owned(),
        Some(ms) => format!("{} ago", duration(ms)),
        None => "never".to_owned(),
    }
}

/// The word for a member's state, and its progress.
fn state(member: &MemberProto) -> String {
    let word = member.state.as_deref().unwrap_or_default();
    let mut state = match (member.image_bytes_done, member.image_bytes_total) {
        (Some(done), Some(total)) if total > 0 => {
            let word = if word.is_empty() { "renewing" } else { word };
            format!("{word}: {} of {} of the image", size(done), size(total))
        }
        _ => word.to_owned(),
    };
    if let Some(reason) =
        member.reason.as_deref().filter(|reason| !reason.is_empty() && role(member) != "stopped")
    {
        if !state.is_empty() {
            state += "; ";
        }
        state += reason;
    }
    state
}

fn takeovers(group: &GetGroupResponseProto) -> Vec<Vec<String>> {
    let headings = [
        "ENDED", "EPOCH", "MEMBER", "BECAUSE", "NOTICED", "CLAIMED", "PROMISED", "FENCED", "ADOPTED",
        "SERVING",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    for takeover in group.takeovers.iter().rev().take(TAKEOVERS_MAX) {
        rows.push(vec![
            takeover.ended_at_ms.map_or("-".to_owned(), time),
            takeover.epoch.to_string(),
            takeover.member.map_or("-".to_owned(), |member| member.to_string()),
            takeover.trigger.clone(),
            takeover.detect_ms.to_string(),
            takeover.claim_ms.to_string(),
            takeover.promise_ms.to_string(),
            takeover.fence_ms.to_string(),
            takeover.adopt_ms.to_string(),
            takeover.sync_ms.to_string(),
        ]);
    }
    rows
}

/// The stages of a takeover in a line.
pub fn stages(takeover: &TakeoverProto) -> String {
    format!(
        "{}: noticed after {} ms; then claimed by {}, promised by {}, fenced by {}, adopted by {}, serving by {} ms",
        takeover.trigger,
        takeover.detect_ms,
        takeover.claim_ms,
        takeover.promise_ms,
        takeover.fence_ms,
        takeover.adopt_ms,
        takeover.sync_ms
    )
}

fn place(place: &LogPlaceProto) -> String {
    format!("{}/{}", place.epoch, place.sn)
}

fn time(ms: u64) -> String {
    match Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(i64::MAX)) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "-".to_owned(),
    }
}

fn duration(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{ms} ms"),
        10_000..600_000 => format!("{} s", ms / 1_000),
        _ => format!("{} min", ms / 60_000),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes.div_ceil(1_024)),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

pub fn json(group: &GetGroupResponseProto) -> Value {
    json!({
        "group": group.group,
        "cluster_id": group.cluster_id,
        "answered_by": group.answered_by,
        "active_unreachable": group.active_unreachable,
        "is_writable": group.is_writable,
        "committed": group.committed,
        "unclean_elections": group.unclean_elections,
        "view": group.view.as_ref().map(view_json),
        "members": group.members.iter().map(|member| member_json(group, member)).collect::<Vec<_>>(),
        "takeovers": group.takeovers.iter().map(takeover_json).collect::<Vec<_>>(),
        "silent": group.silent,
        "failed_disks": failed_disks(group),
        "coordinator_away_ms": group.coordinator_away_ms,
    })
}

fn view_json(view: &ViewProto) -> Value {
    let stores = |stores: &[StoreProto]| -> Vec<Value> {
        stores.iter().map(|store| json!({"member": store.member, "generation": store.generation})).collect()
    };
    json!({
        "version": view.version,
        "epoch": view.epoch,
        "active": view.active,
        "in_sync": stores(&view.in_sync),
        "exiles": stores(&view.exiles),
        "in_sync_min": view.in_sync_min,
        "members": view.members,
        "commit_hint": view.commit_hint.as_ref().map(place_json),
    })
}

fn member_json(group: &GetGroupResponseProto, member: &MemberProto) -> Value {
    json!({
        "member": member.member,
        "role": role(member),
        "in_sync": group.sync_of(member.member).word(),
        "generation": member.generation,
        "boot": member.boot,
        "peer_address": member.peer_address,
        "rpc_address": member.rpc_address,
        "http_address": member.http_address,
        "end": member.end.as_ref().map(place_json),
        "committed": member.committed,
        "lag": member.lag,
        "matched": member.matched,
        "heard_ms_ago": member.heard_ms_ago,
        "is_connected": member.is_connected,
        "state": member.state,
        "reason": member.reason,
        "image_bytes_done": member.image_bytes_done,
        "image_bytes_total": member.image_bytes_total,
        "disk_failed": member.disk_failed(),
        "data_servers": member.data_servers,
        "coordinator_away_ms": member.coordinator_away_ms,
        "disk_free_bytes": member.disk_free_bytes,
        "disk_low": member.is_disk_low(),
    })
}

fn place_json(place: &LogPlaceProto) -> Value {
    json!({"epoch": place.epoch, "sn": place.sn})
}

pub fn takeover_json(takeover: &TakeoverProto) -> Value {
    json!({
        "epoch": takeover.epoch,
        "member": takeover.member,
        "trigger": takeover.trigger,
        "detect_ms": takeover.detect_ms,
        "claim_ms": takeover.claim_ms,
        "promise_ms": takeover.promise_ms,
        "fence_ms": takeover.fence_ms,
        "adopt_ms": takeover.adopt_ms,
        "sync_ms": takeover.sync_ms,
        "ended_at_ms": takeover.ended_at_ms,
    })
}

#[cfg(test)]
mod tests;
