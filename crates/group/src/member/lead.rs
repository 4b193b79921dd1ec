//! The active: the start of its epoch in steps, proposals, commit.

use super::{Cause, Member, TAKEOVERS_KEPT};
use crate::{
    Effects, EpochStart, Message, Proposal, Role, Takeover,
    broken::Broken,
    commit,
    peer::{Next, Peer},
};
use base::{Entry, EntryKind, Epoch, GroupView, Level, MemberId, MemberLife, MemberStore, Moment, Sn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leading {
    pub epoch: Epoch,
    pub stage: Stage,
    pub peers: BTreeMap<MemberId, Peer>,
    pub round: u64,
    /// When the last rounds were sent.
    pub rounds: VecDeque<(u64, Moment)>,
    pub beacon_at: Moment,
    /// When the in-sync set is looked at next; not with every entry.
    pub look_at: Moment,
    /// The coordinator has just refused a change: none before.
    pub change_after: Moment,
    /// When the view may next learn what has committed.
    pub hint_at: Moment,
    /// The last committed entry that the others were told of.
    pub told: Sn,
    pub flush_at: Option<Moment>,
    /// The first entry of the epoch; nothing is served until it has committed. 0: not appended yet.
    pub epoch_start: Sn,
    pub began_at: Moment,
    /// When the own log last became durable further, or had nothing to make durable.
    pub durable_at: Moment,
    /// Likewise for the commit.
    pub committed_at: Moment,
    /// Complete members of the view that was claimed upon.
    pub complete: Vec<MemberStore>,
    /// An operator's order stands for the members that are silent.
    pub is_excused: bool,
    /// Members of whose logs nothing more is to be adopted in this epoch.
    pub passed_over: BTreeSet<MemberId>,
    takeover: Takeover,
    /// The one member that is not required and is being read to from the disk.
    pub renewing: Option<MemberId>,
    pub hand_over: Option<super::hand_over::HandOver>,
    pub wanted: Option<super::in_sync::Wanted>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Grants given while the claim was on its way must end first.
    WaitingForGrants,
    /// Step 3: promises are asked for.
    Fencing,
    /// Step 4: a longer log is copied.
    Adopting { from: MemberId, since: Moment },
    /// Step 5: the first entry is on its way to the in-sync set.
    Syncing,
    /// Step 6.
    Serving,
}

impl Leading {
    /// The trigger of this member's claim.
    pub fn trigger(&self) -> &'static str {
        self.takeover.trigger
    }
}

/// Rounds whose time of sending is remembered: answers later than this are worth nothing.
const ROUNDS_KEPT: usize = 64;

impl Member {
    /// Section 4, steps 3 to 6 begin.
    pub(super) fn start(&mut self, now: Moment) {
        let mut complete = std::mem::take(&mut self.candidacy.complete);
        let view = self.view().expect("a claim was confirmed");
        let epoch = view.epoch;
        if self.settings.breaks(Broken::ForgetsOldActive) || complete.is_empty() {
            complete = view.in_sync.iter().chain(&view.exiles).copied().collect();
        }
        let others = view.members.iter().filter(|member| **member != self.me.member);
        let peers: BTreeMap<_, _> = others.map(|member| (*member, Peer::new(now))).collect();
        let began_at = self.candidacy.began_at;
        // After an unclean election or a repair the silent ones are left out by order, until somebody else claims, or something has
        // committed since.
        let unclean = view.unclean_epoch;
        let has_served =
            view.commit_hint.epoch >= unclean && !self.settings.breaks(Broken::OrderStandsForEver);
        let stands_by_view = unclean > Epoch(0) && epoch.0 <= unclean.0 + 1 && !has_served;
        let is_excused = self.candidacy.is_excused || stands_by_view;
        let heard_at = self.following.heard_at;
        let takeover = Takeover {
            epoch,
            trigger: self.candidacy.trigger,
            detect_ms: heard_at.map_or(0, |at| began_at.ms_since(at)),
            claim_ms: self.candidacy.claimed_at.ms_since(began_at),
            ..Takeover::default()
        };
        self.candidacy = super::candidate::Candidacy {
            gone: std::mem::take(&mut self.candidacy.gone),
            forced: self.candidacy.forced,
            began_at,
            ..Default::default()
        };
        let mut leading = Leading {
            epoch,
            stage: Stage::WaitingForGrants,
            peers,
            round: 0,
            rounds: VecDeque::new(),
            beacon_at: now,
            look_at: now,
            change_after: now,
            hint_at: now.plus_ms(self.settings.hint_ms),
            told: Sn(0),
            flush_at: None,
            epoch_start: Sn(0),
            began_at: now,
            durable_at: now,
            committed_at: now,
            complete,
            is_excused,
            passed_over: BTreeSet::new(),
            takeover,
            renewing: None,
            hand_over: None,
            wanted: None,
        };
        for member in &self.candidacy.gone {
            if let Some(peer) = leading.peers.get_mut(member) {
                peer.is_gone = true;
            }
        }
        self.following.leader = None;
        self.evidence.contradiction = None;
        // To claim is not to take part: a member that gives the epoch up and claims again has still heard of nobody. An order that stands for
        // those who are silent does not stand for those who run: they are heard.
        self.evidence.has_taken_part |= self.candidacy.forced.is_some();
        self.evidence.leads_on_view_alone = !self.evidence.has_taken_part;
        self.leading = Some(Box::new(leading));
        self.role = Role::Starting { epoch };
    }

