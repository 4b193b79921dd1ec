//! The log of a member's store.

use base::{Entry, Epoch, LogPoint, Sn};

/// The content of a store, once everything up to some write is durable.
#[derive(Clone, Default)]
pub struct Log {
    pub start: LogPoint,
    pub entries: Vec<Entry>,
    pub promised: Epoch,
}

impl Log {
    pub fn end(&self) -> LogPoint {
        self.entries.last().map_or(self.start, |entry| entry.point())
    }

    pub fn point(&self, sn: Sn) -> Option<LogPoint> {
        if sn == self.start.id.sn {
            return Some(self.start);
        }
        let index = sn.0.checked_sub(self.start.id.sn.0 + 1)?;
        self.entries.get(index as usize).map(|entry| entry.point())
    }

    /// Forgets the entries up to this one, if it holds it.
    pub fn purge(&mut self, up_to: Sn) {
        if let Some(point) = self.point(up_to) {
            let count = up_to.0 - self.start.id.sn.0;
            self.entries.drain(..count as usize);
            self.start = point;
        }
    }
}
