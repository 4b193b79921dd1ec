//! Changes of the view: one at a time, by compare-and-set, repeated until their answer is known.

use super::{Cause, Member, Pending};
use crate::{ChangeFailed, ChangeName, Effects, Role, ViewChange, broken::Broken};
use base::{GroupView, MemberLife, MemberStore, Moment, TxId};

impl Member {
    /// Asks for a change of the view; nothing may be under way.
    pub(super) fn ask_for(
        &mut self,
        now: Moment,
        cause: Cause,
        mut next: GroupView,
        requires: Vec<MemberLife>,
        effects: &mut Effects,
    ) {
        let (view, version) = self.view.as_ref().expect("a change is based on a view");
        assert!(self.pending.is_none(), "one change at a time");
        let (expected_version, expected_id) = (*version, view.change_id);
        // Entries that an unclean election loses count as not committed: a member that minded the old hint could
        // never lead again.
        let is_unclean = cause == Cause::Claim && self.candidacy.forced.is_some();
        let known = if is_unclean { TxId::default() } else { view.commit_hint };
        next.commit_hint = known.max(self.commit_hint(&next));
        next.level = next.level.max(self.level);
        next.in_sync.sort();
        next.exiles.sort();
        if next.in_sync.len() as u32 >= next.in_sync_min
            && !self.settings.breaks(Broken::LoweredMinimumKeepsExiles)
        {
            next.exiles.clear();
        }
        self.change_count += 1;
        next.change_id = u64::from(self.me.member.0) << 48
            | (self.boot & 0xFF_FFFF) << 24
            | (self.change_count & 0xFF_FFFF);
        let change = ViewChange { expected_version, expected_id, view: next, requires };
        effects.change = Some(change.clone());
        self.pending = Some(Pending {
            change,
            cause,
            asked_at: now,
            was_unknown: false,
            is_in_doubt: false,
            is_unclean,
            is_void: false,
        });
        self.retry_at = None;
    }

    /// The last entry that is known to have committed, as far as the log in memory tells its epoch.
    fn commit_hint(&self, next: &GroupView) -> TxId {
        if next.members == [self.me.member] {
            // The durable entries of the only member are durable on all members.
            return self.durable.id;
        }
        self.tail.point_at(self.committed).map_or_else(TxId::default, |point| point.id)
    }

    pub(super) fn on_changed(
        &mut self,
        now: Moment,
        asked: ChangeName,
        answer: Result<u64, ChangeFailed>,
        effects: &mut Effects,
    ) {
        // The answer to another change says nothing about this one: the view may have told of that one's fate long ago.
        let takes_any = self.settings.breaks(Broken::AnyAnswerTaken);
        if self.pending.as_ref().is_none_or(|pending| pending.change.name() != asked && !takes_any) {
            return;
        }
        match answer {
            Ok(version) => self.confirmed(now, version, effects),
            Err(ChangeFailed::BadVersion) => {
                // Either another changed it, or an earlier copy of this very change arrived after all: the
                // change's id in the view read next tells. Until then both sets are required.
                self.pending.as_mut().expect("tested above").is_in_doubt = true;
                self.retry_at = Some(now.plus_ms(self.settings.reread_ms));
                effects.outgoing.read_view = true;
            }
            Err(ChangeFailed::NotMade) => {
                let pending = self.pending.take().expect("tested above");
                self.retry_at = None;
                if pending.was_unknown && self.leading.is_some() {
                    // An earlier copy may stand, and a view read now may be older than it: the next epoch
                    // begins with a view that is known.
                    return self.step_down(now, "whether a change of the view was made is unknown", effects);
                }
                self.not_made(now, pending, effects);
                effects.outgoing.read_view = true;
            }
            Err(ChangeFailed::Unknown) => {
                let pending = self.pending.as_mut().expect("tested above");
                pending.was_unknown = true;
                if pending.is_void {
                    return self.repeat_no_more(now, effects);
                }
                effects.outgoing.read_view |= self.settings.breaks(Broken::UnknownTakenAsLost);
                self.retry_at = Some(now.plus_ms(self.settings.change_retry_ms));
            }
        }
    }