    pub(super) fn note_promise(&mut self, now: Moment) {
        let began_at = self.candidacy.began_at;
        self.leading_mut().takeover.promise_ms = now.ms_since(began_at);
    }

    /// The promise of the epoch that this member leads is durable.
    fn has_promised(&self) -> bool {
        self.leading.as_ref().is_some_and(|leading| self.promised >= leading.epoch)
    }

    pub(super) fn drive_leading(&mut self, now: Moment, effects: &mut Effects) {
        self.go_on_starting(now, effects);
        if self.leading.is_none() {
            return;
        }
        self.read_below_the_minimum(effects);
        self.send_beacons(now, effects);
        self.flush_commit(now, effects);
        if self.leading.as_ref().is_some_and(|leading| now >= leading.look_at) {
            let look_at = now.plus_ms(self.settings.idle_flush_ms);
            self.leading_mut().look_at = look_at;
            self.keep_in_sync_set(now, effects);
            self.give_way_if_deaf(now);
        }
        self.go_on_handing_over(now, effects);
        self.look_for_a_stall(now, effects);
    }

    pub(super) fn leading_mut(&mut self) -> &mut Leading {
        self.leading.as_mut().expect("this member leads")
    }

    fn go_on_starting(&mut self, now: Moment, effects: &mut Effects) {
        let leading = self.leading.as_ref().expect("this member leads");
        let epoch = leading.epoch;
        if leading.stage == Stage::WaitingForGrants {
            // Grants given after the claim was sent end before anything is said in the new epoch. A grant
            // given before it had ended already, unless this member was named by the old active.
            let waits = !self.is_alone() && !self.settings.breaks(Broken::ClaimBeforeGrantsEnd);
            if now < self.following.claims_from() && waits && self.view().is_some() {
                return;
            }
            let members: Vec<_> = leading.peers.keys().copied().collect();
            for member in members {
                effects.messages.push((member, Message::NewEpoch { epoch }));
            }
            let leading = self.leading_mut();
            leading.stage = Stage::Fencing;
            leading.began_at = now;
            leading.beacon_at = now;
        }
        let is_fencing = self.leading_mut().stage == Stage::Fencing && self.has_promised();
        if is_fencing && !self.all_have_answered(now) {
            // Others, whose ends are whole, need not wait for all as this one does.
            let leading = self.leading.as_ref().expect("this member leads");
            if self.is_suspect && now.ms_since(leading.began_at) >= self.settings.stall_ms {
                let reason = "the end of the log is torn, and not all that may hold what is missing answer";
                self.step_down(now, reason, effects);
            }
            return;
        }
        if is_fencing {
            let began_at = self.candidacy.began_at;
            let takeover = &mut self.leading_mut().takeover;
            if takeover.fence_ms == 0 {
                takeover.fence_ms = now.ms_since(began_at);
            }
            match self.longer_log() {
                Some((from, _)) => {
                    self.leading_mut().stage = Stage::Adopting { from, since: now };
                    self.fetch(from, self.end(), effects);
                }
                None if self.waits_for_company() => return,
                None => self.append_epoch_start(now, effects),
            }
        }
        self.go_on_adopting(now, effects);
    }

