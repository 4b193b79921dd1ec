//! One server's membership in one replica group.

use crate::{ChangeFailed, Effects, EpochStart, IdSteps, Input, Proof, Proposal, Role, ViewChange, commit};
use base::{Entry, EntryKind, Epoch, GroupView, LogPoint, MemberId, MemberStore, Moment, Sn};
use std::collections::BTreeMap;

/// Numbers of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How soon a change of the view with an unknown answer is sent again.
    pub change_retry_ms: u64,
    /// How soon the view is read again after somebody else changed it.
    pub reread_ms: u64,
    pub id_steps: IdSteps,
}

impl Default for Settings {
    fn default() -> Self {
        Self { change_retry_ms: 100, reread_ms: 1_000, id_steps: IdSteps::default() }
    }
}

/// What the journal remembers of this member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub promised: Epoch,
    /// The last entry of the log.
    pub end: LogPoint,
    pub known_commit: Sn,
    /// Starts of the store, this one included: names this life's changes of the view.
    pub boot: u64,
}

/// One server's membership in one replica group.
///
/// Its methods are of three kinds: [`Member::step`] takes what happened and returns what must be done,
/// [`Member::deadline`] says when to come back if nothing happens, and questions look at it. After each step
/// the object is clean: [`Member::is_consistent`] holds.
///
/// The log may run ahead of the disk, commits may not: an entry commits when every member of the confirmed
/// in-sync set, and of a set that is being changed to, has proved it durable.
pub struct Member {
    settings: Settings,
    me: MemberStore,
    boot: u64,
    /// Changes of the view asked for in this life.
    change_count: u64,
    role: Role,
    /// The view as last confirmed by the coordinator, with its version.
    view: Option<(GroupView, u64)>,
    /// A change of the view under way. Until its answer is known both sets are required.
    pending: Option<ViewChange>,
    /// Highest epoch promised, durable. What is being made durable is in the effects only.
    promised: Epoch,
    /// Last entry made, durable or not.
    end: LogPoint,
    /// Highest entry proved durable in this epoch, by member. Holds the member itself as well.
    durable: BTreeMap<MemberId, Sn>,
    committed: Sn,
    /// The first entry of the own epoch; nothing is served until it has committed.
    epoch_start: Sn,
    /// When to send the pending change again or to read the view again.
    retry_at: Option<Moment>,
}

impl Member {
    pub fn new(settings: Settings, me: MemberStore, restored: Restored, _now: Moment) -> Self {
        Self {
            settings,
            me,
            boot: restored.boot,
            change_count: 0,
            role: Role::Following,
            view: None,
            pending: None,
            promised: restored.promised,
            end: restored.end,
            durable: BTreeMap::new(),
            // The journal's bound is lazy; the whole log is committed anew by the first entry of an epoch.
            committed: restored.known_commit.min(restored.end.id.sn),
            epoch_start: Sn(0),
            retry_at: None,
        }
    }

    /// Takes one input; returns everything the world must now do.
    pub fn step(&mut self, now: Moment, input: Input) -> Effects {
        let mut effects = Effects::default();
        let role_before = self.role.clone();
        match input {
            Input::Propose(proposals) => self.on_propose(proposals, &mut effects),
            Input::Durable(proof) => self.on_durable(proof, &mut effects),
            Input::View { view, version } => self.on_view(view, version, &mut effects),
            Input::Changed(answer) => self.on_changed(now, answer, &mut effects),
            Input::DiskFailed => self.stop("the journal has failed; check the disk".into()),
            Input::StepDown => self.stop("asked to step down".into()),
            Input::Tick => self.on_tick(now, &mut effects),
            _ => {}
        }
        if self.role != role_before {
            effects.outgoing.role = Some(self.role.clone());
        }
        debug_assert_eq!(self.is_consistent(), Ok(()));
        effects
    }

    /// When to call `step(now, Input::Tick)` if nothing else happens first.
    pub fn deadline(&self) -> Option<Moment> {
        self.retry_at
    }

    pub fn role(&self) -> &Role {
        &self.role
    }

    /// Entries up to here have committed.
    pub fn committed(&self) -> Sn {
        self.committed
    }

    /// The last entry of the log, durable or not.
    pub fn end(&self) -> LogPoint {
        self.end
    }

    /// The highest epoch promised, durable.
    pub fn promised(&self) -> Epoch {
        self.promised
    }

