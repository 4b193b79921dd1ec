//! The events of the latest entries, for clients that watch the namespace.
//!
//! Every member of a group holds them while a client watches: a member that takes over goes on where the former active ended, with the numbers of the
//! same log.

use base::Sn;
use namespace::events::Event;
use std::collections::VecDeque;

/// The most bytes that are held, by estimate. The oldest events give way.
pub const BYTES_MAX: usize = 64 << 20;
/// The most bytes of events in one answer, by estimate: a client takes no answer of 128 MiB.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;

/// The events of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub at: Sn,
    pub events: Vec<Event>,
}

/// The answer to a client that asks for the events from one entry on.
#[derive(Debug, PartialEq, Eq)]
pub struct Told<'a> {
    /// The first entry and the last one that were looked through. `None`: nothing can be told yet.
    pub span: Option<(Sn, Sn)>,
    pub batches: Vec<&'a Batch>,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct RecentEvents {
    /// The events of all entries from this one on are held.
    first: Sn,
    batches: VecDeque<Batch>,
    bytes: usize,
    bytes_max: usize,
}

impl RecentEvents {
    /// Begins behind `last`, the last entry that was applied.
    pub fn after(last: Sn) -> Self {
        Self { first: Sn(last.0 + 1), batches: VecDeque::new(), bytes: 0, bytes_max: BYTES_MAX }
    }

    pub fn first(&self) -> Sn {
        self.first
    }

    /// Memory, by estimate.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the events of the next entry; most entries have none.
    pub fn push(&mut self, at: Sn, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let batch = Batch { at, events };
        self.bytes += bytes_of(&batch);
        self.batches.push_back(batch);
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.batches.pop_front()
        {
            self.bytes -= bytes_of(&oldest);
            self.first = Sn(oldest.at.0 + 1);
        }
    }

    /// The events of the entries from `from` on that have committed: whole entries, until there are `events_max` events. An entry that is not held any more
    /// is left out, and the span says so.
    pub fn told(&self, from: Sn, committed: Sn, events_max: usize) -> Told<'_> {
        let first = from.max(self.first);
        let mut told = Told { span: None, batches: Vec::new() };
        if first > committed {
            return told;
        }
        let mut last = committed;
        let (mut events, mut bytes) = (0, 0);
        let begin = self.batches.partition_point(|batch| batch.at < first);
        for batch in self.batches.range(begin..).take_while(|batch| batch.at <= committed) {
            told.batches.push(batch);
            events += batch.events.len();
            bytes += bytes_of(batch);
            if events >= events_max || bytes >= ANSWER_BYTES_MAX {
                last = batch.at;
                break;
            }
        }
        told.span = Some((first, last));
        told
    }
}

fn bytes_of(batch: &Batch) -> usize {
    size_of::<Batch>() + batch.events.iter().map(Event::bytes).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Timestamp;

    fn unlinked(path: &str) -> Event {
        Event::Unlink { path: path.into(), time: Timestamp::from_ms(1) }
    }

    /// Entries 11, 13 and 14 have an event each, and 12 and 15 have none.
    fn events() -> RecentEvents {
        let mut recent = RecentEvents::after(Sn(10));
        for (at, events) in [
            (11, vec![unlinked("/a")]),
            (12, vec![]),
            (13, vec![unlinked("/b")]),
            (14, vec![unlinked("/c")]),
            (15, vec![]),
        ] {
            recent.push(Sn(at), events);
        }
        recent
    }

    fn told(recent: &RecentEvents, from: u64, committed: u64, max: usize) -> (Option<(u64, u64)>, Vec<u64>) {
        let told = recent.told(Sn(from), Sn(committed), max);
        (
            told.span.map(|(first, last)| (first.0, last.0)),
            told.batches.iter().map(|batch| batch.at.0).collect(),
        )
    }

    #[test]
    fn the_events_of_committed_entries_are_told_from_any_entry_on() {
        let recent = events();
        assert_eq!(told(&recent, 11, 15, 9), (Some((11, 15)), vec![11, 13, 14]));
        assert_eq!(told(&recent, 12, 15, 9), (Some((12, 15)), vec![13, 14]));
        assert_eq!(told(&recent, 12, 13, 9), (Some((12, 13)), vec![13]), "14 has not committed");
        assert_eq!(
            told(&recent, 15, 15, 9),
            (Some((15, 15)), vec![]),
            "an entry without an event is passed over"
        );
        assert_eq!(told(&recent, 16, 15, 9), (None, vec![]));
    }

    #[test]
    fn an_answer_ends_behind_the_entry_that_fills_it() {
        let recent = events();
        assert_eq!(told(&recent, 11, 15, 1), (Some((11, 11)), vec![11]));
        assert_eq!(told(&recent, 12, 15, 1), (Some((12, 13)), vec![13]));
        assert_eq!(told(&recent, 14, 15, 1), (Some((14, 14)), vec![14]));
        assert_eq!(told(&recent, 15, 15, 1), (Some((15, 15)), vec![]));
    }

    #[test]
    fn entries_that_are_not_held_are_seen_to_be_missing() {
        let mut recent = events();
        assert_eq!(told(&recent, 3, 15, 9), (Some((11, 15)), vec![11, 13, 14]));
        assert_eq!(told(&recent, 3, 10, 9), (None, vec![]), "nothing that is held has committed");
        recent.bytes_max = recent.bytes();
        recent.push(Sn(16), vec![unlinked("/d")]);
        assert_eq!(recent.first(), Sn(12), "the oldest has given way");
        assert_eq!(told(&recent, 11, 16, 9), (Some((12, 16)), vec![13, 14, 16]));
        recent.push(Sn(17), vec![unlinked(&"x".repeat(4096))]);
        assert_eq!(
            told(&recent, 11, 17, 9),
            (None, vec![]),
            "an event that is larger than all room is missing, too"
        );
        assert_eq!(recent.bytes(), 0);
    }
}
