//! The group of metadata servers: its members, and who led when.

use crate::{
    asked::Asked,
    page::{Frame, shown},
    refusal::Refusal,
    text,
};
use askama::Template;
use axum::{http::StatusCode, response::Response};
use proto::{
    SyncState,
    clover::admin::{GetGroupResponseProto, MemberProto, RoleProto, TakeoverProto},
};

/// Takeovers that are shown, the latest first.
const TAKEOVERS_MAX: usize = 20;

#[derive(Template)]
#[template(path = "group.html")]
pub struct Page {
    frame: Frame,
    headline: String,
    sync: String,
    /// The visitor may have another member become active.
    offers_hand_over: bool,
    facts: Vec<(&'static str, String)>,
    members: Vec<Row>,
    takeovers: Vec<Takeover>,
    /// Members that do not answer: what only they know is missing.
    silent: String,
}

/// A member as a row of a table.
pub struct Row {
    pub number: u32,
    pub role: &'static str,
    /// Colours the row: `well`, `warning` or `error`.
    pub class: &'static str,
    pub in_sync: &'static str,
    pub lag: String,
    pub address: String,
    /// Its own console, if its address is one.
    pub console: Option<String>,
    pub end: String,
    pub heard: String,
    pub release: String,
    pub disk_free: String,
    pub data_servers: String,
    pub note: String,
}

pub struct Takeover {
    ended: String,
    epoch: u64,
    member: String,
    trigger: String,
    stages: Vec<(&'static str, u64)>,
}

pub async fn page(asked: Asked) -> Result<Response, Refusal> {
    let cluster = asked.cluster().await?;
    let Some(group) = &cluster.group else {
        let reason = cluster.unanswered.first().cloned().unwrap_or_default();
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "The group is not known", reason));
    };
    let frame = Frame::new("Group", "/group", &asked.visitor).refreshing(5);
    // A member that is alone has no other to hand over to.
    let offers_hand_over = group.members.len() > 1 && asked.is_superuser().await;
    Ok(shown(&Page { offers_hand_over, ..Page::new(frame, group) }))
}

impl Page {
    pub fn new(frame: Frame, group: &GetGroupResponseProto) -> Self {
        let number =
            |number: Option<u64>| number.map_or(text::UNKNOWN.to_owned(), |number| number.to_string());
        let facts = vec![
            ("Cluster", group.cluster_id.clone()),
            ("Group", group.group.to_string()),
            ("Answered by member", group.answered_by.to_string()),
            ("Committed up to", number(group.committed)),
            ("Level", number(group.level.map(u64::from))),
            ("Unclean elections", group.unclean_elections.unwrap_or(0).to_string()),
        ];
        let silent: Vec<_> = group.silent.iter().map(ToString::to_string).collect();
        Self {
            frame,
            headline: text::sentence(&group.headline()),
            sync: group.sync_sentence().unwrap_or_default(),
            offers_hand_over: false,
            facts,
            members: group.members.iter().map(|member| Row::of(group, member)).collect(),
            takeovers: group.takeovers.iter().rev().take(TAKEOVERS_MAX).map(Takeover::of).collect(),
            silent: silent.join(", "),
        }
    }
}

impl Row {
    pub fn of(group: &GetGroupResponseProto, member: &MemberProto) -> Self {
        let role = member.role();
        let sync = group.sync_of(member.member);
        let class = match role {
            RoleProto::Active | RoleProto::Standby if sync == SyncState::InSync => "well",
            RoleProto::Unknown | RoleProto::Stopped | RoleProto::Repairing => "error",
            _ => "warning",
        };
        let known =
            |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or(text::UNKNOWN.to_owned());
        let heard = match (member.member == group.answered_by, member.heard_ms_ago) {
            (true, _) => "answers this".to_owned(),
            (_, ago) => known(ago.map(|ms| format!("{} ago", text::duration(ms)))),
        };
        let end = member.end.as_ref().map(|end| format!("{} in epoch {}", end.sn, end.epoch));
        let away = member
            .coordinator_away_ms
            .map(|ms| format!("out of reach of the coordinator for {}", text::duration(ms)));
        let notes = [member.state.clone(), member.reason.clone(), away];
        let low = if member.is_disk_low() { ": too little" } else { "" };
        Self {
            number: member.member,
            role: role.word(),
            class,
            in_sync: sync.word(),
            lag: known(member.lag.map(|lag| text::of(lag, "entry", "entries"))),
            address: known(member.rpc_address.clone()),
            console: console(member),
            end: known(end),
            heard,
            release: known(member.release.clone()),
            disk_free: known(member.disk_free_bytes.map(|bytes| format!("{}{low}", text::size(bytes)))),
            data_servers: known(member.data_servers.map(|count| count.to_string())),
            note: notes.into_iter().flatten().collect::<Vec<_>>().join("; "),
        }
    }
}

/// The address of a member's own console, if its HTTP address is one.
pub fn console(member: &MemberProto) -> Option<String> {
    let address = member.http_address.as_deref().filter(|address| is_address(address))?;
    Some(format!("http://{address}/"))
}

/// Whether a text is `host:port` and nothing else, so that it may stand in an address.
fn is_address(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    text.len() <= 260 && text.contains(':') && text.bytes().all(is_plain)
}

impl Takeover {
    fn of(takeover: &TakeoverProto) -> Self {
        let stages = [
            ("noticed", takeover.detect_ms),
            ("claimed", takeover.claim_ms),
            ("promised", takeover.promise_ms),
            ("fenced", takeover.fence_ms),
            ("adopted", takeover.adopt_ms),
            ("in sync", takeover.sync_ms),
        ];
        Self {
            ended: text::time(takeover.ended_at_ms.unwrap_or(0)),
            epoch: takeover.epoch,
            member: takeover.member.map_or(text::UNKNOWN.to_owned(), |member| member.to_string()),
            trigger: takeover.trigger.clone(),
            stages: stages.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests;
