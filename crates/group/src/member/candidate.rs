//! Whether and when this member claims the next epoch.

use super::{Cause, Member};
use crate::{Effects, IdSteps, Message, Role, broken::Broken};
use base::{Epoch, MemberId, Moment};
use std::collections::BTreeSet;

/// The trigger of a claim by the member that the former active has named.
pub(super) const HAND_OVER: &str = "hand-over";

/// How far the epoch goes on where an operator's word stands for members that are silent. By an older view they may have led later
/// epochs than it tells of, and an entry's epoch and number must not name two entries. The raise of the counters rests on it as well
/// ([`IdSteps::over`]).
pub(super) const EPOCHS_SKIPPED: u64 = IdSteps::EPOCHS_OF_AN_ELECTION;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Candidacy {
    pub no_claim_before: Moment,
    /// When the others were last asked whether they hold a live grant.
    pub asked_at: Option<Moment>,
    /// The members that said since then that they hold no lease.
    pub free: BTreeSet<MemberId>,
    /// Addresses that refuse since the active was last heard.
    pub gone: BTreeSet<MemberId>,
    pub lock_is_gone: bool,
    /// The active has ended its epoch in this member's favour.
    pub was_handed_over: bool,
    /// A claim is on its way: nothing of an older epoch is acknowledged, no lease granted. Nothing durable: a
    /// failed candidate must not leave a promise behind that would later depose a healthy active.
    pub is_standing: bool,
    /// An operator wants this member to lead whatever it lacks.
    pub forced: Option<u64>,
    /// An operator has said that this member, which is complete as far as it can tell, need not wait for silent ones.
    pub is_excused: bool,
    /// Complete members of the view that the claim was based on, the old active among them.
    pub complete: Vec<base::MemberStore>,
    /// Extra wait before this claim, chosen once.
    pub jitter_ms: Option<u64>,
    pub trigger: &'static str,
    pub began_at: Moment,
    pub claimed_at: Moment,
    /// When the view was last read for lack of an active.
    pub reread_at: Option<Moment>,
    /// When something may have changed for this candidate.
    pub look_at: Option<Moment>,
}

/// How often the others are asked again.
const ASK_AGAIN_MS: u64 = 20;
const JITTER_MS: u64 = 5;

impl Member {
    /// Section 4, steps 1 and 2: everything that must hold before the claim, then the claim.
    pub(super) fn consider_claim(&mut self, now: Moment, effects: &mut Effects) {
        self.candidacy.look_at = None;
        if self.role != Role::Following {
            return self.give_up_standing(now);
        }
        let Some(view) = self.view() else { return };
        // A change is under way; or just refused, and asked for again in a moment.
        if self.pending.is_some() || self.retry_at.is_some() {
            return;
        }
        let is_forced = self.candidacy.forced.is_some();
        let is_eligible = view.is_eligible(self.me);
        let is_alone = self.is_alone();
        self.reread_without_active(now, effects);
        if !is_eligible && !is_forced && !self.settings.breaks(Broken::JuniorClaims) {
            return;
        }
        let view = self.view().expect("tested above");
        let epoch = view.epoch;
        if self.promising > epoch {
            return; // The view is old: the one to come names another active, or none.
        }
        // A store that lacks what has committed was restored from a copy, or its log was cut off. It waits for another
        // member, which brings it up to date.
        if !is_forced && !self.holds_committed(view.commit_hint) {
            return;
        }
        if !is_forced && self.evidence_against_claim().is_some() || self.evidence.older.is_some() {
            return;
        }
        if !is_alone && !self.candidacy.was_handed_over {
            let earliest = self.earliest_claim();
            if now < earliest {
                self.candidacy.look_at = Some(earliest);
                return;
            }
            if !is_forced && !self.candidacy.is_excused && self.lacks_witnesses() {
                self.ask_others(now, effects);
                self.candidacy.look_at = Some(now.plus_ms(ASK_AGAIN_MS));
                return;
            }
            if !is_forced && !self.others_agree(now, effects) {
                self.candidacy.look_at = Some(now.plus_ms(ASK_AGAIN_MS));
                return;
            }
            let mine = earliest.plus_ms(self.back_off_ms());
            if now < mine {
                self.candidacy.look_at = Some(mine);
                return;
            }
        }
        if self.promised < epoch {
            if self.promising < epoch {
                self.promising = epoch;
                effects.promise = Some(epoch); // The claim follows when this is durable.
            }
            return;
        }
        self.claim(now, effects);
    }

