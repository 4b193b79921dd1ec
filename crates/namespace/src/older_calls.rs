//! An index of the places in the journal of those calls that the retry cache has forgotten.
//!
//! The retry cache holds the latest 2^20 answers whole. Of older calls only the place of their edit is kept here, in
//! four bytes; the answer is in the journal. A place is a range of [`RANGE`] entries, and a lookup
//! reads them and compares client and call id, since another call may have left the same four bytes.
//!
//! Each call has two buckets of one cache line, chosen by a hash that strangers cannot guess, and goes into the emptier
//! one. Nothing is taken out: a slot is free again when its entry is older than [`OlderCalls::from`]. Entries are
//! numbered modulo 2^24, so a bucket is cleared of old ones in turn while new ones come, long before a number comes again.
//!
//! This is no part of the replicated state. Each member fills it with the committed entries of its own journal, and
//! an answer read from there is equal on all members.

use crate::{Edit, RetryLookup, digest::SeededHash, retry, retry::Origin};
use base::{CallId, CallOrigin, ClientId, Moment, Sn, Timestamp};
use std::{collections::VecDeque, ops::RangeInclusive};

/// How many entries of the journal one place stands for.
pub const RANGE: u64 = 1 << RANGE_BITS;
const RANGE_BITS: u32 = 10;
/// The bits of a slot that hold the number of a range.
const NUMBER_BITS: u32 = 14;
const NUMBERS: u32 = 1 << NUMBER_BITS;
const TAG_BITS: u32 = 32 - NUMBER_BITS;

/// The most entries that are looked back on: ten minutes at 20,000 edits a second, and half a minute.
pub const SPAN_MAX: u64 = 3 << 22;
const _: () = assert!(SPAN_MAX >= 20_000 * retry::WINDOW_MS / 1_000);
/// Within so many entries each bucket is cleared once. Together with [`SPAN_MAX`] it is less than all numbers.
const SWEEP: u64 = 1 << 21;
const _: () = assert!(SPAN_MAX + SWEEP + 2 * RANGE <= (NUMBERS as u64) << RANGE_BITS);

const SLOTS: usize = 16;

/// 2^20 buckets of 64 bytes: three quarters full with [`SPAN_MAX`] calls. With the retry cache itself, which may have
/// 61 MB, it is less than 128 MiB.
pub const BUCKETS: usize = 1 << 20;

/// After so many entries, or so long, it is noted anew when an entry was made.
const MARK_DISTANCE: u64 = 1 << 14;
const MARK_PERIOD_MS: u64 = 10_000;

type Bucket = [u32; SLOTS];

/// The memory of an [`OlderCalls`], made a piece at a time. The kernel clears every page of it at the first touch, which takes a fifth of
/// a second for the whole, on every member at the same moment.
pub struct Table {
    made: Vec<Bucket>,
    wanted: usize,
}

impl Table {
    /// Room for so many buckets, a power of two; [`BUCKETS`] in a server. No memory is touched yet.
    ///
    /// # Panics
    /// `buckets` is no power of two, is below 2, or is above [`BUCKETS`].
    pub fn with_room(buckets: usize) -> Self {
        assert!(
            buckets.is_power_of_two() && (2..=BUCKETS).contains(&buckets),
            "a table of {buckets} buckets"
        );
        Self { made: Vec::with_capacity(buckets), wanted: buckets }
    }

    /// Makes at most so many buckets more. True: all are made.
    pub fn grow(&mut self, buckets: usize) -> bool {
        let size = self.wanted.min(self.made.len() + buckets);
        self.made.resize(size, [0; SLOTS]);
        size == self.wanted
    }
}

/// See the module's documentation.
pub struct OlderCalls {
    hash: SeededHash,
    buckets: Vec<Bucket>,
    from: Sn,
    end: Sn,
    next_swept: usize,
    /// Buckets to be cleared, times [`SWEEP`].
    sweep_debt: u64,
    marks: VecDeque<Mark>,
    newest: Timestamp,
}

/// One entry of the journal, as the index takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    at: Sn,
    /// When its edit was planned. `None`: the entry is no edit.
    time: Option<Timestamp>,
    /// The call whose answer its edit has.
    call: Option<(ClientId, CallId)>,
}

