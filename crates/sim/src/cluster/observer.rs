//! An outside observer, who holds all that is seen of the cluster and its clients against the rules.

use super::{
    client::{CallKey, Pending},
    happening::Kind,
    reference::Reference,
    request::Answer,
    server::Waiting,
};
use crate::{
    check,
    host::{Happened, Host},
    truth::{Broken, Truth},
};
use base::{Epoch, GroupView, Level, LogPoint, MemberLife, MemberStore, Sn};
use namespace::Reply;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Observer {
    pub truth: Truth,
    pub reference: Reference,
    /// Reads that were answered below the minimum.
    pub certain: u64,
    /// Reads that were held against what had committed.
    pub judged: u64,
    /// Reads that members answered which did not lead.
    pub by_standbys: u64,
    /// The processes that have told clients that their calls have changed nothing.
    pub refused: BTreeMap<CallKey, MemberLife>,
    /// The level of the group.
    level: Level,
    pub changes: check::changes_have_causes::Changes,
    /// Reads that were older than promised elsewhere, because a clock stood.
    pub stale: u64,
    /// One line an event, with the time.
    pub transcript: Vec<String>,
    /// The digest of the namespace after each entry, on any member.
    pub digests: BTreeMap<LogPoint, u64>,
    /// The call that each entry belongs to.
    pub calls: BTreeMap<LogPoint, CallKey>,
    /// The entry in which each call has committed.
    pub effects: BTreeMap<CallKey, Sn>,
    /// Entries of `truth` that were looked at.
    seen: u64,
    /// The inodes made for each call, in whatever tail.
    pub inodes: BTreeMap<u64, CallKey>,
    /// The newest entry that any answered call rested on.
    pub answered: Sn,
    pub answers: u64,
    pub writes_answered: u64,
    /// Unclean elections, and what they were allowed to lose: calls, and entries.
    pub unclean: u64,
    pub lost: BTreeSet<CallKey>,
    pub lost_points: BTreeSet<LogPoint>,
    /// The longest that a call took, and the longest time without any answer.
    pub slowest_ms: u64,
    pub last_answer_ns: u64,
    pub longest_gap_ms: u64,
    /// Disks were wiped: copies may be fewer than the rules demand until members are renewed.
    pub disks_lost: bool,
    /// Stores that were put back from a copy.
    pub restored: BTreeSet<MemberStore>,
}

impl Observer {
    pub fn of_group_at(level: Level) -> Self {
        Self { level, ..Self::default() }
    }

    pub fn note(&mut self, now_ns: u64, line: String) {
        self.transcript.push(format!("{:>10.3} ms  {line}", now_ns as f64 / 1e6));
    }

    /// # Errors
    /// Those of [`Truth::observe`], or of the rules for calls whose entries have committed with this step.
    pub fn observe(&mut self, host: &Host, happened: &Happened) -> Result<(), Broken> {
        self.truth.observe(host, happened)?;
        self.take_in(host)
    }

    /// Follows the truth, which may have grown.
    fn take_in(&mut self, host: &Host) -> Result<(), Broken> {
        while self.seen < self.truth.last().0 {
            self.seen += 1;
            let point = self.truth.point(Sn(self.seen)).expect("within what has committed");
            let entry = host.disk.entry(point.id.sn).expect("whoever says that it has committed holds it");
            self.reference.committed(entry.clone())?;
            // An elected member may have held some of what was given up, and brings it back.
            self.lost_points.remove(&point);
            if let Some(key) = self.calls.get(&point) {
                self.lost.remove(key);
                let refuser = self.refused.get(key).filter(|_| self.level >= Level::NOTED_ANSWERS);
                check::refused_calls_have_no_effect::check(refuser, *key, point.id)?;
                check::each_call_has_one_effect::check(&mut self.effects, *key, point.id.sn)?;
            }
        }
        Ok(())
    }

    /// # Errors
    /// The plan gives out an inode id that was given out before, or leads to another state than other members had at
    /// this entry.
    pub fn planned(
        &mut self,
        key: CallKey,
        waiting: &Waiting,
        digest: u64,
        planner: MemberLife,
    ) -> Result<(), Broken> {
        let refuser = self.refused.get(&key).filter(|refuser| **refuser == planner);
        check::refused_calls_have_no_effect::check(refuser, key, waiting.observed.id)?;
        self.calls.insert(waiting.observed, key);
        if let Answer::Reply(Reply::Created(inode)) = &waiting.answer {
            check::ids_are_never_used_again::check(&mut self.inodes, inode.0, key)?;
        }
        self.applied(waiting.observed, digest)
    }

    /// # Errors
    /// Another member came to another state at this entry.
    pub fn applied(&mut self, at: LogPoint, digest: u64) -> Result<(), Broken> {
        check::members_equal_at_equal_sn::check(&mut self.digests, at, digest)
    }

