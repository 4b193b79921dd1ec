//! Standbys and juniors: promises, the stream of the active, grants of the lease.

use super::{EPOCH_LEAP_MAX, Member};
use crate::{Append, Effects, Message, Proposal, ReadLog, ReadPurpose, Role, Settings, broken::Broken};
use base::{EntryKind, Epoch, GroupView, LogPoint, MemberId, MemberStore, Moment, Sn};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Following {
    pub leader: Option<Leader>,
    /// When all grants of this member are over.
    pub granted_until: Moment,
    granted_to: Option<Granted>,
    /// When its grants to all others are over, and those of its earlier lives.
    others_until: Moment,
    /// Set when the process to which the last grant went has ended since: that grant counts no more after this moment.
    ended_until: Option<Moment>,
    /// The beginning of this life. Grants from before it are forgotten.
    began_at: Moment,
    /// When any active was last heard.
    pub heard_at: Option<Moment>,
}

/// To whom the last grant was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Granted {
    store: MemberStore,
    boot: u64,
    epoch: Epoch,
}

/// The active that was heard last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leader {
    pub member: MemberId,
    pub boot: u64,
    pub epoch: Epoch,
    /// The log agrees with the active's up to here.
    verified: Sn,
    /// The last entry that has committed, by the active's word.
    committed: Sn,
    /// The active has told this member which entry has committed.
    has_told: bool,
    /// The first entry of the epoch.
    start: Option<Sn>,
}

impl Following {
    /// No claim is made before this moment. Where an operator's order may cost what has been acknowledged, `granted_until` is waited for.
    pub fn claims_from(&self) -> Moment {
        let ended = self.ended_until.map(|until| until.max(self.others_until));
        ended.map_or(self.granted_until, |until| until.min(self.granted_until))
    }

    /// The process that has led in this view, and had the last grant, has ended for certain.
    pub fn has_active_ended(&self, view: &GroupView) -> bool {
        let led = |to: Granted| (view.epoch, view.active) == (to.epoch, Some(to.store.member));
        self.ended_until.is_some() && self.granted_to.is_some_and(led)
    }

    /// Grants given before a restart are forgotten, so it begins as if one had just been given. That it may have been
    /// longer than these settings say the view tells ([`Member::mind_longer_leases`]).
    pub fn new(now: Moment, settings: &Settings) -> Self {
        let granted_until = now.plus_ms(settings.lease_ms);
        Self {
            leader: None,
            granted_until,
            granted_to: None,
            others_until: granted_until,
            ended_until: None,
            began_at: now,
            heard_at: None,
        }
    }
}

impl Member {
    pub(super) fn on_message(
        &mut self,
        now: Moment,
        from: MemberStore,
        boot: u64,
        message: Message,
        effects: &mut Effects,
    ) {
        let sender = from.member;
        if !self.is_member(sender) {
            // It may have been added since.
            effects.outgoing.read_view = self.view.is_some();
            return;
        }
        self.candidacy.gone.remove(&sender);
        if self.view().is_some_and(|view| view.is_eligible(from)) {
            self.void_force(now, "a member that is complete is heard", effects);
        }
        match message {
            Message::Append(append) => self.on_append(now, sender, boot, append, effects),
            Message::NewEpoch { epoch } => self.on_new_epoch(now, sender, boot, epoch, effects),
            Message::Beacon { epoch, round, committed, lease_ms } => {
                let beacon = Beacon { epoch, round, committed, lease_ms };
                self.on_beacon(now, from, boot, beacon, effects);
            }
            Message::NeedsImage { epoch, unclean } => {
                if self.hear(now, sender, boot, epoch, effects) {
                    self.on_needs_image(unclean, effects);
                }
            }
            Message::PreVote { epoch } => self.on_pre_vote(now, sender, epoch, effects),
            Message::PreVoted { epoch, holds_grant, known } => {
                self.heard_known(from, known, effects);
                self.on_pre_voted(sender, epoch, holds_grant);
                self.on_inquired(sender, holds_grant);
            }
            Message::Digests { digests } => self.on_digests(from, boot, digests, effects),
            Message::Hello { known } => self.heard_known(from, known, effects),
            Message::HandOver { epoch, end } => self.on_hand_over(now, from, boot, epoch, end),
            Message::Fetch { epoch, after, bytes_max } => {
                self.on_fetch(sender, epoch, after, bytes_max, effects);
            }
            Message::Suggest { epoch, proposal } => {
                if matches!(self.role, Role::Serving { epoch: mine } if mine == epoch) {
                    effects.outgoing.suggested.push(proposal);
                }
            }
            answer => self.on_answer(now, from, boot, answer, effects),
        }
    }

