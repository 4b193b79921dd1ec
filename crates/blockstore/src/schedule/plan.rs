//! Whose turn it is on a disk, and for how long: values in, values out.
//!
//! Streams of writes queue bytes that the page cache has and the disk has not; streams of reads want bytes that the disk has and
//! the page cache has not. One stream after the other has a turn, which is a run of its bytes. A run is granted in
//! pieces, so that urgent work, a sync or a small read, waits for a piece or two and not for all that is queued.
//!
//! The caller tells what happened ([`Plan::wrote`], [`Plan::done`], …) and asks what comes next ([`Plan::next`]).

mod stream;

pub use stream::{Kind, Piece, StreamId};

use base::Moment;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use stream::{Stream, Turn, cut};

/// Pieces under way at a time: one on the medium, and one that the disk finds when it is done with that.
pub const PIECES_UNDER_WAY_MAX: usize = 2;

/// However many readers there are, each may have so much at a time. A reader begins with it.
const READ_BYTES_MIN: u64 = 1 << 20;

/// The measures of a plan, in bytes and milliseconds. A piece is no longer than a run, and a run no longer than the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes that one stream writes or reads in one turn.
    pub run_bytes: u64,
    /// A run is granted to its stream in pieces of this many bytes.
    pub piece_bytes: u64,
    /// The bytes that all write streams of a disk together may have queued.
    pub queue_bytes: u64,
    /// A stream with bytes older than this has a turn although its bytes are less than a run.
    pub linger_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { run_bytes: 32 << 20, piece_bytes: 4 << 20, queue_bytes: 256 << 20, linger_ms: 5_000 }
    }
}

/// Some urgent work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The caller's next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Begin this piece, and say [`Plan::done`] once the medium has it.
    Begin(Piece),
    /// Wait for the oldest piece under way and say [`Plan::done`]; then ask again.
    Finish,
    /// Let these have the disk, and ask again when each has said [`Plan::urgent_done`].
    Urgent(Vec<Ticket>),
    /// Nothing to do before something happens, or before this moment.
    Wait { until: Option<Moment> },
}

/// The turns of one disk.
#[derive(Debug)]
pub struct Plan {
    limits: Limits,
    streams: BTreeMap<StreamId, Stream>,
    next_id: u64,
    next_ripe: u64,
    turn: Option<Turn>,
    last_kind: Kind,
    under_way: VecDeque<Piece>,
    /// Bytes held by all write streams, and how many of them hold any.
    held: u64,
    active: u64,
    /// Write streams for which the disk's queue had no room, in the order in which they came, and the bytes that each asked for.
    line: VecDeque<(StreamId, u64)>,
    /// Readers that begin, in the order in which they came.
    beginners: VecDeque<StreamId>,
    urgent_waiting: Vec<Ticket>,
    urgent_running: BTreeSet<Ticket>,
    was_urgent: bool,
    /// The last piece was the first one of a reader: the next is of a run.
    was_first: bool,
}