    /// Too few are in sync for the first entry of the epoch to commit. This log holds all that has committed, for its
    /// member was eligible when it claimed, and nothing of an earlier epoch commits since it has promised this one.
    /// Which of the entries behind the known commit have, nobody can tell yet; what they leave alone is certain. That the member
    /// was eligible the view says, which may be an older one: a member that has just begun needs witnesses.
    fn read_below_the_minimum(&mut self, effects: &mut Effects) {
        let (Role::Starting { epoch } | Role::Reading { epoch }) = self.role else { return };
        let leading = self.leading.as_ref().expect("this member leads");
        if leading.stage != Stage::Syncing || self.is_writable() || self.is_suspect || self.is_rebuilt {
            return;
        }
        if self.lacks_witnesses_to_read() {
            return;
        }
        // An entry that any complete member knows to have committed has committed. The first entry commits here by
        // this member's own count.
        let begun_after = Sn(leading.epoch_start.0.saturating_sub(1));
        let is_complete = |peer: &Peer| peer.life.is_some_and(|(life, _)| leading.complete.contains(&life));
        let known = leading
            .peers
            .values()
            .filter(|peer| is_complete(peer) && self.tail.holds(peer.committed))
            .map(|peer| peer.committed.id.sn)
            .max();
        self.commit_up_to(known.unwrap_or_default().min(begun_after), effects);
        if matches!(self.role, Role::Starting { .. }) {
            effects.outgoing.apply_ahead = self.tail.between(self.applied, self.end().id.sn);
            self.applied = self.end().id.sn;
            self.role = Role::Reading { epoch };
        }
    }

    /// Whether all members that count have promised, or are given up.
    fn all_have_answered(&self, now: Moment) -> bool {
        let leading = self.leading.as_ref().expect("this member leads");
        let view = self.view().expect("this member leads");
        let is_patient = now.ms_since(leading.began_at) < self.settings.silence_ms;
        let answered = |store: &MemberStore| {
            store.member == self.me.member
                || leading.peers.get(&store.member).is_none_or(|peer| peer.has_promised)
        };
        // The view may be an older one: every member that runs is heard, complete by it or not. A member for which an
        // epoch was given up, or that has shown more than this log holds, has longer to answer.
        let is_over = |(member, peer): (&MemberId, &Peer)| {
            let has_more = self.evidence.gave_way_to.contains_key(member) || self.has_shown_more(*member);
            let is_wanted = has_more && !self.settings.breaks(Broken::WaitsNoLonger);
            let is_waited_for = is_wanted && now.ms_since(leading.began_at) < self.settings.stall_ms;
            peer.has_promised || peer.is_gone || !is_patient && !is_waited_for
        };
        if self.hears_all() && !leading.peers.iter().all(is_over) {
            return false;
        }
        if self.is_suspect {
            // A member that has promised and ended since cannot hand on its entries, nor can a store that has taken
            // its place.
            let is_there = |store: &MemberStore| {
                leading.peers.get(&store.member).is_none_or(|peer| !peer.is_gone && self.is_complete(peer))
            };
            return leading.complete.iter().all(|store| answered(store) && is_there(store));
        }
        // If too few members are left in sync, nothing commits without a member that is complete, which may hold more
        // than this log.
        let is_few = (view.in_sync.len() as u32) < view.in_sync_min;
        let wanted = view.in_sync.iter().chain(view.exiles.iter().filter(|_| is_few));
        wanted.into_iter().all(|store| {
            let is_gone = leading.peers.get(&store.member).is_some_and(|peer| peer.is_gone);
            answered(store) || is_gone || !is_patient
        })
    }

