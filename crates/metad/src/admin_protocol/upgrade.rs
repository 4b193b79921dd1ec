//! The order that makes an upgrade final: from then on members write what came with the new level, and older releases are shut out.

use super::{orders::pass_on, refuse};
use crate::{
    client_protocol::calls::{self, decode},
    core::Core,
    partition::upgrade::obstacles,
};
use base::{FsError, Level};
use namespace::{Planned, ops::raise_level};
use proto::clover::admin as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn raise_level(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RaiseLevelRequestProto>(&call, reply) else { return };
    if !core.partition.member.is_serving() {
        return pass_on(core, call, reply);
    }
    let wanted = match request.level.map(u16::try_from) {
        None => Level::NEWEST,
        Some(Ok(level)) if Level(level).is_known() => Level(level),
        Some(_) => {
            return refuse(
                reply,
                format!(
                    "the active runs release {}, which knows levels up to {}: level {} is not one of them",
                    base::level::RELEASE,
                    Level::NEWEST,
                    request.level()
                ),
            );
        }
    };
    let level = core.partition.tree().namespace.group_level().level;
    let found = answer(
        level,
        wanted,
        if level < wanted { obstacles(&core.partition.member, wanted) } else { Vec::new() },
    );
    if !request.is_confirmed() || !found.obstacles.is_empty() || level >= wanted {
        let is_done = level >= wanted;
        return reply.ok(&p::RaiseLevelResponseProto { is_done: Some(is_done), ..found });
    }
    calls::turn(core, call, reply, move |turn, call| {
        let member = &turn.partition().member;
        let before = turn.namespace().group_level().level;
        // From here on a member that connects must know the level. The members that are connected already are looked at afterwards.
        member.require_level(wanted);
        let obstacles = obstacles(member, wanted);
        if !obstacles.is_empty() {
            member.require_level(before);
            return Err(FsError::InvalidArgument(format!("Nothing was done: {}", obstacles.join("; "))));
        }
        let planned = turn.plan_own(|namespace, context, _| raise_level::plan(namespace, context, wanted))?;
        if let Planned::Edit(edit) = planned {
            turn.apply(edit);
        }
        tracing::warn!(user = %call.caller, from = %before, to = %wanted, "the group's level is raised by an operator's order");
        Ok(p::RaiseLevelResponseProto {
            is_done: Some(true),
            level: Some(wanted.0.into()),
            ..answer(before, wanted, Vec::new())
        })
    });
}

fn answer(level: Level, wanted: Level, obstacles: Vec<String>) -> p::RaiseLevelResponseProto {
    let raised = (level.0 + 1..=wanted.0).map(Level);
    p::RaiseLevelResponseProto {
        is_done: Some(false),
        level: Some(level.0.into()),
        wanted: Some(wanted.0.into()),
        release: wanted.release().map(str::to_owned),
        obstacles,
        switches_on: raised.filter_map(Level::what).map(str::to_owned).collect(),
    }
}
