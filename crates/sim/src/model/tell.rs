//! A counterexample, told so that a person who never saw the code can follow it.

use super::{Event, world::Keeper, world::member};
use crate::host::{Happened, Host};
use base::{EntryKind, GroupView};
use group::Message;

fn view_text(view: &GroupView) -> String {
    let names = |stores: &[base::MemberStore]| {
        let names: Vec<String> = stores.iter().map(|store| store.member.to_string()).collect();
        names.join(" ")
    };
    let active = view.active.map_or("nobody".to_owned(), |active| format!("member {active}"));
    let mut text = format!("epoch {}, {active} leads, in sync [{}]", view.epoch, names(&view.in_sync));
    if !view.exiles.is_empty() {
        text.push_str(&format!(", exiles [{}]", names(&view.exiles)));
    }
    text.push_str(&format!(", minimum {}, committed {}", view.in_sync_min, view.commit_hint));
    text
}

pub(super) fn message(message: &Message) -> String {
    match message {
        Message::Append(append) => {
            let ids: Vec<String> = append.entries.iter().map(|entry| entry.id.to_string()).collect();
            format!(
                "Append in epoch {}: after {} [{}], committed {}",
                append.epoch,
                append.previous.id,
                ids.join(" "),
                append.committed
            )
        }
        Message::Appended { epoch, last } => format!("Appended in epoch {epoch} up to {last}"),
        Message::Mismatch { epoch, end, committed } => {
            format!("Mismatch in epoch {epoch}: ends at {}, committed {}", end.id, committed.id)
        }
        Message::Fenced { promised } => format!("Fenced by epoch {promised}"),
        Message::NewEpoch { epoch } => format!("NewEpoch {epoch}"),
        Message::Promised { epoch, end, committed, is_suspect } => {
            let suspect = if *is_suspect { ", suspect" } else { "" };
            format!("Promised epoch {epoch}: ends at {}, committed {}{suspect}", end.id, committed.id)
        }
        Message::Beacon { epoch, round, committed, .. } => {
            format!("Beacon {round} of epoch {epoch}, committed {committed}")
        }
        Message::Grant { epoch, round, is_granted, end, .. } => {
            let word = if *is_granted { "Grant" } else { "No grant" };
            format!("{word} for beacon {round} of epoch {epoch}: ends at {}", end.id)
        }
        Message::Fetched { previous, entries, committed, .. } => {
            let ids: Vec<String> = entries.iter().map(|entry| entry.id.to_string()).collect();
            format!("Fetched after {} [{}], committed {committed}", previous.id, ids.join(" "))
        }
        Message::Hello { known } => format!(
            "Hello: promised {}, ends at {}, committed {}",
            known.promised, known.end.id, known.committed.id
        ),
        other => format!("{other:?}"),
    }
}

pub(super) fn event(event: Event, message_at: impl Fn(u8, u8, usize) -> String, keeper: &Keeper) -> String {
    let change = |request: u8| {
        keeper.requests.get(request as usize).map_or_else(String::new, |one| {
            format!(
                "the change by member {} at version {} ({})",
                one.author.store.member,
                one.change.expected_version,
                view_text(&one.change.view)
            )
        })
    };
    match event {
        Event::Deliver { from, to } => {
            format!("{} to {}: {}", member(from), member(to), message_at(from, to, 0))
        }
        Event::Double { from, to } => {
            format!("{} to {}, to come again: {}", member(from), member(to), message_at(from, to, 0))
        }
        Event::Overtake { from, to } => {
            format!("{} to {}, overtaking: {}", member(from), member(to), message_at(from, to, 1))
        }
        Event::Decide { request } => {
            format!("coordinator, at version {}: takes {}", keeper.version, change(request))
        }
        Event::DecideUnheard { request } => {
            format!("coordinator, at version {}: takes, unheard, {}", keeper.version, change(request))
        }
        Event::DecideLate { request } => {
            format!(
                "coordinator, at version {}: takes, and answers late, {}",
                keeper.version,
                change(request)
            )
        }
        Event::Hear { answer } => answer_text(keeper, answer),
        Event::HearAgain { answer } => format!("{}, which will come again", answer_text(keeper, answer)),
        Event::Delay { request } => format!("coordinator: does not answer, and keeps {}", change(request)),
        Event::ReadView { seat } => {
            format!("member {} reads version {}: {}", member(seat), keeper.version, view_text(&keeper.view))
        }
        Event::ReadLog { seat } => format!("member {}'s journal has read", member(seat)),
        Event::Sync { seat } => format!("member {}'s disk has synced", member(seat)),
        Event::Wake { seat } => format!("a long time passes on member {}'s clock", member(seat)),
        Event::Beat { seat } => format!("member {}'s next timer runs out", member(seat)),
        Event::Propose { seat } => format!("a client asks member {}", member(seat)),
        Event::Crash { seat, keeps } => {
            let rest = if keeps { "; what it had written stays" } else { "" };
            format!("member {} is killed{rest}", member(seat))
        }
        Event::Start { seat } => format!("member {} starts", member(seat)),
        Event::Reset { one, other } => {
            format!("the connection between {} and {} breaks", member(one), member(other))
        }
        Event::LockGone { seat } => format!("member {} hears that the lock is gone", member(seat)),
        Event::Gone { seat, other } => {
            format!("member {} hears that the process of {} is gone", member(seat), member(other))
        }
        Event::Order { seat } => format!("the operator orders something of member {}", member(seat)),
    }
}

fn answer_text(keeper: &Keeper, answer: u8) -> String {
    keeper.answers.get(answer as usize).map_or_else(String::new, |one| {
        let version = one.asked.expected_version;
        format!(
            "member {} hears of its change at version {version}: {:?}",
            one.author.store.member, one.answer
        )
    })
}

pub(super) fn tell(told: &mut Vec<String>, host: &Host, happened: &Happened) {
    let mut say = |line: String| told.push(format!("  {line}"));
    let me = host.store.member;
    for change in &happened.changes {
        say(format!(
            "{me} asks the coordinator, at version {}: {}",
            change.expected_version,
            view_text(&change.view)
        ));
    }
    for epoch in &happened.promised {
        say(format!("{me} promises {epoch}"));
    }
    for entry in &happened.cut {
        say(format!("{me} cuts off {}", entry.id));
    }
    for entry in &happened.appended {
        let kind = if entry.kind == EntryKind::EpochStart { " (epoch start)" } else { "" };
        say(format!("{me} appends {}{kind}", entry.id));
    }
    for (to, sent) in &happened.messages {
        say(format!("{me} to {to}: {}", message(sent)));
    }
    for outgoing in &happened.outgoing {
        for entry in &outgoing.apply {
            say(format!("{me} applies {}", entry.id));
        }
        if let Some(sn) = outgoing.committed {
            say(format!("{me} calls committed: {sn}"));
        }
        if let Some(role) = &outgoing.role {
            say(format!("{me} is {role:?}"));
        }
        if outgoing.read_view {
            say(format!("{me} wants to read the view"));
        }
        for sentence in [&outgoing.rebuild, &outgoing.distrust].into_iter().flatten() {
            say(format!("{me} starts anew: {sentence}"));
        }
        if outgoing.needs_image {
            say(format!("{me} needs an image"));
        }
    }
}
