//! The knowledge of an outside observer: which answers were given to whom.

use base::{CallOrigin, LogPoint, Sn};
use namespace::Reply;
use std::collections::BTreeMap;

/// One call that was answered, or is about to be.
#[derive(Clone, Debug)]
pub struct Call {
    pub origin: CallOrigin,
    pub fingerprint: u64,
    pub reply: Reply,
    pub sn: Sn,
    pub is_acknowledged: bool,
}

#[derive(Default)]
pub struct History {
    /// The digest of the namespace after each entry, with the place in the log.
    pub states: BTreeMap<Sn, (LogPoint, u64)>,
    pub calls: Vec<Call>,
    /// Everything up to here was acknowledged, or served, to somebody.
    pub acknowledged: Sn,
    /// One line an event.
    pub transcript: Vec<String>,
}

impl History {
    pub fn note(&mut self, line: String) {
        self.transcript.push(line);
    }

    pub fn commit(&mut self, sn: Sn) {
        self.acknowledged = self.acknowledged.max(sn);
        for call in self.calls.iter_mut().rev().take_while(|call| !call.is_acknowledged) {
            call.is_acknowledged = call.sn <= sn;
        }
    }

    /// After a crash the log ends here: what is beyond was acknowledged to nobody and never happened.
    pub fn forget_after(&mut self, end: Sn) {
        self.states.split_off(&Sn(end.0 + 1));
        self.calls.retain(|call| call.sn <= end);
    }
}
