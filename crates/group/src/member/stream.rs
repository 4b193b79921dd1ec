//! The active's stream to each member, and what they answer.

use super::Member;
use crate::{
    Append, Effects, LogReadFailed, Message, ReadLog, ReadPurpose, Role, Settings,
    broken::Broken,
    peer::{Next, Peer},
};
use base::{Entry, Epoch, LogPoint, MemberId, MemberStore, Moment, Sn};

/// Unacknowledged bytes to one member; more wait for its answers.
const IN_FLIGHT_BYTES_MAX: usize = 16 << 20;
/// Unacknowledged messages to one member.
const IN_FLIGHT_COUNT_MAX: usize = 256;

impl Member {
    /// Takes the answers of the others to a member that leads or stands for election.
    pub(super) fn on_answer(
        &mut self,
        now: Moment,
        from: MemberStore,
        boot: u64,
        message: Message,
        effects: &mut Effects,
    ) {
        let sender = from.member;
        if let Message::Fenced { promised } = message {
            return self.on_fenced(now, sender, promised, effects);
        }
        let Some(leading) = &mut self.leading else { return };
        let epoch = leading.epoch;
        let Some(peer) = leading.peers.get_mut(&sender) else { return };
        if !peer.hear(now, from, boot) {
            return;
        }
        match &message {
            Message::Promised { epoch: of, end, committed, .. }
            | Message::Grant { epoch: of, end, committed, .. }
            | Message::Contradiction { epoch: of, end, committed }
            | Message::Mismatch { epoch: of, end, committed } => self.heard_log(from, *of, *end, *committed),
            _ => {}
        }
        let leading = self.leading.as_mut().expect("tested above");
        let peer = leading.peers.get_mut(&sender).expect("tested above");
        match message {
            Message::Promised { epoch: of, end, committed, is_suspect } if of == epoch => {
                peer.has_promised = true;
                peer.is_suspect = is_suspect;
                self.learned(now, sender, end, committed, effects);
            }
            Message::Grant { epoch: of, round, is_granted, is_ready, end, committed, data_servers }
                if of == epoch =>
            {
                // Only a member that has promised this epoch answers its beacons.
                peer.has_promised = true;
                peer.answered(round);
                peer.is_ready = is_ready;
                peer.data_servers = data_servers;
                let lease_ms = self.settings.lease_ms * Settings::LEASE_HELD_PERCENT / 100;
                let sent = leading.rounds.iter().find(|(number, _)| *number == round).map(|(_, at)| *at);
                if let Some(sent) = sent.filter(|_| is_granted) {
                    peer.granted(round, sent.plus_ms(lease_ms));
                }
                self.learned(now, sender, end, committed, effects);
            }
            Message::Appended { epoch: of, last } if of == epoch => {
                self.on_appended(now, sender, last, effects)
            }
            // A log that was found to be equal up to some entry does not get shorter, or another one, in this life and epoch. The word
            // is from before, and comes late.
            Message::Mismatch { epoch: of, end, .. } | Message::Contradiction { epoch: of, end, .. }
                if of == epoch && end.id.sn < peer.matched => {}
            Message::Mismatch { epoch: of, end, committed } if of == epoch => {
                // If several messages were under way, each of them missed. The first answer says it all.
                let is_told = peer
                    .missed
                    .is_some_and(|(at, when)| at == end && now.ms_since(when) < self.settings.silence_ms / 2);
                if is_told {
                    return;
                }
                peer.missed = Some((end, now));
                peer.restart_stream();
                peer.end = Some(end);
                peer.committed = committed;
                // Its end is another entry than mine at that place: what has committed there is mine, too.
                let from = self.common(committed);
                self.go_on_from(now, sender, from, effects);
            }
            Message::Contradiction { epoch: of, end, committed } if of == epoch => {
                peer.in_flight.clear();
                (peer.end, peer.committed) = (Some(end), committed);
                self.nothing_in_common(now, sender, effects);
            }
            Message::Fetched { epoch: of, previous, entries, .. } if of == epoch => {
                self.on_fetched(now, sender, previous, entries, effects);
            }
            Message::FetchFailed { epoch: of, after, committed, .. } if of == epoch => {
                self.on_fetch_failed(now, sender, after, committed, effects);
            }
            _ => {}
        }
    }

    fn on_fenced(&mut self, now: Moment, sender: MemberId, promised: Epoch, effects: &mut Effects) {
        if let Some(leading) = &self.leading
            && promised > leading.epoch
        {
            self.step_down(now, &format!("member {sender} has promised epoch {promised}"), effects);
        }
        if self.view().is_some_and(|view| view.epoch < promised) {
            effects.outgoing.read_view = true;
        }
    }

