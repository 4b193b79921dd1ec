//! An entry of the directory log.

use super::{AskId, Dix, Mark, Point};
use crate::{Chain, Epoch};
use bytes::Bytes;
use rapidhash::v3::rapidhash_v3;
use std::sync::Arc;

/// One change of directories, which all groups follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub dix: Dix,
    /// The root group's epoch in which it was planned.
    pub epoch: Epoch,
    /// The chain of the entry before this one.
    pub previous_chain: Chain,
    /// The holds on which it rests: they end when it is applied.
    pub ask: Option<AskId>,
    /// All that it changes, made on the very tree on which it was planned.
    pub marks: Arc<[Mark]>,
    /// The edit. The machines of the directory log never look inside.
    pub payload: Bytes,
}

impl Entry {
    /// The entry that follows `previous`.
    pub fn after(
        previous: Point,
        epoch: Epoch,
        ask: Option<AskId>,
        marks: Arc<[Mark]>,
        payload: Bytes,
    ) -> Self {
        Self { dix: previous.dix.next(), epoch, previous_chain: previous.chain, ask, marks, payload }
    }

    /// The point of the log right behind this entry.
    ///
    /// The chain is `h(previous chain, dix, epoch, ask, number of marks, marks, h(payload))`, all little-endian, `h` being rapidhash
    /// version 3 with its default seed. It finds logs that differ, not forgers.
    pub fn point(&self) -> Point {
        let ask = self.ask.unwrap_or_default();
        let head = [
            self.previous_chain.0,
            self.dix.0,
            self.epoch.0,
            ask.root_epoch.0,
            ask.number,
            rapidhash_v3(&self.payload),
            self.marks.len() as u64,
        ];
        let mut link = Vec::with_capacity(56 + 17 * self.marks.len());
        head.iter().for_each(|number| link.extend_from_slice(&number.to_le_bytes()));
        for mark in self.marks.iter() {
            link.push(mark.kind as u8);
            link.extend_from_slice(&mark.key.to_le_bytes());
        }
        Point { dix: self.dix, chain: Chain(rapidhash_v3(&link)) }
    }

    /// About how many bytes the entry takes in memory. Queues of entries are bounded by the sum.
    pub fn bytes(&self) -> usize {
        64 + self.payload.len() + self.marks.len() * size_of::<Mark>()
    }
}