    /// # Errors
    /// The answer rests on entries that have not committed or are older than what the caller had seen, or is of a
    /// change that has not committed.
    pub fn answered(
        &mut self,
        now_ns: u64,
        call: &Pending,
        answer: &Answer,
        rests_on: LogPoint,
        kind: Kind,
        is_doubtful: bool,
    ) -> Result<(), Broken> {
        // An answer that was on its way when what it rests on was given up.
        let is_given_up = self.lost_points.contains(&rests_on) || self.lost.contains(&call.key);
        if is_doubtful && rests_on.id.sn < call.floor {
            // Nothing is promised of reads where a clock may stand and the coordinator is not asked, but that they tell what was once so.
            self.stale += 1;
            let at_any_time = Pending { floor: Sn(0), ..call.clone() };
            check::reads_see_what_committed_before::check(&self.truth, &at_any_time, rests_on)?;
        } else if !is_given_up {
            check::reads_see_what_committed_before::check(&self.truth, call, rests_on)?;
            self.answered = self.answered.max(rests_on.id.sn);
        }
        match kind {
            Kind::Read => {}
            Kind::Change => {
                if !is_given_up {
                    check::acknowledged_calls_have_their_effect::check(&self.effects, call, answer)?;
                }
                self.writes_answered += 1;
            }
            Kind::Refusal { by } => {
                self.refused.insert(call.key, by);
                self.writes_answered += 1;
            }
        }
        self.answers += 1;
        self.slowest_ms = self.slowest_ms.max((now_ns - call.begun_ns) / 1_000_000);
        self.longest_gap_ms = self.longest_gap_ms.max((now_ns - self.last_answer_ns) / 1_000_000);
        self.last_answer_ns = now_ns;
        Ok(())
    }

    /// Takes note that an operator lets `host` lead, whatever it lacks. The committed entries up to the returned
    /// number are left. Of the entries that were given up in earlier elections, `host` brings back those that it
    /// knows to have committed.
    ///
    /// # Errors
    /// `host` holds other entries than those that have committed, among those that it calls committed.
    pub fn admit_loss(&mut self, host: &Host) -> Result<Sn, Broken> {
        let truth = &self.truth;
        let durable = host.disk.durable_end().id.sn.min(truth.last());
        let is_shared =
            |sn: &u64| host.disk.point(Sn(*sn)).is_some_and(|point| truth.point(Sn(*sn)) == Some(point));
        let left = Sn((1..=durable.0).rev().find(is_shared).unwrap_or(0));
        self.give_up_behind(left);
        self.unclean += 1;
        let known = host.member.as_ref().map_or(host.disk.known_commit, |member| member.committed());
        self.truth.commit(host, known)?;
        self.take_in(host)?;
        Ok(left)
    }

    /// Epochs behind this view may be claimed again.
    pub fn coordinator_restored(&mut self, view: &GroupView) {
        self.truth.may_lose_a_start = true;
        self.truth.leaders.retain(|epoch, _| *epoch <= view.epoch);
        self.truth.appenders.retain(|epoch, _| *epoch <= view.epoch);
        self.changes = Default::default();
        self.disks_lost = true;
    }

    /// A store has forgotten what it had promised and acknowledged since the copy was made.
    pub fn store_restored(&mut self, store: MemberStore, promised: Epoch) {
        self.truth.may_lose_a_start = true;
        self.truth.promises.insert(store.member, promised);
        self.restored.insert(store);
        self.disks_lost = true;
    }

    /// All stores and the coordinator are what they were when everything up to `left` had committed.
    pub fn all_restored(&mut self, left: Sn, view: &GroupView) {
        let is_epoch_kept = |epoch: &Epoch| *epoch <= view.epoch;
        self.truth.leaders.retain(|epoch, _| is_epoch_kept(epoch));
        self.truth.appenders.retain(|epoch, _| is_epoch_kept(epoch));
        self.changes = Default::default();
        self.give_up_behind(left);
        // The ids of inodes that are gone are given again.
        self.inodes.clear();
    }

    /// Gives up the committed entries behind `left`: their loss is allowed.
    fn give_up_behind(&mut self, left: Sn) {
        for lost in self.truth.committed.split_off(left.0 as usize) {
            self.lost.extend(self.calls.get(&lost).copied());
            self.lost_points.insert(lost);
        }
        self.seen = self.seen.min(left.0);
        self.effects.retain(|_, sn| *sn <= left);
        // The notes about refused calls may be among what is lost.
        self.refused.clear();
        self.reference.forget_behind(left);
        self.answered = self.answered.min(left);
    }

    /// # Errors
    /// The logs contradict each other, a member that may be elected lacks a committed entry, or a committed entry has
    /// too few copies. The text says which.
    pub fn check(&self, hosts: &[&Host], view: &GroupView, is_older: bool) -> Result<(), Broken> {
        check::logs_match::check(hosts)?;
        // An older view, or a restored store, is what the members must not believe.
        let is_believed = |host: &&&Host| !self.restored.contains(&host.store);
        let believed: Vec<&Host> = hosts.iter().filter(is_believed).copied().collect();
        if !is_older {
            check::eligible_is_complete::check(&self.truth, &believed, view)?;
        }
        if self.disks_lost {
            return Ok(());
        }
        check::enough_copies::check(&self.truth, hosts, view)
    }
}
