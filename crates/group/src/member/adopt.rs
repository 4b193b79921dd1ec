//! Step 4 of a takeover: what another member's log holds beyond this one is copied.

use super::{Member, lead::Stage};
use crate::{Effects, Message, peer::Peer};
use base::{Entry, EntryKind, LogPoint, MemberId, Moment, Sn};

impl Member {
    /// Complete by the view that this epoch was claimed upon.
    pub(super) fn is_complete(&self, peer: &Peer) -> bool {
        let Some(leading) = &self.leading else { return false };
        peer.life.is_some_and(|(life, _)| leading.complete.contains(&life))
    }

    fn is_complete_member(&self, member: MemberId) -> bool {
        let peer = self.leading.as_ref().and_then(|leading| leading.peers.get(&member));
        peer.is_some_and(|peer| self.is_complete(peer))
    }

    /// The member whose log is adopted next, and the end of that log; `None` if no log is adopted.
    ///
    /// In a first claim, the log of any member comes first that goes on from the end of this one. If the view is sound, this log
    /// lacks nothing that has committed; so entries that another has behind this end were never acknowledged, and do no harm. If
    /// the view is an older one, they may have been acknowledged. A log that parts from this one before its end is adopted only
    /// from a member that is complete: otherwise it may be the tail of an active that was deposed, and others have served since
    /// without it.
    ///
    /// After these comes the longest log of the complete members that have answered, if it is longer than this one. Entries that
    /// only begin an epoch, in which nothing has committed, make no log longer: another log may hold acknowledged entries in their
    /// place, if the coordinator has named a member that lacked them.
    pub(super) fn longer_log(&self) -> Option<(MemberId, LogPoint)> {
        let (leading, view) = (self.leading.as_ref()?, self.view()?);
        let mine = self.end().id;
        let of_mine = self.tail.last_beside_starts(self.certain()).id;
        let answered = || {
            leading.peers.iter().filter_map(|(member, peer)| {
                let counts = peer.has_promised && !peer.is_gone && !leading.passed_over.contains(member);
                let end = peer.end.filter(|_| counts && peer.life.is_some())?;
                Some((*member, end, self.is_complete(peer)))
            })
        };
        let of_others = || {
            answered()
                .filter(|(_, end, is_complete)| {
                    self.hears_all() && !is_complete && end.id.epoch >= view.unclean_epoch && end.id > mine
                })
                .max_by_key(|(_, end, _)| end.id)
        };
        let of_complete = || {
            answered()
                .filter(|(_, end, is_complete)| {
                    *is_complete && (end.id > mine || end.id > of_mine && !self.tail.holds(*end))
                })
                .max_by_key(|(_, end, _)| end.id)
        };
        // A log with a torn end may lack what has committed: what goes on from there proves nothing before it is whole.
        let longest = match self.is_suspect {
            true => of_complete().or_else(of_others),
            false => of_others().or_else(of_complete),
        };
        longest.map(|(member, end, _)| (member, end))
    }

    pub(super) fn fetch(&self, from: MemberId, after: LogPoint, effects: &mut Effects) {
        let bytes_max = Message::ENTRIES_BYTES_MAX as u32;
        let epoch = self.leading.as_ref().expect("this member leads").epoch;
        effects.messages.push((from, Message::Fetch { epoch, after, bytes_max }));
    }

    /// The connection to the member whose log is being adopted was made anew: the question, or the answer, may be lost.
    pub(super) fn ask_again(&self, member: MemberId, effects: &mut Effects) {
        let stage = self.leading.as_ref().map(|leading| leading.stage);
        if matches!(stage, Some(Stage::Adopting { from, .. }) if from == member) {
            self.fetch(member, self.end(), effects);
        }
    }

    /// Adopts nothing more from `member` in this epoch, and looks whether another member has more.
    fn look_elsewhere(&mut self, member: MemberId) {
        let leading = self.leading_mut();
        leading.passed_over.insert(member);
        leading.stage = Stage::Fencing;
    }

    /// The log of `member` has nothing that this epoch needs. `member` does not count as complete any more either: where its log holds
    /// other entries than this one, they will be cut off.
    fn pass_over(&mut self, member: MemberId) {
        self.leading_mut().complete.retain(|store| store.member != member);
        self.look_elsewhere(member);
    }

