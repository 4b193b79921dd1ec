//! Carries out what other groups' actives send, and tells them where blocks of this group's pool are, and what only this group knows of its directories.

use super::ways::{elsewhere, is_proved};
use crate::{
    allowances::serve,
    client_protocol::decode,
    core::Core,
    datanodes::wire,
    partition::turn::Turn,
    points::{self, Point},
};
use ::blocks::Reader;
use base::{Block, BlockId, GroupId, InodeId};
use bytes::Bytes;
use namespace::{SnapshotId, ops::carry_out, outbox::Message};
use proto::{
    answers::encoded,
    clover::forward::{DirectoryFactsProto, PostRequestProto, PostResponseProto},
    exception,
};
use rpc::{Call, Replier, RpcError};
use serving::Until;
use std::sync::{Arc, atomic::Ordering};

/// Blocks that one question may be about: as many as a file may have that moves.
const BLOCKS_MAX: usize = 1_000_000;
/// Directories that one question may be about: more than stand in one page of a listing.
const DIRECTORIES_MAX: usize = 100_000;

/// Answers the active of another group.
pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<PostRequestProto>(&call, reply) else { return };
    let from = match check(core, &request) {
        Ok(from) => from,
        Err(error) => {
            tracing::warn!(peer = %call.peer, %error, "refused what claims to be another group's active");
            return reply.error(error);
        }
    };
    if !core.partition.member.is_serving() {
        return reply.ok(&elsewhere());
    }
    if let Some(lack) = request.allot {
        return serve::call(core, &lack, call, reply);
    }
    if !request.directories.is_empty() {
        let snapshot = request.snapshot.map(|at| SnapshotId(at.try_into().unwrap_or(u32::MAX)));
        return tell_directories(core, &request.directories, snapshot, reply);
    }
    if request.messages.is_empty() {
        return reply.ok(&PostResponseProto { located: locate(core, &request), ..Default::default() });
    }
    let mut messages = Vec::new();
    for bytes in &request.messages {
        match Message::from_bytes(bytes) {
            Ok(message) => messages.push(message),
            Err(error) => {
                tracing::warn!(peer = %call.peer, group = %from, %error, "orders about blocks make no sense");
                return reply.error(RpcError::application(exception::IO, error.to_string()));
            }
        }
    }
    core.partition.attempt(
        core.in_hand(&call),
        Box::new(move |turn| match turn {
            Some(turn) => carry_out_all(turn, from, &messages, reply),
            None => reply.ok(&elsewhere()),
        }),
    );
}

/// The group that asks.
fn check(core: &Core, request: &PostRequestProto) -> Result<GroupId, RpcError> {
    let refuse = |message: String| Err(RpcError::application(exception::ACCESS_CONTROL, message));
    let Some(secret) = &core.secret else {
        return refuse("this cluster has one metadata server and no secret".to_owned());
    };
    if !is_proved(secret, request) {
        return refuse("this is not from a member of this cluster".to_owned());
    }
    if request.scope != core.scope {
        return refuse(format!("what is for {} came to {}", request.scope, core.scope));
    }
    let from = GroupId(request.group);
    // The root group's active asks itself for an allowance.
    if !from.is_possible() || from == core.cluster.group && request.allot.is_none() {
        return refuse(format!("group {from} is no other group"));
    }
    if request.blocks.len() > BLOCKS_MAX {
        return refuse(format!("{} blocks are too many for one question", request.blocks.len()));
    }
    match request.directories.len() > DIRECTORIES_MAX {
        true => refuse(format!("{} directories are too many for one question", request.directories.len())),
        false => Ok(from),
    }
}

/// Tells what this group knows of directories, once that has committed here.
fn tell_directories(core: &Core, directories: &[u64], snapshot: Option<SnapshotId>, reply: Replier) {
    let tree = core.partition.tree();
    let facts = directories.iter().map(|id| {
        let found = tree.namespace.own_facts_of(InodeId(*id), snapshot);
        DirectoryFactsProto {
            modified_ms: found.map(|facts| facts.modified.ms),
            children: found.map(|facts| facts.children),
        }
    });
    let answer = PostResponseProto { directories: facts.collect(), ..Default::default() };
    let until = Until::own(tree.namespace.applied().sn);
    drop(tree);
    core.partition.commit.when(until, move |committed| match committed {
        Ok(()) => reply.ok(&answer),
        Err(_) => reply.ok(&elsewhere()),
    });
}

/// Carries out the messages, up to the first that cannot be. The answer goes out once that has committed.
fn carry_out_all(turn: &mut Turn<'_>, from: GroupId, messages: &[Message], reply: Replier) {
    let (mut trouble, mut before) = (None, None);
    for message in messages {
        let number = message.number;
        let plan =
            turn.plan_own(|namespace, context, _| carry_out::plan(namespace, context, from, message, before));
        before = Some(number);
        trouble = match plan {
            carry_out::Plan::Edit { edit, unknown, is_gap } => {
                if is_gap {
                    tracing::error!(group = %from, number, "this group has lost orders about blocks that it had carried out: it goes on with later ones, and blocks may stay that no file has");
                }
                if let Some(file) = unknown.first() {
                    let files = unknown.len();
                    tracing::error!(group = %from, number, %file, files, "orders are about files that this group has not exported: they are left out, and blocks may stay that no file has");
                }
                let left_out = unknown.len() as u64 + u64::from(is_gap);
                turn.partition().orders_left_out.fetch_add(left_out, Ordering::Relaxed);
                turn.apply(edit);
                continue;
            }
            carry_out::Plan::Already => continue,
            carry_out::Plan::Behind(dix) => {
                Some(format!("entry {dix} of the directory log has not been applied here"))
            }
            carry_out::Plan::OutOfOrder { before } => {
                tracing::error!(group = %from, number, before, "orders about blocks came out of order");
                Some(format!("message {number} comes behind message {before}"))
            }
        };
        break;
    }
    let carried_out = Some(turn.namespace().carried_out_of(from));
    let dix = Some(turn.namespace().directory_log().dix.0);
    let has_join = messages.iter().any(points::has_join);
    turn.after_commit(move |committed| match committed {
        Ok(()) => {
            points::pass(Point::OutboxCarried);
            points::pass_if(Point::JoinCarried, || has_join);
            reply.ok(&PostResponseProto { carried_out, dix, trouble, ..Default::default() });
        }
        // The next active knows.
        Err(_) => reply.ok(&elsewhere()),
    });
}

fn locate(core: &Core, request: &PostRequestProto) -> Vec<Bytes> {
    let partition = &core.partition;
    let now = partition.moment();
    core.racks.note(request.host.as_deref().and_then(|host| host.parse().ok()), || now);
    let reader = Reader { host: request.host.as_deref() };
    let map = partition.blocks.lock();
    let located = request.blocks.iter().map(|id| {
        let chance = partition.env.random.next_u64();
        let located = map.locations(BlockId(*id), reader, chance, now);
        let block = Block { id: BlockId(*id), ..Block::default() };
        Bytes::from(encoded(wire::found(&partition.cluster.block_pool, block, 0, located.as_ref())))
    });
    located.collect()
}