    /// No claim is made while a grant given by this member lives.
    fn earliest_claim(&self) -> Moment {
        if self.settings.breaks(Broken::ClaimBeforeGrantsEnd) {
            return self.candidacy.no_claim_before;
        }
        self.following.claims_from().max(self.candidacy.no_claim_before)
    }

    /// Entries that the view says have committed must be in the log, in their epoch.
    pub(super) fn holds_committed(&self, hint: base::TxId) -> bool {
        hint.sn <= self.tail.base().id.sn || self.tail.point_at(hint.sn).is_some_and(|point| point.id == hint)
    }

    /// Spreads rivals: by their place among the eligible ones, and by some chance. A member that could not serve
    /// clients at once comes after all that might.
    fn back_off_ms(&mut self) -> u64 {
        let jitter = match self.candidacy.jitter_ms {
            Some(jitter) => jitter,
            None => self.roll(JITTER_MS + 1),
        };
        self.candidacy.jitter_ms = Some(jitter);
        let view = self.view().expect("a candidate has a view");
        let mut rivals: Vec<MemberId> =
            view.in_sync.iter().chain(&view.exiles).map(|store| store.member).collect();
        rivals.retain(|member| Some(*member) != view.active && !self.candidacy.gone.contains(member));
        rivals.sort();
        let rank = rivals.iter().position(|member| *member == self.me.member).unwrap_or(rivals.len());
        let rank = if self.is_ready { rank } else { rank + rivals.len() };
        rank as u64 * self.settings.rank_backoff_ms + jitter
    }

    /// The pre-vote: enough members hold no live grant, so that a member which alone lost its connection does
    /// not depose a healthy active. Waived where the active has ended for all that one can tell. A member
    /// with a torn tail needs to see all that may hold what it has lost.
    fn others_agree(&mut self, now: Moment, effects: &mut Effects) -> bool {
        let view = self.view().expect("a candidate has a view").clone();
        let candidacy = &self.candidacy;
        let eligible = view.in_sync.iter().chain(&view.exiles);
        let all_seen = eligible
            .filter(|store| store.member != self.me.member)
            .all(|store| candidacy.free.contains(&store.member) && self.evidence.is_heard(*store));
        let active_is_off = view.active.is_none_or(|active| {
            active == self.me.member
                || candidacy.gone.contains(&active)
                || candidacy.lock_is_gone
                || self.following.has_active_ended(&view)
        });
        let enough = 1 + candidacy.free.len() >= view.in_sync_min as usize;
        if (!self.is_suspect && (active_is_off || enough)) || (self.is_suspect && all_seen) {
            return true;
        }
        self.ask_others(now, effects);
        false
    }

    fn ask_others(&mut self, now: Moment, effects: &mut Effects) {
        if self.candidacy.asked_at.is_some_and(|at| now.ms_since(at) < ASK_AGAIN_MS) {
            return;
        }
        self.candidacy.asked_at = Some(now);
        self.candidacy.free.clear();
        let view = self.view().expect("a candidate has a view");
        for member in view.members.iter().filter(|member| **member != self.me.member) {
            effects.messages.push((*member, Message::PreVote { epoch: view.epoch }));
        }
    }

    pub(super) fn on_pre_vote(&mut self, now: Moment, from: MemberId, epoch: Epoch, effects: &mut Effects) {
        let leads = self.leading.is_some() && !self.is_sealed();
        let holds_grant = leads || now < self.following.granted_until;
        let known = self.own_known();
        effects.messages.push((from, Message::PreVoted { epoch, holds_grant, known }));
    }

    pub(super) fn on_pre_voted(&mut self, from: MemberId, epoch: Epoch, holds_grant: bool) {
        let is_current = self.view().is_some_and(|view| view.epoch == epoch);
        if is_current && self.candidacy.asked_at.is_some() && !holds_grant {
            self.candidacy.free.insert(from);
        }
    }

