//! Keeps the index of older calls: begins it when calls come so fast that the retry cache does not hold those of ten
//! minutes, goes on with the entries that commit, and has the journal keep the entries that it points to.

use super::feed::Taken;
use crate::partition::Partition;
use base::{EntryKind, Moment, Sn, Timestamp};
use env::pulse;
use journal::{Journal, ReadLogError};
use namespace::{
    Edit, OlderCalls, RETRY_WINDOW_MS,
    older_calls::{BUCKETS, Noted, SPAN_MAX, Table},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How far the index may lag behind what has committed. The retry cache holds the calls of 50 s and more.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// How often what is old is let go of, in the index and in the journal.
const TIDY_PERIOD_MS: u64 = 10_000;
/// The pause after a failure, in milliseconds.
const RETRY_PERIOD_MS: u64 = 10_000;
/// After so many failures the index is given up, and the journal keeps nothing for it.
const FAILURES_MAX: u32 = 6;
/// Read from the journal at once.
const PIECE_BYTES: usize = 1 << 20;
/// Noted at once, while nobody can look a call up.
const NOTED_AT_ONCE: usize = 256;
/// A pause between two pieces, while repeated calls wait for the index to be there again after a start.
const PAUSE: Duration = Duration::from_millis(1);
/// If no call waits for the index, the pause is this many times as long as the piece took. All members begin theirs at
/// the same moment, when calls come fastest, and without this they would keep every partition of a small machine from
/// the callers.
const PAUSES_A_PIECE: u32 = 4;
/// The buckets of the index's memory that are made at once: 512 KiB.
const BUCKETS_AT_ONCE: usize = 1 << 13;
/// The journal keeps no segments for the sake of answers while fewer segments than this are free on the disk.
const FREE_SEGMENTS_MIN: u64 = 16;

/// Before any thread may let go of a segment: those that are here are needed if there is to be an index.
pub fn prepare(partition: &Partition) {
    let journal = partition.member.journal();
    if partition.older_answers.is_filling.load(Ordering::Acquire)
        && let Err(error) = journal.keep_from(Sn(0))
    {
        tracing::error!(%error, "the journal does not keep what older calls were answered");
    }
}

/// Runs on a thread of its own until `stop`.
pub fn run(partition: &Arc<Partition>, stop: &AtomicBool) {
    let now = partition.moment();
    let mut indexer = Indexer { partition, stop, not_before: now, tidied: now, failures: 0 };
    while !stop.load(Ordering::Acquire) {
        if partition.moment() >= indexer.not_before && partition.member.ended().borrow().is_none() {
            match indexer.look() {
                Ok(()) => indexer.failures = 0,
                Err(reason) => indexer.on_failure(&reason),
            }
        }
        std::thread::sleep(LOOK_PERIOD);
        pulse::step();
    }
}

struct Indexer<'a> {
    partition: &'a Arc<Partition>,
    stop: &'a AtomicBool,
    not_before: Moment,
    tidied: Moment,
    /// The number of failures one after the other.
    failures: u32,
}

