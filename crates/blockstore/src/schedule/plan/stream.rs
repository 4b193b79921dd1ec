//! A stream of a plan, its turn, and the pieces that a turn is cut into.

use base::Moment;

/// Pieces end at a page's end, so that no page is written out twice.
const PAGE_BYTES: u64 = 4096;

/// A stream of a plan. No other stream of the plan's life has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Write,
    Read,
}

/// Bytes of a stream's file that have the disk now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub stream: StreamId,
    pub kind: Kind,
    pub begin: u64,
    pub end: u64,
    /// The first of its stream.
    pub is_first: bool,
    /// It goes out because its bytes have waited for long, or the queue is filling up, and not because the stream has a run.
    pub is_due: bool,
}

impl Piece {
    pub fn bytes(&self) -> u64 {
        self.end - self.begin
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    pub kind: Kind,
    /// Bytes admitted and not written to the page cache yet.
    pub reserved: u64,
    /// Those of them for which the stream stood in line, and for which its sender has not asked again.
    pub kept: u64,
    /// The bytes of the file that wait for a turn.
    pub begin: u64,
    pub end: u64,
    pub under_way: u64,
    /// When the oldest of the waiting bytes came.
    pub oldest: Option<Moment>,
    /// Its place among the streams that may have a turn.
    pub ripe: Option<u64>,
    /// It has its turn although it has no run.
    pub is_due: bool,
    pub is_closed: bool,
    pub had_turn: bool,
}

impl Stream {
    pub fn waiting(&self) -> u64 {
        self.end - self.begin
    }

    /// Bytes that count against the queue.
    pub fn held(&self) -> u64 {
        match self.kind {
            Kind::Write => self.reserved + self.waiting() + self.under_way,
            Kind::Read => 0,
        }
    }

    pub fn is_over(&self) -> bool {
        self.is_closed && self.reserved + self.waiting() + self.under_way == 0
    }
}

#[derive(Debug)]
pub(super) struct Turn {
    pub stream: StreamId,
    pub left: u64,
    pub is_begun: bool,
}

/// The next piece of a turn, if the turn goes on.
pub(super) fn cut(id: StreamId, stream: &Stream, turn: &Turn, piece_bytes: u64) -> Option<Piece> {
    let bytes = stream.waiting().min(piece_bytes).min(turn.left);
    // The turn does not wait for more bytes of its stream: less than a piece in the midst of a run is left for the next run.
    let least = match stream.is_due {
        _ if !turn.is_begun || stream.is_closed || stream.kind == Kind::Read => 1,
        true => PAGE_BYTES,
        false => piece_bytes.min(turn.left),
    };
    if bytes < least.max(1) {
        return None;
    }
    let end = stream.begin + bytes;
    let page_end = end - end % PAGE_BYTES;
    let is_whole = stream.is_closed || stream.kind == Kind::Read || page_end <= stream.begin;
    Some(Piece {
        stream: id,
        kind: stream.kind,
        begin: stream.begin,
        end: if is_whole { end } else { page_end },
        is_first: !stream.had_turn,
        is_due: stream.is_due,
    })
}
