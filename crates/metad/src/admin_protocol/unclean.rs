//! Making a member active that may lack what was acknowledged, by an operator's explicit word.
//!
//! Before anything happens the order is noted in a file beside the member's store, one line for each, and synced: a
//! person who misses a file one day finds there which entries were given up, when, by whom, and which warning was
//! shown.

use super::refuse;
use crate::{chronicle::unclean::append, client_protocol::decode, core::Core};
use base::{MemberId, Sn};
use group::{Order, Status};
use proto::clover::admin as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn elect(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::UncleanElectRequestProto>(&call, reply) else { return };
    let status = core.partition.member.status();
    let risk = Risk::of(core.partition.member.me().member, &status);
    let off: Vec<MemberId> = request.off.iter().copied().map(MemberId).collect();
    let not_off: Vec<MemberId> =
        risk.complete.iter().filter(|member| !off.contains(member)).copied().collect();
    let answer = |message: String, is_done: bool| p::UncleanElectResponseProto {
        message: Some(message),
        loss_after: Some(risk.after.0),
        loss_up_to: risk.up_to.map(|sn| sn.0),
        is_done: Some(is_done),
    };
    if !request.i_accept_loss() {
        return reply.ok(&answer(risk.sentence(), false));
    }
    if !not_off.is_empty() {
        let who: Vec<String> = not_off.iter().map(ToString::to_string).collect();
        return refuse(
            reply,
            format!(
                "members {} hold everything that was acknowledged: bring one of them back instead, or make sure \
                 that they are off and say so",
                who.join(", ")
            ),
        );
    }
    let epoch = status.view.as_ref().map_or(status.promised, |(view, _)| view.epoch);
    let line = format!(
        "at_ms={} user={} member={} after_epoch={epoch} {risk} off={off:?}\n",
        core.env.clock.timestamp().ms,
        call.caller,
        core.partition.member.me().member,
    );
    tracing::error!(record = line.trim_end(), "UNCLEAN ELECTION ordered: acknowledged changes may be lost");
    let Some(runtime) = core.partition.forwarder.runtime() else {
        return refuse(reply, "this group has one member, which leads whenever it runs");
    };
    let done = answer(format!("{} It goes on all the same.", risk.sentence()), true);
    let core = core.clone();
    drop(runtime.spawn_blocking(move || order(&core, &line, done, reply)));
}

fn order(core: &Core, line: &str, done: p::UncleanElectResponseProto, reply: Replier) {
    if let Err(error) = append(&core.env, &core.config.name_directory, line) {
        return refuse(reply, format!("nothing was done, since it could not be noted: {error}: {}", error.0));
    }
    core.partition.chronicle.count_unclean_election();
    core.partition.member.order(
        Order::UncleanElect,
        Box::new(move |result| match result {
            Ok(message) => {
                tracing::error!(message, "UNCLEAN ELECTION carried out");
                reply.ok(&done);
            }
            Err(reason) => refuse(reply, reason),
        }),
    );
}

/// The entries that would be given up, as far as this member can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Risk {
    me: MemberId,
    /// The end of this member's log.
    after: Sn,
    /// Something after that has committed for certain, up to here at least.
    up_to: Option<Sn>,
    /// Members that have everything.
    complete: Vec<MemberId>,
}

impl Risk {
    fn of(me: MemberId, status: &Status) -> Self {
        let after = status.end.id.sn;
        let view = status.view.as_ref().map(|(view, _)| view);
        let hint = view.map(|view| view.commit_hint.sn);
        let heard = status.peers.iter().filter_map(|peer| peer.end).map(|end| end.id.sn);
        let up_to = hint.into_iter().chain(heard).max().filter(|sn| *sn > after);
        let complete = view.map(|view| {
            view.in_sync.iter().chain(&view.exiles).map(|store| store.member).filter(|it| *it != me).collect()
        });
        Self { me, after, up_to, complete: complete.unwrap_or_default() }
    }

    /// A sentence about the loss, and its effect on blocks.
    fn sentence(&self) -> String {
        format!(
            "{} Files written since then are gone from the names; their replicas stay on the data servers, and so does all else \
             that no file has, until `clover admin blocks allow-deletions`.",
            self.entries()
        )
    }

    fn entries(&self) -> String {
        let Self { me, after, .. } = self;
        match self.up_to {
            Some(up_to) => format!(
                "The log of member {me} ends at sn {after}; entries up to sn {up_to} are known to have been \
                 written, and there may be more: all after {after} would be lost for ever."
            ),
            None => format!(
                "The log of member {me} ends at sn {after}; how many entries were acknowledged after it is not \
                 known here: they would be lost for ever."
            ),
        }
    }
}

impl std::fmt::Display for Risk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "loss_after={} loss_up_to=", self.after)?;
        match self.up_to {
            Some(up_to) => write!(f, "{up_to}"),
            None => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Epoch, GroupView, LogPoint, MemberStore, TxId};
    use group::Role;

    fn status(end: u64, hint: u64, in_sync: &[u32], exiles: &[u32]) -> Status {
        let stores = |members: &[u32]| {
            members.iter().map(|it| MemberStore { member: MemberId(*it), generation: 1 }).collect::<Vec<_>>()
        };
        let view = GroupView {
            exiles: stores(exiles),
            commit_hint: TxId { epoch: Epoch(2), sn: Sn(hint) },
            ..GroupView::new(&stores(in_sync), 2)
        };
        let end = LogPoint { id: TxId { epoch: Epoch(2), sn: Sn(end) }, ..LogPoint::default() };
        Status {
            role: Role::Following,
            view: Some((view, 5)),
            promised: Epoch(2),
            end,
            committed: Sn(0),
            active: None,
            hears_active: true,
            is_eligible: false,
            is_in_sync: false,
            is_writable: false,
            peers: Vec::new(),
            trouble: None,
            known: Default::default(),
            last_takeovers: Vec::new(),
        }
    }

    #[test]
    fn an_operator_is_told_what_is_known_to_be_lost_and_when_nothing_is_known() {
        let risk = Risk::of(MemberId(3), &status(10, 25, &[1], &[2]));
        assert_eq!((risk.after, risk.up_to), (Sn(10), Some(Sn(25))));
        assert_eq!(risk.complete, [MemberId(1), MemberId(2)]);
        assert!(risk.sentence().contains("ends at sn 10") && risk.sentence().contains("up to sn 25"));
        let risk = Risk::of(MemberId(3), &status(10, 10, &[1, 2], &[]));
        assert_eq!(risk.up_to, None, "a hint that is behind proves nothing");
        assert!(risk.sentence().contains("not known"), "{}", risk.sentence());
    }
}
