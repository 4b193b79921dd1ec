//! Steps the member and carries out what it asks for, in order.

use super::{
    Followed, OrderDone, Standing,
    disk_queue::Task,
    inbox::{Event, Patience},
    shared::Shared,
};
use crate::{ended::Ended, partition::tree_lock};
use base::{Epoch, LogPoint, Sn};
use group::{Effects, Input, Member, Outgoing, Proposal, Role, ViewChange};
use std::sync::{Arc, atomic::Ordering};

/// The work that follows once the member's lock is free.
#[derive(Default)]
pub struct After {
    pub committed: Option<Sn>,
    pub change: Option<ViewChange>,
    pub read_view: bool,
    pub has_disk_work: bool,
    /// The epoch in which this member has lost the lead, and why.
    pub lost: Option<(Epoch, String)>,
    /// Set once nothing in this server's memory may be relied on any more.
    pub ended: Option<Ended>,
    pub answers: Vec<(OrderDone, Result<String, String>)>,
}

impl Shared {
    pub fn on_event(self: &Arc<Self>, member: &mut Member, event: Event, after: &mut After) {
        match event {
            Event::Input(input) => self.step(member, input, after),
            Event::Durable(effects, durable) => {
                let mut outgoing = effects.release(durable);
                let proof = outgoing.proof.take();
                self.deliver(outgoing, after);
                if let Some(proof) = proof {
                    self.step(member, Input::Durable(proof), after);
                }
            }
            Event::DiskFailed(reason) => {
                tracing::error!(group = %self.group, reason, "the journal has failed; this member is out");
                self.will_end(after, Ended::Failed(reason));
                self.step(member, Input::DiskFailed, after);
            }
        }
    }

    pub fn step(self: &Arc<Self>, member: &mut Member, input: Input, after: &mut After) {
        let mut effects = member.step(self.env.clock.moment(), input);
        if let Some(change) = effects.take_change() {
            after.change = Some(change);
        }
        for (to, message) in effects.take_messages() {
            self.send(to, message);
        }
        let outgoing = effects.take_outgoing();
        self.deliver(outgoing, after);
        self.to_disk(effects, after);
    }

    fn to_disk(&self, effects: Effects, after: &mut After) {
        if effects.needs_disk() {
            self.disk.push(Task::Write(Box::new(effects)));
            after.has_disk_work = true;
        } else {
            self.deliver(effects.release_at_once(), after);
        }
    }

    /// Delivers the effects of a step, under the member's lock, so that all that is queued here has the order of the
    /// steps.
    fn deliver(&self, outgoing: Outgoing, after: &mut After) {
        debug_assert!(outgoing.proof.is_none(), "a proof goes back into the member");
        if outgoing.rebuild.is_some() {
            // Before the writer is handed anything: the group's next entries do not follow those that it has applied.
            self.is_ending.store(true, Ordering::Release);
        }
        for (to, message) in outgoing.messages {
            self.send(to, message);
        }
        if let Some(sn) = outgoing.committed {
            self.journal.note_commit(sn);
        }
        if let Some(role) = &outgoing.role
            && !matches!(role, Role::Serving { .. })
        {
            // No turn begins from now on, and no read is answered. A member that hands over still tells of commits.
            self.is_serving.store(false, Ordering::Release);
            if !matches!(role, Role::Reading { .. }) {
                self.is_reading.store(false, Ordering::Release);
            }
        }
        if let Some(reason) = outgoing.stepped_down {
            after.lost = Some((self.epoch(), reason));
        }
        if !outgoing.apply.is_empty() || outgoing.role.is_some() || !self.is_serving.load(Ordering::Acquire) {
            if !outgoing.apply.is_empty() || outgoing.role.is_some() || outgoing.committed.is_some() {
                let followed = Followed {
                    apply: outgoing.apply,
                    ahead: outgoing.apply_ahead,
                    committed: outgoing.committed,
                    role: outgoing.role,
                };
                // Once the queue is closed the server is stopping: no thread looks any more.
                self.writer.follow(followed);
            }
        } else if let Some(sn) = outgoing.committed {
            after.committed = after.committed.max(Some(sn));
        }
        after.read_view |= outgoing.read_view;
        for asked in outgoing.read_log {
            self.reader.push(asked);
        }
        for proposal in outgoing.suggested {
            self.writer.append(proposal);
        }
        if outgoing.tail_is_sound {
            self.disk.push(Task::TailIsSound);
            after.has_disk_work = true;
        }
        if let Some(beyond) = outgoing.image_wanted {
            self.image_wanted.fetch_max(beyond.0 + 1, Ordering::AcqRel);
        }
        if outgoing.needs_image {
            self.needs_image.send_replace(true);
        }
        for (ticket, answer) in outgoing.answers {
            if let Some(done) = self.tickets.lock().remove(&ticket) {
                after.answers.push((done, answer));
            }
        }
        if let Some(takeover) = outgoing.takeover {
            tracing::info!(group = %self.group, ?takeover, "takeover over");
        }
        if let Some(reason) = outgoing.distrust {
            // The member has stopped for this; the server begins again once the store says so too.
            self.is_ending.store(true, Ordering::Release);
            self.is_serving.store(false, Ordering::Release);
            self.is_reading.store(false, Ordering::Release);
            self.disk.push(Task::Distrust(reason));
            after.has_disk_work = true;
        }
        if let Some(reason) = outgoing.differs {
            // The member has stopped for this; the thread that makes images keeps what is in memory, and ends the server.
            self.is_ending.store(true, Ordering::Release);
            self.is_serving.store(false, Ordering::Release);
            self.is_reading.store(false, Ordering::Release);
            tracing::error!(group = %self.group, reason, "this member's state is another than that of a majority");
            // Clients go elsewhere at once.
            after.lost = Some((self.epoch(), reason.clone()));
            *self.differs.lock() = Some(reason);
        }
        if let Some(reason) = outgoing.rebuild {
            self.will_end(after, Ended::Restart(reason));
        }
        if !outgoing.refused.is_empty() {
            let reason = "this member was deposed within an operation, which never reached the log";
            self.will_end(after, Ended::Restart(reason.into()));
        }
    }

