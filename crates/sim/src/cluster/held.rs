//! The calls that members hold, and their copies.

use super::{
    client::{CallCopy, CallKey},
    request::Request,
};
use std::collections::BTreeMap;

/// The calls that members may have to send on, where they hold any.
#[derive(Default)]
pub struct Holding {
    pub is_on: bool,
    /// The changes that clients have asked for. Late copies of each may still come.
    pub requests: BTreeMap<CallKey, Request>,
    /// The copies to which clients have heard an answer.
    pub told: BTreeMap<CallKey, CallCopy>,
    /// How often members have repeated a copy that a client has sent. What they have sent before is repeated by nobody any more.
    pub repeats: BTreeMap<(CallKey, u32), u32>,
}

impl Holding {
    pub fn new(is_on: bool) -> Self {
        Self { is_on, ..Self::default() }
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    pub fn note_call(&mut self, key: CallKey, request: &Request) {
        if self.is_on && matches!(request, Request::Change(_)) {
            self.requests.insert(key, request.clone());
        }
    }

    pub fn told(&mut self, copy: CallCopy) {
        if self.is_on {
            self.told.insert(copy.key, copy);
        }
    }
}