    /// The member whose log is being adopted may have ended, or be late.
    pub(super) fn go_on_adopting(&mut self, now: Moment, effects: &mut Effects) {
        let Some(leading) = &self.leading else { return };
        let Stage::Adopting { from, since } = leading.stage else { return };
        let is_lost = leading.peers.get(&from).is_none_or(|peer| peer.is_gone);
        // A member whose own log is torn needs what a complete member holds. Otherwise no single log is needed.
        let is_needed = self.is_suspect && leading.complete.iter().any(|store| store.member == from);
        let waited_ms = now.ms_since(since);
        let is_late = waited_ms >= self.settings.silence_ms;
        let is_stuck = waited_ms >= self.settings.stall_ms;
        if !self.is_suspect && !self.hears_all() {
            // Every complete log will do.
            if is_lost || is_late {
                self.append_epoch_start(now, effects);
            }
        } else if is_lost && (is_late || !is_needed) {
            self.leading_mut().stage = Stage::Fencing;
        } else if is_stuck && is_needed {
            let reason = format!("member {from} has a longer log, and does not hand it on");
            self.step_down(now, &reason, effects);
        } else if is_stuck {
            self.pass_over(from);
        }
    }

    /// Entries of a longer log, to be adopted.
    pub(super) fn on_fetched(
        &mut self,
        now: Moment,
        sender: MemberId,
        previous: LogPoint,
        entries: Vec<Entry>,
        effects: &mut Effects,
    ) {
        let Some(leading) = &self.leading else { return };
        if !matches!(leading.stage, Stage::Adopting { from, .. } if from == sender) {
            return;
        }
        let epoch = leading.epoch;
        if !self.tail.holds(previous) {
            return;
        }
        let its_end = leading.peers.get(&sender).and_then(|peer| peer.end);
        let is_complete = self.is_complete_member(sender);
        let was_empty = entries.is_empty();
        let mut at = previous;
        let mut fresh = Vec::new();
        for entry in entries {
            let follows = entry.id.sn.0 == at.id.sn.0 + 1
                && entry.previous_chain == at.chain
                && entry.id.epoch >= at.id.epoch
                && entry.id.epoch < epoch;
            if !follows {
                return;
            }
            at = entry.point();
            if !fresh.is_empty() || !self.tail.holds(at) {
                fresh.push(entry);
            }
        }
        if let Some(first) = fresh.first() {
            let (kept, mine) = (Sn(first.id.sn.0 - 1), self.end());
            if kept < self.committed && is_complete {
                let reason = format!(
                    "entries up to {} have committed here, member {sender} has others",
                    self.committed
                );
                return self.lead_no_more(now, reason, effects);
            }
            // Another member, or the view, knows that what this log holds there has committed; or its log parts from this one.
            if kept < self.certain() || !is_complete && kept < mine.id.sn {
                return self.pass_over(sender);
            }
            let is_all = match self.hears_all() {
                true => its_end.is_none_or(|end| end.id <= at.id),
                false => self.longer_log().is_none_or(|(from, end)| from == sender && end == at),
            };
            let has_more = fresh.iter().any(|entry| entry.kind != EntryKind::EpochStart) || !is_all;
            let would_lose = self.tail.last_beside_starts(kept).id.sn > kept;
            if !has_more && (would_lose || at.id < mine.id || !is_complete) {
                // Nothing but beginnings of epochs: in the place of more than that, or of later ones, or of no account.
                return self.pass_over(sender);
            }
            if kept < mine.id.sn {
                self.cut(kept, effects);
            }
        }
        for entry in fresh {
            self.push(entry, effects);
        }
        if self.hears_all() {
            if was_empty || its_end.is_none_or(|end| end.id <= self.end().id) {
                return self.look_elsewhere(sender);
            }
            self.leading_mut().stage = Stage::Adopting { from: sender, since: now };
            return self.fetch(sender, self.end(), effects);
        }
        // Another may have answered meanwhile, with a log as long as the sender's or longer: the rest may come from that one.
        let rest = self.longer_log().filter(|(_, end)| end.id > self.end().id && !was_empty);
        let Some((from, _)) = rest else { return self.append_epoch_start(now, effects) };
        self.leading_mut().stage = Stage::Adopting { from, since: now };
        self.fetch(from, self.end(), effects);
    }

    /// The other log does not go on from this entry. The log of a complete member is tried from the last entry that
    /// has committed there, then from the entry that has committed here for longest.
    pub(super) fn on_fetch_failed(
        &mut self,
        now: Moment,
        sender: MemberId,
        after: LogPoint,
        committed: LogPoint,
        effects: &mut Effects,
    ) {
        let Some(leading) = &self.leading else { return };
        if !matches!(leading.stage, Stage::Adopting { from, .. } if from == sender) {
            return;
        }
        let (base, is_complete) = (self.tail.base(), self.is_complete_member(sender));
        let is_earlier = |point: &LogPoint| is_complete && point.id < after.id && self.tail.holds(*point);
        if let Some(earlier) = [committed, base].into_iter().find(is_earlier) {
            self.fetch(sender, earlier, effects);
        } else if self.is_suspect && is_complete {
            let reason =
                format!("member {sender} has a longer log, and nothing of it joins this one after {base}");
            self.step_down(now, &reason, effects);
        } else {
            // Nothing common in memory: this log is complete without it.
            self.pass_over(sender);
        }
    }
}