    /// Section 4, end of step 4.
    pub(super) fn append_epoch_start(&mut self, now: Moment, effects: &mut Effects) {
        let began_at = self.candidacy.began_at;
        let leading = self.leading.as_ref().expect("this member leads");
        let epoch = leading.epoch;
        // A member that knows a committed entry which this log does not hold proves that this log is not complete.
        let ahead = leading.peers.iter().find(|(member, peer)| {
            let is_beyond = self.is_complete(peer) && peer.committed.id.sn > self.end().id.sn;
            is_beyond || self.has_shown_commit(**member)
        });
        if let Some((member, peer)) = ahead {
            let known =
                self.evidence.known().get(member).map_or(peer.committed, |(_, known)| known.committed);
            let mine = self.end();
            let reason = format!("member {member} knows that {known} has committed, this log ends at {mine}");
            return self.lead_no_more(now, reason, effects);
        }
        // The lost entries may hold the beginnings of all epochs since this log's last, and each of those has raised
        // the counters. After an unclean election there may be many, of which this life need not know.
        let epochs = epoch.0.saturating_sub(self.end().id.epoch.0);
        // The view remembers an unclean claim, not this life: who claimed so may have ended before it could write the first
        // entry of that epoch, and is elected in the ordinary way when it begins again.
        let view = self.view().expect("whoever leads has a view");
        let is_unclean = view.unclean_epoch > self.end().id.epoch;
        let id_steps = self.settings.id_steps.over(epochs, is_unclean);
        let leader =
            (self.level >= Level::EPOCH_LEADERS).then_some(MemberLife { store: self.me, boot: self.boot });
        let start =
            EpochStart { epoch, previous: self.end(), id_steps, is_unclean, keeps_skipped: true, leader };
        let payload = start.encode();
        let entry = Entry::after(self.end(), epoch, EntryKind::EpochStart, payload);
        let point = self.push(entry, effects);
        let leading = self.leading_mut();
        leading.epoch_start = point.id.sn;
        leading.stage = Stage::Syncing;
        leading.takeover.adopt_ms = now.ms_since(began_at);
        leading.durable_at = now;
        leading.committed_at = now;
        if self.settings.breaks(Broken::ServesBeforeFirstCommit) {
            self.role = Role::Serving { epoch };
        }
        let leading = self.leading_mut();
        // Once this entry has committed, the entries that every complete member holds are beyond doubt.
        let members: Vec<_> = leading.peers.keys().copied().collect();
        for member in members {
            self.choose_next(now, member, effects);
            self.pump(now, member, effects);
        }
    }

    pub(super) fn on_propose(&mut self, now: Moment, proposals: Vec<Proposal>, effects: &mut Effects) {
        let epoch = match self.role {
            Role::Serving { epoch } => epoch,
            Role::HandingOver { epoch } if !self.is_sealed() => epoch,
            _ => {
                effects.outgoing.refused = proposals;
                return;
            }
        };
        let was_idle = self.durable.id.sn == self.end().id.sn;
        effects.entries.reserve(proposals.len());
        for proposal in proposals {
            let entry = Entry::after(self.end(), epoch, proposal.kind, proposal.payload);
            self.push(entry, effects);
        }
        self.applied = self.end().id.sn;
        let leading = self.leading_mut();
        if was_idle {
            leading.durable_at = now;
            leading.committed_at = now;
        }
        let members: Vec<_> = leading.peers.keys().copied().collect();
        for member in members {
            self.pump(now, member, effects);
        }
        // These messages have carried the news.
        self.leading_mut().told = self.committed;
    }

    /// Section 3: everything durable on every required member has committed, if enough are in sync. The
    /// *confirmed* set is counted; counting a set that is being changed to loses entries.
    pub(super) fn advance_commit(&mut self, now: Moment, effects: &mut Effects) {
        let Some(leading) = &self.leading else { return self.advance_following(effects) };
        if leading.epoch_start == Sn(0) {
            return;
        }
        let mut view = self.view().expect("whoever leads has a view");
        let mut pending = self.pending.as_ref().map(|pending| &pending.change.view);
        let enough;
        if self.settings.breaks(Broken::ShrinkBeforeConfirmed) {
            view = pending.take().unwrap_or(view);
        } else if self.settings.breaks(Broken::MinimumCountedOnPending)
            && let Some(wanted) = pending.filter(|wanted| wanted.in_sync.len() as u32 >= view.in_sync_min)
        {
            let in_sync = [&view.in_sync[..], &wanted.in_sync].concat();
            enough = GroupView { in_sync, ..view.clone() };
            view = &enough;
        }
        let replicates = !self.settings.breaks(Broken::CommitBeforeReplication);
        let matched = |store: MemberStore| {
            if store == self.me || !replicates {
                return Some(self.durable.id.sn);
            }
            leading.peers.get(&store.member).and_then(|peer| peer.matched_by(store))
        };
        let Some(sn) = commit::commit_point(view, pending, matched) else { return };
        // A log that is inherited commits with the first entry of the epoch, never before it.
        if sn < leading.epoch_start || sn <= self.committed {
            return;
        }
        let beacon = now.plus_ms(self.settings.idle_flush_ms);
        let leading = self.leading_mut();
        leading.committed_at = now;
        leading.flush_at = leading.flush_at.or(Some(beacon));
        self.commit_up_to(sn, effects);
        self.serve_if_started(now, effects);
    }

