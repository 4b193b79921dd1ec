//! The in-sync set: who is taken out, who is let in, and the list of members itself.

use super::{Cause, Member};
use crate::{Effects, Role, broken::Broken, peer::Next};
use base::{MemberId, MemberLife, MemberStore, Moment, Sn};

/// A new list of members, wanted by an operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub ticket: u64,
    members: Vec<MemberId>,
    in_sync_min: u32,
    /// The change went to the coordinator at least once; its confirmation answers the ticket.
    was_asked: bool,
}

impl Member {
    /// Changes the in-sync set where that is needed: one change at a time, the most urgent first.
    pub(super) fn keep_in_sync_set(&mut self, now: Moment, effects: &mut Effects) {
        self.restart_lost_streams(now);
        self.choose_whom_to_renew(now, effects);
        if self.pending.is_some() || self.leading.is_none() || self.is_sealed() {
            return;
        }
        let leading = self.leading.as_ref().expect("tested above");
        if leading.stage == super::lead::Stage::WaitingForGrants || now < leading.change_after {
            return;
        }
        let lost: Vec<_> = self.lost_members(now);
        if !lost.is_empty() {
            if self.lacks_entries() {
                return; // This member, or the one that claims next, may need the entries that the lost members hold.
            }
            return self.shrink(now, &lost, effects);
        }
        if let Some(member) = self.member_to_let_in(now) {
            return self.expand(now, member, effects);
        }
        let longest_ms = self.view().map_or(0, |view| view.lease_ms);
        if matches!(self.role, Role::Serving { .. }) && longest_ms > self.settings.lease_ms {
            // All former leases are over, so a member that starts need not wait for so long any more.
            let next = self.with_view(|_| {});
            return self.ask_for(now, Cause::InSync, next, Vec::new(), effects);
        }
        self.go_on_reconfiguring(now, effects);
        if self.pending.is_none() && self.hint_is_due() {
            self.hint(now, effects);
        }
    }

    /// This log may have lost entries at its end, and what the others hold is not yet durable here.
    fn lacks_entries(&self) -> bool {
        let start = self.leading.as_ref().map_or(Sn(0), |leading| leading.epoch_start);
        self.is_suspect && (start == Sn(0) || self.durable.id.sn < start)
    }

    /// More has committed than the view knows, or the group is at a higher level.
    pub(super) fn hint_is_due(&self) -> bool {
        let Some(view) = self.view() else { return false };
        let has_committed = !self.is_alone() && self.committed > view.commit_hint.sn;
        self.is_served()
            && (has_committed || self.level > view.level)
            && !self.settings.breaks(Broken::NoHints)
    }

    /// Lets the view learn what has committed, so that a store restored from an older copy cannot be elected.
    fn hint(&mut self, now: Moment, effects: &mut Effects) {
        let hint_ms = self.settings.hint_ms;
        let leading = self.leading.as_mut().expect("this member serves");
        if now < leading.hint_at {
            return;
        }
        leading.hint_at = now.plus_ms(hint_ms);
        let next = self.with_view(|_| ());
        self.ask_for(now, Cause::Hint, next, Vec::new(), effects);
    }

    /// Members of the in-sync set that are not waited for any longer.
    fn lost_members(&self, now: Moment) -> Vec<MemberStore> {
        let leading = self.leading.as_ref().expect("this member leads");
        let view = self.view().expect("whoever leads has a view");
        let (silence_ms, ack_silence_ms) = (self.settings.silence_ms, self.settings.ack_silence_ms);
        let is_lost = |store: &&MemberStore| {
            let Some(peer) = leading.peers.get(&store.member) else { return store.member != self.me.member };
            let is_silent =
                now.ms_since(peer.heard_at.unwrap_or_default().max(leading.began_at)) > silence_ms;
            let is_another = peer.life.is_some_and(|(life, _)| life != **store);
            let is_behind =
                peer.next == Next::NeedsImage && !self.settings.breaks(Broken::KeepsThoseThatNeedImages);
            peer.is_gone || is_silent || is_another || is_behind || peer.is_slow(now, ack_silence_ms)
        };
        view.in_sync.iter().filter(is_lost).copied().collect()
    }

