//! Names that are expected to come again within a time.

use base::Moment;
use std::collections::{BTreeMap, VecDeque};

/// The names, each with the moment since which it is awaited. Nothing looks through all of them: what is late stands in front.
pub struct Awaited<N> {
    patience_ms: u64,
    since: BTreeMap<N, Moment>,
    /// The names in the order of their moments, and some that have come since.
    in_order: VecDeque<(Moment, N)>,
}

impl<N: Copy + Ord> Awaited<N> {
    /// A name is late when it has not come for so many milliseconds.
    pub fn new(patience_ms: u64) -> Self {
        Self { patience_ms, since: BTreeMap::new(), in_order: VecDeque::new() }
    }

    /// Awaits a name from now on. `now` never goes back.
    pub fn insert(&mut self, name: N, now: Moment) {
        self.since.insert(name, now);
        self.in_order.push_back((now, name));
    }

    /// The name has come, or is not to come. False: it was not awaited.
    pub fn remove(&mut self, name: N) -> bool {
        self.since.remove(&name).is_some()
    }

    /// No name is awaited.
    pub fn is_empty(&self) -> bool {
        self.since.is_empty()
    }

    /// The names that are late. They are awaited no longer.
    pub fn take_late(&mut self, now: Moment) -> Vec<N> {
        let mut late = Vec::new();
        while let Some((since, name)) = self.in_order.front().copied() {
            let is_awaited = self.since.get(&name) == Some(&since);
            if is_awaited && now.ms_since(since) <= self.patience_ms {
                break;
            }
            self.in_order.pop_front();
            if is_awaited {
                self.since.remove(&name);
                late.push(name);
            }
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_does_not_come_is_late_once() {
        let mut awaited: Awaited<u32> = Awaited::new(200);
        let at = Moment::from_ms;
        awaited.insert(1, at(1_000));
        awaited.insert(2, at(1_100));
        assert!(awaited.remove(1), "it has come");
        assert!(!awaited.remove(1));
        awaited.insert(1, at(1_150));
        assert_eq!(awaited.take_late(at(1_300)), [0; 0]);
        assert_eq!(awaited.take_late(at(1_301)), [2]);
        assert!(!awaited.is_empty());
        assert_eq!(awaited.take_late(at(1_351)), [1], "counted from when it was awaited last");
        assert_eq!(awaited.take_late(at(9_000)), [0; 0]);
        assert!(awaited.is_empty() && awaited.in_order.is_empty());
    }
}