    /// A member that is behind the active's log takes an image and goes on. A member that knows entries to have
    /// committed which the active does not have, or not any more, keeps its store, with one exception: it gives the
    /// store up if an unclean election came after those entries and the active's epoch has begun for good.
    fn on_needs_image(&mut self, unclean: Epoch, effects: &mut Effects) {
        let Some(leader) = self.following.leader.as_ref().filter(|leader| leader.has_told) else { return };
        let (told, mine) = (leader.committed, self.committed_point());
        let is_given_up = mine.id.epoch < unclean && unclean <= leader.epoch;
        let is_behind = told > mine.id.sn && self.evidence.contradiction.is_none();
        if is_behind || mine.id.sn == Sn(0) {
            effects.outgoing.needs_image |= self.may_be_renewed();
            return;
        }
        if told == mine.id.sn && !is_given_up {
            // It may be this very entry. Word of what the active has committed since is on its way, behind this message.
            return;
        }
        let reason = format!(
            "entries up to {} have committed here, the active has others up to {told}: an operator has let a member lead \
             that lacked them",
            mine.id
        );
        if is_given_up || self.settings.breaks(Broken::GivesUpOnAnyWord) {
            return self.distrust(reason, effects);
        }
        self.evidence.contradiction = Some(format!(
            "entries up to {} have committed here, and member {} leads with others in their place",
            mine.id, leader.member
        ));
    }

    /// Before this start the group may have had longer leases.
    pub(super) fn mind_longer_leases(&mut self) {
        let Some(lease_ms) = self.view().map(|view| view.lease_ms) else { return };
        let until = self.following.began_at.plus_ms(lease_ms.min(Settings::LEASE_MS_MAX));
        self.following.granted_until = self.following.granted_until.max(until);
        self.following.others_until = self.following.others_until.max(until);
    }

    /// Whether this member's log may be thrown away: no other member relies on it.
    fn may_be_renewed(&self) -> bool {
        self.view().is_some_and(|view| !view.is_eligible(self.me))
    }

    /// A message of an active. False: it is not to be listened to. Where it is, the epoch is promised in this
    /// very step if it was not before.
    fn hear(&mut self, now: Moment, from: MemberId, boot: u64, epoch: Epoch, effects: &mut Effects) -> bool {
        // The view counts like a promise. A store that was put back to a copy may have promised more than it knows.
        let seen = self.view().map_or(Epoch(0), |view| view.epoch);
        let fenced = self.promising.max(seen);
        if epoch < fenced && !self.settings.breaks(Broken::ObeysOlderEpochs) {
            effects.messages.push((from, Message::Fenced { promised: fenced }));
            return false;
        }
        if epoch.0 > seen.0 + EPOCH_LEAP_MAX {
            effects.outgoing.read_view = true;
            return false;
        }
        if self.leading.as_ref().is_some_and(|leading| leading.epoch == epoch) {
            return false; // Nobody else appends in an epoch of mine.
        }
        if epoch > self.promising {
            self.promising = epoch;
            if self.leading.is_some() {
                self.step_down(now, &format!("member {from} leads epoch {epoch}"), effects);
            }
        }
        let is_new = match &self.following.leader {
            Some(leader) if leader.epoch == epoch => {
                if (leader.member, leader.boot) != (from, boot) {
                    return false; // Another life does not go on with an epoch.
                }
                false
            }
            _ => true,
        };
        if self.stands_against(epoch) {
            return false; // A candidate listens to the new epoch only.
        }
        if is_new {
            // A contradiction with the former active says nothing about this one.
            self.evidence.contradiction = None;
            let (verified, committed) = (Sn(0), Sn(0));
            self.following.leader =
                Some(Leader { member: from, boot, epoch, verified, committed, has_told: false, start: None });
            effects.outgoing.read_view |= seen < epoch;
        }
        if self.promised < epoch {
            effects.promise = Some(epoch);
        }
        self.following.heard_at = Some(now);
        self.void_force(now, "an active is heard", effects);
        self.withdraw();
        true
    }

