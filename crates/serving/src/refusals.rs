//! The answers to calls that changed nothing, kept for a while and in memory only.
//!
//! A call that sat in the sockets of a frozen server may arrive after its client has repeated it elsewhere, was told
//! no, and went on. Carried out then, it would undo changes that others have made since. Calls that changed something
//! are in the namespace's retry cache; this is for the others. A client that asks again on purpose says so: its retry
//! count is higher, and it gets a new answer.
//!
//! An answer is kept before it has gone out, so that two copies of a call that arrive together get one answer. Until it is
//! proved ([`crate::Unproved`]) it counts in the epoch only in which it was given: an answer that never went out may be
//! wrong, and must not come back when the member leads again.

use crate::broken::{Broken, Rules};
use base::{CallId, CallOrigin, ClientId, CopyOfCall, Epoch, FsResult};
use namespace::Reply;
use std::{
    collections::{BTreeMap, VecDeque},
    fmt::{self, Write},
};

/// About as many as a busy server refuses in the time for which a server may be frozen.
const ENTRIES_MAX: usize = 1 << 16;
/// The most bytes of all texts together. An ordinary text has 200 bytes; one with the longest possible path has 8,000
/// and more.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Answers to calls that changed nothing.
#[derive(Debug, Default)]
pub struct Refusals {
    answers: BTreeMap<(ClientId, CallId), Answer>,
    /// The calls in the order in which they came. A call that was forgotten and put again is in it twice.
    order: VecDeque<(ClientId, CallId)>,
    /// The bytes of the texts of all answers.
    text_bytes: usize,
    rules: Rules,
}

#[derive(Debug)]
struct Answer {
    fingerprint: u64,
    copy: CopyOfCall,
    /// The epoch in which it was given.
    epoch: Epoch,
    /// It went out, or may have.
    is_proved: bool,
    text_bytes: usize,
    answer: FsResult<Reply>,
}

impl Refusals {
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// The answer to an earlier or the very same copy of this call, for a member that leads in `epoch`.
    pub fn get(&self, origin: &CallOrigin, fingerprint: u64, epoch: Epoch) -> Option<FsResult<Reply>> {
        if self.answers.is_empty() || self.rules.break_rule(Broken::RefusalsForgotten) {
            return None;
        }
        let copy = origin.copy()?;
        let known = self.answers.get(&(origin.client_id, origin.call_id))?;
        let is_copy = known.fingerprint == fingerprint && copy <= known.copy;
        let counts = known.is_proved || known.epoch == epoch;
        (is_copy && counts).then(|| known.answer.clone())
    }

    /// The answer that was given to this call in `epoch` is proved, and goes out.
    pub fn proved(&mut self, origin: &CallOrigin, epoch: Epoch) {
        if let Some(known) = self.answers.get_mut(&(origin.client_id, origin.call_id)) {
            known.is_proved |= known.epoch == epoch;
        }
    }

    /// Forgets an answer that was not given after all.
    pub fn forget(&mut self, origin: &CallOrigin) {
        self.remove((origin.client_id, origin.call_id));
    }

    fn remove(&mut self, key: (ClientId, CallId)) {
        self.text_bytes -= self.answers.remove(&key).map_or(0, |answer| answer.text_bytes);
    }

    /// Keeps the answer that this call is given in `epoch`.
    pub fn put(&mut self, origin: &CallOrigin, fingerprint: u64, epoch: Epoch, answer: FsResult<Reply>) {
        let Some(copy) = origin.copy() else { return };
        let key = (origin.client_id, origin.call_id);
        let text_bytes = text_bytes(&answer);
        let answer = Answer { fingerprint, copy, epoch, is_proved: false, text_bytes, answer };
        self.text_bytes += text_bytes;
        match self.answers.insert(key, answer) {
            Some(before) => self.text_bytes -= before.text_bytes,
            None => self.order.push_back(key),
        }
        while (self.order.len() > ENTRIES_MAX || self.text_bytes > TEXT_BYTES_MAX)
            && let Some(oldest) = self.order.pop_front()
        {
            self.remove(oldest);
        }
    }
}

