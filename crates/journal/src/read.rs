//! Reading durable entries back from the segments, beside the running service.

use crate::{
    Journal, ReadLogError,
    block::{Footer, SegmentHeader},
    flow::Shared,
    index::{Mark, Place},
    record::{BLOCK_BYTES, HEADER_BYTES, Header, PAYLOAD_BYTES_MAX},
};
use base::{Entry, LogPoint, Sn};
use bytes::Bytes;
use env::{File, OpenMode};
use std::{io, sync::Arc};

/// The bytes that are read from the disk at once. More are read only for an entry that is larger.
const PIECE_BYTES: usize = 256 << 10;

impl Journal {
    /// The durable entries after `after`, none above `up_to`, of about `bytes_max` bytes of payload (at least
    /// one entry, if there is one), and the point of `after` itself. Blocks for the disk; takes no more memory
    /// than it answers, and a piece.
    ///
    /// # Errors
    /// [`ReadLogError::Gone`] if the entry after `after` is not in the log any more. [`ReadLogError::Failed`] if
    /// `after` is not durable yet, the log is being cut, or a segment cannot be read.
    pub fn read(
        &self,
        after: Sn,
        up_to: Sn,
        bytes_max: usize,
    ) -> Result<(LogPoint, Vec<Entry>), ReadLogError> {
        self.shared().read(after, up_to, bytes_max)
    }
}

impl Shared {
    pub(crate) fn read(
        &self,
        after: Sn,
        up_to: Sn,
        bytes_max: usize,
    ) -> Result<(LogPoint, Vec<Entry>), ReadLogError> {
        let failed = |reason: String| ReadLogError::Failed { after, reason, disk: None };
        let disk_failed = |error: io::Error| ReadLogError::Failed {
            after,
            reason: error.to_string(),
            disk: Some(error.kind()),
        };
        let (durable, cuts) = {
            let inner = self.inner.lock();
            (inner.durable, inner.cuts)
        };
        if after > durable {
            return Err(failed(format!("the log is durable up to {durable}")));
        }
        let next = Sn(after.0 + 1);
        let (place, floor) = {
            let index = self.index.lock();
            (index.place_of(next).cloned(), index.floor())
        };
        let Some(place) = place else {
            // A log without an entry still knows where it ends: after an image was installed, for one.
            return match floor {
                Some(floor) if floor.id.sn == after => Ok((floor, Vec::new())),
                _ => Err(self.gone(after)),
            };
        };
        let mut reading = Reading {
            log: self,
            up_to: up_to.min(durable).max(after),
            bytes_left: bytes_max,
            after,
            point: None,
            entries: Vec::new(),
        };
        reading.run(place).map_err(|error| match error.kind() {
            // Purged meanwhile, or the disk has lost it.
            io::ErrorKind::NotFound => match self.gone(after) {
                ReadLogError::Gone { first, .. } if first > after => ReadLogError::Gone { after, first },
                _ => disk_failed(error),
            },
            _ => disk_failed(error),
        })?;
        let Reading { point, entries, .. } = reading;
        if self.inner.lock().cuts != cuts {
            return Err(failed("the log was cut meanwhile".into()));
        }
        let point = point.ok_or_else(|| failed("the entry was not found".into()))?;
        Ok((point, entries))
    }

    fn gone(&self, after: Sn) -> ReadLogError {
        let index = self.index.lock();
        let first = index.first().map(|place| Sn(place.start.0 - 1));
        let floor = index.floor().map(|floor| floor.id.sn);
        ReadLogError::Gone { after, first: first.or(floor).unwrap_or_default() }
    }

    /// The offset in the segment at which the bytes of this entry end. A cut of the log behind the entry begins
    /// there.
    ///
    /// # Errors
    /// `InvalidData` if the segment is damaged or ends before the entry; or its file cannot be read.
    pub(crate) fn offset_after(&self, place: &Place, last: Sn) -> io::Result<(u64, LogPoint)> {
        let mut segment = SegmentReader::open(self, place, last)?;
        while segment.last.id.sn < last {
            segment.next()?.ok_or_else(|| segment.damaged("an entry", "the segment's footer"))?;
        }
        Ok((segment.end, segment.last))
    }
}

/// One call of `read`.
struct Reading<'a> {
    log: &'a Shared,
    after: Sn,
    up_to: Sn,
    bytes_left: usize,
    /// The point of `after`, once it was passed.
    point: Option<LogPoint>,
    entries: Vec<Entry>,
}

impl Reading<'_> {
    fn run(&mut self, mut place: Place) -> io::Result<()> {
        loop {
            let mut segment = SegmentReader::open(self.log, &place, self.after)?;
            if self.take_from(&mut segment)? {
                return Ok(());
            }
            // The footer: the next segment goes on.
            let last = segment.last;
            let next = self.log.index.lock().place_of(Sn(last.id.sn.0 + 1)).cloned();
            match next {
                Some(next) if next.start.0 == last.id.sn.0 + 1 => place = next,
                _ => return Err(segment.damaged("another segment behind its footer", "none")),
            }
        }
    }

    /// Whether everything wanted is there.
    fn take_from(&mut self, segment: &mut SegmentReader<'_>) -> io::Result<bool> {
        loop {
            if segment.last.id.sn == self.after {
                self.point = Some(segment.last);
            }
            if segment.last.id.sn >= self.up_to {
                return Ok(true);
            }
            let Some(entry) = segment.next()? else { return Ok(false) };
            if entry.id.sn <= self.after {
                continue;
            }
            let bytes = entry.payload.len() + HEADER_BYTES;
            if bytes > self.bytes_left && !self.entries.is_empty() {
                return Ok(true);
            }
            self.bytes_left = self.bytes_left.saturating_sub(bytes);
            self.entries.push(entry);
        }
    }
}

