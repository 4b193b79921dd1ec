//! What was answered to calls that changed nothing, for a while and in memory only.
//!
//! A call that sat in the sockets of a frozen server may arrive after its client has repeated it elsewhere, was
//! told no, and went on. Carried out then, it would take back what others have done since. Calls that changed
//! something are in the namespace's retry cache; this is for the others. A client that asks again on purpose says
//! so: its retry count is higher, and it gets a new answer.

use base::{CallId, CallOrigin, ClientId, FsResult};
use namespace::Reply;
use std::collections::{HashMap, VecDeque};

/// About as many as a busy server refuses in the time for which a server may be frozen.
const ENTRIES_MAX: usize = 1 << 16;

#[derive(Default)]
pub struct Refusals {
    answers: HashMap<(ClientId, CallId), Answer>,
    /// In the order of their coming. One that was forgotten and put again is in it twice.
    order: VecDeque<(ClientId, CallId)>,
}

struct Answer {
    fingerprint: u64,
    retry_count: i32,
    answer: FsResult<Reply>,
}

impl Refusals {
    /// The answer to an earlier or the very same copy of this call.
    pub fn get(&self, origin: &CallOrigin, fingerprint: u64) -> Option<FsResult<Reply>> {
        if self.answers.is_empty() || origin.retry_count < 0 {
            return None;
        }
        let known = self.answers.get(&(origin.client_id, origin.call_id))?;
        let is_copy = known.fingerprint == fingerprint && origin.retry_count <= known.retry_count;
        is_copy.then(|| known.answer.clone())
    }

    /// For an answer that was not given after all.
    pub fn forget(&mut self, origin: &CallOrigin) {
        self.answers.remove(&(origin.client_id, origin.call_id));
    }

    pub fn put(&mut self, origin: &CallOrigin, fingerprint: u64, answer: FsResult<Reply>) {
        if origin.retry_count < 0 {
            return;
        }
        let key = (origin.client_id, origin.call_id);
        let answer = Answer { fingerprint, retry_count: origin.retry_count, answer };
        if self.answers.insert(key, answer).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > ENTRIES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.answers.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FsError;

    fn origin(call: i32, retry_count: i32) -> CallOrigin {
        CallOrigin { client_id: ClientId([3; 16]), call_id: CallId(call), retry_count, address: None }
    }

    #[test]
    fn a_late_copy_is_told_what_the_later_one_was_told() {
        let mut refusals = Refusals::default();
        let refused = Err(FsError::AlreadyExists("/f".into()));
        refusals.put(&origin(7, 1), 42, refused.clone());
        // The copy that the frozen server had, and the one that was answered.
        assert_eq!(refusals.get(&origin(7, 0), 42), Some(refused.clone()));
        assert_eq!(refusals.get(&origin(7, 1), 42), Some(refused));
        // Asked again on purpose; another request; another call; a client that does not count.
        assert_eq!(refusals.get(&origin(7, 2), 42), None);
        assert_eq!(refusals.get(&origin(7, 0), 43), None);
        assert_eq!(refusals.get(&origin(8, 0), 42), None);
        assert_eq!(refusals.get(&origin(7, -1), 42), None);
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut refusals = Refusals::default();
        for call in 0..ENTRIES_MAX as i32 + 2 {
            refusals.put(&origin(call, 0), 1, Ok(Reply::Bool(false)));
        }
        assert_eq!(refusals.answers.len(), ENTRIES_MAX);
        assert_eq!(refusals.get(&origin(1, 0), 1), None);
        assert_eq!(refusals.get(&origin(2, 0), 1), Some(Ok(Reply::Bool(false))));
    }
}
