//! The answers of recent calls, so that a call repeated after a lost reply or a failover is answered like the first
//! time.
//!
//! `apply` alone builds the cache, from the edits' own content. An entry leaves when it is older than [`WINDOW_MS`]
//! by journal time, or when there are more than [`ENTRIES_MAX`]; so it leaves at the same edit on every member.
//! Journal time follows the times in the edits, by [`STEP_MS`] an edit at most: a wall clock that jumps ahead forgets
//! nobody's call before 600,000 more edits have been made.

use crate::{
    Reply, RetryLookup, SnapshotId,
    codec::record_fields,
    digest::{Digester, SeededHash},
};
use base::{CallId, ClientId, CopyOfCall, InodeId, Timestamp};
use hashbrown::HashTable;
use std::{collections::VecDeque, sync::Arc};

/// The call that an edit answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub client: ClientId,
    pub call: CallId,
    pub fingerprint: u64,
}

record_fields! { Origin { client, call, fingerprint } }

/// `dfs.namenode.retrycache.expirytime.millis` of HDFS.
pub const WINDOW_MS: u64 = 600_000;
/// About 60 MiB at most. Chosen by eye.
pub(crate) const ENTRIES_MAX: u64 = 1 << 20;

/// The number of latest calls from which the pace is taken.
const PACE_CALLS: u64 = 1 << 18;

/// How far one edit takes journal time ahead. A cluster of fewer than a thousand edits a second keeps its
/// answers for longer than the window, by count.
pub(crate) const STEP_MS: u64 = 1;

/// Journal time after an edit of this time. No clock turns it back, and none makes it jump.
pub(crate) fn journal_time(before: Timestamp, edit: Timestamp) -> Timestamp {
    if before == Timestamp::default() {
        return edit; // The first one says when the journal begins.
    }
    Timestamp::from_ms(edit.ms.clamp(before.ms, before.ms.saturating_add(STEP_MS)))
}

/// The number of calls at which the index gets the room for all it may ever hold. To grow later would stop the writer
/// for as long as a million calls take to be hashed anew.
const ROOM_AT: usize = 1 << 15;

const PER_PAGE: usize = (64 * 1024 - 16) / size_of::<Record>();

/// Like [`Reply`], as it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    #[default]
    Unit,
    False,
    True,
    Created,
    /// The answer is not kept: the operation recognises its own repetition from the state of the tree.
    Replan,
    Appended,
    Snapshot,
    /// It was answered and has changed nothing. The value says which of its copies was.
    Noted,
}

#[derive(Clone, Default)]
pub(crate) struct Record {
    client: [u8; 16],
    fingerprint: u64,
    /// The inode of `Created` and `Appended`, and the copy of `Noted`.
    value: u64,
    time_ms: u64,
    call: i32,
    kind: Kind,
}

impl Record {
    pub fn new(origin: &Origin, reply: Reply, time: Timestamp) -> Self {
        let (kind, value) = match reply {
            Reply::Unit => (Kind::Unit, 0),
            Reply::Bool(false) => (Kind::False, 0),
            Reply::Bool(true) => (Kind::True, 0),
            Reply::Created(inode) => (Kind::Created, inode.0),
            Reply::Appended(inode) => (Kind::Appended, inode.0),
            Reply::Block { .. } => (Kind::Replan, 0),
            Reply::Snapshot(id) => (Kind::Snapshot, u64::from(id.0)),
        };
        let Origin { client, call, fingerprint } = *origin;
        Self { client: client.0, call: call.0, fingerprint, value, time_ms: time.ms, kind }
    }

    /// The record of a call that was answered and has changed nothing: `copy` is the latest that was.
    pub fn noted(origin: &Origin, copy: CopyOfCall, time: Timestamp) -> Self {
        let value = u64::from(copy.retry_count) << 32 | u64::from(copy.repeats);
        Self { kind: Kind::Noted, value, ..Self::new(origin, Reply::Unit, time) }
    }

    pub fn origin(&self) -> Origin {
        Origin { client: ClientId(self.client), call: CallId(self.call), fingerprint: self.fingerprint }
    }

    pub fn time(&self) -> Timestamp {
        Timestamp::from_ms(self.time_ms)
    }

