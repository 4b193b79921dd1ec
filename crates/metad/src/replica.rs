//! Drives this server's membership in its group: steps the machine, carries out what it asks for.

use crate::commit::CommitWatch;
use base::{EntryKind, Epoch, GroupId, GroupView, LogPoint, MemberId, MemberStore};
use bytes::Bytes;
use coord::{ChangeError, Coordinator, MemberRecord, Version};
use env::Env;
use group::{ChangeFailed, Effects, Input, Member, Order, Outgoing, Proposal, Restored, Role};
use journal::Journal;
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use thiserror::Error;
use tokio::sync::watch;

#[derive(Debug, Error)]
pub enum ClaimError {
    #[error(transparent)]
    Coordinator(#[from] coord::ReadError),
    #[error("the coordinator knows nothing of group {0}; format the metadata directory again or restore it")]
    NoView(GroupId),
    #[error("this member cannot lead: {0}")]
    Stopped(String),
}

/// This server's member, shared by the writer (which proposes) and the journal's threads (which prove).
#[derive(Clone)]
pub struct Replica {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    group: GroupId,
    member: Mutex<Member>,
    journal: Journal,
    coordinator: Arc<dyn Coordinator>,
    commit: Arc<CommitWatch>,
    epoch: AtomicU64,
    me: MemberStore,
    standing: watch::Sender<Standing>,
}

/// What this member is at the moment, for those who act on a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub role: Role,
    /// The epoch of the view last seen.
    pub epoch: Epoch,
    /// Who leads, as far as is known here.
    pub active: Option<MemberId>,
}

impl Standing {
    pub fn is_serving(&self) -> bool {
        matches!(self.role, Role::Serving { .. })
    }
}

/// Called once with the answer to an order, on any thread.
pub type OrderDone = Box<dyn FnOnce(Result<String, String>) + Send>;

impl Replica {
    pub fn new(
        env: Env,
        group: GroupId,
        me: MemberStore,
        restored: Restored,
        journal: Journal,
        coordinator: Arc<dyn Coordinator>,
        commit: Arc<CommitWatch>,
    ) -> Self {
        let member = Member::new(group::Settings::default(), me, restored, env.clock.moment());
        let epoch = AtomicU64::new(restored.promised.0);
        let standing =
            watch::Sender::new(Standing { role: Role::Following, epoch: restored.promised, active: None });
        Self {
            shared: Arc::new(Shared {
                env,
                group,
                member: Mutex::new(member),
                journal,
                coordinator,
                commit,
                epoch,
                me,
                standing,
            }),
        }
    }

    /// Claims the group and waits until the first entry of the new epoch has committed.
    pub fn claim(&self) -> Result<Epoch, ClaimError> {
        let shared = &self.shared;
        let read = coord::wait(|done| shared.coordinator.read(shared.group, done))?;
        let known = read.ok_or(ClaimError::NoView(shared.group))?;
        shared.step(Input::View { view: known.view, version: known.version.0 });
        loop {
            let (role, deadline) = {
                let member = shared.member.lock();
                (member.role().clone(), member.deadline())
            };
            match role {
                Role::Serving { epoch } => return Ok(epoch),
                Role::Stopped { reason } => return Err(ClaimError::Stopped(reason)),
                Role::Following | Role::Claiming | Role::Starting { .. } | Role::HandingOver { .. } => {}
            }
            // The answers arrive on other threads; this one only looks again, and ticks.
            std::thread::sleep(Duration::from_millis(2));
            if deadline.is_some_and(|deadline| shared.env.clock.moment() >= deadline) {
                shared.step(Input::Tick);
            }
        }
    }

    /// The epoch in which this member last was active.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.shared.epoch.load(Ordering::Acquire))
    }

    pub fn end(&self) -> LogPoint {
        self.shared.member.lock().end()
    }

    pub fn role(&self) -> Role {
        self.shared.member.lock().role().clone()
    }

    pub fn me(&self) -> MemberStore {
        self.shared.me
    }

    /// Role and active as published: whatever committed before the role changed has been applied.
    pub fn standing(&self) -> Standing {
        self.shared.standing.borrow().clone()
    }

    /// Sees every change of the standing, or at least the last one.
    pub fn subscribe(&self) -> watch::Receiver<Standing> {
        self.shared.standing.subscribe()
    }

    /// Who leads, as far as is known here, and where it is reached.
    pub fn active(&self) -> Option<(MemberId, MemberRecord)> {
        None
    }

    /// Whether an answer that was evaluated before this call may be sent: nobody else can have been elected
    /// yet. Where this is false while the member serves, [`Replica::confirm`] may still prove it.
    pub fn may_answer(&self) -> bool {
        self.shared.standing.borrow().is_serving()
    }

    /// Asks the coordinator whether the view is still the one in which this member is active.
    pub fn confirm(&self, done: impl FnOnce(Result<(), String>) + Send + 'static) {
        done(if self.may_answer() { Ok(()) } else { Err("this member is not active".into()) });
    }

    /// An operator's order; `done` hears what became of it.
    pub fn order(&self, order: Order, done: OrderDone) {
        let _ = order;
        done(Err("a group of several members is not built yet".into()));
    }

    pub fn journal(&self) -> &Journal {
        &self.shared.journal
    }

    /// Blocks while the disk is far behind.
    pub fn wait_for_room(&self) {
        self.shared.journal.wait_for_room();
    }

    /// Appends entries; the commit watch hears of them. Called by the writer alone, so that the order of the
    /// log is the order in which the edits were applied. Returns without waiting for the disk.
    pub fn propose(&self, entries: Vec<(EntryKind, Bytes)>) {
        if entries.is_empty() {
            return;
        }
        let proposals = entries.into_iter().map(|(kind, payload)| Proposal { kind, payload }).collect();
        self.shared.step(Input::Propose(proposals));
    }

    /// Waits for what is under way and closes the journal.
    pub fn close(&self) -> Result<(), journal::StateError> {
        self.shared.journal.close()
    }
}