    fn serve_if_started(&mut self, now: Moment, effects: &mut Effects) {
        let (Role::Starting { epoch } | Role::Reading { epoch }) = self.role else { return };
        let began_at = self.candidacy.began_at;
        let leading = self.leading_mut();
        leading.stage = Stage::Serving;
        leading.takeover.sync_ms = now.ms_since(began_at);
        let takeover = leading.takeover.clone();
        self.takeovers.push(takeover.clone());
        let extra = self.takeovers.len().saturating_sub(TAKEOVERS_KEPT);
        self.takeovers.drain(..extra);
        effects.outgoing.takeover = Some(takeover);
        if self.is_suspect {
            self.is_suspect = false;
            effects.outgoing.tail_is_sound = true;
        }
        self.evidence.has_taken_part = true;
        self.evidence.leads_on_view_alone = false;
        self.role = Role::Serving { epoch };
    }

    fn send_beacons(&mut self, now: Moment, effects: &mut Effects) {
        let (lease_ms, beacon_ms) = (self.settings.lease_ms, self.settings.beacon_ms);
        let (committed, unclean) = (self.committed, self.unclean_epoch());
        // An active whose own disk stands still must not keep the others from taking over.
        if self.is_sealed() || !self.has_promised() {
            return;
        }
        let leading = self.leading_mut();
        if leading.stage == Stage::WaitingForGrants || leading.peers.is_empty() || now < leading.beacon_at {
            return;
        }
        leading.beacon_at = now.plus_ms(beacon_ms);
        leading.round += 1;
        leading.rounds.push_back((leading.round, now));
        if leading.rounds.len() > ROUNDS_KEPT {
            leading.rounds.pop_front();
        }
        let (epoch, round) = (leading.epoch, leading.round);
        let (mut contradicted, mut needs_image) = (Vec::new(), Vec::new());
        for (member, peer) in &leading.peers {
            if !peer.has_promised {
                effects.messages.push((*member, Message::NewEpoch { epoch }));
            }
            effects.messages.push((*member, Message::Beacon { epoch, round, committed, lease_ms }));
            if peer.next == Next::Contradicts {
                contradicted.push(*member);
            }
            if matches!(peer.next, Next::NeedsImage | Next::Contradicts) {
                needs_image.push(*member);
            }
            if peer.next == Next::NeedsImage {
                effects.outgoing.image_wanted = effects.outgoing.image_wanted.max(Some(peer.committed.id.sn));
            }
        }
        contradicted.into_iter().for_each(|member| self.show_contradiction(member, effects));
        let asked = needs_image.into_iter().map(|member| (member, Message::NeedsImage { epoch, unclean }));
        effects.messages.extend(asked);
    }

    /// Tells the others what has committed when no entry has carried the news.
    fn flush_commit(&mut self, now: Moment, effects: &mut Effects) {
        let leading = self.leading.as_ref().expect("this member leads");
        if leading.flush_at.is_none_or(|at| now < at) {
            return;
        }
        let members: Vec<_> = leading.peers.keys().copied().collect();
        self.leading_mut().flush_at = None;
        let committed = self.committed;
        if std::mem::replace(&mut self.leading_mut().told, committed) >= committed {
            return;
        }
        for member in members {
            self.send_news(member, effects);
        }
    }