    /// Section 4, step 2.
    fn claim(&mut self, now: Moment, effects: &mut Effects) {
        let me = self.me;
        let is_forced = self.candidacy.forced.is_some();
        let steps = if is_forced || self.candidacy.is_excused { EPOCHS_SKIPPED } else { 1 };
        let keeps_old = self.is_suspect && !is_forced && !self.settings.breaks(Broken::ForgetsOldActive);
        let next = self.with_view(|next| {
            next.epoch = Epoch(next.epoch.0 + steps);
            let old = next.active.replace(me.member).filter(|active| *active != me.member);
            let complete: Vec<_> = next.in_sync.iter().chain(&next.exiles).copied().collect();
            // The dead active must not be waited for; finding oneself named means that there is none. A log that may have lost
            // entries is whole only with what the old active holds: should this claim come to nothing, the next claimant must
            // find that one in the view.
            if next.in_sync.contains(&me) {
                next.in_sync.retain(|store| Some(store.member) != old || keeps_old);
            } else {
                next.in_sync = vec![me];
            }
            next.exiles =
                if is_forced { Vec::new() } else { Self::exiles_of(complete.into_iter(), &next.in_sync) };
            if is_forced {
                next.in_sync = vec![me];
                next.unclean_epoch = next.epoch;
            }
        });
        let view = self.view().expect("a candidate has a view");
        self.candidacy.complete = match is_forced {
            true => vec![me],
            false => view.in_sync.iter().chain(&view.exiles).copied().collect(),
        };
        self.candidacy.is_standing = true;
        self.candidacy.began_at = now;
        let view = self.view().expect("a candidate has a view");
        let active_is_gone = view.active.is_some_and(|active| self.candidacy.gone.contains(&active))
            || self.following.has_active_ended(view);
        self.candidacy.trigger = match () {
            () if is_forced => "operator",
            () if self.candidacy.was_handed_over => HAND_OVER,
            () if self.following.heard_at.is_none() => "start",
            () if active_is_gone => "process gone",
            () if self.candidacy.lock_is_gone => "lock gone",
            () => "lease over",
        };
        self.role = Role::Claiming;
        self.ask_for(now, Cause::Claim, next, Vec::new(), effects);
    }

    /// A claim that is not answered soon stands no longer; its answer may still come.
    fn give_up_standing(&mut self, now: Moment) {
        let waited = self.pending.as_ref().map(|pending| now.ms_since(pending.asked_at));
        if waited.is_some_and(|ms| ms >= self.settings.claim_answer_ms) && !self.is_alone() {
            self.candidacy.is_standing = false;
        }
    }

    /// The claim is the coordinator's. The others are asked for their promises while the own one is on its way to the
    /// disk: a member that forgets it forgets this life as well, and finds the epoch in the view before it says
    /// anything in the next one. Nothing is appended in the epoch, and no beacon sent, before it is durable.
    pub(super) fn claim_confirmed(&mut self, now: Moment, effects: &mut Effects) {
        let epoch = self.view().expect("a view was confirmed").epoch;
        if self.promising >= epoch {
            // Somebody has followed already.
            self.role = Role::Following;
            self.candidacy.is_standing = false;
            effects.outgoing.read_view = true;
            return;
        }
        self.candidacy.claimed_at = now;
        self.promising = epoch;
        effects.promise = Some(epoch);
        self.start(now);
    }

    pub(super) fn on_promised(&mut self, now: Moment, promised: Epoch, effects: &mut Effects) {
        if self.leading.as_ref().is_none_or(|leading| leading.epoch != promised) {
            return;
        }
        self.note_promise(now);
        if let Some(ticket) = self.candidacy.forced.take() {
            let text = format!("member {} leads epoch {promised}", self.me.member);
            effects.outgoing.answers.push((ticket, Ok(text)));
        }
    }