    /// A member has said how far its log goes.
    fn learned(
        &mut self,
        now: Moment,
        member: MemberId,
        end: LogPoint,
        committed: LogPoint,
        effects: &mut Effects,
    ) {
        let Some(leading) = &mut self.leading else { return };
        let has_begun = leading.epoch_start > Sn(0);
        let Some(peer) = leading.peers.get_mut(&member) else { return };
        peer.end = Some(end);
        peer.committed = committed;
        let is_complete = peer.life.is_some_and(|(life, _)| leading.complete.contains(&life));
        if has_begun && is_complete && committed.id.sn > self.tail.end().id.sn {
            let mine = self.end();
            let reason =
                format!("member {member} knows that {committed} has committed, this log ends at {mine}");
            return self.lead_no_more(now, reason, effects);
        }
        // Entries of this very epoch that this member has not made: another led it, before the coordinator was set back.
        let is_in_memory = end.id.sn >= self.tail.base().id.sn;
        let minds = !self.settings.breaks(Broken::IgnoresEvidence);
        if minds && end.id.epoch >= leading.epoch && is_in_memory && !self.tail.holds(end) {
            let reason = format!(
                "member {member} holds {end}, of an epoch that another has led: the coordinator has lost history"
            );
            return self.lead_no_more(now, reason, effects);
        }
        // It holds entries that this epoch would cut off, and this log alone cannot tell whether they had committed. Below the
        // minimum nothing can commit without such a member, so the next epoch begins with what it holds.
        let begun_after = Sn(leading.epoch_start.0.saturating_sub(1));
        let is_undecided = has_begun && self.committed < leading.epoch_start;
        let previous = self.tail.point_at(begun_after).map_or_else(Default::default, |point| point.id);
        if is_undecided && end.id > previous && !self.tail.holds(end) && self.must_give_way(member, end) {
            let reason =
                format!("member {member} holds entries up to {end}, and this epoch began after {previous}");
            return self.lead_no_more(now, reason, effects);
        }
        let Some(peer) = self.leading.as_ref().and_then(|leading| leading.peers.get(&member)) else { return };
        if peer.next == Next::Unknown && has_begun {
            self.choose_next(now, member, effects);
        }
        self.pump(now, member, effects);
    }

    /// Whether this epoch, of which nothing has committed, ends for what another member holds in its place. It does if that is known
    /// to have committed. Below the minimum it does
    /// for one that is complete. In a first claim it does also above the minimum, and for one that is not complete by the view, which
    /// may be an older one: once, and not where that one's log was found to part from this one.
    fn must_give_way(&mut self, member: MemberId, end: LogPoint) -> bool {
        let (Some(leading), Some(view)) = (&self.leading, self.view()) else { return false };
        let Some(peer) = leading.peers.get(&member) else { return false };
        if self.lacks_committed(peer.committed) {
            return true;
        }
        let is_complete = self.is_complete(peer);
        if !self.hears_all() {
            return is_complete && !self.is_writable();
        }
        let counts = is_complete || end.id.epoch >= view.unclean_epoch;
        let is_known = leading.passed_over.contains(&member)
            || self.evidence.gave_way_to.get(&member) == Some(&end)
            || self.evidence.given_up == Some(end);
        if !counts || is_known {
            return false;
        }
        self.evidence.gave_way_to.insert(member, end);
        true
    }

    /// Chooses where to begin with a member that has said how far its log goes.
    pub(super) fn choose_next(&mut self, now: Moment, member: MemberId, effects: &mut Effects) {
        let Some(peer) = self.leading.as_ref().and_then(|leading| leading.peers.get(&member)) else { return };
        let Some(end) = peer.end.filter(|_| peer.has_promised) else { return };
        let committed = peer.committed;
        let from = if end.id.sn < self.tail.base().id.sn || self.tail.holds(end) {
            Some(end.id.sn) // Behind the base only the disk, or the member itself, can tell whether it agrees.
        } else {
            self.common(committed)
        };
        self.go_on_from(now, member, from, effects);
    }

    /// The last committed entry that both logs hold. The entries that have committed there are part of this log,
    /// unless one of the two is corrupt.
    fn common(&self, committed: LogPoint) -> Option<Sn> {
        let is_behind = committed.id.sn < self.tail.base().id.sn;
        (is_behind || self.tail.holds(committed)).then_some(committed.id.sn)
    }

