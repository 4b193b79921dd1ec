//! The evidence of other members' stores about the group's history, and the acts that it forbids to this member.
//!
//! The coordinator may have been restored from a backup, and so may a store. A store cannot have promised an epoch that the
//! coordinator never knew, nor know an entry to have committed that never did. So a member claims nothing while another
//! shows it more than the view or its own log tells, and gives up nothing that has committed here but for an unclean election.

use super::Member;
use crate::{Effects, Known, broken::Broken, peer::Peer};
use base::{Epoch, GroupView, LogPoint, MemberId, MemberStore, Moment, Sn};
use std::collections::BTreeMap;

/// The evidence heard of others in this life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Evidence {
    /// The latest proof of each member's store.
    known: BTreeMap<MemberId, (MemberStore, Known)>,
    /// In this life something has committed here in the epoch of an active that this member followed, or in its own; or an
    /// operator's word stands for that. So the view that it knows has been that of a living group. To hear somebody who claims is
    /// not enough: that one may itself rest on an older view.
    pub has_taken_part: bool,
    /// An operator's order stands for the members that are silent, in all epochs that this member claims before it has taken part.
    pub is_excused: bool,
    /// This member leads and had not taken part before: that nothing committed without it rests on the coordinator's word.
    pub leads_on_view_alone: bool,
    /// The active has shown other entries in the place of some that have committed here.
    pub contradiction: Option<String>,
    /// The coordinator tells an older view than it did: its version, and since when it does.
    pub older: Option<Older>,
    /// For each other member, the end of its log for which this member has given an epoch up in this life. It does so only once for
    /// the same end.
    pub gave_way_to: BTreeMap<MemberId, LogPoint>,
    /// The first entry of the last epoch that was given up so. A log that ends with it holds nothing that this one lacks.
    pub given_up: Option<LogPoint>,
    /// An operator has ordered a repair of the view, and the others are asked first.
    pub inquiry: Option<super::repair::Inquiry>,
}

/// A view of the coordinator that is older than the one this member knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Older {
    pub view: GroupView,
    pub version: u64,
    pub since: Moment,
    /// It was read again after a while and is still older: no answer to an early question that came late.
    pub is_sure: bool,
}

impl Evidence {
    pub fn known(&self) -> &BTreeMap<MemberId, (MemberStore, Known)> {
        &self.known
    }

    /// This very store was heard last of its member, and not one that has taken its place.
    pub fn is_heard(&self, store: MemberStore) -> bool {
        self.known.get(&store.member).is_some_and(|(heard, _)| *heard == store)
    }
}

impl Member {
    /// The proof of this store.
    pub(super) fn own_known(&self) -> Known {
        Known { promised: self.promised, end: self.durable, committed: self.committed_point() }
    }

    /// Takes in the proof of another store. A late message takes nothing back: neither a promise nor a commit can be
    /// undone, and a store does not return to an earlier generation.
    pub(super) fn heard_known(&mut self, from: MemberStore, mut known: Known, effects: &mut Effects) {
        if let Some((store, before)) = self.evidence.known.get(&from.member) {
            if store.generation > from.generation {
                return;
            }
            if *store == from {
                known.promised = known.promised.max(before.promised);
                known.committed = std::cmp::max_by_key(known.committed, before.committed, |point| point.id);
            }
        }
        self.evidence.known.insert(from.member, (from, known));
        let seen = self.view().map_or(Epoch(0), |view| view.epoch);
        if known.promised > seen {
            effects.outgoing.read_view = true;
        }
    }

    /// A message of an active or of its follower has told where the log stands; the promise stays what it was, at least.
    pub(super) fn heard_log(&mut self, from: MemberStore, epoch: Epoch, end: LogPoint, committed: LogPoint) {
        let entry = self.evidence.known.entry(from.member).or_insert((from, Known::default()));
        let before = if entry.0 == from { entry.1 } else { Known::default() };
        let promised = before.promised.max(epoch);
        let committed = std::cmp::max_by_key(committed, before.committed, |point| point.id);
        *entry = (from, Known { promised, end, committed });
    }

    /// Why this member must not claim, if another has proved that the view or this log is not all there is. Entries of an
    /// epoch before the last unclean election were given up by order.
    pub(super) fn evidence_against_claim(&self) -> Option<String> {
        if self.settings.breaks(Broken::IgnoresEvidence) {
            return None;
        }
        let view = self.view()?;
        let others = || self.evidence.known.iter().filter(|(member, _)| self.is_member(**member));
        if let Some((member, (_, known))) = others().find(|(_, (_, known))| known.promised > view.epoch) {
            return Some(format!(
                "member {member} has promised epoch {}, and the coordinator knows only {}: it has lost history",
                known.promised, view.epoch
            ));
        }
        let (member, (_, known)) = others().find(|(_, (_, known))| self.lacks_committed(known.committed))?;
        Some(format!(
            "member {member} knows that {} has committed, and the log of member {} does not hold it: it ends at {}",
            known.committed,
            self.me.member,
            self.end()
        ))
    }