    /// Nobody may follow without an order that says so: entries that have committed may be lost.
    pub(super) fn force_claim(
        &mut self,
        now: Moment,
        ticket: u64,
        effects: &mut Effects,
    ) -> Result<(), String> {
        if self.leading.is_some() && self.lacks_witnesses_to_read() {
            self.evidence.is_excused = true;
            let text = format!("member {} answers without having heard of the others", self.me.member);
            effects.outgoing.answers.push((ticket, Ok(text)));
            return Ok(());
        }
        if self.leading.is_some() {
            return Err(format!("member {} leads already", self.me.member));
        }
        if now < self.following.granted_until {
            return Err("an active was heard a moment ago: there is no need to lose anything".into());
        }
        let is_again = self.pending.as_ref().is_some_and(|pending| pending.is_void && pending.is_in_doubt);
        if self.candidacy.forced.is_some() || (self.pending.is_some() && !is_again) {
            return Err("another order, or a claim, is under way".into());
        }
        let Some(view) = self.view() else { return Err("the view could not be read yet".into()) };
        // One with a torn tail waits for all that may hold what it has lost, and one of them may be gone for good.
        if view.is_eligible(self.me)
            && !self.is_suspect
            && self.holds_committed(view.commit_hint)
            && self.evidence_against_claim().is_none()
        {
            if !self.lacks_witnesses() {
                return Err("this member is complete and takes over by itself when it may".into());
            }
            self.candidacy.is_excused = true;
            let text = format!("member {} leads without having heard of all others", self.me.member);
            effects.outgoing.answers.push((ticket, Ok(text)));
            return Ok(());
        }
        self.candidacy.forced = Some(ticket);
        if is_again && let Some(pending) = &mut self.pending {
            // The identical claim, of which nobody knows yet whether it was taken.
            (pending.is_void, pending.is_in_doubt, pending.asked_at) = (false, false, now);
            (self.role, self.candidacy.is_standing, self.retry_at) = (Role::Claiming, true, Some(now));
        }
        Ok(())
    }

    /// An active, or a member that is complete, is heard: the order must not be carried out any more. Where the claim is on
    /// its way already its answer is taken as it comes, but a lost answer does not have it sent again.
    pub(super) fn void_force(&mut self, now: Moment, reason: &str, effects: &mut Effects) {
        let Some(pending) = self.pending.as_mut().filter(|pending| pending.is_unclean) else {
            return self.forget_force(reason, effects);
        };
        if !std::mem::replace(&mut pending.is_void, true) && pending.was_unknown && !pending.is_in_doubt {
            self.repeat_no_more(now, effects);
        }
    }

    /// The order was given for a group without anybody who is complete. It must not lie in wait for the next time.
    pub(super) fn forget_force(&mut self, reason: &str, effects: &mut Effects) {
        if let Some(ticket) = self.candidacy.forced.take() {
            let text = format!("{reason}: nothing need be lost. Look at the group again");
            effects.outgoing.answers.push((ticket, Err(text)));
        }
    }

    /// Reads the view again while no active is heard and no change was told: the watch may have been lost.
    fn reread_without_active(&mut self, now: Moment, effects: &mut Effects) {
        if self.is_alone() || now < self.following.granted_until {
            return;
        }
        let due = self.candidacy.reread_at.is_none_or(|at| now.ms_since(at) >= self.settings.reread_ms);
        if due {
            self.candidacy.reread_at = Some(now);
            effects.outgoing.read_view = true;
        }
    }

    pub(super) fn candidate_deadline(&self) -> Option<Moment> {
        self.view()?;
        if self.is_alone() {
            return None;
        }
        if let Some(pending) = &self.pending {
            return self
                .candidacy
                .is_standing
                .then(|| pending.asked_at.plus_ms(self.settings.claim_answer_ms));
        }
        let reread = self
            .candidacy
            .reread_at
            .map(|at| at.plus_ms(self.settings.reread_ms))
            .unwrap_or_default()
            .max(self.following.granted_until);
        Some(self.candidacy.look_at.map_or(reread, |at| at.min(reread)))
    }

    /// An active is heard: whatever was begun against the old one is void.
    pub(super) fn withdraw(&mut self) {
        let no_claim_before = self.candidacy.no_claim_before;
        let reread_at = self.candidacy.reread_at;
        let is_claiming = self.pending.is_some();
        self.candidacy = Candidacy {
            no_claim_before,
            reread_at,
            is_standing: self.candidacy.is_standing && is_claiming,
            // The order's claim is on its way, and so is what is said of it.
            forced: self.candidacy.forced.filter(|_| is_claiming),
            ..Candidacy::default()
        };
    }
}