    fn confirmed(&mut self, now: Moment, version: u64, effects: &mut Effects) {
        let pending = self.pending.take().expect("a change was confirmed");
        self.retry_at = None;
        self.evidence.older = None;
        self.coordinator_is_there();
        self.view = Some((pending.change.view, version));
        match pending.cause {
            Cause::Claim => self.claim_confirmed(now, effects),
            Cause::InSync | Cause::Hint => {}
            Cause::Repair { ticket } => {
                let view = self.view().expect("set above");
                let text =
                    format!("the view is that of epoch {} again; the member that may lead will", view.epoch);
                effects.outgoing.answers.push((ticket, Ok(text)));
            }
            Cause::Reconfigure { ticket } => {
                let view = self.view().expect("set above");
                let members: Vec<_> = view.members.iter().map(|member| member.0.to_string()).collect();
                let text = format!("members {}, in-sync minimum {}", members.join(", "), view.in_sync_min);
                effects.outgoing.answers.push((ticket, Ok(text)));
            }
        }
        if self.leading.is_some() {
            self.forget_strangers(now);
            // Fewer may be required now, or enough be in sync.
            self.advance_commit(now, effects);
        }
    }

    /// Sends a change with an unknown answer again, identical: same version, same id. Reading the old version
    /// would decide nothing.
    pub(super) fn repeat_change(&mut self, now: Moment, effects: &mut Effects) {
        if self.retry_at.is_none_or(|at| now < at) {
            return;
        }
        self.retry_at = None;
        match &self.pending {
            Some(pending) if !pending.is_in_doubt && !pending.is_void => {
                effects.change = Some(pending.change.clone())
            }
            Some(_) => {
                effects.outgoing.read_view = true;
                self.retry_at = Some(now.plus_ms(self.settings.reread_ms));
            }
            None => effects.outgoing.read_view = true,
        }
    }

    /// An unclean claim, void by now, may have been taken, or a late copy of it may yet be: then this member leads, for nobody
    /// else may. Another copy is not sent, which would lose what need not be lost. Any change of the view decides.
    pub(super) fn repeat_no_more(&mut self, now: Moment, effects: &mut Effects) {
        self.pending.as_mut().expect("a claim is pending").is_in_doubt = true;
        self.retry_at = Some(now.plus_ms(self.settings.reread_ms));
        effects.outgoing.read_view = true;
        if let Some(ticket) = self.candidacy.forced.take() {
            let text = "it is not tried again, since nothing need be lost; but the coordinator's answer was lost, and it may \
                        have been done: look at the group again";
            effects.outgoing.answers.push((ticket, Err(text.into())));
        }
    }

    pub(super) fn on_view(&mut self, now: Moment, view: GroupView, version: u64, effects: &mut Effects) {
        if self.is_older(&view, version) {
            return self.saw_older_view(now, view, version);
        }
        self.evidence.older = None;
        self.coordinator_is_there();
        let is_first = self.view.is_none();
        if let Some(pending) = &mut self.pending {
            let (expected, expected_id) = (pending.change.expected_version, pending.change.expected_id);
            if view.change_id == pending.change.view.change_id && version > expected {
                return self.confirmed(now, version, effects);
            }
            let is_given_up = self.settings.breaks(Broken::UnknownTakenAsLost) && pending.was_unknown;
            // Each copy of it was refused: the coordinator held another view, and holds this one again. It was not made, and
            // never will be. If it is still wanted it is asked for anew.
            let is_refused = pending.is_in_doubt && !pending.was_unknown;
            let is_its_basis = (version, view.change_id) == (expected, expected_id);
            if is_its_basis && !is_given_up && !is_refused {
                // The answer to the pending change will say more than this view can. If one copy was refused and the fate of
                // another is unknown, the identical change is asked for once more.
                if pending.is_in_doubt && !pending.is_void {
                    pending.is_in_doubt = false;
                    self.retry_at = Some(now.plus_ms(self.settings.change_retry_ms));
                }
                return;
            }
            // Another change was made on that view: ours never will be, not even where the coordinator has gone back and
            // comes to that version again.
            let pending = self.pending.take().expect("tested above");
            self.retry_at = None;
            if is_its_basis && is_refused {
                // The view may also be one that was read before the refusal, and is told late.
                self.pause(now, &pending);
            }
            self.lost(now, pending, effects);
        }
        if is_first && self.promised > view.epoch && view.members == [self.me.member] {
            return self.stop(&format!(
                "epoch {} was promised but the coordinator knows only {}: it has lost history. Restore it, \
                 or elect by hand",
                self.promised, view.epoch
            ));
        }
        let is_new_epoch = self.view().is_some_and(|known| known.epoch < view.epoch);
        if is_new_epoch && view.active != Some(self.me.member) {
            // The elected member has the time of a lease to be heard, or two candidates would depose each other.
            self.forget_force("another member was elected meanwhile", effects);
            self.withdraw();
            let heard_by = now.plus_ms(self.settings.lease_ms);
            self.candidacy.no_claim_before = self.candidacy.no_claim_before.max(heard_by);
        }
        self.view = Some((view, version));
        self.mind_longer_leases();
        if let Some(leading) = &self.leading {
            let epoch = leading.epoch;
            let view = self.view().expect("set above");
            if view.epoch != epoch || view.active != Some(self.me.member) {
                let reason = format!("the view is at epoch {}, led by {:?}", view.epoch, view.active);
                self.step_down(now, &reason, effects);
            } else {
                self.forget_strangers(now);
            }
        }
        if self.leading.is_none() && self.is_alone() {
            self.check_alone();
        }
    }