fn text_bytes(answer: &FsResult<Reply>) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut count = Count(0);
    if let Err(error) = answer {
        // Counting does not fail.
        let _ = write!(count, "{error}");
    }
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FsError;

    const REIGN: Epoch = Epoch(4);

    fn origin(call: i32, retry_count: i32) -> CallOrigin {
        CallOrigin {
            client_id: ClientId([3; 16]),
            call_id: CallId(call),
            retry_count,
            repeats: 0,
            address: None,
        }
    }

    #[test]
    fn a_late_copy_is_told_what_the_later_one_was_told() {
        let mut refusals = Refusals::default();
        let refused = Err(FsError::AlreadyExists("/f".into()));
        refusals.put(&origin(7, 1), 42, REIGN, refused.clone());
        // The copy that the frozen server had, and the one that was answered.
        assert_eq!(refusals.get(&origin(7, 0), 42, REIGN), Some(refused.clone()));
        assert_eq!(refusals.get(&origin(7, 1), 42, REIGN), Some(refused));
        // Asked again on purpose; another request; another call; a client that does not count.
        assert_eq!(refusals.get(&origin(7, 2), 42, REIGN), None);
        assert_eq!(refusals.get(&origin(7, 0), 43, REIGN), None);
        assert_eq!(refusals.get(&origin(8, 0), 42, REIGN), None);
        assert_eq!(refusals.get(&origin(7, -1), 42, REIGN), None);
    }

    #[test]
    fn a_copy_that_members_have_repeated_is_still_older_than_the_next_of_the_client() {
        let mut refusals = Refusals::default();
        let repeated = |retry_count, repeats| CallOrigin { repeats, ..origin(7, retry_count) };
        refusals.put(&repeated(1, 1), 42, REIGN, Ok(Reply::Bool(false)));
        for known in [repeated(0, 5), repeated(1, 0), repeated(1, 1)] {
            assert_eq!(refusals.get(&known, 42, REIGN), Some(Ok(Reply::Bool(false))), "{known:?}");
        }
        // The member that has repeated it has heard no answer.
        assert_eq!(refusals.get(&repeated(1, 2), 42, REIGN), None);
    }

    #[test]
    fn an_answer_that_never_went_out_does_not_come_back_in_a_later_reign() {
        let mut refusals = Refusals::default();
        let refused = || Err(FsError::NotFound("/f".into()));
        refusals.put(&origin(1, 0), 42, REIGN, refused());
        refusals.put(&origin(2, 0), 42, REIGN, refused());
        refusals.proved(&origin(2, 0), REIGN);
        let later = Epoch(6);
        assert_eq!(refusals.get(&origin(1, 0), 42, REIGN), Some(refused()));
        assert_eq!(refusals.get(&origin(1, 0), 42, later), None);
        assert_eq!(refusals.get(&origin(2, 0), 42, later), Some(refused()));
        // A proof of another reign says nothing about it.
        refusals.proved(&origin(1, 0), later);
        assert_eq!(refusals.get(&origin(1, 0), 42, later), None);
    }

    #[test]
    fn long_texts_make_room_for_each_other() {
        let mut refusals = Refusals::default();
        let long = |call: i32| Err(FsError::NotFound(format!("{call}{}", "/x".repeat(4_000))));
        for call in 0..10_000 {
            refusals.put(&origin(call, 0), 1, REIGN, long(call));
            // Told again, and forgotten and told again, it counts once.
            refusals.put(&origin(call, 1), 1, REIGN, long(call));
            refusals.forget(&origin(call, 1));
            refusals.put(&origin(call, 1), 1, REIGN, long(call));
        }
        let bytes: usize = refusals.answers.values().map(|answer| text_bytes(&answer.answer)).sum();
        assert!((8 << 20..=TEXT_BYTES_MAX).contains(&bytes), "{bytes} bytes are kept");
        assert_eq!(refusals.text_bytes, bytes);
        assert_eq!(refusals.get(&origin(9_999, 0), 1, REIGN), Some(long(9_999)));
        assert_eq!(refusals.get(&origin(0, 0), 1, REIGN), None);
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut refusals = Refusals::default();
        for call in 0..ENTRIES_MAX as i32 + 2 {
            refusals.put(&origin(call, 0), 1, REIGN, Ok(Reply::Bool(false)));
        }
        assert_eq!(refusals.answers.len(), ENTRIES_MAX);
        assert_eq!(refusals.get(&origin(1, 0), 1, REIGN), None);
        assert_eq!(refusals.get(&origin(2, 0), 1, REIGN), Some(Ok(Reply::Bool(false))));
    }
}