    /// The lookup's answer about its call.
    fn known(&self) -> RetryLookup {
        RetryLookup::Hit(match self.kind {
            Kind::Unit => Reply::Unit,
            Kind::False => Reply::Bool(false),
            Kind::True => Reply::Bool(true),
            Kind::Created => Reply::Created(InodeId(self.value)),
            Kind::Appended => Reply::Appended(InodeId(self.value)),
            Kind::Snapshot => Reply::Snapshot(SnapshotId(self.value as u32)),
            // Plan again.
            Kind::Replan => return RetryLookup::Miss,
            Kind::Noted => {
                let (retry_count, repeats) = ((self.value >> 32) as u32, self.value as u32);
                return RetryLookup::Noted(CopyOfCall { retry_count, repeats });
            }
        })
    }

    /// The answer as the image writes it: a kind and a value.
    pub fn to_parts(&self) -> (u8, u64) {
        (self.kind as u8, self.value)
    }

    pub fn from_parts(origin: &Origin, time: Timestamp, kind: u8, value: u64) -> Option<Self> {
        let kinds = [
            Kind::Unit,
            Kind::False,
            Kind::True,
            Kind::Created,
            Kind::Replan,
            Kind::Appended,
            Kind::Snapshot,
            Kind::Noted,
        ];
        let kind = kinds.into_iter().find(|known| *known as u8 == kind)?;
        let Origin { client, call, fingerprint } = *origin;
        Some(Self { client: client.0, call: call.0, fingerprint, value, time_ms: time.ms, kind })
    }

    fn digest(&self) -> u64 {
        let mut digester = Digester::new(b'r');
        let client = u128::from_le_bytes(self.client);
        digester.number(client as u64);
        digester.number((client >> 64) as u64);
        digester.number(self.fingerprint);
        digester.number(self.value);
        digester.number(self.time_ms);
        digester.number(u64::from(self.call as u32) << 8 | self.kind as u64);
        digester.finish()
    }
}

/// The records in the order in which they came; their numbers rise without gaps.
#[derive(Clone, Default)]
pub(crate) struct Ring {
    pages: VecDeque<Arc<[Record]>>,
    /// The number of the first slot of the first page.
    base: u64,
    first: u64,
    end: u64,
    digest: u64,
}

impl Ring {
    pub fn len(&self) -> u64 {
        self.end - self.first
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub fn bytes(&self) -> usize {
        self.pages.len() * (PER_PAGE * size_of::<Record>() + 16)
            + self.pages.capacity() * size_of::<Arc<[Record]>>()
    }

    fn get(&self, number: u64) -> &Record {
        let at = (number - self.base) as usize;
        &self.pages[at / PER_PAGE][at % PER_PAGE]
    }

    pub fn iterate(&self) -> impl Iterator<Item = &Record> {
        (self.first..self.end).map(|number| self.get(number))
    }

    /// Whether the latest calls came so fast that as many as are held came within less than the window.
    pub fn is_outrun(&self, now: Timestamp) -> bool {
        self.len() > PACE_CALLS && {
            let took_ms = now.ms.saturating_sub(self.get(self.end - 1 - PACE_CALLS).time_ms);
            took_ms.saturating_mul(ENTRIES_MAX / PACE_CALLS) < WINDOW_MS
        }
    }

    /// How old the oldest record is, or the whole window where none has been dropped for want of room.
    pub fn window_ms(&self, now: Timestamp) -> u64 {
        if self.len() < ENTRIES_MAX {
            return WINDOW_MS;
        }
        now.ms.saturating_sub(self.get(self.first).time_ms).min(WINDOW_MS)
    }

    fn push(&mut self, record: Record) -> u64 {
        let at = (self.end - self.base) as usize;
        if at / PER_PAGE == self.pages.len() {
            self.pages.push_back(std::iter::repeat_n(Record::default(), PER_PAGE).collect());
        }
        self.digest = self.digest.wrapping_add(record.digest());
        Arc::make_mut(&mut self.pages[at / PER_PAGE])[at % PER_PAGE] = record;
        self.end += 1;
        self.end - 1
    }

    fn pop(&mut self) {
        self.digest = self.digest.wrapping_sub(self.get(self.first).digest());
        self.first += 1;
        while self.first - self.base >= PER_PAGE as u64 {
            self.pages.pop_front();
            self.base += PER_PAGE as u64;
        }
    }
}

/// Finds the latest record of a call. Numbers are kept by their low 32 bits: there are never that many.
pub(crate) struct RetryIndex {
    hash: SeededHash,
    numbers: HashTable<u32>,
}

pub(crate) fn hash_call(hash: &SeededHash, client: &[u8; 16], call: i32) -> u64 {
    let mut key = [0; 20];
    key[..16].copy_from_slice(client);
    key[16..].copy_from_slice(&call.to_le_bytes());
    hash.bytes(&key)
}

impl RetryIndex {
    pub fn new(seed: u64) -> Self {
        Self { hash: SeededHash::new(seed), numbers: HashTable::new() }
    }