    fn go_on_from(&mut self, now: Moment, member: MemberId, after: Option<Sn>, effects: &mut Effects) {
        let Some(mut after) = after else { return self.nothing_in_common(now, member, effects) };
        if let Some(peer) = self.leading.as_mut().and_then(|leading| leading.peers.get_mut(&member)) {
            // The word about its end may come late. Before what it has acknowledged in this life and epoch, it lacks nothing.
            after = after.max(peer.matched);
            peer.next = Next::At(Sn(after.0 + 1));
            peer.in_flight.clear();
        }
        self.pump(now, member, effects);
        let Some(peer) = self.leading.as_mut().and_then(|leading| leading.peers.get_mut(&member)) else {
            return;
        };
        if peer.next == Next::At(Sn(after.0 + 1)) {
            // It lacks nothing: asked to say so, since its end alone proves nothing.
            peer.asked_at = now;
            self.send_news(member, effects);
        }
    }

    /// The member holds something else for committed than this log. A member that was complete when this epoch began
    /// proves that this log is corrupt; any other is behind an unclean election, or corrupt itself.
    fn nothing_in_common(&mut self, now: Moment, member: MemberId, effects: &mut Effects) {
        let unclean = self.unclean_epoch();
        let Some(leading) = &mut self.leading else { return };
        let epoch = leading.epoch;
        let Some(peer) = leading.peers.get_mut(&member) else { return };
        if peer.life.is_some_and(|(life, _)| leading.complete.contains(&life)) {
            let text = format!("member {member} says that something else has committed than this log holds");
            return self.lead_no_more(now, text, effects);
        }
        let is_given_up = peer.committed.id.epoch < unclean || peer.committed.id.sn == Sn(0);
        let next = if is_given_up { Next::NeedsImage } else { Next::Contradicts };
        let is_told = peer.next == next;
        peer.next = next;
        if is_told {
            return; // The beacons say it again.
        }
        self.show_contradiction(member, effects);
        effects.messages.push((member, Message::NeedsImage { epoch, unclean }));
    }

    /// Sends the member the entry that stands here in the place of the last that it knows to have committed, or this epoch's
    /// first where that is before it: from this it sees that the two logs differ, and that it is not merely behind.
    pub(super) fn show_contradiction(&self, member: MemberId, effects: &mut Effects) {
        let Some(leading) = &self.leading else { return };
        let Some(peer) = leading.peers.get(&member).filter(|_| leading.epoch_start > Sn(0)) else { return };
        let base = self.tail.base().id.sn;
        let first = leading.epoch_start.min(peer.committed.id.sn).max(Sn(base.0 + 1));
        if peer.committed.id.sn < base || first > self.end().id.sn {
            return; // It was shown already, by what was read for it from the disk.
        }
        let (epoch, committed) = (leading.epoch, self.committed);
        let (previous, entries) = self.tail.read(first, 1);
        effects.messages.push((member, Message::Append(Append { epoch, previous, entries, committed })));
    }

    /// The last epoch that was begun by an unclean election, once this log tells of it durably. It need not have committed: by
    /// the view nobody else may lead, and where everybody else holds what was given up, nothing would ever commit.
    pub(super) fn unclean_epoch(&self) -> Epoch {
        let start = self.leading.as_ref().map_or(Sn(0), |leading| leading.epoch_start);
        let is_told = start > Sn(0) && self.durable.id.sn >= start;
        self.view().filter(|_| is_told).map_or(Epoch(0), |view| view.unclean_epoch)
    }

    fn on_appended(&mut self, now: Moment, member: MemberId, last: Sn, effects: &mut Effects) {
        let end = self.end().id.sn;
        let Some(leading) = &mut self.leading else { return };
        let Some(peer) = leading.peers.get_mut(&member) else { return };
        if last > end {
            return; // It cannot hold what was never sent.
        }
        if last > peer.matched {
            peer.matched = last;
            peer.missed = None;
            peer.kept_up_at = now;
            // The acknowledged entries were compared in this epoch: a read of earlier entries, or a former word that
            // the logs have nothing in common, is over. Else a member that has caught up would wait for an image that
            // it does not need.
            let is_over = match peer.next {
                Next::Reading(after) => after < last,
                Next::NeedsImage | Next::Contradicts => true,
                Next::Unknown | Next::At(_) => false,
            };
            if is_over {
                peer.next = Next::At(Sn(last.0 + 1));
                peer.in_flight.clear();
            }
        }
        while peer.in_flight.front().is_some_and(|(sn, _)| *sn <= last) {
            peer.in_flight.pop_front();
        }
        if peer.matched >= peer.sent {
            peer.kept_up_at = now;
        }
        self.pump(now, member, effects);
        self.advance_commit(now, effects);
    }