impl Noted {
    /// The entry at `at` holds this edit.
    pub fn edit(at: Sn, edit: &Edit) -> Self {
        // A call that is planned anew when it is repeated has no answer to be found.
        let is_told = edit.answer().is_some() || edit.noted_copy().is_some();
        let origin = edit.origin.as_ref().filter(|_| is_told);
        Self { at, time: Some(edit.time), call: origin.map(|origin| (origin.client, origin.call)) }
    }

    /// The entry at `at` begins an epoch or is a checkpoint.
    pub fn no_edit(at: Sn) -> Self {
        Self { at, time: None, call: None }
    }

    /// The number of the entry.
    pub fn at(&self) -> Sn {
        self.at
    }
}

struct Mark {
    /// The first entry that it speaks of.
    from: Sn,
    /// When that entry was planned, by the clock of the active of its time.
    time: Timestamp,
    /// When this member indexed it.
    indexed: Moment,
}

impl OlderCalls {
    /// Knows the calls after `after` as soon as they were noted. `seed` keys the table of this process; what `table` lacks of its
    /// buckets is made at once.
    pub fn new(seed: u64, mut table: Table, after: Sn) -> Self {
        while !table.grow(BUCKETS) {}
        Self {
            hash: SeededHash::new(seed),
            buckets: table.made,
            from: Sn(after.0 + 1),
            end: after,
            next_swept: 0,
            sweep_debt: 0,
            marks: VecDeque::new(),
            newest: Timestamp::default(),
        }
    }

    /// The first entry whose call is still found.
    pub fn from(&self) -> Sn {
        self.from
    }

    /// The last entry that was noted.
    pub fn end(&self) -> Sn {
        self.end
    }

    /// How many entries are looked back on.
    pub fn span(&self) -> u64 {
        (self.end.0 + 1).saturating_sub(self.from.0)
    }