impl Indexer<'_> {
    fn look(&mut self) -> Result<(), String> {
        let older = &self.partition.older_answers;
        let is_outrun = self.partition.tree().namespace.outruns_retry_cache();
        if !older.has_index.load(Ordering::Acquire) {
            if !is_outrun {
                // If there was something to keep at the start, there is not any more.
                if older.is_filling.swap(false, Ordering::AcqRel) {
                    self.drop_index()?;
                }
                return Ok(());
            }
            self.begin()?;
        }
        self.go_on()?;
        if self.partition.moment().ms_since(self.tidied) >= TIDY_PERIOD_MS {
            self.tidied = self.partition.moment();
            self.tidy(is_outrun)?;
        }
        Ok(())
    }

    fn on_failure(&mut self, reason: &str) {
        tracing::error!(reason, "calls that the retry cache has forgotten are not found for now");
        self.not_before = self.partition.moment().plus_ms(RETRY_PERIOD_MS);
        // The window tells that older calls are missing. No call is kept waiting for entries that may never come.
        self.partition.older_answers.is_filling.store(false, Ordering::Release);
        self.failures += 1;
        if self.failures >= FAILURES_MAX
            && let Err(reason) = self.drop_index()
        {
            tracing::error!(reason, "the journal does not let go of what it keeps for older calls");
        }
    }

    fn journal(&self) -> &Journal {
        self.partition.member.journal()
    }

    /// The index begins with the segment that has the calls of ten minutes ago, or with the first one.
    fn begin(&self) -> Result<(), String> {
        let committed = self.partition.commit.committed();
        let (starts, oldest) = (self.journal().segment_starts(), committed.0.saturating_sub(SPAN_MAX));
        let newest = self.time_of(Sn(committed.0.saturating_sub(64)), committed)?.unwrap_or_default();
        let mut first = Sn(committed.0 + 1);
        for start in starts.into_iter().rev().filter(|start| *start <= committed) {
            first = start;
            let time = self.time_of(Sn(start.0 - 1), Sn(start.0 + 64).min(committed))?;
            if start.0 <= oldest || time.is_some_and(|time| time.ms + RETRY_WINDOW_MS <= newest.ms) {
                break;
            }
        }
        self.journal().keep_from(first).map_err(|error| error.to_string())?;
        let table = self.make_table();
        let index = OlderCalls::new(self.partition.env.random.next_u64(), table, Sn(first.0 - 1));
        tracing::info!(from = %first, to = %committed, "calls come faster than the retry cache holds them; they are indexed");
        *self.partition.older_answers.index.write() = Some(index);
        self.partition.older_answers.has_index.store(true, Ordering::Release);
        self.partition.older_answers.feed.open();
        Ok(())
    }

    fn make_table(&self) -> Table {
        let mut table = Table::with_room(BUCKETS);
        loop {
            let begun = self.partition.moment();
            if table.grow(BUCKETS_AT_ONCE) || self.stop.load(Ordering::Acquire) {
                return table;
            }
            pulse::step();
            self.rest(begun);
        }
    }

    /// Leaves the processors to others after a piece of work.
    fn rest(&self, begun: Moment) {
        let took = Duration::from_nanos(self.partition.moment().ns.saturating_sub(begun.ns));
        let is_awaited = self.partition.older_answers.is_filling.load(Ordering::Acquire);
        std::thread::sleep(if is_awaited {
            PAUSE
        } else {
            (took * PAUSES_A_PIECE).clamp(PAUSE, LOOK_PERIOD)
        });
    }

    /// The time of the first edit among these entries.
    fn time_of(&self, after: Sn, up_to: Sn) -> Result<Option<Timestamp>, String> {
        let (_, entries) = self.journal().read(after, up_to, 64 << 10).map_err(|error| error.to_string())?;
        let edits = entries.iter().filter(|entry| entry.kind == EntryKind::Operation);
        Ok(edits.flat_map(|entry| Edit::decode(&entry.payload)).map(|edit| edit.time).next())
    }

    /// Notes what has committed since.
    fn go_on(&self) -> Result<(), String> {
        let older = &self.partition.older_answers;
        while !self.stop.load(Ordering::Acquire) {
            let committed = self.partition.commit.committed();
            let Some(end) = older.index.read().as_ref().map(OlderCalls::end) else { return Ok(()) };
            if end >= committed {
                older.is_filling.store(false, Ordering::Release);
                return Ok(());
            }
            match older.feed.take(end, committed, NOTED_AT_ONCE) {
                Taken::Next(noted) if noted.is_empty() => return Ok(()),
                Taken::Next(noted) => self.note(&noted),
                Taken::ReadUpTo(last) => {
                    let begun = self.partition.moment();
                    let noted = self.read(end, last)?;
                    if noted.is_empty() {
                        return Ok(()); // Committed by others, and not durable here yet.
                    }
                    noted.chunks(NOTED_AT_ONCE).for_each(|noted| self.note(noted));
                    self.rest(begun);
                }
            }
        }
        Ok(())
    }

    fn note(&self, noted: &[Noted]) {
        pulse::step();
        let now = self.partition.moment();
        if let Some(index) = self.partition.older_answers.index.write().as_mut() {
            noted.iter().for_each(|noted| index.note(noted, now));
        }
    }

    /// Reads a piece of the journal behind `after`.
    fn read(&self, after: Sn, up_to: Sn) -> Result<Vec<Noted>, String> {
        let entries = match self.journal().read(after, up_to, PIECE_BYTES) {
            Ok((_, entries)) => entries,
            Err(error) => {
                // An image took the place of these entries. The index so far has a gap behind it, so another one is
                // begun where the journal begins.
                if matches!(error, ReadLogError::Gone { .. }) {
                    self.drop_index()?;
                }
                return Err(error.to_string());
            }
        };
        let noted = entries.iter().map(|entry| match entry.kind {
            EntryKind::Operation => Edit::decode(&entry.payload)
                .map(|edit| Noted::edit(entry.id.sn, &edit))
                .map_err(|error| format!("entry {}: {error}", entry.id)),
            EntryKind::EpochStart | EntryKind::Checkpoint => Ok(Noted::no_edit(entry.id.sn)),
        });
        noted.collect()
    }

    fn drop_index(&self) -> Result<(), String> {
        let older = &self.partition.older_answers;
        older.has_index.store(false, Ordering::Release);
        older.feed.close();
        let index = older.index.write().take();
        drop(index);
        self.journal().keep_from(Sn(u64::MAX)).map_err(|error| error.to_string())
    }

    fn tidy(&self, is_outrun: bool) -> Result<(), String> {
        let older = &self.partition.older_answers;
        let now = self.partition.moment();
        let is_short = self.is_disk_short();
        let from = {
            let mut index = older.index.write();
            let Some(index) = index.as_mut() else { return Ok(()) };
            index.forget_older(Moment { ns: now.ns.saturating_sub(RETRY_WINDOW_MS * 1_000_000) });
            index.from()
        };
        let keep_from = if is_short { Sn(u64::MAX) } else { from };
        self.journal().keep_from(keep_from).map_err(|error| error.to_string())?;
        let first = self.journal().segment_starts().first().copied().unwrap_or_default();
        let cached = self.partition.tree().namespace.counts().retry_entries;
        let is_needed = {
            let mut index = older.index.write();
            let Some(index) = index.as_mut() else { return Ok(()) };
            index.forget_before(first);
            is_outrun || index.span() > cached
        };
        if is_needed { Ok(()) } else { self.drop_index() }
    }

    fn is_disk_short(&self) -> bool {
        let settings = &self.partition.config.group.journal;
        let least = settings.reserve_bytes + FREE_SEGMENTS_MIN * settings.segment_bytes;
        self.journal().room().is_ok_and(|room| room.free_bytes < least)
    }
}