    /// Remembers what is asked without the lock. Under the member's lock, after its steps.
    pub fn note_what_stands(&self, member: &Member, after: &mut After) {
        let lease_end = match member.role() {
            Role::Serving { .. } | Role::Reading { .. } => member.lease_end().map_or(u64::MAX, |end| end.ns),
            _ => 0,
        };
        self.lease_end_ns.store(lease_end, Ordering::Release);
        self.is_writable.store(member.is_writable(), Ordering::Release);
        self.timer.set(member.deadline());
        if let Role::Stopped { reason } = member.role()
            && !self.is_ending.load(Ordering::Acquire)
        {
            self.will_end(after, Ended::Failed(reason.clone()));
        }
        let epoch = member.view().map_or(member.promised(), |view| view.epoch.max(member.promised()));
        let active = member.active();
        let known = *self.leader.lock();
        if known != (epoch, active) {
            *self.leader.lock() = (epoch, active);
            self.standing.send_modify(|standing| {
                (standing.epoch, standing.active) = (epoch, active);
            });
        }
    }

    /// Notes, under the member's lock, that this server ends: nothing is answered from here on. Callers that wait
    /// hear of it when the lock is free.
    fn will_end(&self, after: &mut After, ended: Ended) {
        self.is_ending.store(true, Ordering::Release);
        self.is_serving.store(false, Ordering::Release);
        self.is_reading.store(false, Ordering::Release);
        after.ended.get_or_insert(ended);
    }

    /// Does the work that may take longer or call others. Neither the member's lock nor the namespace's may be held.
    pub fn follow_up(self: &Arc<Self>, after: After, patience: Patience) {
        tree_lock::must_be_free();
        if let Some(ended) = after.ended {
            self.end(ended);
        }
        if let Some((epoch, reason)) = after.lost {
            self.commit.suspend(epoch, &reason);
            self.room.wake();
        }
        if let Some(sn) = after.committed {
            self.committed(sn);
        }
        if let Some(change) = after.change {
            self.change_view(change);
        }
        if after.read_view {
            self.read_view();
        }
        for (done, answer) in after.answers {
            done(answer);
        }
        if after.has_disk_work {
            match patience {
                Patience::Disk => self.work_on_disk(),
                Patience::None => self.disk.wake(),
                Patience::Later => {}
            }
        }
    }

    pub fn committed(&self, sn: Sn) {
        if !self.is_ending.load(Ordering::Acquire) {
            self.unsettled.settle(sn, self.env.clock.moment());
            self.commit.advance(sn);
            self.room.committed(sn);
        }
    }