    pub(super) fn on_peer_connected(&mut self, member: MemberId, effects: &mut Effects) {
        self.candidacy.gone.remove(&member);
        self.digests_are_back(member);
        let known = self.own_known();
        effects.messages.push((member, Message::Hello { known }));
        self.tell_digests(member, effects);
        let Some(leading) = &mut self.leading else { return };
        let (epoch, is_speaking) = (leading.epoch, leading.stage != super::lead::Stage::WaitingForGrants);
        let round = leading.round;
        let Some(peer) = leading.peers.get_mut(&member) else { return };
        peer.is_gone = false;
        peer.doubt(round);
        if is_speaking && !self.is_sealed() {
            // Its answer says where the stream goes on.
            effects.messages.push((member, Message::NewEpoch { epoch }));
        }
        self.ask_again(member, effects);
    }

    /// Sends what fits to one member.
    pub(super) fn pump(&mut self, now: Moment, member: MemberId, effects: &mut Effects) {
        let may_read = self.may_read_for(member);
        let committed = self.committed;
        let (base, end) = (self.tail.base(), self.tail.end());
        let Some(leading) = &mut self.leading else { return };
        if leading.epoch_start == Sn(0)
            || leading.hand_over.as_ref().is_some_and(|hand_over| hand_over.is_sealed)
        {
            return;
        }
        let epoch = leading.epoch;
        let Some(peer) = leading.peers.get_mut(&member) else { return };
        let Next::At(mut next) = peer.next else { return };
        while next <= end.id.sn
            && peer.in_flight_bytes() < IN_FLIGHT_BYTES_MAX
            && peer.in_flight.len() < IN_FLIGHT_COUNT_MAX
        {
            let after = Sn(next.0 - 1);
            if after < base.id.sn {
                // Entries that were sent from the disk are acknowledged before more are read.
                if peer.in_flight.is_empty() && may_read {
                    peer.next = Next::Reading(after);
                    let bytes_max = Message::ENTRIES_BYTES_MAX as u32;
                    let purpose = ReadPurpose::Stream;
                    let up_to = base.id.sn;
                    effects.outgoing.read_log.push(ReadLog { to: member, after, up_to, bytes_max, purpose });
                    if leading.renewing.is_none() {
                        leading.renewing = Some(member);
                    }
                }
                return;
            }
            let (previous, entries) = self.tail.read(next, Message::ENTRIES_BYTES_MAX);
            let last = entries.last().expect("there are entries up to the end").id.sn;
            send(peer, member, Append { epoch, previous, entries, committed }, effects, now);
            next = Sn(last.0 + 1);
            peer.next = Next::At(next);
        }
        if leading.renewing == Some(member) && next > base.id.sn {
            leading.renewing = None;
        }
    }

    /// One member that nobody waits for is read to from the disk at a time; those in sync always are.
    fn may_read_for(&self, member: MemberId) -> bool {
        let Some(leading) = &self.leading else { return false };
        let is_required = self.view().is_some_and(|view| view.in_sync.iter().any(|s| s.member == member));
        is_required || leading.renewing.is_none_or(|renewing| renewing == member)
    }

    /// Gives the turn to the junior with the least gap.
    pub(super) fn choose_whom_to_renew(&mut self, now: Moment, effects: &mut Effects) {
        let base = self.tail.base().id.sn;
        let Some(leading) = &mut self.leading else { return };
        let is_alive = |peer: &Peer| {
            !peer.is_gone && !matches!(peer.next, Next::Unknown | Next::NeedsImage | Next::Contradicts)
        };
        if leading.renewing.is_some_and(|member| !leading.peers.get(&member).is_some_and(is_alive)) {
            leading.renewing = None;
        }
        if leading.renewing.is_some() {
            return;
        }
        let next_of = |peer: &Peer| match peer.next {
            Next::At(sn) if sn <= base && !peer.is_gone => Some(sn),
            _ => None,
        };
        let waiting = leading.peers.iter().filter_map(|(member, peer)| Some((next_of(peer)?, *member))).max();
        if let Some((_, member)) = waiting {
            leading.renewing = Some(member);
            self.pump(now, member, effects);
        }
    }

    pub(super) fn on_log_read(
        &mut self,
        now: Moment,
        asked: ReadLog,
        result: Result<(LogPoint, Vec<Entry>), LogReadFailed>,
        effects: &mut Effects,
    ) {
        match asked.purpose {
            ReadPurpose::Fetch { epoch, after } => {
                let committed = self.tail.base();
                let message = match result {
                    Ok((previous, entries)) if previous == after => {
                        Message::Fetched { epoch, previous, entries, committed: self.committed }
                    }
                    Ok(_) => Message::FetchFailed { epoch, after, committed, is_gone: false },
                    Err(_) => Message::FetchFailed { epoch, after, committed, is_gone: true },
                };
                effects.messages.push((asked.to, message));
            }
            ReadPurpose::Stream => self.on_read_for_stream(now, asked, result, effects),
        }
    }