    /// Section 6: they count as lost only once the coordinator has confirmed it; until then both sets are
    /// required.
    fn shrink(&mut self, now: Moment, lost: &[MemberStore], effects: &mut Effects) {
        let leading = self.leading.as_ref().expect("this member leads");
        let is_no_exile = |store: &MemberStore| {
            let Some(peer) = leading.peers.get(&store.member) else { return false };
            peer.next == Next::NeedsImage
                || peer.life.is_some_and(|(life, _)| life.generation != store.generation)
        };
        let next = self.with_view(|next| {
            next.in_sync.retain(|store| !lost.contains(store));
            next.exiles = if (next.in_sync.len() as u32) < next.in_sync_min {
                let left = lost.iter().filter(|store| !is_no_exile(store));
                Self::exiles_of(next.exiles.iter().chain(left).copied(), &next.in_sync)
            } else {
                Vec::new()
            };
        });
        self.ask_for(now, Cause::InSync, next, Vec::new(), effects);
    }

    /// A member that holds all that has committed, and would hold what commits while it is let in.
    fn member_to_let_in(&self, now: Moment) -> Option<MemberId> {
        let leading = self.leading.as_ref()?;
        if leading.epoch_start == Sn(0) {
            return None;
        }
        let view = self.view()?;
        // The own commit alone would not do: a fresh active does not know yet what has committed.
        let mut needed = self.committed.max(leading.epoch_start);
        if self.settings.breaks(Broken::ExpandAtLocalCommit) {
            needed = self.committed;
        }
        let takes_old_lives = self.settings.breaks(Broken::LetsInOldLives);
        leading
            .peers
            .iter()
            .filter(|(member, peer)| {
                let is_in = view.in_sync.iter().any(|store| store.member == **member);
                let is_leaving =
                    leading.wanted.as_ref().is_some_and(|wanted| !wanted.members.contains(member));
                let is_heard =
                    peer.heard_at.is_some_and(|at| now.ms_since(at) <= self.settings.silence_ms / 2);
                // A member that was taken out because it acknowledged nothing is let in again when it acknowledges something, not when
                // the same entries are sent to it anew.
                let is_slow = peer.is_slow(now, self.settings.ack_silence_ms / 2);
                // It would be taken out again at once.
                let is_streamed_to = !matches!(peer.next, Next::NeedsImage | Next::Contradicts);
                let is_near = self.end().id.sn.0 - peer.matched.0.min(self.end().id.sn.0) <= NEAR_COUNT;
                !is_in
                    && !is_leaving
                    && !peer.is_gone
                    && (peer.has_answered && peer.let_in_after <= now || takes_old_lives)
                    && peer.life.is_some()
                    && peer.matched >= needed
                    && is_near
                    && is_heard
                    && !is_slow
                    && is_streamed_to
                    && peer.lease_end.is_some_and(|end| end > now)
            })
            .max_by_key(|(_, peer)| peer.matched)
            .map(|(member, _)| *member)
    }

    fn expand(&mut self, now: Moment, member: MemberId, effects: &mut Effects) {
        let leading = self.leading.as_ref().expect("this member leads");
        let (store, boot) = leading.peers[&member].life.expect("it was heard");
        let next = self.with_view(|next| {
            next.in_sync.retain(|other| other.member != member);
            next.in_sync.push(store);
            next.exiles.retain(|other| other.member != member);
        });
        // No other life of it may have begun meanwhile.
        self.ask_for(now, Cause::InSync, next, vec![Self::life_of(store, boot)], effects);
    }