    /// The complete check, for debug builds and simulators.
    pub fn is_consistent(&self) -> Result<(), &'static str> {
        if self.committed > self.end.id.sn {
            return Err("nothing commits beyond the end of the log");
        }
        if let Role::Starting { epoch } | Role::Serving { epoch } = self.role {
            let Some((view, _)) = &self.view else {
                return Err("whoever leads has seen the view that says so");
            };
            if view.epoch != epoch || view.active != Some(self.me.member) {
                return Err("whoever leads is the active of the confirmed view");
            }
            if self.promised != epoch {
                return Err("whoever leads has promised its own epoch and no later one");
            }
        }
        if matches!(self.role, Role::Serving { .. }) && self.committed < self.epoch_start {
            return Err("nothing is served before the epoch's first entry has committed");
        }
        if matches!(self.role, Role::Claiming) && self.pending.is_none() && self.view.is_none() {
            return Err("a claim rests on a view");
        }
        Ok(())
    }

    fn on_view(&mut self, view: GroupView, version: u64, effects: &mut Effects) {
        if matches!(self.role, Role::Stopped { .. }) || self.pending.is_some() {
            return; // The answer to the pending change will say more than this view can.
        }
        if let Role::Starting { epoch } | Role::Serving { epoch } = self.role {
            if view.epoch == epoch && view.active == Some(self.me.member) {
                self.view = Some((view, version));
            } else {
                self.stop(format!("epoch {epoch} was followed by epoch {}, which another leads", view.epoch));
            }
            return;
        }
        if let Err(reason) = self.may_claim(&view) {
            self.stop(reason);
            return;
        }
        let seen = view.epoch;
        self.view = Some((view, version));
        if self.promised < seen {
            effects.promise = Some(seen); // The claim follows when this is durable.
        } else {
            self.claim(effects);
        }
    }

    /// Section 4, step 1: whether this member's log may become the group's.
    fn may_claim(&self, view: &GroupView) -> Result<(), String> {
        if view.members != [self.me.member] {
            return Err(format!(
                "the group has {} members; groups of several are not served yet",
                view.members.len()
            ));
        }
        if self.promised > view.epoch {
            return Err(format!(
                "epoch {} was promised but the coordinator knows only {}: it has lost history. Restore it, \
                 or elect by hand",
                self.promised, view.epoch
            ));
        }
        if !view.is_eligible(self.me) {
            return Err(format!(
                "member {} with store generation {} is not among the complete ones; it must be renewed from \
                 another member",
                self.me.member, self.me.generation
            ));
        }
        if view.commit_hint.sn > self.end.id.sn {
            return Err(format!(
                "the log ends at {} but {} has committed: entries are missing. Restore the journal",
                self.end.id, view.commit_hint
            ));
        }
        Ok(())
    }

    /// Section 4, step 2. A member that is alone has granted no lease, so there is none to wait for.
    fn claim(&mut self, effects: &mut Effects) {
        let (view, version) = self.view.as_ref().expect("a claim rests on a view");
        let mut next = view.clone();
        next.epoch = Epoch(view.epoch.0 + 1);
        next.active = Some(self.me.member);
        next.in_sync = if view.in_sync.contains(&self.me) {
            // The dead active must not be waited for; finding oneself named means that there is none.
            let old = view.active.filter(|active| *active != self.me.member);
            view.in_sync.iter().copied().filter(|store| Some(store.member) != old).collect()
        } else {
            vec![self.me]
        };
        next.exiles = if (next.in_sync.len() as u32) < view.in_sync_min {
            let mut complete: Vec<_> = view.exiles.iter().chain(&view.in_sync).copied().collect();
            complete.retain(|store| !next.in_sync.contains(store));
            complete.sort();
            complete.dedup();
            complete
        } else {
            Vec::new()
        };
        if next.members == [self.me.member] {
            // What is in the log of the only member is durable on all of them.
            next.commit_hint = next.commit_hint.max(self.end.id);
        }
        self.change_count += 1;
        next.change_id = u64::from(self.me.member.0) << 48
            | (self.boot & 0xFF_FFFF) << 24
            | (self.change_count & 0xFF_FFFF);
        let change = ViewChange { expected_version: *version, view: next, requires: Vec::new() };
        self.pending = Some(change.clone());
        effects.change = Some(change);
        self.role = Role::Claiming;
    }

    fn on_changed(&mut self, now: Moment, answer: Result<u64, ChangeFailed>, effects: &mut Effects) {
        if self.pending.is_none() || matches!(self.role, Role::Stopped { .. }) {
            return;
        }
        match answer {
            Ok(version) => {
                let change = self.pending.take().expect("tested above");
                self.retry_at = None;
                effects.promise = Some(change.view.epoch);
                self.view = Some((change.view, version));
            }
            Err(ChangeFailed::BadVersion) => {
                // Either another changed it, or an earlier copy of this very change arrived after all: the
                // change's id in the view read next tells, and a claim never confirmed is made anew.
                self.pending = None;
                self.role = Role::Following;
                self.retry_at = Some(now.plus_ms(self.settings.reread_ms));
            }
            Err(ChangeFailed::Unknown) => {
                self.retry_at = Some(now.plus_ms(self.settings.change_retry_ms));
            }
        }
    }

    fn on_tick(&mut self, now: Moment, effects: &mut Effects) {
        if self.retry_at.is_none_or(|at| now < at) {
            return;
        }
        self.retry_at = None;
        match &self.pending {
            // Identical: same version, same id. Reading the old version would decide nothing.
            Some(change) => effects.change = Some(change.clone()),
            None => effects.outgoing.read_view = true,
        }
    }

    fn on_durable(&mut self, proof: Proof, effects: &mut Effects) {
        if let Some(promised) = proof.promised {
            self.promised = self.promised.max(promised);
            self.on_promised(promised, effects);
        }
        if let Some(appended) = proof.appended {
            self.on_appended(appended);
        }
        let before = self.committed;
        self.advance_commit();
        if self.committed > before {
            effects.outgoing.committed = Some(self.committed);
        }
        if let Role::Starting { epoch } = self.role
            && self.committed >= self.epoch_start
        {
            self.role = Role::Serving { epoch };
        }
    }

    fn on_promised(&mut self, promised: Epoch, effects: &mut Effects) {
        let Some((view, _)) = &self.view else { return };
        match self.role {
            Role::Following if self.pending.is_none() && view.epoch == promised => self.claim(effects),
            Role::Claiming if self.pending.is_none() && view.epoch == promised => self.start(effects),
            _ => {}
        }
    }

    /// Section 4, step 4, with nobody to adopt from: the own log is the group's.
    fn start(&mut self, effects: &mut Effects) {
        let epoch = self.promised;
        let payload = EpochStart { epoch, previous: self.end, id_steps: self.settings.id_steps }.encode();
        self.role = Role::Starting { epoch };
        self.durable.clear();
        self.append(epoch, Proposal { kind: EntryKind::EpochStart, payload }, effects);
        self.epoch_start = self.end.id.sn;
    }

    fn on_propose(&mut self, proposals: Vec<Proposal>, effects: &mut Effects) {
        let Role::Serving { epoch } = self.role else {
            effects.outgoing.refused = proposals;
            return;
        };
        effects.entries.reserve(proposals.len());
        for proposal in proposals {
            self.append(epoch, proposal, effects);
        }
    }

    fn append(&mut self, epoch: Epoch, proposal: Proposal, effects: &mut Effects) {
        let entry = Entry::after(self.end, epoch, proposal.kind, proposal.payload);
        self.end = entry.point();
        effects.appended = Some(self.end);
        effects.entries.push(entry);
    }

    fn on_appended(&mut self, point: LogPoint) {
        let durable = self.durable.entry(self.me.member).or_default();
        assert!(*durable < point.id.sn, "entries become durable in their order");
        assert!(point.id.sn <= self.end.id.sn, "only what was appended becomes durable");
        *durable = point.id.sn;
    }

    /// Section 3: everything durable on every required member has committed, if enough are in sync. The
    /// *confirmed* set is counted; counting a set that is being changed to loses entries.
    fn advance_commit(&mut self) {
        if !matches!(self.role, Role::Starting { .. } | Role::Serving { .. }) {
            return;
        }
        let Some((view, _)) = &self.view else { return };
        let pending = self.pending.as_ref().map(|change| &change.view);
        if let Some(sn) = commit::commit_point(view, pending, &self.durable) {
            self.committed = self.committed.max(sn);
        }
    }

    fn stop(&mut self, reason: String) {
        if !matches!(self.role, Role::Stopped { .. }) {
            self.role = Role::Stopped { reason };
            self.retry_at = None;
        }
    }
}

#[cfg(test)]
mod tests;
