//! Calls that a home has put off, and the names under which its machine knows them.

use dirlog::CallId;
use rpc::{Call, Replier};
use std::collections::BTreeMap;

/// Copies of one call that wait at most. A client sends another when it has lost the connection of the one before.
pub const COPIES_MAX: usize = 16;

/// Calls that wait for an entry, a hold or the lease, by the names under which the machine knows them. Copies of one call share a name.
#[derive(Default)]
pub struct WaitingCalls {
    calls: BTreeMap<CallId, Vec<(Call, Replier)>>,
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