    /// Whether this log lacks what another member knows to have committed, and no unclean election has given that up.
    pub(super) fn lacks_committed(&self, committed: LogPoint) -> bool {
        let is_given_up = self.view().is_some_and(|view| committed.id.epoch < view.unclean_epoch);
        !is_given_up && !self.may_hold(committed) && !self.settings.breaks(Broken::IgnoresEvidence)
    }

    /// Whether `member` has told in this life of a committed entry that this log lacks.
    pub(super) fn has_shown_commit(&self, member: MemberId) -> bool {
        self.evidence.known.get(&member).is_some_and(|(_, known)| self.lacks_committed(known.committed))
    }

    /// Whether `member` has told in this life of entries that this log lacks.
    pub(super) fn has_shown_more(&self, member: MemberId) -> bool {
        self.evidence.known.get(&member).is_some_and(|(_, known)| !self.may_hold(known.end))
    }

    /// Whether this log holds the entry. Before the part in memory, only epoch and number can be compared.
    pub(super) fn may_hold(&self, point: LogPoint) -> bool {
        let base = self.tail.base();
        if point.id.sn < base.id.sn { point.id.epoch <= base.id.epoch } else { self.tail.holds(point) }
    }

    /// With a minimum of one a single member commits, so the view alone must not be believed by the first claimant after a
    /// start: it may be older than what a silent member holds.
    pub(super) fn lacks_witnesses(&self) -> bool {
        let Some(view) = self.view() else { return true };
        if view.in_sync_min > 1
            || self.evidence.has_taken_part
            || self.evidence.is_excused
            || self.settings.breaks(Broken::LonelyFirstClaim)
        {
            return false;
        }
        let is_heard = |member: &MemberId| self.evidence.known.contains_key(member);
        view.members.iter().any(|member| *member != self.me.member && !is_heard(member))
    }

    /// Whether this member makes a first claim. The view that it leads by may be an older one. Members that this view calls complete
    /// may lack entries, and other members may hold them. So this member hears every member that runs, and adopts from any of them the
    /// entries that go on from its own log.
    pub(super) fn hears_all(&self) -> bool {
        self.evidence.leads_on_view_alone && !self.settings.breaks(Broken::FirstClaimHearsTheViewOnly)
    }

    /// Whether a first claim waits before it begins its epoch. If the view is an older one, an active that led by a later view has
    /// committed entries on as few members as the minimum allows, and perhaps all of those are silent now. The first entry of an epoch
    /// would part this log from theirs. So as many others must be silent no more, or an operator's order stands for them.
    pub(super) fn waits_for_company(&self) -> bool {
        let (Some(leading), Some(view)) = (&self.leading, self.view()) else { return false };
        let has_spoken = |(member, peer): &(&MemberId, &Peer)| {
            peer.has_promised && !peer.is_gone || self.has_no_more(**member)
        };
        let silent = leading.peers.iter().filter(|peer| !has_spoken(peer)).count();
        let promised = leading.peers.values().filter(|peer| peer.has_promised && !peer.is_gone).count();
        let minimum = view.in_sync_min as usize;
        let is_enough = 1 + promised >= minimum && self.settings.breaks(Broken::FirstClaimInAnyCompany);
        self.hears_all()
            && !leading.is_excused
            && !self.evidence.is_excused
            && silent >= minimum
            && !is_enough
    }

    /// The last entry that is certain to have committed, of those that this log holds: by its own word, that of the view, or that of
    /// another member.
    pub(super) fn certain(&self) -> Sn {
        let hint = self.view().map(|view| view.commit_hint);
        let hinted = hint.filter(|hint| self.tail.point_at(hint.sn).is_some_and(|point| point.id == *hint));
        let heard = self.evidence.known.values().map(|(_, known)| known.committed);
        let held = heard.filter(|point| self.tail.holds(*point)).map(|point| point.id.sn);
        held.chain(hinted.map(|hint| hint.sn)).fold(self.committed, Sn::max)
    }

    /// Whether `member` has told in this life where its log ends, and this log holds that entry: then it holds nothing more.
    fn has_no_more(&self, member: MemberId) -> bool {
        self.evidence.known.get(&member).is_some_and(|(_, known)| self.may_hold(known.end))
    }

    /// Whether so many other members are silent that reads here are not certain. The view that this claim is based on may be an
    /// older one. An active that led by a later view, with a minimum of k, committed entries only on k members. If this member is
    /// none of those k, and k or more others are silent, then perhaps all of the k are silent, and this log may lack what they hold. A
    /// member that shows entries that this log lacks does not count as heard.
    pub(super) fn lacks_witnesses_to_read(&self) -> bool {
        let leads_alone = self.evidence.leads_on_view_alone && !self.evidence.is_excused;
        let Some(view) = self.view().filter(|_| leads_alone) else { return false };
        let others = || view.members.iter().filter(|member| **member != self.me.member);
        let silent = others().filter(|member| !self.has_no_more(**member)).count();
        silent >= view.in_sync_min as usize && !self.settings.breaks(Broken::LonelyFirstClaim)
    }