    pub fn bytes(&self) -> usize {
        self.numbers.allocation_size()
    }

    fn hash_of(&self, client: &[u8; 16], call: i32) -> u64 {
        hash_call(&self.hash, client, call)
    }

    fn number(ring: &Ring, low: u32) -> u64 {
        ring.first + u64::from(low.wrapping_sub(ring.first as u32))
    }

    pub fn lookup(&self, ring: &Ring, client: ClientId, call: CallId, fingerprint: u64) -> RetryLookup {
        let hash = self.hash_of(&client.0, call.0);
        let found = self.numbers.find(hash, |low| {
            let record = ring.get(Self::number(ring, *low));
            record.client == client.0 && record.call == call.0
        });
        let Some(low) = found else {
            return RetryLookup::Miss;
        };
        let record = ring.get(Self::number(ring, *low));
        if record.fingerprint != fingerprint {
            return RetryLookup::Mismatch;
        }
        record.known()
    }

    pub fn insert(&mut self, ring: &mut Ring, record: Record) {
        let hash = self.hash_of(&record.client, record.call);
        let same = |low: &u32| {
            let other = ring.get(Self::number(ring, *low));
            other.client == record.client && other.call == record.call
        };
        if let Ok(entry) = self.numbers.find_entry(hash, same) {
            entry.remove();
        }
        let number = ring.push(record);
        let ring = &*ring;
        let (hasher, table) = (&self.hash, &mut self.numbers);
        let hash_again = |low: &u32| {
            let record = ring.get(Self::number(ring, *low));
            hash_call(hasher, &record.client, record.call)
        };
        if table.len() == ROOM_AT {
            table.reserve(ENTRIES_MAX as usize + 1 - ROOM_AT, hash_again);
        }
        table.insert_unique(hash, number as u32, hash_again);
    }

    /// Forgets what is too old at `time`, or too much.
    pub fn evict(&mut self, ring: &mut Ring, time: Timestamp) {
        while ring.len() > 0 {
            let record = ring.get(ring.first);
            if ring.len() <= ENTRIES_MAX && record.time_ms.saturating_add(WINDOW_MS) >= time.ms {
                return;
            }
            let hash = self.hash_of(&record.client, record.call);
            let low = ring.first as u32;
            if let Ok(entry) = self.numbers.find_entry(hash, |other| *other == low) {
                entry.remove();
            }
            ring.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_time_neither_jumps_nor_goes_back() {
        let at = Timestamp::from_ms;
        assert_eq!(journal_time(Timestamp::default(), at(5_000)), at(5_000));
        assert_eq!(journal_time(at(5_000), at(5_000)), at(5_000));
        assert_eq!(journal_time(at(5_000), at(4_000)), at(5_000));
        assert_eq!(journal_time(at(5_000), at(3_600_000)), at(5_000 + STEP_MS));
    }

    #[test]
    fn what_is_too_old_by_journal_time_is_forgotten() {
        let (mut index, mut ring) = (RetryIndex::new(1), Ring::default());
        let origin = |call| Origin {
            client: ClientId([7; 16]),
            call: CallId(call),
            fingerprint: u64::from(call as u32),
        };
        for (call, ms) in [(1, 1_000), (2, 2_000)] {
            index.insert(&mut ring, Record::new(&origin(call), Reply::Unit, Timestamp::from_ms(ms)));
        }
        let found = |index: &RetryIndex, ring: &Ring, call: i32| {
            index.lookup(ring, ClientId([7; 16]), CallId(call), u64::from(call as u32))
        };
        index.evict(&mut ring, Timestamp::from_ms(1_000 + WINDOW_MS));
        assert_eq!(found(&index, &ring, 1), RetryLookup::Hit(Reply::Unit));
        index.evict(&mut ring, Timestamp::from_ms(1_001 + WINDOW_MS));
        assert_eq!(found(&index, &ring, 1), RetryLookup::Miss);
        assert_eq!(found(&index, &ring, 2), RetryLookup::Hit(Reply::Unit));
    }
}
