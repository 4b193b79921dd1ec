//! Calls that a home has put off, and the names under which its machine knows them.

use base::Moment;
use dirlog::CallId;
use rpc::{Call, Replier};
use std::collections::{BTreeMap, VecDeque};

/// Copies of one call that wait at most. A client sends another when it has lost the connection of the one before.
pub const COPIES_MAX: usize = 16;

/// Calls that wait for an entry, a hold or the lease, by the names under which the machine knows them. Copies of one call share a name.
#[derive(Default)]
pub struct WaitingCalls {
    calls: BTreeMap<CallId, Vec<(Call, Replier)>>,
}

/// A call that is to be carried out again, and does not come to be judged for so long, keeps no entries out any more.
const AGAIN_MS: u64 = 200;

/// Calls that are to be carried out again, by the names under which the machine knows them. It keeps later entries out until they have been judged.
#[derive(Default)]
pub struct ToldCalls {
    calls: BTreeMap<CallId, Moment>,
    /// The calls in the order in which they were told, and some that have come since.
    in_order: VecDeque<(Moment, CallId)>,
}

impl ToldCalls {
    pub fn insert(&mut self, name: CallId, now: Moment) {
        self.calls.insert(name, now);
        self.in_order.push_back((now, name));
    }

    /// Whether the call was to be carried out again. It is no longer.
    pub fn remove(&mut self, name: CallId) -> bool {
        self.calls.remove(&name).is_some()
    }

    /// The calls that were told long ago and have not come.
    pub fn take_late(&mut self, now: Moment) -> Vec<CallId> {
        let mut late = Vec::new();
        while let Some((told_at, name)) = self.in_order.front().copied() {
            let is_awaited = self.calls.get(&name) == Some(&told_at);
            if is_awaited && now.ms_since(told_at) <= AGAIN_MS {
                break;
            }
            self.in_order.pop_front();
            if is_awaited {
                self.calls.remove(&name);
                late.push(name);
            }
        }
        late
    }
}

/// A call's name for the machine. Two calls of one name would only wait together.
pub fn name_of(call: &Call) -> CallId {
    let origin = &call.origin;
    let [one, other] = [0, 8].map(|at| {
        u64::from_le_bytes(origin.client_id.0[at..at + 8].try_into().expect("eight bytes of sixteen"))
    });
    CallId(
        one ^ other.rotate_left(32) ^ u64::from(origin.call_id.0 as u32).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    )
}

impl WaitingCalls {
    /// Keeps a copy of the call. The replier is given back if too many copies wait already.
    pub fn wait(&mut self, name: CallId, call: &Call, reply: Replier) -> Option<Replier> {
        let copies = self.calls.entry(name).or_default();
        if copies.len() >= COPIES_MAX {
            return Some(reply);
        }
        copies.push((call.clone(), reply));
        None
    }

    /// How many calls wait, copies not counted.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// The calls of this name, which wait no longer.
    pub fn take(&mut self, name: CallId) -> Vec<(Call, Replier)> {
        self.calls.remove(&name).unwrap_or_default()
    }

    pub fn take_all(&mut self) -> Vec<(Call, Replier)> {
        std::mem::take(&mut self.calls).into_values().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_does_not_come_again_is_late_once() {
        let mut told = ToldCalls::default();
        let at = Moment::from_ms;
        told.insert(CallId(1), at(1_000));
        told.insert(CallId(2), at(1_100));
        assert!(told.remove(CallId(1)), "it has come");
        assert!(!told.remove(CallId(1)));
        told.insert(CallId(1), at(1_150));
        assert_eq!(told.take_late(at(1_300)), []);
        assert_eq!(told.take_late(at(1_301)), [CallId(2)]);
        assert_eq!(told.take_late(at(1_351)), [CallId(1)], "counted from when it was told last");
        assert_eq!(told.take_late(at(9_000)), []);
        assert!(told.in_order.is_empty());
    }
}
