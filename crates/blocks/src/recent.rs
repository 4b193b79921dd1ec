//! A bounded memory of what data servers have said of single replicas a short while ago. Why it is kept, and what rests on it, stands in
//! [`crate::late_words`].

use base::{Block, BlockId, GenerationStamp, Moment};
use std::collections::{BTreeMap, VecDeque};

const KEPT_MS: u64 = 600_000;
/// The most replicas of which one kind of news is remembered: some 80 MB. Beyond it the oldest is forgotten earlier.
const KEPT_MAX: usize = 1 << 20;

/// News of one kind: when it came, by replica.
#[derive(Default)]
pub struct Recent {
    /// By block and index of storage.
    news: BTreeMap<(BlockId, u32), News>,
    /// In the order in which it came. What has been replaced by later news of the same replica is still here.
    order: VecDeque<(Moment, u64, BlockId, u32)>,
}

#[derive(Clone, Copy)]
struct News {
    serial: u64,
    stamp: GenerationStamp,
}

impl Recent {
    pub fn note(&mut self, block: Block, place: u32, serial: u64, now: Moment) {
        self.forget_old(now);
        self.news.insert((block.id, place), News { serial, stamp: block.generation_stamp });
        self.order.push_back((now, serial, block.id, place));
    }

    pub fn forget_old(&mut self, now: Moment) {
        while let Some((at, serial, id, place)) = self.order.front().copied()
            && (now.ms_since(at) >= KEPT_MS || self.order.len() >= KEPT_MAX)
        {
            self.order.pop_front();
            if self.news.get(&(id, place)).is_some_and(|news| news.serial == serial) {
                self.news.remove(&(id, place));
            }
        }
    }

    /// Whether there is news of the replica that is later than this serial number.
    pub fn is_later(&self, id: BlockId, place: u32, stamp: GenerationStamp, serial: u64) -> bool {
        !self.news.is_empty()
            && self.news.get(&(id, place)).is_some_and(|news| news.stamp >= stamp && news.serial > serial)
    }

    fn forget_place(&mut self, place: u32) {
        self.news.retain(|(_, at), _| *at != place);
        self.order.retain(|(.., at)| *at != place);
    }

    /// For the complete check.
    pub fn is_consistent(&self) -> bool {
        self.news.len() <= self.order.len() && self.order.len() <= KEPT_MAX
    }
}

/// The recent news of both kinds.
#[derive(Default)]
pub struct RecentNews {
    pub deleted: Recent,
    /// Only while a full report of the server may be under way.
    pub received: Recent,
}

impl RecentNews {
    /// The index may stand for another storage next.
    pub fn forget_place(&mut self, place: u32) {
        self.deleted.forget_place(place);
        self.received.forget_place(place);
    }

    pub fn forget_old(&mut self, now: Moment) {
        self.deleted.forget_old(now);
        self.received.forget_old(now);
    }
}