/// Goes through one segment, from a mark near the entry that is wanted.
pub(crate) struct SegmentReader<'a> {
    log: &'a Shared,
    start: Sn,
    /// The life of the file that this reader reads. The marks that it learns hold for this life only.
    life: u64,
    file: Arc<dyn File>,
    name: String,
    /// The offset at which the next record is looked for.
    pub position: u64,
    /// The offset at which the last record ended.
    pub end: u64,
    /// The last entry passed.
    pub last: LogPoint,
    in_batch: bool,
    piece: Vec<u8>,
    piece_at: u64,
}

impl<'a> SegmentReader<'a> {
    pub fn open(log: &'a Shared, place: &Place, after: Sn) -> io::Result<Self> {
        let directory = log.log_directory();
        let open = |place: &Place| log.env.disk.open(&place.path(&directory), OpenMode::Read);
        let file = match open(place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && place.is_open => {
                // It was sealed since its place was looked up.
                open(&place.clone().sealed())
            }
            result => result,
        }?;
        let name = place.path(&directory).display().to_string();
        // Asked after the file was opened: if it was replaced meanwhile, either may be open, and its own header tells.
        let is_alive = log.index.lock().is_alive(place.start, place.life());
        let mut reader = Self {
            log,
            start: place.start,
            life: if is_alive { place.life() } else { u64::MAX },
            file,
            name,
            position: BLOCK_BYTES,
            end: BLOCK_BYTES,
            last: LogPoint::default(),
            in_batch: false,
            piece: Vec::new(),
            piece_at: 0,
        };
        match place.mark_before(after).filter(|_| is_alive) {
            Some(mark) => {
                reader.position = mark.offset;
                reader.end = mark.offset;
                reader.last = mark.previous;
            }
            None => {
                let block = reader.bytes(0, BLOCK_BYTES as usize)?;
                let header = SegmentHeader::decode(block).filter(|header| header.group == log.group);
                let header = header.ok_or_else(|| reader.damaged("an intact segment header", "none"))?;
                reader.last = header.previous;
                reader.mark();
            }
        }
        Ok(reader)
    }

    /// The next entry; `None` at the footer.
    pub fn next(&mut self) -> io::Result<Option<Entry>> {
        let position = self.position;
        let head = self.bytes(position, HEADER_BYTES)?;
        let Some(header) = Header::decode(head) else {
            let footer_at = position.next_multiple_of(BLOCK_BYTES);
            if Footer::begins(self.bytes(footer_at, HEADER_BYTES)?) {
                return Ok(None);
            }
            return Err(self.damaged("an entry or the segment's footer", "neither"));
        };
        let (last, group) = (self.last, self.log.group);
        let follows = header.is_supported()
            && header.group == group
            && header.id.sn.0 == last.id.sn.0 + 1
            && header.id.epoch >= last.id.epoch
            && header.previous_chain == last.chain
            && header.payload_length as usize <= PAYLOAD_BYTES_MAX;
        if !follows {
            return Err(self.damaged(&format!("an entry that follows {last}"), &header.id.to_string()));
        }
        let total = header.record_bytes();
        let record = self.bytes(position, total)?;
        let kind = header.entry_kind().filter(|_| header.payload_is_intact(record));
        let payload = Bytes::copy_from_slice(&record[HEADER_BYTES..][..header.payload_length as usize]);
        let kind = kind.ok_or_else(|| self.damaged("an intact entry", &header.id.to_string()))?;
        let entry = Entry { id: header.id, kind, previous_chain: header.previous_chain, payload };
        self.last = entry.point();
        self.end = position + total as u64;
        self.in_batch = !header.is_last;
        self.position = self.end;
        if header.is_last {
            self.position = self.position.next_multiple_of(BLOCK_BYTES);
            self.mark();
        }
        Ok(Some(entry))
    }

    /// Notes that a batch begins here, so that a later read can begin here too.
    fn mark(&self) {
        if !self.in_batch {
            let mark = Mark { previous: self.last, offset: self.position };
            self.log.index.lock().mark(self.start, self.life, mark);
        }
    }

    /// Reads `count` bytes of the file from the offset `at`; fewer where the file ends.
    pub fn bytes(&mut self, at: u64, count: usize) -> io::Result<&[u8]> {
        let is_here = at >= self.piece_at && at + count as u64 <= self.piece_at + self.piece.len() as u64;
        if !is_here {
            self.piece.resize(count.max(PIECE_BYTES), 0);
            let read = self.file.read_at(&mut self.piece, at)?;
            self.piece.truncate(read);
            self.piece_at = at;
        }
        let from = (at - self.piece_at) as usize;
        self.piece.get(from..from + count).ok_or_else(|| {
            let what = format!("{}: expected {count} bytes at offset {at}, found its end", self.name);
            io::Error::new(io::ErrorKind::UnexpectedEof, what)
        })
    }

    pub fn damaged(&self, expected: &str, found: &str) -> io::Error {
        let what = format!("{} at offset {}: expected {expected}, found {found}", self.name, self.position);
        io::Error::new(io::ErrorKind::InvalidData, what)
    }
}