    /// Less than this member was told before; or, at the same version, something else: then the coordinator has gone back and
    /// has been changed since.
    fn is_older(&self, view: &GroupView, version: u64) -> bool {
        let Some((known, known_version)) = &self.view else { return false };
        // A view of a later epoch is believed, even at a lower version: a member has claimed that epoch since the coordinator went
        // back, and leads.
        let is_behind =
            version < *known_version || version == *known_version && view.change_id != known.change_id;
        is_behind && view.epoch <= known.epoch
    }

    /// In a group of one no other member can renew this one: if it cannot claim, it says so and stops.
    fn check_alone(&mut self) {
        let view = self.view().expect("a view was read");
        let (member, generation) = (self.me.member, self.me.generation);
        if !view.is_eligible(self.me) {
            return self.stop(&format!(
                "member {member} with store generation {generation} is not among the complete ones; it must \
                 be renewed from another member"
            ));
        }
        if view.commit_hint.sn > self.end().id.sn {
            let reason = format!(
                "the log ends at {} but {} has committed: entries are missing. Restore the journal",
                self.end().id,
                view.commit_hint
            );
            self.stop(&reason);
        }
    }

    fn lost(&mut self, now: Moment, pending: Pending, effects: &mut Effects) {
        match pending.cause {
            Cause::Claim => {
                self.forget_force("the view was changed by another member meanwhile", effects);
                self.candidacy.is_standing = false;
                let jitter = self.roll(self.settings.reread_ms / 4);
                self.candidacy.no_claim_before = now.plus_ms(self.settings.reread_ms + jitter);
                if self.candidacy.was_handed_over || self.is_alone() {
                    self.candidacy.no_claim_before = now;
                }
                self.role = Role::Following;
            }
            Cause::InSync | Cause::Hint => {}
            Cause::Repair { ticket } => {
                let text = "the view was changed meanwhile: look at the group again".to_owned();
                effects.outgoing.answers.push((ticket, Err(text)));
            }
            Cause::Reconfigure { .. } => {} // If the order is still wanted, it is tried again.
        }
    }

    /// The coordinator has refused it as it is. The view need not have changed, so that the same wish would come up again
    /// at once, and again: it waits for a moment.
    fn not_made(&mut self, now: Moment, pending: Pending, effects: &mut Effects) {
        self.pause(now, &pending);
        if let Cause::Reconfigure { ticket } = pending.cause {
            self.give_up_reconfiguring(ticket, effects);
        }
        let is_repair = matches!(pending.cause, Cause::Repair { .. });
        self.lost(now, pending, effects);
        if is_repair {
            self.step_down(now, "the coordinator refuses to have its view again", effects);
        }
    }

    /// A change that was refused, and is still wanted, is asked for again after a moment.
    fn pause(&mut self, now: Moment, pending: &Pending) {
        match pending.cause {
            Cause::Claim => self.retry_at = Some(now.plus_ms(self.settings.change_retry_ms)),
            Cause::InSync | Cause::Hint | Cause::Reconfigure { .. } => {
                self.put_off(now, &pending.change.requires)
            }
            Cause::Repair { .. } => {}
        }
    }

    /// The view as it is to become. It names the longest lease that any member may hold: an active that serves has
    /// waited for the grants that it gave to earlier ones, so only its own lease is left then.
    pub(super) fn with_view(&self, change: impl FnOnce(&mut GroupView)) -> GroupView {
        let mut next = self.view().expect("a change is based on a view").clone();
        let others_ms = if matches!(self.role, Role::Serving { .. }) { 0 } else { next.lease_ms };
        next.lease_ms = self.settings.lease_ms.max(others_ms);
        change(&mut next);
        next
    }

    /// The complete ones after a loss, without repetitions.
    pub(super) fn exiles_of(
        stores: impl Iterator<Item = MemberStore>,
        in_sync: &[MemberStore],
    ) -> Vec<MemberStore> {
        let mut exiles: Vec<_> = stores.filter(|store| !in_sync.contains(store)).collect();
        exiles.sort();
        exiles.dedup();
        exiles
    }
}