    /// A claim that would end this epoch is under way. One against an earlier epoch has been overtaken, though its
    /// answer may be late: the active of the later one must not wait for that.
    fn stands_against(&self, epoch: Epoch) -> bool {
        let seen = self.view().map_or(Epoch(0), |view| view.epoch);
        self.candidacy.is_standing && self.pending.is_some() && epoch <= seen
    }

    /// Queues a message that is sent once this step's promise, if there is one, is durable.
    fn reply(&self, to: MemberId, message: Message, effects: &mut Effects) {
        match effects.promise {
            Some(_) => effects.messages_when_durable.push((to, message)),
            None => effects.messages.push((to, message)),
        }
    }

    pub(super) fn committed_point(&self) -> LogPoint {
        self.tail.point_at(self.committed).unwrap_or_else(|| self.tail.base())
    }

    fn on_new_epoch(&mut self, now: Moment, from: MemberId, boot: u64, epoch: Epoch, effects: &mut Effects) {
        if !self.hear(now, from, boot, epoch, effects) {
            return;
        }
        let (end, committed, is_suspect) = (self.end(), self.committed_point(), self.is_suspect);
        self.reply(from, Message::Promised { epoch, end, committed, is_suspect }, effects);
    }

    fn on_beacon(
        &mut self,
        now: Moment,
        store: MemberStore,
        boot: u64,
        beacon: Beacon,
        effects: &mut Effects,
    ) {
        let Beacon { epoch, round, committed, lease_ms } = beacon;
        let from = store.member;
        if !self.hear(now, from, boot, epoch, effects) {
            return;
        }
        let is_granted = !self.candidacy.is_standing || self.pending.is_some();
        if is_granted {
            // Two settings may differ for a while; a lease is never promised for longer than a minute.
            let until = now.plus_ms(lease_ms.min(Settings::LEASE_MS_MAX));
            let to = Some(Granted { store, boot, epoch });
            if self.following.granted_to != to {
                self.following.others_until = self.following.granted_until;
            }
            self.following.granted_until = self.following.granted_until.max(until);
            (self.following.granted_to, self.following.ended_until) = (to, None);
        }
        if let Some(leader) = &mut self.following.leader {
            leader.committed = leader.committed.max(committed);
            leader.has_told = true;
        }
        let (end, committed) = (self.end(), self.committed_point());
        let (is_ready, data_servers) = (self.is_ready, self.data_servers);
        let grant = Message::Grant { epoch, round, is_granted, is_ready, end, committed, data_servers };
        self.reply(from, grant, effects);
        self.advance_commit(now, effects);
    }