    fn on_read_for_stream(
        &mut self,
        now: Moment,
        asked: ReadLog,
        result: Result<(LogPoint, Vec<Entry>), LogReadFailed>,
        effects: &mut Effects,
    ) {
        let (committed, unclean, base) = (self.committed, self.unclean_epoch(), self.tail.base());
        let by_word_alone = self.settings.breaks(Broken::ImageByWordAlone);
        let Some(leading) = &mut self.leading else { return };
        let epoch = leading.epoch;
        let Some(peer) = leading.peers.get_mut(&asked.to) else { return };
        if peer.next != Next::Reading(asked.after) {
            return; // The stream has begun anew meanwhile.
        }
        match result {
            Ok((previous, entries)) if !entries.is_empty() => {
                let last = entries.last().expect("tested").id.sn;
                send(peer, asked.to, Append { epoch, previous, entries, committed }, effects, now);
                peer.next = Next::At(Sn(last.0 + 1));
                self.pump(now, asked.to, effects);
            }
            Err(LogReadFailed::Gone) if peer.may_hold_base(base) && !by_word_alone => {
                peer.is_base_tried = true;
                self.go_on_from(now, asked.to, Some(base.id.sn), effects);
            }
            Err(LogReadFailed::Gone) => {
                peer.next = Next::NeedsImage;
                effects.messages.push((asked.to, Message::NeedsImage { epoch, unclean }));
                if leading.renewing == Some(asked.to) {
                    leading.renewing = None;
                }
            }
            Ok(_) | Err(LogReadFailed::Failed) => {
                peer.next = Next::At(Sn(asked.after.0 + 1));
                if leading.renewing == Some(asked.to) {
                    leading.renewing = None; // It is chosen again in a moment.
                }
            }
        }
    }

    /// Tells a member that is up to date what has committed since.
    pub(super) fn send_news(&self, member: MemberId, effects: &mut Effects) {
        let Some(leading) = &self.leading else { return };
        let Some(peer) = leading.peers.get(&member) else { return };
        if let Next::At(next) = peer.next
            && let Some(previous) = self.tail.point_at(Sn(next.0 - 1))
            && leading.epoch_start > Sn(0)
        {
            let (epoch, committed) = (leading.epoch, self.committed);
            let append = Append { epoch, previous, entries: Vec::new(), committed };
            effects.messages.push((member, Message::Append(append)));
        }
    }

    /// A member that stopped answering the stream although it lives may have lost a message: it is asked
    /// where it stands. So is one that was asked to acknowledge what it holds, and has not: it does not hear that
    /// question while it claims, and where no edit comes nothing else is sent to it.
    pub(super) fn restart_lost_streams(&mut self, now: Moment) {
        let lost_ms = self.settings.silence_ms / 2;
        let Some(leading) = &mut self.leading else { return };
        for peer in leading.peers.values_mut() {
            let since = peer.kept_up_at.max(peer.in_flight_since);
            let waits = !peer.in_flight.is_empty() && now.ms_since(since) >= lost_ms;
            let lacks =
                peer.end.is_some_and(|end| peer.in_flight.back().is_some_and(|(sn, _)| end.id.sn < *sn));
            let Next::At(next) = peer.next else { continue };
            // It holds everything. What is in flight is bounded, and goes on counting while its disk hangs.
            let owes_a_word = peer.in_flight.is_empty()
                && peer.matched.0 + 1 < next.0
                && now.ms_since(peer.asked_at.max(since)) >= self.settings.ack_silence_ms;
            if waits && lacks || owes_a_word {
                peer.restart_stream();
            }
        }
    }

    pub(super) fn is_served(&self) -> bool {
        matches!(self.role, Role::Serving { .. })
    }
}

fn send(peer: &mut Peer, member: MemberId, append: Append, effects: &mut Effects, now: Moment) {
    let bytes = append.entries.iter().map(|entry| entry.payload.len()).sum();
    let last = append.entries.last().expect("a stream message has entries").id.sn;
    if peer.matched >= peer.sent {
        peer.kept_up_at = now;
    }
    if peer.in_flight.is_empty() {
        peer.in_flight_since = now;
    }
    peer.sent = peer.sent.max(last);
    peer.in_flight.push_back((last, bytes));
    effects.messages.push((member, Message::Append(append)));
}
