//! Whether a call is carried out here and now: this group decides it, holds the directory lease, and nothing that the call rests on is in doubt.
//!
//! The gate is passed under the lock under which the call is then carried out. In between nothing is applied, so what is looked at is as the gate saw it.

use super::{
    decide::{Looked, is_remembered},
    gather,
    send::send_on,
};
use crate::{
    allowances::ask,
    core::Core,
    directories::{self, Judged, Known},
    partition::turn::{Detour, Turn},
};
use base::{FsError, GroupId, directory_log::Mark};
use dirlog::home::CallKind;
use namespace::{
    Namespace, Sight,
    homes::Decision,
    questions::{self, Told},
};
use proto::{
    methods::{self, Class, Kind, Paths},
    protocol,
};
use rpc::{Call, Replier};
use std::sync::Arc;

/// Before a call is carried out in the writer's turn. `None`: it waits, is refused, or goes to another group.
pub fn in_turn(core: &Arc<Core>, turn: &mut Turn<'_>, call: &Call, reply: Replier) -> Option<Replier> {
    if turn.namespace().is_shared() {
        turn.has_asked(core.allowances.since(call));
    }
    if is_alone(core) {
        return Some(reply);
    }
    let Some(looked) = Looked::at(call) else { return Some(reply) };
    // The entries that the root group has told to be visible come first.
    directories::apply(turn, turn.epoch());
    let kind = if looked.method.kind == Kind::Edit { CallKind::Plan } else { CallKind::Read };
    let tree = turn.namespace();
    let marks = |seen: &mut Vec<Mark>| looked.home_call.seen(tree, seen);
    let reply = pass(core, tree, kind, &looked, call, reply, marks)?;
    if kind == CallKind::Read || core.cluster.group != GroupId::ROOT {
        return Some(reply);
    }
    // In the root group a change of directories may rest on files that homes have.
    match core.partition.directories.know(call, reply) {
        Known::Waits => None,
        Known::Full(reply) => {
            refuse(call, reply);
            None
        }
        Known::New(reply) => {
            turn.may_ask(None, Told::default());
            Some(reply)
        }
        Known::Told(told, reply) => {
            turn.may_ask(Some(directories::op_of(call)), told);
            Some(reply)
        }
    }
}

/// A call is not answered in this turn.
pub fn go_round(core: &Arc<Core>, turn: &Turn<'_>, detour: Detour, call: Call, reply: Replier) {
    let directories = &core.partition.directories;
    match detour {
        Detour::Elsewhere(group) => send_on(core, group, call, reply),
        Detour::Allot(lack) => ask::ask(core, &lack, call, reply),
        Detour::AskedAnew => {
            let back = directories.wait_again(call, reply);
            directories::carry_on(&core.partition, back.into_iter().collect());
        }
        Detour::Ask(questions) => {
            if let Err(refused) = questions::check(&questions) {
                // What homes have told so far is given up when nobody comes for it.
                return reply.fs_error(&refused);
            }
            let back = directories.ask(questions, turn.namespace(), turn.moment, call, reply);
            if let Some((call, reply)) = back {
                refuse(&call, reply);
            }
        }
    }
}

/// Before a look, with the tree locked. `None`: as [`in_turn`].
pub fn look(
    core: &Arc<Core>,
    tree: &Namespace,
    call: &Call,
    reply: Replier,
    sight: &Sight<'_>,
) -> Option<Replier> {
    if is_alone(core) {
        return Some(reply);
    }
    let Some(looked) = Looked::at(call) else { return Some(reply) };
    if looked.method.class != Class::Home {
        return Some(reply);
    }
    let marks = |seen: &mut Vec<Mark>| {
        let mut marks = Vec::new();
        let is_known = sight.clone().marks(tree, &mut marks);
        seen.extend(marks.into_iter().map(Mark::from));
        is_known
    };
    pass(core, tree, CallKind::Read, &looked, call, reply, marks)
}

/// Before a walk through a great deal of the tree. It shows everything that was visible when it began, so it waits for all that is in doubt then;
/// what changes while it goes on is in it or not.
pub fn walk(core: &Arc<Core>, tree: &Namespace, call: &Call, reply: Replier) -> Option<Replier> {
    if is_alone(core) {
        return Some(reply);
    }
    let Some(looked) = Looked::at(call) else { return Some(reply) };
    pass(core, tree, CallKind::Read, &looked, call, reply, |_| false)
}

/// Whether the active's gate alone looks which group decides the call: a look at one path, which has not to be taken apart. The door would look at
/// the same tree a moment before.
pub fn sends_on(call: &Call) -> bool {
    let method = methods::method(call.method).filter(|_| call.protocol == protocol::CLIENT_NAMENODE);
    method.is_some_and(|method| {
        method.class == Class::Home && method.kind == Kind::Look && method.paths == Paths::One
    })
}

/// Whether this group decides everything, and there is no other one that holds files.
fn is_alone(core: &Core) -> bool {
    // Another group than the root group may be late to hear of its slots.
    core.cluster.group == GroupId::ROOT && !core.partition.has_homes()
}

fn pass(
    core: &Arc<Core>,
    tree: &Namespace,
    kind: CallKind,
    looked: &Looked,
    call: &Call,
    reply: Replier,
    marks: impl FnOnce(&mut Vec<Mark>) -> bool,
) -> Option<Replier> {
    let own = core.cluster.group;
    let decision = looked.decision(tree);
    let is_apart = gather::is_apart(looked, tree);
    let elsewhere =
        decision.map(Decision::group).filter(|group| *group != own && !looked.is_part && !is_apart);
    if let Some(group) = elsewhere.filter(|_| !is_remembered(looked, call, tree)) {
        send_on(core, group, call.clone(), reply);
        return None;
    }
    let reply = if own == GroupId::ROOT {
        // The root group's tree has the entries in doubt as well. The call is carried out at once, and only its answer waits until they are visible.
        reply
    } else {
        match core.partition.directories.judge(tree, core.moment(), kind, call, reply, marks) {
            Judged::Go(reply) => reply,
            Judged::Waits => return None,
            Judged::Behind(reply) => {
                behind(core, call.clone(), reply);
                return None;
            }
            Judged::Full(reply) => {
                refuse(call, reply);
                return None;
            }
        }
    };
    if looked.is_part && looked.is_about_no_directory(tree) {
        // The server that has taken the call apart knows a directory there.
        reply.fs_error(&FsError::Retry(format!(
            "{} has come upon a change of directories; try again in a moment.",
            call.method
        )));
        return None;
    }
    // The directory has just been made, or the server that has passed the call on knows fewer directories.
    if is_apart || matches!(decision, Some(Decision::Apart(_))) {
        directories::carry_on(&core.partition, vec![(call.clone(), reply)]);
        return None;
    }
    Some(reply)
}

/// Too much waits already.
fn refuse(call: &Call, reply: Replier) {
    let method = call.method;
    let text = format!("{method} cannot wait here for a change of directories; try again in a moment.");
    reply.fs_error(&FsError::Retry(text));
}

/// The writer has entries to apply before anything is looked at. The call comes back behind it.
fn behind(core: &Arc<Core>, call: Call, reply: Replier) {
    let partition = core.partition.clone();
    core.partition.attempt(
        core.in_hand(&call),
        Box::new(move |_| directories::carry_on(&partition, vec![(call, reply)])),
    );
}