    fn on_append(&mut self, now: Moment, from: MemberId, boot: u64, append: Append, effects: &mut Effects) {
        let Append { epoch, previous, entries, committed } = append;
        if !self.hear(now, from, boot, epoch, effects) {
            return;
        }
        let base = self.tail.base();
        let by_sn = self.settings.breaks(Broken::LogsComparedBySn);
        let holds =
            |point: LogPoint| self.tail.holds(point) || by_sn && self.tail.point_at(point.id.sn).is_some();
        let is_held = previous.id.sn < base.id.sn || holds(previous);
        if !is_held {
            // That the active's log goes on from another entry says as much as that entry would.
            if previous.id.sn <= self.committed && self.tail.point_at(previous.id.sn).is_some() {
                let reason =
                    format!("entries up to {} have committed here, the active has others", self.committed);
                return self.miss(from, epoch, reason, effects);
            }
            let (end, committed) = (self.end(), self.committed_point());
            return self.reply(from, Message::Mismatch { epoch, end, committed }, effects);
        }
        let mut at = previous;
        let mut fresh = Vec::new();
        let mut start = None;
        for entry in entries {
            let follows = entry.id.sn.0 == at.id.sn.0 + 1
                && entry.previous_chain == at.chain
                && entry.id.epoch >= at.id.epoch
                && entry.id.epoch <= epoch;
            if !follows {
                return; // Not what an active sends: nothing of it is taken, and nothing acknowledged.
            }
            at = entry.point();
            if entry.kind == EntryKind::EpochStart && entry.id.epoch == epoch {
                start = Some(entry.id.sn);
            }
            if at.id.sn == base.id.sn && at != base {
                return self.miss(
                    from,
                    epoch,
                    format!("{base} has committed here, the active has {at}"),
                    effects,
                );
            }
            if !fresh.is_empty() || (at.id.sn > base.id.sn && !holds(at)) {
                fresh.push(entry);
            }
        }
        if let Some(first) = fresh.first() {
            let kept = Sn(first.id.sn.0 - 1);
            if kept < self.committed {
                let reason =
                    format!("entries up to {} have committed here, the active has others", self.committed);
                return self.miss(from, epoch, reason, effects);
            }
            if kept < self.end().id.sn {
                self.cut(kept, effects);
            }
        }
        if at.id.sn < base.id.sn {
            // Nothing here proves that the logs agree: the chain at the base would.
            let (end, committed) = (self.end(), self.committed_point());
            return self.reply(from, Message::Mismatch { epoch, end, committed }, effects);
        }
        self.evidence.contradiction = None;
        let has_fresh = !fresh.is_empty();
        for entry in fresh {
            self.push(entry, effects);
        }
        let leader = self.following.leader.as_mut().expect("it was heard");
        leader.verified = leader.verified.max(at.id.sn);
        leader.committed = leader.committed.max(committed);
        leader.start = leader.start.or(start);
        if !has_fresh && at.id.sn <= self.durable.id.sn {
            let own_end = self.settings.breaks(Broken::AckOfOwnEnd);
            let last = if own_end { self.durable.id.sn } else { at.id.sn };
            self.reply(from, Message::Appended { epoch, last }, effects);
        }
        self.advance_commit(now, effects);
    }

    /// The active's log goes on otherwise than what has committed here. It is told where this log stands, and answers with
    /// `NeedsImage`, which says whether that was given up by order.
    fn miss(&mut self, from: MemberId, epoch: Epoch, reason: String, effects: &mut Effects) {
        if !self.contradict(reason, effects) {
            let (end, committed) = (self.end(), self.committed_point());
            self.reply(from, Message::Contradiction { epoch, end, committed }, effects);
        }
    }

    /// The end of what was verified and is durable: never the own end, which may hold what the active has not.
    pub(super) fn acknowledge(&mut self, effects: &mut Effects) {
        let Some(leader) = &self.following.leader else { return };
        let is_current = leader.epoch == self.promising && leader.epoch == self.promised;
        if is_current && !self.stands_against(leader.epoch) {
            let own_end = self.settings.breaks(Broken::AckOfOwnEnd);
            let last = if own_end { self.durable.id.sn } else { leader.verified.min(self.durable.id.sn) };
            effects.messages.push((leader.member, Message::Appended { epoch: leader.epoch, last }));
        }
    }