impl Plan {
    pub fn new(limits: Limits) -> Self {
        let run_bytes = limits.run_bytes.clamp(1, limits.queue_bytes.max(1));
        let piece_bytes = limits.piece_bytes.clamp(1, run_bytes);
        Self {
            limits: Limits { run_bytes, piece_bytes, queue_bytes: limits.queue_bytes.max(1), ..limits },
            streams: BTreeMap::new(),
            next_id: 0,
            next_ripe: 0,
            turn: None,
            last_kind: Kind::Read,
            under_way: VecDeque::new(),
            held: 0,
            active: 0,
            line: VecDeque::new(),
            beginners: VecDeque::new(),
            urgent_waiting: Vec::new(),
            urgent_running: BTreeSet::new(),
            was_urgent: false,
            was_first: false,
        }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Bytes of write streams that are in the process or the page cache, and not known to be on the medium.
    pub fn queued_bytes(&self) -> u64 {
        self.held
    }

    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Whether the stream is open, or has bytes that are still to go out.
    pub fn has(&self, id: StreamId) -> bool {
        self.streams.contains_key(&id)
    }

    /// Write streams that wait for room in the disk's queue.
    pub fn line_length(&self) -> usize {
        self.line.len()
    }

    /// A new stream.
    pub fn open(&mut self, kind: Kind) -> StreamId {
        let id = StreamId(self.next_id);
        self.next_id += 1;
        let stream = Stream {
            kind,
            reserved: 0,
            kept: 0,
            begin: 0,
            end: 0,
            under_way: 0,
            oldest: None,
            ripe: None,
            is_due: false,
            is_closed: false,
            had_turn: false,
        };
        self.streams.insert(id, stream);
        id
    }

    /// Whether a write stream may take so many bytes from its sender. If so they are held for it from now on. A stream
    /// that holds nothing may always take something once the disk's queue has room: a packet may be larger than a share.
    ///
    /// A stream for which there is no room stands in line. What becomes free is kept for those in front, before they ask
    /// again: if each had to ask in its turn, all would wait for the slowest to be woken.
    pub fn admit(&mut self, id: StreamId, bytes: u64) -> bool {
        let Some(stream) = self.streams.get(&id).filter(|stream| !stream.is_closed) else {
            // Its writer will hear why; the plan holds nothing for it.
            return true;
        };
        let kept = stream.kept;
        if kept > 0 {
            self.change(id, |stream| {
                stream.kept = 0;
                let others = stream.reserved.saturating_sub(kept);
                stream.reserved = if bytes <= kept { others + bytes } else { others };
            });
            if bytes <= kept {
                return true;
            }
        }
        let held = self.streams.get(&id).map_or(0, Stream::held);
        if held > 0 && held + bytes > self.share() {
            self.leave_line(id);
            return false;
        }
        if let Some(waiting) = self.line.iter_mut().find(|waiting| waiting.0 == id) {
            waiting.1 = bytes;
            return false;
        }
        let is_free = self.line.is_empty() && self.has_room(bytes);
        match is_free {
            true => self.change(id, |stream| stream.reserved += bytes),
            false => self.line.push_back((id, bytes)),
        }
        is_free
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.held == 0 || self.held + bytes <= self.limits.queue_bytes
    }

    /// Keeps room for the streams in front of the line.
    fn serve_line(&mut self) {
        while let Some((id, bytes)) = self.line.front().copied()
            && self.has_room(bytes)
        {
            self.line.pop_front();
            if let Some(stream) = self.streams.get_mut(&id) {
                let before = stream.held();
                stream.reserved += bytes;
                stream.kept = bytes;
                self.held += bytes;
                self.active += u64::from(before == 0);
            }
        }
    }

    /// The stream does not wait for room any more.
    fn leave_line(&mut self, id: StreamId) {
        self.line.retain(|waiting| waiting.0 != id);
        self.serve_line();
    }

    /// Of the bytes admitted so many will not be written.
    pub fn give_back(&mut self, id: StreamId, bytes: u64) {
        self.change(id, |stream| stream.reserved = stream.reserved.saturating_sub(bytes));
        self.drop_if_over(id);
    }

    /// Bytes `begin..end` of the stream's file are in the page cache now; `admitted` is what was admitted for them. They follow
    /// those before, or replace some of them. Answers whether [`Plan::next`] may have something new to say.
    pub fn wrote(&mut self, id: StreamId, (begin, end): (u64, u64), admitted: u64, now: Moment) -> bool {
        self.change(id, |stream| {
            stream.reserved = stream.reserved.saturating_sub(admitted);
            if begin >= end || stream.is_closed {
                return;
            }
            if stream.waiting() == 0 {
                (stream.begin, stream.end) = (begin, end);
                stream.oldest = Some(now);
            } else {
                stream.begin = stream.begin.min(begin);
                stream.end = stream.end.max(end);
            }
        });
        self.ripen(id, now) || self.is_pressed()
    }

    /// All that was written before `end` is on the medium: a sync has said so.
    pub fn synced(&mut self, id: StreamId, end: u64) {
        self.change(id, |stream| {
            stream.begin = stream.begin.max(end.min(stream.end));
            if stream.waiting() == 0 {
                (stream.oldest, stream.ripe, stream.is_due) = (None, None, false);
            }
        });
        self.drop_if_over(id);
    }

    /// A read stream wants these bytes, and gets so many of them as it may have at a time: a run, or with many readers
    /// its part of what a queue has, so that nobody waits too long. Answers where they end. What it wanted before is forgotten.
    pub fn want(&mut self, id: StreamId, begin: u64, end: u64) -> u64 {
        let readers =
            self.streams.values().filter(|stream| stream.kind == Kind::Read && stream.waiting() > 0);
        let part = self.limits.queue_bytes / (readers.count() as u64 + 1);
        let bytes = self.limits.run_bytes.min(part.max(READ_BYTES_MIN.min(self.limits.run_bytes)));
        let end = end.min(begin.saturating_add(bytes)).max(begin);
        self.change(id, |stream| (stream.begin, stream.end) = (begin, end));
        self.ripen(id, Moment::default());
        end
    }

    /// A read stream wants its first bytes. It gets few of them, but between two pieces of another stream's run: a client that reads only
    /// the beginning of a replica does not wait for whole runs, and the disk goes there and back once. Answers where these bytes end.
    pub fn want_first(&mut self, id: StreamId, begin: u64, end: u64) -> u64 {
        let bytes = READ_BYTES_MIN.min(self.limits.piece_bytes);
        let end = end.min(begin.saturating_add(bytes)).max(begin);
        self.change(id, |stream| (stream.begin, stream.end) = (begin, end));
        if begin < end && self.has(id) && !self.beginners.contains(&id) {
            self.beginners.push_back(id);
        }
        end
    }

    /// Whether a read stream has been granted all that it wanted.
    pub fn wants_nothing(&self, id: StreamId) -> bool {
        self.streams.get(&id).is_none_or(|stream| stream.waiting() == 0)
    }

    /// The writer or reader has finished the stream: its waiting bytes still go out. The bytes of a write stream that had no turn and
    /// has less than a piece are left to the system. Answers whether [`Plan::next`] may have something new to say.
    pub fn close(&mut self, id: StreamId, now: Moment) -> bool {
        self.leave_line(id);
        let piece_bytes = self.limits.piece_bytes;
        self.change(id, |stream| {
            stream.is_closed = true;
            (stream.reserved, stream.kept) = (0, 0);
            if stream.kind == Kind::Read || (!stream.had_turn && stream.waiting() < piece_bytes) {
                (stream.begin, stream.ripe) = (stream.end, None);
            }
        });
        self.drop_if_over(id);
        self.ripen(id, now)
    }

    /// The stream is gone, and so are the bytes that wait. If it has the turn, the turn passes on.
    pub fn forget(&mut self, id: StreamId) {
        self.leave_line(id);
        self.beginners.retain(|waiting| *waiting != id);
        self.change(id, |stream| {
            stream.is_closed = true;
            (stream.reserved, stream.kept) = (0, 0);
            (stream.begin, stream.oldest, stream.ripe) = (stream.end, None, None);
        });
        self.drop_if_over(id);
    }

    /// Somebody wants the disk for a moment.
    pub fn ask_urgent(&mut self) -> Ticket {
        let ticket = Ticket(self.next_id);
        self.next_id += 1;
        self.urgent_waiting.push(ticket);
        ticket
    }

    /// The urgent work is done, or is not wanted any more.
    pub fn urgent_done(&mut self, ticket: Ticket) {
        self.urgent_running.remove(&ticket);
        self.urgent_waiting.retain(|waiting| *waiting != ticket);
    }

    /// The caller's next step: which piece, or which urgent work, has the disk next.
    pub fn next(&mut self, now: Moment) -> Step {
        if !self.urgent_running.is_empty() {
            return Step::Wait { until: None };
        }
        if !self.urgent_waiting.is_empty() && !self.was_urgent {
            return self.grant_urgent();
        }
        if self.under_way.len() >= PIECES_UNDER_WAY_MAX {
            return Step::Finish;
        }
        let first = if self.was_first { None } else { self.first_piece() };
        self.was_first = first.is_some();
        if let Some(piece) = first.or_else(|| self.next_piece(now)).or_else(|| self.first_piece()) {
            self.was_urgent = false;
            self.under_way.push_back(piece);
            return Step::Begin(piece);
        }
        if !self.urgent_waiting.is_empty() {
            return self.grant_urgent();
        }
        self.was_urgent = false;
        if !self.under_way.is_empty() {
            return Step::Finish;
        }
        let oldest = self.streams.values().filter_map(|stream| stream.oldest).min();
        Step::Wait { until: oldest.map(|oldest| oldest.plus_ms(self.limits.linger_ms)) }
    }

    /// The medium has the oldest piece under way.
    pub fn done(&mut self) -> Option<Piece> {
        let piece = self.under_way.pop_front()?;
        self.change(piece.stream, |stream| stream.under_way -= piece.bytes());
        self.drop_if_over(piece.stream);
        Some(piece)
    }

    /// The first bytes of the reader that has waited longest for them.
    fn first_piece(&mut self) -> Option<Piece> {
        while let Some(id) = self.beginners.pop_front() {
            if let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.waiting() > 0) {
                let (begin, end) = (stream.begin, stream.end);
                let is_first = !stream.had_turn;
                let piece = Piece { stream: id, kind: stream.kind, begin, end, is_first, is_due: false };
                stream.begin = end;
                stream.under_way += piece.bytes();
                stream.had_turn = true;
                return Some(piece);
            }
        }
        None
    }

