//! A coordinator that has lost history gets its view back from what the members' stores prove.

use super::{Cause, Member, candidate::EPOCHS_SKIPPED};
use crate::{Effects, Known, Message, Role};
use base::{Epoch, GroupView, MemberId, MemberStore, Moment, TxId};
use std::collections::{BTreeMap, BTreeSet};

/// An order to repair the view, while the others are asked how they stand: what was heard of them before may be old.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Inquiry {
    ticket: u64,
    without: Vec<MemberId>,
    is_confirmed: bool,
    pub until: Moment,
    answered: BTreeSet<MemberId>,
    /// A member among those that obeys an active, or is one.
    led: Option<MemberId>,
}

impl Member {
    /// Says what would be written, or asks the coordinator for it. A member that does not lead asks all others first.
    pub(super) fn repair(
        &mut self,
        now: Moment,
        ticket: u64,
        without: &[MemberId],
        is_confirmed: bool,
        effects: &mut Effects,
    ) -> Result<(), String> {
        if self.pending.as_ref().is_some_and(|pending| !pending.is_in_doubt) {
            return Err("a change of the view is under way; try again in a moment".into());
        }
        let (next, base) = match self.evidence.older.clone() {
            // Nothing newer was ever confirmed than what this member goes by: it stands again, at the version that is there now.
            Some(older) if self.leading.is_some() => {
                let view = self.view().expect("whoever leads has a view").clone();
                // The coordinator holds another view at that version, and is told which one is replaced.
                let base = GroupView { change_id: older.view.change_id, ..view.clone() };
                (view, Some((base, older.version)))
            }
            _ if self.leading.is_some() => {
                return Err(
                    "this member leads, and the coordinator agrees with it: there is nothing to repair"
                        .into(),
                );
            }
            _ => {
                if now < self.following.granted_until && self.following.leader.is_some() {
                    return Err("an active was heard a moment ago: give the order to that one".into());
                }
                if self.evidence.inquiry.is_some() {
                    return Err("the others are being asked for another such order".into());
                }
                let Some(view) = self.view() else { return Err("the view could not be read yet".into()) };
                let epoch = view.epoch;
                let others = view.members.iter().filter(|member| **member != self.me.member);
                effects.messages.extend(others.map(|member| (*member, Message::PreVote { epoch })));
                self.evidence.inquiry = Some(Inquiry {
                    ticket,
                    without: without.to_vec(),
                    is_confirmed,
                    until: now.plus_ms(2 * self.settings.silence_ms),
                    answered: BTreeSet::new(),
                    led: None,
                });
                return Ok(());
            }
        };
        self.write_anew(now, ticket, is_confirmed, next, base, effects);
        Ok(())
    }

    /// A member has said how it stands.
    pub(super) fn on_inquired(&mut self, from: MemberId, holds_grant: bool) {
        if let Some(inquiry) = &mut self.evidence.inquiry {
            inquiry.answered.insert(from);
            inquiry.led = inquiry.led.or(holds_grant.then_some(from));
        }
    }

    /// All have answered, or are not waited for any longer.
    pub(super) fn go_on_repairing(&mut self, now: Moment, effects: &mut Effects) {
        let (Some(inquiry), Some(view)) = (&self.evidence.inquiry, self.view()) else { return };
        let is_heard = |member: &MemberId| *member == self.me.member || inquiry.answered.contains(member);
        if !view.members.iter().all(is_heard) && now < inquiry.until {
            return;
        }
        let inquiry = self.evidence.inquiry.take().expect("tested above");
        let ticket = inquiry.ticket;
        match self.proved_now(now, &inquiry) {
            Ok((next, base)) => self.write_anew(now, ticket, inquiry.is_confirmed, next, base, effects),
            Err(reason) => effects.outgoing.answers.push((ticket, Err(reason))),
        }
    }