    /// The coordinator has refused a change of the in-sync set. A member that was to be let in has begun another
    /// life, which will be heard of. Nothing else has changed, so asking again at once would go on without end.
    pub(super) fn put_off(&mut self, now: Moment, requires: &[MemberLife]) {
        let again_at = now.plus_ms(self.settings.change_retry_ms);
        let Some(leading) = &mut self.leading else { return };
        for life in requires {
            if let Some(peer) = leading.peers.get_mut(&life.store.member) {
                peer.let_in_after = again_at;
            }
        }
        if requires.is_empty() {
            leading.change_after = again_at;
        }
    }

    /// The coordinator will not have these members.
    pub(super) fn give_up_reconfiguring(&mut self, ticket: u64, effects: &mut Effects) {
        if let Some(leading) = &mut self.leading {
            leading.wanted = None;
        }
        let text = "the coordinator has refused the change; the active's log says why".to_owned();
        effects.outgoing.answers.push((ticket, Err(text)));
    }

    pub(super) fn reconfigure(
        &mut self,
        ticket: u64,
        mut members: Vec<MemberId>,
        in_sync_min: u32,
    ) -> Result<(), String> {
        if !self.is_served() && !matches!(self.role, crate::Role::Reading { .. }) {
            return Err("only an active changes the members".into());
        }
        members.sort();
        members.dedup();
        if !members.contains(&self.me.member) {
            return Err(format!("member {} is the active: hand over first", self.me.member));
        }
        if in_sync_min == 0 || in_sync_min as usize > members.len() {
            return Err(format!("an in-sync minimum of {in_sync_min} among {} members", members.len()));
        }
        let leading = self.leading.as_mut().expect("this member leads");
        if leading.wanted.is_some() {
            return Err("another change of the members is under way".into());
        }
        leading.wanted = Some(Wanted { ticket, members, in_sync_min, was_asked: false });
        Ok(())
    }

    fn go_on_reconfiguring(&mut self, now: Moment, effects: &mut Effects) {
        // Below the minimum it is the way out: the list loses those that are gone for good, or the minimum is lowered. This
        // log is complete, so that nothing is lost by it.
        if !self.is_served() && !matches!(self.role, crate::Role::Reading { .. }) {
            return;
        }
        let Some(wanted) = self.leading.as_ref().and_then(|leading| leading.wanted.clone()) else { return };
        let view = self.view().expect("whoever leads has a view");
        if view.members == wanted.members && view.in_sync_min == wanted.in_sync_min {
            let leading = self.leading.as_mut().expect("this member leads");
            // The confirmation of the change has answered already, unless there was nothing to change.
            if leading.wanted.take().is_some_and(|wanted| !wanted.was_asked) {
                effects
                    .outgoing
                    .answers
                    .push((wanted.ticket, Ok("nothing to change: it is so already".into())));
            }
            return;
        }
        // A member that goes leaves the in-sync set first.
        let leaving: Vec<_> =
            view.in_sync.iter().filter(|store| !wanted.members.contains(&store.member)).copied().collect();
        if !leaving.is_empty() {
            let left = view.in_sync.len() - leaving.len();
            if left < wanted.in_sync_min as usize {
                let leading = self.leading.as_mut().expect("this member leads");
                leading.wanted = None;
                let text = format!(
                    "{left} members would be left in sync where {} are needed; add another one first",
                    wanted.in_sync_min
                );
                effects.outgoing.answers.push((wanted.ticket, Err(text)));
                return;
            }
            return self.shrink(now, &leaving, effects);
        }
        let next = self.with_view(|next| {
            next.members = wanted.members.clone();
            next.in_sync_min = wanted.in_sync_min;
            next.exiles.retain(|store| wanted.members.contains(&store.member));
        });
        if let Some(wanted) = self.leading.as_mut().and_then(|leading| leading.wanted.as_mut()) {
            wanted.was_asked = true;
        }
        self.ask_for(now, Cause::Reconfigure { ticket: wanted.ticket }, next, Vec::new(), effects);
    }
}

/// A member that is further behind would hold up every commit once it is required.
const NEAR_COUNT: u64 = 10_000;
