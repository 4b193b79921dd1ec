//! The root group's answer to a group that lacks something of a quota.

use crate::{
    core::Core,
    directories::{self, Known},
    doors::gate,
    older_answers::Older,
    partition::turn::{Detour, Turn},
    post::elsewhere,
};
use base::{FsError, GroupId};
use namespace::{
    Planned,
    ops::allot,
    questions::Told,
    shares::{self, Lack},
};
use proto::clover::forward::PostResponseProto;
use rpc::{Call, Replier};
use std::sync::Arc;

/// Hands out an allowance, and answers once the entry that does so is visible. `bytes` are those of a [`Lack`].
pub fn call(core: &Arc<Core>, bytes: &[u8], call: Call, reply: Replier) {
    let lack = match shares::decode(bytes) {
        Ok(lack) if core.cluster.group == GroupId::ROOT => lack,
        Ok(_) => {
            return reply.fs_error(&FsError::InvalidArgument("The root group hands out allowances.".into()));
        }
        Err(error) => return reply.fs_error(&FsError::InvalidArgument(error.to_string())),
    };
    let server = core.clone();
    core.partition.attempt(
        core.in_hand(&call),
        Box::new(move |turn| match turn {
            Some(turn) => in_turn(&server, turn, &lack, call, reply),
            None => reply.ok(&elsewhere()),
        }),
    );
}

fn in_turn(core: &Arc<Core>, turn: &mut Turn<'_>, lack: &Lack, call: Call, reply: Replier) {
    let reply = match core.partition.directories.know(&call, reply) {
        Known::Waits => return,
        Known::Full(reply) => return reply.fs_error(&FsError::Retry("Too much waits here.".into())),
        Known::New(reply) => {
            turn.may_ask(None, Told::default());
            reply
        }
        Known::Told(told, reply) => {
            turn.may_ask(Some(directories::op_of(&call)), told);
            reply
        }
    };
    turn.knowing(Older::Nothing, |turn| match allot(turn, lack, &call) {
        Some(detour) => gate::go_round(core, turn, detour, call, reply),
        None => {
            let dix = turn.namespace().directory_log().dix;
            turn.after_own_edit(move |committed| match committed {
                Ok(()) => reply.ok(&PostResponseProto { allotted_dix: Some(dix.0), ..Default::default() }),
                // The next active knows.
                Err(_) => reply.ok(&elsewhere()),
            });
        }
    });
}

fn allot(turn: &mut Turn<'_>, lack: &Lack, call: &Call) -> Option<Detour> {
    let planned = turn
        .plan(&call.caller, call.origin, 0, |namespace, context, _| allot::plan(namespace, context, lack));
    if let Some(questions) = turn.take_unanswered() {
        return Some(Detour::Ask(questions));
    }
    match planned {
        Planned::Edit(edit) => match turn.order(edit.into()) {
            Ok(edit) => drop(turn.apply(edit)),
            Err(()) => return Some(Detour::AskedAnew),
        },
        Planned::NoChange(_) => {
            if !turn.refuse(|_| Vec::new()) {
                return Some(Detour::AskedAnew);
            }
        }
    }
    None
}