    /// The active holds other entries where some have committed here. Nothing here is given up on its word alone; nothing of
    /// its is taken either. Its answer to `Mismatch` says whether an unclean election explains it.
    pub(super) fn contradict(&mut self, reason: String, effects: &mut Effects) -> bool {
        if self.settings.breaks(Broken::GivesUpOnAnyWord) {
            self.distrust(reason, effects);
            return true;
        }
        self.evidence.contradiction = Some(reason);
        false
    }

    /// A view older than the known one was read. Answers to early questions come late, so it is read again before it is
    /// believed that the coordinator has lost history.
    pub(super) fn saw_older_view(&mut self, now: Moment, view: GroupView, version: u64) {
        let since = self.evidence.older.as_ref().map_or(now, |older| older.since);
        let is_sure = now.ms_since(since) >= 2 * self.settings.reread_ms;
        if self.leading.is_some() && self.retry_at.is_none() && self.pending.is_none() {
            self.retry_at = Some(now.plus_ms(self.settings.reread_ms));
        }
        self.evidence.older = Some(Older { view, version, since, is_sure });
    }

    /// Whether an active was heard of late. A leader that has ended is remembered until another one begins.
    fn is_led(&self, now: Moment) -> bool {
        let late_ms = 2 * self.view().map_or(0, |view| view.lease_ms).max(self.settings.lease_ms);
        self.following.leader.is_some()
            && self.following.heard_at.is_some_and(|at| now.ms_since(at) < late_ms)
    }

    /// One sentence for people: what is wrong, and what to do.
    pub(super) fn trouble(&self, now: Moment) -> Option<String> {
        let view = self.view()?;
        let repair = "Bring back a newer state of the coordinator, or let `clover admin group repair` write its view anew from \
                      what the members hold";
        if let Some(older) = self.evidence.older.as_ref().filter(|older| older.is_sure) {
            let known = self.view.as_ref().map_or(0, |(_, version)| *version);
            return Some(format!(
                "the coordinator has gone back to version {} of the view, of epoch {}; this member knows version {known}, of \
                 epoch {}. {repair}",
                older.version, older.view.epoch, view.epoch
            ));
        }
        if self.promised > view.epoch {
            return Some(format!(
                "epoch {} was promised here, and the coordinator knows only {}: it has lost history. {repair}",
                self.promised, view.epoch
            ));
        }
        if let Some(reason) = &self.evidence.contradiction {
            return Some(format!(
                "{reason}, and no unclean election explains it. Nothing was given up. Find out which of the two was restored \
                 from a copy, and discard that one"
            ));
        }
        if self.leading.is_some() && self.lacks_witnesses_to_read() {
            return Some(format!(
                "this member leads, and answers nothing: it has just begun, and so many others are silent that they may hold more \
                 than it does. Start another one. If they are gone for good, `clover admin group unclean-elect {}` lets this \
                 one answer without them",
                self.me.member
            ));
        }
        let has_begun = self.leading.as_ref().is_some_and(|leading| leading.epoch_start > Sn(0));
        let leads = self.leading.is_some() && (has_begun || !self.is_suspect);
        if leads || !view.is_eligible(self.me) || self.is_led(now) {
            return None;
        }
        if !self.holds_committed(view.commit_hint) {
            return Some(format!(
                "the log ends at {} and lacks {}, which has committed: this member waits for another one",
                self.end(),
                view.commit_hint
            ));
        }
        if let Some(reason) = self.evidence_against_claim() {
            return Some(format!("{reason}. It waits for that member. {repair}"));
        }
        if self.is_suspect {
            let others: Vec<String> = view
                .in_sync
                .iter()
                .chain(&view.exiles)
                .filter(|store| store.member != self.me.member)
                .map(|store| store.member.to_string())
                .collect();
            return (!others.is_empty()).then(|| {
                format!(
                    "the end of the log is torn, and what is missing may have been acknowledged: the first claim waits until all \
                     of {} answer. If one of them is gone for good, `clover admin group unclean-elect {}` lets it lead \
                     without",
                    others.join(", "),
                    self.me.member
                )
            });
        }
        self.lacks_witnesses().then(|| {
            let silent: Vec<String> = view
                .members
                .iter()
                .filter(|member| **member != self.me.member && !self.evidence.known.contains_key(member))
                .map(|member| member.to_string())
                .collect();
            format!(
                "with a minimum of 1 the first claim after a start waits until all members were heard, and {} are silent: \
                 they may hold more than this member. `clover admin group unclean-elect {}` lets it lead without them",
                silent.join(", "),
                self.me.member
            )
        })
    }
}
