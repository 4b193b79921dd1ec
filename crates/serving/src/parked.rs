//! Calls that wait for a data server's report about a block, for a bounded time.

use base::{BlockId, Moment};
use std::collections::BTreeMap;

/// Calls of the type `T`, by the block that each waits for.
#[derive(Debug)]
pub struct Parked<T> {
    by_block: BTreeMap<BlockId, Vec<(Moment, T)>>,
    count: usize,
    count_max: usize,
}

impl<T> Parked<T> {
    /// No calls; at most `count_max` are kept at a time.
    pub fn new(count_max: usize) -> Self {
        Self { by_block: BTreeMap::new(), count: 0, count_max }
    }

    /// Keeps a call until a report about `block`, or until `deadline`.
    ///
    /// # Errors
    /// The call itself, if the most calls are parked already.
    pub fn park(&mut self, block: BlockId, deadline: Moment, call: T) -> Result<(), T> {
        if self.count >= self.count_max {
            return Err(call);
        }
        self.count += 1;
        self.by_block.entry(block).or_default().push((deadline, call));
        Ok(())
    }

    /// These blocks were reported: returns the calls that wait for them, to be planned again.
    pub fn wake(&mut self, blocks: &[BlockId]) -> Vec<T> {
        let woken: Vec<T> = blocks
            .iter()
            .filter_map(|block| self.by_block.remove(block))
            .flatten()
            .map(|(_, call)| call)
            .collect();
        self.count -= woken.len();
        woken
    }

    /// Returns the calls that have waited long enough.
    pub fn expire(&mut self, now: Moment) -> Vec<T> {
        let mut expired = Vec::new();
        self.by_block.retain(|_, calls| {
            let overdue = calls.extract_if(.., |(deadline, _)| *deadline <= now);
            expired.extend(overdue.map(|(_, call)| call));
            !calls.is_empty()
        });
        self.count -= expired.len();
        expired
    }

    /// Returns all calls: this member serves no more.
    pub fn take_all(&mut self) -> Vec<T> {
        self.count = 0;
        std::mem::take(&mut self.by_block).into_values().flatten().map(|(_, call)| call).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_woken_by_its_block_or_by_its_deadline_and_only_once() {
        let mut parked = Parked::new(3);
        let at = Moment::from_ms;
        assert_eq!(parked.park(BlockId(1), at(10), "a"), Ok(()));
        assert_eq!(parked.park(BlockId(1), at(30), "b"), Ok(()));
        assert_eq!(parked.park(BlockId(2), at(20), "c"), Ok(()));
        assert_eq!(parked.park(BlockId(2), at(20), "d"), Err("d"));
        assert_eq!(parked.expire(at(10)), ["a"]);
        assert_eq!(parked.wake(&[BlockId(1), BlockId(3)]), ["b"]);
        assert!(parked.wake(&[BlockId(1)]).is_empty());
        assert_eq!(parked.park(BlockId(2), at(40), "e"), Ok(()));
        assert_eq!(parked.take_all(), ["c", "e"]);
        assert!(parked.expire(at(100)).is_empty());
    }
}