    /// Urgent work has the disk alone, once the pieces under way are done.
    fn grant_urgent(&mut self) -> Step {
        if !self.under_way.is_empty() {
            return Step::Finish;
        }
        self.was_urgent = true;
        let tickets = std::mem::take(&mut self.urgent_waiting);
        self.urgent_running.extend(&tickets);
        Step::Urgent(tickets)
    }

    fn next_piece(&mut self, now: Moment) -> Option<Piece> {
        loop {
            if self.turn.is_none() {
                self.turn = Some(self.next_turn(now)?);
            }
            let turn = self.turn.as_mut()?;
            let id = turn.stream;
            if let Some(stream) = self.streams.get_mut(&id)
                && let Some(piece) = cut(id, stream, turn, self.limits.piece_bytes)
            {
                stream.begin = piece.end;
                stream.under_way += piece.bytes();
                stream.had_turn = true;
                stream.oldest = stream.oldest.filter(|_| stream.waiting() > 0).map(|_| now);
                turn.is_begun = true;
                turn.left -= piece.bytes();
                return Some(piece);
            }
            if let Some(stream) = self.streams.get_mut(&id) {
                (stream.ripe, stream.is_due) = (None, false);
            }
            self.turn = None;
        }
    }

    /// The next turn: of the ripe streams the one that has waited longest, reads and writes in alternation.
    fn next_turn(&mut self, now: Moment) -> Option<Turn> {
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            self.ripen(id, now);
        }
        let first = |kind: Kind| {
            let ripe = self.streams.iter().filter(|(_, stream)| stream.kind == kind);
            ripe.filter_map(|(id, stream)| Some((stream.ripe?, *id))).min().map(|(_, id)| id)
        };
        let other = match self.last_kind {
            Kind::Write => Kind::Read,
            Kind::Read => Kind::Write,
        };
        let id = first(other).or_else(|| first(self.last_kind)).or_else(|| self.pressed_stream())?;
        let stream = self.streams.get(&id)?;
        self.last_kind = stream.kind;
        let run_bytes = self.limits.run_bytes;
        let left = if stream.is_due { stream.waiting().min(run_bytes) } else { run_bytes };
        Some(Turn { stream: id, left, is_begun: false })
    }

    /// The queue is filling up, and no stream has a run: the stream with the most bytes has a turn with what it has.
    fn pressed_stream(&mut self) -> Option<StreamId> {
        if !self.is_pressed() {
            return None;
        }
        let writes = self.streams.iter_mut().filter(|(_, stream)| stream.kind == Kind::Write);
        let (id, stream) = writes.max_by_key(|(_, stream)| stream.waiting())?;
        stream.is_due = stream.waiting() > 0;
        stream.is_due.then_some(*id)
    }

    fn is_pressed(&self) -> bool {
        !self.line.is_empty() || self.held > self.limits.queue_bytes / 2
    }

    /// What each active write stream may hold.
    fn share(&self) -> u64 {
        (self.limits.queue_bytes / self.active.max(1)).max(1)
    }

    /// Gives the stream a place among the ripe ones, if it is ripe; says whether it got one just now.
    fn ripen(&mut self, id: StreamId, now: Moment) -> bool {
        let enough = self.limits.run_bytes.min(self.share() / 2).max(1);
        let has_turn = self.turn.as_ref().is_some_and(|turn| turn.stream == id);
        let is_beginner = self.beginners.contains(&id);
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        if stream.ripe.is_some() || stream.waiting() == 0 || has_turn || is_beginner {
            return false;
        }
        let is_stale = stream.oldest.is_some_and(|oldest| oldest.plus_ms(self.limits.linger_ms) <= now);
        let is_ripe = stream.kind == Kind::Read || stream.is_closed || stream.waiting() >= enough;
        stream.is_due = !is_ripe && is_stale;
        if is_ripe || is_stale {
            stream.ripe = Some(self.next_ripe);
            self.next_ripe += 1;
        }
        is_ripe || is_stale
    }

    fn change(&mut self, id: StreamId, change: impl FnOnce(&mut Stream)) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let before = stream.held();
        change(stream);
        let after = stream.held();
        self.held = self.held - before + after;
        self.active = self.active - u64::from(before > 0) + u64::from(after > 0);
        if after < before {
            self.serve_line();
        }
    }

    fn drop_if_over(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(Stream::is_over) {
            self.streams.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests;
