//! Has another member of the group become active: asks which, shows what would be done, and does it.

use crate::{
    asked::Asked,
    changes::Form,
    page::{Frame, shown},
    refusal::Refusal,
    text,
};
use askama::Template;
use axum::{http::StatusCode, response::Response};
use proto::{
    SyncState,
    clover::admin::{GetGroupResponseProto, MemberProto, RoleProto},
};
use std::time::Duration;

/// A hand-over takes some tenths of a second. The page has to be made before its own time is over.
const PATIENCE: Duration = Duration::from_secs(15);
/// The value of the field by which the choice is left to the active.
const ANY: &str = "any";

#[derive(Template)]
#[template(path = "hand_over.html")]
pub struct Page {
    frame: Frame,
    headline: String,
    stage: Stage,
}

/// How far the visitor is.
enum Stage {
    Choose(Vec<Candidate>),
    Confirm(Order),
    Done(Vec<String>),
    Failed(String),
}

/// A member that could follow.
struct Candidate {
    number: u32,
    role: &'static str,
    in_sync: &'static str,
    /// Whether it can become active.
    is_ready: bool,
    lag: String,
    data_servers: String,
}

/// A hand-over before it is ordered.
struct Order {
    from: u32,
    epoch: u64,
    /// The member in the form: a number, or [`ANY`].
    to: String,
    /// `None`: the active chooses.
    next: Option<Candidate>,
}

/// Asks which member is to follow, and for the address with a member what is to be done.
pub async fn look(asked: Asked) -> Result<Response, Refusal> {
    asked.require_superuser("Another member can be made active by superusers.").await?;
    let group = asked.group().await?;
    let frame = Frame::new("Hand-over", "/group", &asked.visitor);
    let to = asked.parameter("to");
    Ok(shown(&Page::of(frame, &group, to.as_deref())?))
}

/// Gives the order that was looked at.
pub async fn carry_out(asked: Asked, form: Form) -> Result<Response, Refusal> {
    asked.require_superuser("Another member can be made active by superusers.").await?;
    let group = asked.group().await?;
    let order = Order::of(&group, form.get("to").unwrap_or_default())?;
    if form.get("epoch") != Some(&*order.epoch.to_string()) {
        let reason = format!("The group is in epoch {} now. Look again before you hand over.", order.epoch);
        return Err(Refusal::new(StatusCode::CONFLICT, "The group has changed", reason));
    }
    let Some(hand_over) = asked.shared.hand_over() else {
        let reason =
            "This server cannot prove orders: its cluster has no secret, or the server is not ready.";
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "Nothing was done", reason));
    };
    let (user, to) = (asked.visitor.user.clone(), order.next.as_ref().map(|next| next.number));
    tracing::info!(user, from = order.from, ?to, "a user of the web console orders a hand-over");
    let outcome = tokio::time::timeout(PATIENCE, hand_over(user, to)).await;
    let stage = match outcome {
        Ok(Ok(told)) => Stage::Done(told.lines().map(str::to_owned).collect()),
        Ok(Err(reason)) => Stage::Failed(reason),
        Err(_) => Stage::Failed(format!(
            "no member has become active within {} s. The order may still be carried out",
            PATIENCE.as_secs()
        )),
    };
    let headline = asked.group().await.map(|group| text::sentence(&group.headline())).unwrap_or_default();
    Ok(shown(&Page { frame: Frame::new("Hand-over", "/group", &asked.visitor), headline, stage }))
}

impl Page {
    /// # Errors
    /// No member is active, or `to` is no member that could follow.
    fn of(frame: Frame, group: &GetGroupResponseProto, to: Option<&str>) -> Result<Self, Refusal> {
        let stage = match to {
            None => Stage::Choose(candidates(group)),
            Some(to) => Stage::Confirm(Order::of(group, to)?),
        };
        Ok(Self { frame, headline: text::sentence(&group.headline()), stage })
    }
}

impl Order {
    /// # Errors
    /// No member is active, or `to` is no member that could follow.
    fn of(group: &GetGroupResponseProto, to: &str) -> Result<Self, Refusal> {
        let refuse = |reason: String| Refusal::new(StatusCode::CONFLICT, "No hand-over", reason);
        let Some((active, epoch)) = group.view.as_ref().and_then(|view| Some((view.active?, view.epoch)))
        else {
            return Err(refuse("No member is active: there is nothing to hand over.".to_owned()));
        };
        let mut candidates = candidates(group);
        let next = match to {
            ANY if candidates.iter().any(|one| one.is_ready) => None,
            ANY => return Err(refuse("No other member is in sync, so none can become active.".to_owned())),
            _ => {
                let at = candidates.iter().position(|one| one.is_ready && one.number.to_string() == to);
                let Some(at) = at else {
                    return Err(refuse(format!(
                        "{to} is no member that can become active: it has to be in sync, and not to be active yet."
                    )));
                };
                Some(candidates.swap_remove(at))
            }
        };
        Ok(Self { from: active, epoch, to: to.to_owned(), next })
    }
}

/// The members beside the active, by their numbers.
fn candidates(group: &GetGroupResponseProto) -> Vec<Candidate> {
    let active = group.view.as_ref().and_then(|view| view.active);
    let others = group.members.iter().filter(|member| Some(member.member) != active);
    let mut others: Vec<_> = others.map(|member| Candidate::of(group, member)).collect();
    others.sort_by_key(|one| one.number);
    others
}

impl Candidate {
    fn of(group: &GetGroupResponseProto, member: &MemberProto) -> Self {
        let sync = group.sync_of(member.member);
        Self {
            number: member.member,
            role: member.role().word(),
            in_sync: sync.word(),
            is_ready: sync == SyncState::InSync && member.role() == RoleProto::Standby,
            lag: member.lag.map_or(text::UNKNOWN.to_owned(), |lag| text::of(lag, "entry", "entries")),
            data_servers: member
                .data_servers
                .map_or(text::UNKNOWN.to_owned(), |count| text::count(count.into())),
        }
    }
}

#[cfg(test)]
mod tests;