    /// The view that the stores prove which have just answered; and the view that it is to replace, if that one is
    /// older than the known view.
    fn proved_now(
        &self,
        now: Moment,
        inquiry: &Inquiry,
    ) -> Result<(GroupView, Option<(GroupView, u64)>), String> {
        if self.pending.as_ref().is_some_and(|pending| !pending.is_in_doubt) {
            return Err("a change of the view is under way; try again in a moment".into());
        }
        if self.leading.is_some() || now < self.following.granted_until && self.following.leader.is_some() {
            return Err("an active was heard meanwhile: look at the group again".into());
        }
        if let Some(member) = inquiry.led {
            return Err(format!(
                "member {member} leads, obeys an active, or has just begun: look at the group again"
            ));
        }
        let base = self.evidence.older.clone().map(|older| (older.view, older.version));
        let Some((view, _)) = base.as_ref().or(self.view.as_ref()) else {
            return Err("the view could not be read yet".into());
        };
        let mut known = self.evidence.known().clone();
        known.retain(|member, _| inquiry.answered.contains(member));
        known.insert(self.me.member, (self.me, self.own_known()));
        let next = proved_view(view, &known, self.me, &inquiry.without)?;
        let is_lost = |of: &&MemberId| {
            let committed = known[of].1.committed;
            let is_given_up = inquiry.without.contains(of) || committed.id.epoch < view.unclean_epoch;
            !is_given_up && !self.may_hold(committed)
        };
        if let Some(member) = known.keys().find(is_lost) {
            return Err(format!(
                "{} has committed on member {member}, and the longest log has another entry there. Find out which of the two \
                 was restored from a copy, and leave that one out",
                known[member].1.committed
            ));
        }
        Ok((next, base))
    }

    fn write_anew(
        &mut self,
        now: Moment,
        ticket: u64,
        is_confirmed: bool,
        next: GroupView,
        base: Option<(GroupView, u64)>,
        effects: &mut Effects,
    ) {
        let text = describe(&next);
        if !is_confirmed {
            effects.outgoing.answers.push((ticket, Ok(format!("the view would be: {text}"))));
            return;
        }
        if self.role == Role::Claiming {
            // The claim was made on a view that is not there any more.
            self.role = Role::Following;
            self.candidacy.is_standing = false;
            self.forget_force("the view is written anew", effects);
        }
        self.pending = None;
        if let Some(base) = base {
            self.view = Some(base);
        }
        self.ask_for(now, Cause::Repair { ticket }, next, Vec::new(), effects);
    }
}

/// The view that the stores prove: the longest log leads on, and every entry that any of them knows to have committed is in
/// it. It is marked unclean, for a member that was left out may hold more.
fn proved_view(
    view: &GroupView,
    known: &BTreeMap<MemberId, (MemberStore, Known)>,
    me: MemberStore,
    without: &[MemberId],
) -> Result<GroupView, String> {
    let silent: Vec<String> = view
        .members
        .iter()
        .filter(|member| !known.contains_key(member) && !without.contains(member))
        .map(|member| member.to_string())
        .collect();
    if !silent.is_empty() {
        return Err(format!(
            "not heard of yet: {}. Start them, or leave out those that are lost for good (what only they hold is lost then)",
            silent.join(", ")
        ));
    }
    let stores: Vec<_> = known
        .iter()
        .filter(|(member, _)| view.members.contains(member) && !without.contains(member))
        .map(|(_, of)| *of)
        .collect();
    let (longest, of_longest) = stores
        .iter()
        .max_by_key(|(store, known)| (known.end.id, *store == me))
        .copied()
        .ok_or("no member is left")?;
    if longest != me && of_longest.end != known[&me.member].1.end {
        return Err(format!(
            "member {} has the longest log, which ends at {}: give the order to that one",
            longest.member, of_longest.end
        ));
    }
    let committed =
        stores.iter().map(|(_, known)| known.committed).max_by_key(|point| point.id).unwrap_or_default();
    let hint = committed.id.max(view.commit_hint);
    if hint > of_longest.end.id {
        return Err(format!(
            "{hint} has committed, and the longest log ends at {}: only an unclean election goes on without it",
            of_longest.end
        ));
    }
    let promised = stores.iter().map(|(_, known)| known.promised).max().unwrap_or_default();
    let mut in_sync: Vec<_> =
        stores.iter().filter(|(_, known)| known.end == of_longest.end).map(|(store, _)| *store).collect();
    in_sync.sort();
    // An epoch that nobody has led: what had committed before and is not in this log is given up. It goes on as far as an
    // unclean election does, since the counters are raised as far.
    let epoch = Epoch(view.epoch.max(promised).0 + EPOCHS_SKIPPED);
    Ok(GroupView {
        epoch,
        active: None,
        in_sync,
        exiles: Vec::new(),
        commit_hint: hint,
        unclean_epoch: epoch,
        ..view.clone()
    })
}

fn describe(view: &GroupView) -> String {
    let names = |stores: &[MemberStore]| {
        stores.iter().map(|store| store.member.to_string()).collect::<Vec<_>>().join(", ")
    };
    let TxId { epoch, sn } = view.commit_hint;
    let active = view.active.map_or("nobody".to_owned(), |active| format!("member {active}"));
    format!(
        "epoch {}, {active} leads, in sync {}, minimum {}, committed up to {epoch}-{sn}",
        view.epoch,
        names(&view.in_sync),
        view.in_sync_min
    )
}
