//! The calls that wait for allowances. There is one question about a quota at a time: what comes meanwhile is asked about next, together.

use crate::directories::name_of;
use base::{InodeId, directory_log::Dix};
use dirlog::CallId;
use namespace::shares::{ByGroup, Lack};
use parking_lot::Mutex;
use rpc::{Call, Replier};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::atomic::{AtomicI32, Ordering},
};

/// Calls that wait at most.
const WAITING_MAX: usize = 20_000;
/// Calls of which it is known that they have asked, at most. One that is forgotten asks once more.
const ANSWERED_MAX: usize = 50_000;
/// A call asks so often at most: others take what it is given, or what is used changes between each answer and its next plan.
const TIMES_MAX: u32 = 20;

/// See the module's documentation.
#[derive(Default)]
pub struct Allowances {
    state: Mutex<State>,
    /// The names of this member's questions to itself.
    last_question: AtomicI32,
}

#[derive(Default)]
struct State {
    /// By the directory that has the quota: what is to be asked next. A directory that is here is being asked about.
    next: BTreeMap<InodeId, Batch>,
    waiting: usize,
    answered: BTreeMap<CallId, Answered>,
    /// Their names, the oldest first.
    order: VecDeque<CallId>,
}

#[derive(Clone, Copy)]
struct Answered {
    /// The entry of the first answer.
    since: Dix,
    times: u32,
}

/// Calls that lack something of one quota.
#[derive(Default)]
pub struct Batch {
    pub calls: Vec<(Call, Replier)>,
    wanted: ByGroup,
    missing: ByGroup,
}

/// What becomes of a call that lacks something.
pub enum Waits {
    /// It is asked about with others, later.
    Later,
    /// It is to be asked about now.
    Now(Batch),
    /// Too many calls wait, or this one has asked too often.
    Refused(Replier),
}

impl Batch {
    fn add(&mut self, lack: &Lack, call: Call, reply: Replier) {
        for (sum, of) in [(&mut self.wanted, &lack.wanted), (&mut self.missing, &lack.missing)] {
            of.iter().for_each(|(group, amounts)| sum.entry(*group).or_default().add_saturating(*amounts));
        }
        self.calls.push((call, reply));
    }

    /// What all of them lack together.
    pub fn lack(&self, directory: InodeId) -> Lack {
        Lack { directory, wanted: self.wanted.clone(), missing: self.missing.clone() }
    }
}

impl Allowances {
    /// The entry of the directory log with which the call was answered first that has asked. `None`: it has not asked.
    pub fn since(&self, call: &Call) -> Option<Dix> {
        let state = self.state.lock();
        if state.answered.is_empty() {
            return None;
        }
        state.answered.get(&name_of(call)).map(|answered| answered.since)
    }

    pub fn wait(&self, lack: &Lack, call: Call, reply: Replier) -> Waits {
        let mut state = self.state.lock();
        let times = state.answered.get(&name_of(&call)).map_or(0, |answered| answered.times);
        if state.waiting >= WAITING_MAX || times >= TIMES_MAX {
            // If its client comes again, with the same name, it begins anew.
            state.answered.remove(&name_of(&call));
            return Waits::Refused(reply);
        }
        state.waiting += 1;
        if let Some(batch) = state.next.get_mut(&lack.directory) {
            batch.add(lack, call, reply);
            return Waits::Later;
        }
        state.next.insert(lack.directory, Batch::default());
        let mut batch = Batch::default();
        batch.add(lack, call, reply);
        Waits::Now(batch)
    }

    /// These were answered with that entry, or were not. Returns what is to be asked next about the directory.
    pub fn answered(
        &self,
        directory: InodeId,
        calls: &[(Call, Replier)],
        since: Option<Dix>,
    ) -> Option<Batch> {
        let mut state = self.state.lock();
        state.waiting -= calls.len();
        for (call, _) in calls {
            match since {
                Some(since) => state.note(name_of(call), since),
                None => drop(state.answered.remove(&name_of(call))),
            }
        }
        let next = state.next.remove(&directory).filter(|batch| !batch.calls.is_empty())?;
        state.next.insert(directory, Batch::default());
        Some(next)
    }

    /// A name that no other question has.
    pub fn name_question(&self) -> i32 {
        self.last_question.fetch_add(1, Ordering::Relaxed)
    }
}

impl State {
    fn note(&mut self, name: CallId, since: Dix) {
        if let Some(known) = self.answered.get_mut(&name) {
            let since = if known.since == Dix(0) { since } else { known.since };
            *known = Answered { since, times: known.times + 1 };
            return;
        }
        if self.order.len() >= ANSWERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.answered.remove(&oldest);
        }
        self.answered.insert(name, Answered { since, times: 1 });
        self.order.push_back(name);
    }
}