    /// An active whose disk stands still, or that reaches neither its group nor the coordinator, gives up.
    fn look_for_a_stall(&mut self, now: Moment, effects: &mut Effects) {
        let Some(leading) = &self.leading else { return };
        let stall_ms = self.settings.stall_ms;
        if self.is_alone() || leading.epoch_start == Sn(0) {
            return;
        }
        let disk_waits = self.durable.id.sn < self.end().id.sn;
        if disk_waits && now.ms_since(leading.durable_at) >= stall_ms {
            return self.step_down(now, "the own disk does not answer", effects);
        }
        let commit_waits = self.committed < self.end().id.sn;
        let coordinator_waits =
            self.pending.as_ref().is_some_and(|pending| now.ms_since(pending.asked_at) >= stall_ms);
        if commit_waits && coordinator_waits && now.ms_since(leading.committed_at) >= stall_ms {
            self.step_down(now, "neither the group nor the coordinator answers", effects);
        }
    }

    /// Another member has proved that this log is not all that has committed, or may not be. Nothing here is given up for that but the
    /// first entry of a first claim, which nobody can have for committed: without it the next epoch can begin with what the other
    /// holds. This member follows a member that holds more, and claims nothing until its own log holds those entries as well.
    pub(super) fn lead_no_more(&mut self, now: Moment, reason: String, effects: &mut Effects) {
        let first = self.leading.as_ref().map_or(Sn(0), |leading| leading.epoch_start);
        let begun_after = Sn(first.0.saturating_sub(1));
        // An order may have had it applied; then the state machine is built anew.
        let may_cut = self.applied <= begun_after || self.evidence.is_excused;
        if first > Sn(0) && self.hears_all() && self.committed < first && may_cut {
            self.evidence.given_up = self.tail.point_at(first);
            self.cut(begun_after, effects);
        }
        self.step_down(now, &reason, effects);
    }

    /// Stops leading: nothing more is appended, committed or answered in this epoch by this member.
    pub(super) fn step_down(&mut self, now: Moment, reason: &str, effects: &mut Effects) {
        let Some(leading) = self.leading.take() else { return };
        let refused =
            |ticket: u64| (ticket, Err(format!("member {} leads no more: {reason}", self.me.member)));
        let hand_over = leading.hand_over.as_ref().and_then(|hand_over| hand_over.ticket);
        let wanted = leading.wanted.as_ref().map(|wanted| wanted.ticket);
        let forced = self.candidacy.forced;
        effects.outgoing.answers.extend([hand_over, wanted, forced].into_iter().flatten().map(refused));
        match self.pending.take().map(|pending| pending.cause) {
            Some(Cause::Claim) => unreachable!("whoever leads claims nothing"),
            Some(Cause::Repair { ticket }) => effects.outgoing.answers.push(refused(ticket)),
            _ => {}
        }
        self.evidence.older = None;
        self.retry_at = None;
        self.role = Role::Following;
        let jitter = self.roll(self.settings.reread_ms / 4);
        self.candidacy = super::candidate::Candidacy {
            no_claim_before: now.plus_ms(self.settings.reread_ms + jitter),
            ..Default::default()
        };
        self.following.leader = None;
        effects.outgoing.read_view = true;
        effects.outgoing.stepped_down = Some(reason.to_owned());
    }

    pub(super) fn leading_deadline(&self) -> Option<Moment> {
        let leading = self.leading.as_ref()?;
        let may_hint = self.pending.is_none() && self.hint_is_due();
        let hint = may_hint.then_some(leading.hint_at.max(leading.look_at).max(leading.change_after));
        if self.is_alone() {
            return hint;
        }
        if leading.stage == Stage::WaitingForGrants {
            return Some(self.following.claims_from());
        }
        if !self.has_promised() {
            return None;
        }
        let hand_over = leading.hand_over.as_ref().map(|hand_over| hand_over.deadline);
        [Some(leading.beacon_at), leading.flush_at, hand_over, hint].into_iter().flatten().min()
    }

    /// The view may have gained or lost members.
    pub(super) fn forget_strangers(&mut self, now: Moment) {
        let view: GroupView = self.view().expect("whoever leads has a view").clone();
        let me = self.me.member;
        let leading = self.leading_mut();
        leading.peers.retain(|member, _| view.members.contains(member));
        for member in view.members.iter().filter(|member| **member != me) {
            leading.peers.entry(*member).or_insert_with(|| Peer::new(now));
        }
    }
}