impl Shared {
    /// One input, and everything it leads to.
    fn step(self: &Arc<Self>, input: Input) {
        let now = self.env.clock.moment();
        let effects = self.member.lock().step(now, input);
        self.carry_out(effects);
    }

    fn carry_out(self: &Arc<Self>, mut effects: Effects) {
        if let Some(change) = effects.take_change() {
            self.change_view(change.view, Version(change.expected_version));
        }
        let entries = effects.take_entries();
        match (effects.promise(), entries.is_empty()) {
            (None, true) => {
                debug_assert!(!effects.needs_disk());
                let outgoing = effects.release_at_once();
                self.deliver(outgoing);
            }
            (Some(epoch), true) => match self.journal.promise(epoch) {
                Ok(durable) => {
                    let outgoing = effects.release(durable);
                    self.deliver(outgoing);
                }
                Err(error) => self.disk_failed(&error.to_string()),
            },
            (promise, false) => {
                if let Some(epoch) = promise
                    && let Err(error) = self.journal.promise(epoch)
                {
                    return self.disk_failed(&error.to_string());
                }
                let shared = self.clone();
                let appended = self.journal.append(
                    entries,
                    Box::new(move |result| match result {
                        Ok(durable) => {
                            let outgoing = effects.release(durable);
                            shared.deliver(outgoing);
                        }
                        Err(fault) => shared.disk_failed(&fault.to_string()),
                    }),
                );
                if let Err(error) = appended {
                    self.disk_failed(&error.to_string());
                }
            }
        }
    }

    fn deliver(self: &Arc<Self>, outgoing: Outgoing) {
        if let Some(role) = outgoing.role {
            tracing::info!(group = %self.group, ?role, "role");
            if let Role::Serving { epoch } | Role::Starting { epoch } = role {
                self.epoch.store(epoch.0, Ordering::Release);
            }
            self.standing.send_replace(Standing {
                role: role.clone(),
                epoch: Epoch(self.epoch.load(Ordering::Acquire)),
                active: Some(self.me.member),
            });
            if let Role::Stopped { reason } = role {
                self.commit.fail(&reason);
            }
        }
        if let Some(proof) = outgoing.proof {
            self.step(Input::Durable(proof));
        }
        if let Some(sn) = outgoing.committed {
            self.journal.note_commit(sn);
            self.commit.advance(sn);
        }
    }

    fn change_view(self: &Arc<Self>, view: GroupView, expected: Version) {
        let shared = self.clone();
        let done = Box::new(move |answer: Result<Version, ChangeError>| {
            let input = match answer {
                Ok(version) => Input::Changed(Ok(version.0)),
                Err(ChangeError::BadVersion | ChangeError::MemberChanged(_)) => {
                    Input::Changed(Err(ChangeFailed::BadVersion))
                }
                Err(ChangeError::Refused { reason }) => {
                    tracing::error!(group = %shared.group, reason, "the coordinator refused a change");
                    Input::Changed(Err(ChangeFailed::BadVersion))
                }
                Err(ChangeError::Unknown { reason }) => {
                    tracing::warn!(group = %shared.group, reason, "the coordinator's answer is unknown");
                    Input::Changed(Err(ChangeFailed::Unknown))
                }
            };
            shared.step(input);
        });
        self.coordinator.change(self.group, expected, view, &[], done);
    }

    fn disk_failed(self: &Arc<Self>, reason: &str) {
        tracing::error!(group = %self.group, reason, "the journal has failed; this member is out");
        self.commit.fail(reason);
        let now = self.env.clock.moment();
        let effects = self.member.lock().step(now, Input::DiskFailed);
        if !effects.needs_disk() {
            let outgoing = effects.release_at_once();
            if let Some(role) = outgoing.role {
                tracing::info!(group = %self.group, ?role, "role");
            }
        }
    }
}