    pub(super) fn advance_following(&mut self, effects: &mut Effects) {
        let Some(leader) = &self.following.leader else { return };
        if leader.epoch != self.promising {
            return;
        }
        let up_to = leader.committed.min(leader.verified).min(self.durable.id.sn);
        let (epoch, start) = (leader.epoch, leader.start);
        self.commit_up_to(up_to, effects);
        // An entry of the active's epoch was compared with the active's log and has committed. A beacon alone proves nothing.
        if !self.evidence.has_taken_part {
            let is_of_it = |point: LogPoint| point.id.epoch == epoch;
            self.evidence.has_taken_part = self.tail.point_at(up_to).is_some_and(is_of_it);
        }
        if self.is_suspect && start.is_some_and(|start| self.committed >= start) {
            // Everything that had committed before this epoch is here again.
            self.is_suspect = false;
            effects.outgoing.tail_is_sound = true;
        }
    }

    /// Another member asks for entries that it wants to adopt.
    fn on_fetch(
        &mut self,
        from: MemberId,
        epoch: Epoch,
        after: LogPoint,
        bytes_max: u32,
        effects: &mut Effects,
    ) {
        let bytes_max = (bytes_max as usize).min(Message::ENTRIES_BYTES_MAX);
        let base = self.tail.base();
        if after.id.sn < base.id.sn {
            effects.outgoing.read_log.push(ReadLog {
                to: from,
                after: after.id.sn,
                up_to: base.id.sn,
                bytes_max: bytes_max as u32,
                purpose: ReadPurpose::Fetch { epoch, after },
            });
        } else if self.tail.holds(after) {
            let (previous, entries) = self.tail.read(Sn(after.id.sn.0 + 1), bytes_max);
            let committed = self.committed;
            effects.messages.push((from, Message::Fetched { epoch, previous, entries, committed }));
        } else {
            let committed = self.committed_point();
            effects.messages.push((from, Message::FetchFailed { epoch, after, committed, is_gone: false }));
        }
    }

    pub(super) fn on_suggest(&mut self, proposal: Proposal, effects: &mut Effects) {
        if matches!(self.role, Role::Serving { .. }) {
            effects.outgoing.suggested.push(proposal);
        } else if let Some(leader) = &self.following.leader {
            let epoch = leader.epoch;
            effects.messages.push((leader.member, Message::Suggest { epoch, proposal }));
        }
    }

    /// The active has sealed its epoch: the wait for the grant given to it is over.
    fn on_hand_over(&mut self, now: Moment, store: MemberStore, boot: u64, epoch: Epoch, end: LogPoint) {
        let from = store.member;
        let is_leader = self
            .following
            .leader
            .as_ref()
            .is_some_and(|leader| (leader.member, leader.boot, leader.epoch) == (from, boot, epoch));
        let granted = self.following.granted_to.is_none_or(|to| to == Granted { store, boot, epoch });
        if is_leader && granted && self.promising == epoch && self.end() == end && self.durable == end {
            self.following.granted_until = now;
            self.candidacy.was_handed_over = true;
        }
    }

    /// A process that has ended answers no read, so nobody need wait for the grant that it had from this member. Grants to
    /// others, and to other lives of the same member, stay as they are.
    pub(super) fn on_peer_ended(&mut self, now: Moment, store: MemberStore, boot: u64) {
        if self.following.granted_to.is_some_and(|to| (to.store, to.boot) == (store, boot)) {
            self.following.ended_until = Some(now.plus_ms(self.settings.grant_ends_ms()));
        }
    }

    pub(super) fn on_peer_gone(&mut self, now: Moment, member: MemberId) {
        self.candidacy.gone.insert(member);
        if let Some(to) = self.following.granted_to.filter(|to| to.store.member == member)
            && self.settings.breaks(Broken::EndsGrantsAtABreak)
        {
            self.on_peer_ended(now, to.store, to.boot);
        }
        self.digests_are_gone(member);
        if let Some(leading) = &mut self.leading
            && let Some(peer) = leading.peers.get_mut(&member)
        {
            peer.is_gone = true;
            peer.doubt(leading.round);
        }
    }
}

struct Beacon {
    epoch: Epoch,
    round: u64,
    committed: Sn,
    lease_ms: u64,
}
