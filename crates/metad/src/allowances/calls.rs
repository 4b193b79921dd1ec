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

#[cfg(test)]
mod tests {
    use super::*;
    use base::{CallOrigin, Caller, ClientId, GroupId};
    use namespace::Amounts;
    use std::sync::Arc;

    fn call() -> Call {
        let origin = CallOrigin {
            client_id: ClientId([7; 16]),
            call_id: base::CallId(1),
            retry_count: 0,
            repeats: 0,
            address: None,
        };
        let caller = Arc::new(Caller::simple("ann", &[]));
        Call::of_server(proto::protocol::FORWARD, "create", bytes::Bytes::new(), caller, origin)
    }

    fn wait(allowances: &Allowances, bytes: i64) -> Waits {
        let amounts: ByGroup = [(GroupId(2), Amounts { bytes, ..Amounts::default() })].into();
        let lack = Lack { directory: InodeId::ROOT, wanted: amounts.clone(), missing: amounts };
        allowances.wait(&lack, call(), Replier::captured(|_| {}))
    }

    fn now(allowances: &Allowances, bytes: i64) -> Batch {
        match wait(allowances, bytes) {
            Waits::Now(batch) => batch,
            _ => panic!("nobody else asks"),
        }
    }

    /// A client that is told to come again comes with the same call.
    #[test]
    fn a_call_that_has_asked_too_often_may_come_again() {
        let allowances = Allowances::default();
        for dix in 1..=u64::from(TIMES_MAX) {
            let batch = now(&allowances, 1);
            assert!(allowances.answered(InodeId::ROOT, &batch.calls, Some(Dix(dix))).is_none());
            assert_eq!(allowances.since(&call()), Some(Dix(1)), "any word after the first answer counts");
        }
        assert!(matches!(wait(&allowances, 1), Waits::Refused(_)));
        assert_eq!(allowances.since(&call()), None);
        let batch = now(&allowances, 1);
        assert!(allowances.answered(InodeId::ROOT, &batch.calls, Some(Dix(100))).is_none());
        assert_eq!(allowances.since(&call()), Some(Dix(100)));
        // Nobody has answered: the clients are told to come again.
        let batch = now(&allowances, 1);
        assert!(allowances.answered(InodeId::ROOT, &batch.calls, None).is_none());
        assert_eq!(allowances.since(&call()), None);
    }

    #[test]
    fn what_many_calls_want_together_does_not_overflow() {
        let allowances = Allowances::default();
        let first = now(&allowances, 1);
        for _ in 0..2 {
            assert!(matches!(wait(&allowances, i64::MAX), Waits::Later));
        }
        let next = allowances.answered(InodeId::ROOT, &first.calls, Some(Dix(1))).expect("two wait");
        let lack = next.lack(InodeId::ROOT);
        for of in [lack.wanted, lack.missing] {
            assert_eq!(of[&GroupId(2)].bytes, i64::MAX);
        }
    }
}