    /// Proposes what the state machine has applied. The end of the log behind it, or `None` when it was not
    /// taken: then this server is about to start again. Nothing is written, and no one is told, before [`Shared::carry_on`].
    pub fn propose(self: &Arc<Self>, proposals: Vec<Proposal>) -> (Option<LogPoint>, After) {
        let count = proposals.len() as u64;
        let bytes = proposals.iter().map(|proposal| proposal.payload.len()).sum();
        let mut after = After::default();
        let end = {
            let mut member = self.member.lock();
            let before = member.end();
            self.step(&mut member, Input::Propose(proposals), &mut after);
            let end = member.end();
            self.drain(&mut member, &mut after);
            self.note_what_stands(&member, &mut after);
            (end.id.sn.0 == before.id.sn.0 + count).then_some(end)
        };
        if let Some(end) = end {
            self.room.proposed(end.id.sn, bytes);
        }
        (end, after)
    }

    /// Does what a proposal left to be done, events included that came in meanwhile.
    pub fn carry_on(self: &Arc<Self>, after: After) {
        self.follow_up(after, Patience::Later);
        self.pump(Patience::Later);
        self.work_on_disk();
    }

    /// Never under the member's lock: those who wait are told, and may ask the member.
    pub fn end(&self, ended: Ended) {
        self.is_ending.store(true, Ordering::Release);
        self.is_serving.store(false, Ordering::Release);
        self.is_reading.store(false, Ordering::Release);
        let is_first = self.ended.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert_with(|| ended.clone());
            is_first
        });
        if is_first {
            let (Ended::Failed(reason) | Ended::Restart(reason)) = &ended;
            tracing::warn!(group = %self.group, reason, "this server ends");
            self.commit.fail(reason);
            self.room.wake();
            for (_, done) in std::mem::take(&mut *self.tickets.lock()) {
                done(Err(reason.clone()));
            }
        }
    }

    /// Publishes a role. The writer has applied all entries before it, so others may act on it now.
    pub fn publish(self: &Arc<Self>, role: Role) {
        let epoch = match &role {
            Role::Serving { epoch }
            | Role::Starting { epoch }
            | Role::Reading { epoch }
            | Role::HandingOver { epoch } => Some(*epoch),
            _ => None,
        };
        if let Some(epoch) = epoch {
            self.epoch.store(epoch.0, Ordering::Release);
        }
        // The member may have gone on meanwhile: a role that is over is not entered.
        let is_current = self.look(|member| *member.role() == role);
        if is_current
            && let Role::Serving { epoch } = role
            && !self.is_ending.load(Ordering::Acquire)
        {
            self.commit.resume(epoch);
            self.is_serving.store(true, Ordering::Release);
            self.is_reading.store(false, Ordering::Release);
            // It may have stepped down between the look and the word.
            if self.look(|member| *member.role() != role) {
                self.is_serving.store(false, Ordering::Release);
                self.commit.suspend(epoch, "this member is no longer active");
            }
        }
        if is_current && matches!(role, Role::Reading { .. }) && !self.is_ending.load(Ordering::Acquire) {
            self.is_reading.store(true, Ordering::Release);
            if self.look(|member| *member.role() != role) {
                self.is_reading.store(false, Ordering::Release);
            }
        }
        tracing::info!(group = %self.group, member = %self.me.member, "{}", sentence_of(&role));
        let is_handing_over = matches!(role, Role::HandingOver { .. });
        self.standing.send_modify(|standing: &mut Standing| standing.role = role);
        self.keep_lock();
        if is_handing_over {
            // This is the writer between two turns, and no further one begins.
            self.push(Event::Input(Input::Quiet), Patience::None);
        }
    }
}

/// A line about the role, for people.
fn sentence_of(role: &Role) -> String {
    match role {
        Role::Following => "follows: another member leads, or will".into(),
        Role::Claiming => "asks the coordinator for the next epoch".into(),
        Role::Starting { epoch } => format!("has been given epoch {epoch} and brings the others to its log"),
        Role::Reading { epoch } => {
            format!(
                "is active in epoch {epoch}, with too few in sync: it answers what is certain, and takes nothing"
            )
        }
        Role::Serving { epoch } => format!("is active in epoch {epoch} and serves"),
        Role::HandingOver { epoch } => format!("hands over at the end of epoch {epoch}"),
        Role::Stopped { reason } => format!("has stopped: {reason}"),
    }
}
