//! A call that is repeated after a restart gets the answer that it got the first time.

use crate::history::History;
use namespace::{Namespace, Reply, RetryLookup};

/// How many of the newest calls are asked for; older ones may have been evicted.
const CALLS_CHECKED: usize = 500;

pub fn check(history: &History, namespace: &Namespace) {
    for call in history.calls.iter().rev().filter(|call| call.is_acknowledged).take(CALLS_CHECKED) {
        // The answer of addBlock is found again in the tree.
        if matches!(call.reply, Reply::Block { .. }) {
            continue;
        }
        let found = namespace.retry_lookup(&call.origin, call.fingerprint);
        assert_eq!(
            found,
            RetryLookup::Hit(call.reply),
            "answers are remembered: call {} of entry {}",
            call.origin.call_id,
            call.sn
        );
    }
}