    pub fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>() + self.marks.capacity() * size_of::<Mark>()
    }

    /// How old the oldest call is that is found, by the clocks of those who led.
    pub fn window_ms(&self) -> u64 {
        let mark = self.marks.iter().find(|mark| mark.from >= self.from);
        mark.map_or(0, |mark| self.newest.ms.saturating_sub(mark.time.ms))
    }

    /// Takes the next entry. `now` is this member's own time.
    pub fn note(&mut self, noted: &Noted, now: Moment) {
        let at = noted.at;
        self.pass(at);
        let Some(time) = noted.time else { return };
        self.newest = self.newest.max(time);
        let is_far =
            |last: &Mark| at.0 - last.from.0 >= MARK_DISTANCE || now.ms_since(last.indexed) >= MARK_PERIOD_MS;
        if self.marks.back().is_none_or(is_far) {
            self.marks.push_back(Mark { from: at, time, indexed: now });
        }
        if let Some((client, call)) = noted.call {
            self.insert(client, call, at);
        }
    }

    fn pass(&mut self, at: Sn) {
        assert!(at > self.end, "entry {at} after {}", self.end);
        let step = at.0 - self.end.0;
        self.end = at;
        self.forget_before(Sn((at.0 + 1).saturating_sub(SPAN_MAX)));
        self.sweep(step);
    }

    /// Forgets the calls that were noted before `moment`: they are needed no longer.
    pub fn forget_older(&mut self, moment: Moment) {
        let old = self.marks.iter().take_while(|mark| mark.indexed <= moment).last();
        if let Some(from) = old.map(|mark| mark.from) {
            self.forget_before(from);
        }
    }

    /// From now on, calls whose entries stand before this one are not found.
    pub fn forget_before(&mut self, from: Sn) {
        self.from = self.from.max(from);
        while self.marks.get(1).is_some_and(|second| second.from <= self.from) {
            self.marks.pop_front();
        }
    }

    /// The ranges of entries among which the edit of this call may be, the latest first. Nearly always none.
    pub fn places(&self, client: ClientId, call: CallId) -> Vec<RangeInclusive<Sn>> {
        let (tag, buckets) = self.homes(client, call);
        let mut ages = Vec::new();
        for bucket in buckets {
            let slots = self.buckets[bucket].iter();
            ages.extend(slots.filter(|slot| **slot >> NUMBER_BITS == tag).filter_map(|slot| self.age(*slot)));
        }
        ages.sort_unstable();
        ages.dedup();
        let last = self.end.0 >> RANGE_BITS;
        let range = |age: u32| {
            let first = (last - u64::from(age)) << RANGE_BITS;
            Sn(first).max(self.from)..=Sn(first + RANGE - 1).min(self.end)
        };
        ages.into_iter().map(range).collect()
    }

    fn insert(&mut self, client: ClientId, call: CallId, at: Sn) {
        let (tag, homes) = self.homes(client, call);
        let free = homes.map(|home| self.slots(&[home]).filter(|(_, _, age)| age.is_none()).count());
        let emptier = if free[1] > free[0] { &homes[1..] } else { &homes[..1] };
        let among = if free == [0, 0] { &homes[..] } else { emptier };
        let age_or_free = |age: Option<u32>| age.unwrap_or(u32::MAX);
        let (home, slot, age) =
            self.slots(among).max_by_key(|(_, _, age)| age_or_free(*age)).expect("a bucket has slots");
        if let Some(age) = age {
            // Both buckets are full, which is next to impossible below the span. The call that gives way is
            // forgotten, and with it every older one, so that the window is true for all calls.
            let first = ((self.end.0 >> RANGE_BITS) - u64::from(age)) << RANGE_BITS;
            self.forget_before(Sn(first + RANGE));
        }
        let number = (at.0 >> RANGE_BITS) as u32 % NUMBERS;
        self.buckets[home][slot] = tag << NUMBER_BITS | number;
    }

    /// The slots of these buckets, each with its age.
    fn slots<'a>(&'a self, homes: &'a [usize]) -> impl Iterator<Item = (usize, usize, Option<u32>)> + 'a {
        let of = |home: &'a usize| (0..SLOTS).map(|slot| (*home, slot, self.age(self.buckets[*home][slot])));
        homes.iter().flat_map(of)
    }

    /// The tag of a call, never 0, and its two buckets.
    fn homes(&self, client: ClientId, call: CallId) -> (u32, [usize; 2]) {
        let hash = retry::hash_call(&self.hash, &client.0, call.0);
        let mask = self.buckets.len() - 1;
        let tag = (hash >> (64 - TAG_BITS)) as u32;
        let first = hash as usize & mask;
        let second = (hash >> 20) as usize & mask;
        (tag.max(1), [first, if second == first { first ^ 1 } else { second }])
    }

    /// How many ranges ago a slot's entry was made; `None` for one that is free.
    fn age(&self, slot: u32) -> Option<u32> {
        let last = (self.end.0 >> RANGE_BITS) as u32;
        let age = last.wrapping_sub(slot) % NUMBERS;
        let oldest = (self.end.0 >> RANGE_BITS).saturating_sub(self.from.0 >> RANGE_BITS);
        (slot != 0 && u64::from(age) <= oldest && self.from <= self.end).then_some(age)
    }

    /// Clears as many buckets as `step` entries have to.
    fn sweep(&mut self, step: u64) {
        let count = self.buckets.len();
        let debt = self.sweep_debt.saturating_add(step.saturating_mul(count as u64));
        self.sweep_debt = debt % SWEEP;
        for _ in 0..(debt / SWEEP).min(count as u64) {
            let mut bucket = self.buckets[self.next_swept];
            for slot in &mut bucket {
                *slot = if self.age(*slot).is_some() { *slot } else { 0 };
            }
            self.buckets[self.next_swept] = bucket;
            self.next_swept = (self.next_swept + 1) % count;
        }
    }
}

/// The answer to a call from an edit that was read back; `None` if the edit answers another call.
pub fn answer_of(edit: &Edit, call: &CallOrigin, fingerprint: u64) -> Option<RetryLookup> {
    let Origin { client, call: id, fingerprint: known } = edit.origin?;
    if (client, id) != (call.client_id, call.call_id) {
        return None;
    }
    if known != fingerprint {
        return Some(RetryLookup::Mismatch);
    }
    edit.noted_copy().map(RetryLookup::Noted).or_else(|| edit.answer().map(RetryLookup::Hit))
}
