//! Finds every intact record of a damaged segment, wherever it stands.
//!
//! [`crate::scan`] stops at the first place that is not as it was written. This module goes on behind it. A record
//! whose header is intact tells its length; behind any other, the next record is looked for at each multiple of 8
//! bytes. Bytes of a payload that look like a record may be found that way. They do no harm: they make a run of their
//! own that joins no known entry, and entries that fill a hole must fit the chains on both its sides.

use crate::{
    block::{Footer, SegmentHeader, VERSION},
    record::{BLOCK_BYTES, HEADER_BYTES, Header, PAYLOAD_BYTES_MAX},
    scan::{self, Damage, End, Scanned},
};
use base::{Chain, Entry, Epoch, GroupId, LogPoint, Sn};
use bytes::Bytes;

/// Intact entries of one log that follow each other. One without entries is a point that is known without its entry: from
/// the header of the segment behind it, for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The chain of the entry before the first one.
    pub before: Chain,
    pub first: Sn,
    /// The epoch of the first entry; meaningless in a run without entries.
    pub first_epoch: Epoch,
    pub last: LogPoint,
}

impl Run {
    /// A point whose entry is not here.
    pub fn known(point: LogPoint) -> Self {
        Self { before: point.chain, first: Sn(point.id.sn.0 + 1), first_epoch: point.id.epoch, last: point }
    }

    pub fn count(&self) -> u64 {
        self.last.id.sn.0 + 1 - self.first.0
    }
}

/// A run and where in its segment it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub run: Run,
    pub offset: u64,
    /// The offset at which the last record ends.
    pub end: u64,
    /// Whether the last record is the last of its batch.
    pub ends_batch: bool,
}

/// How the bytes behind the last intact record look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The run ends as a log does that ends there.
    End(End),
    /// Something stood there that cannot be read any more.
    Rotten,
}

#[derive(Debug)]
pub(crate) struct Salvaged {
    pub header: Option<SegmentHeader>,
    pub runs: Vec<Place>,
    pub footer: Option<Footer>,
    /// The segment reads as it should, from its header to its end.
    pub scanned: Option<Scanned>,
    pub behind: Behind,
    /// The last entry that was written, by headers whose payloads are not intact.
    pub written: Sn,
}

/// Looks through a whole segment whose first entry is `start` by its name. The error is for what is intact and of a version
/// that this program does not know: nothing here has rotted, and nothing may be replaced.
pub(crate) fn salvage(segment: &Bytes, group: GroupId, start: Sn) -> Result<Salvaged, Damage> {
    let header = SegmentHeader::decode(segment).filter(|header| header.group == group);
    if let Some(found) = header.filter(|header| header.version != VERSION) {
        let expected = format!("format version {VERSION}");
        return Err(Damage { offset: 0, expected, found: found.version.to_string() });
    }
    let scanned = scan::scan(segment, group, None, |_, _| Ok::<(), ()>(()))
        .ok()
        .and_then(Result::ok)
        .filter(|scanned| scanned.last.id.sn.0 + 1 - scanned.count == start.0);
    let mut looking =
        Looking { segment, group, position: BLOCK_BYTES, open: None, runs: Vec::new(), written: Sn(0) };
    while looking.step()? {}
    let Looking { mut runs, open, written, .. } = looking;
    runs.extend(open.map(|(place, _)| place));
    let behind = match (&scanned, runs.last()) {
        (Some(scanned), _) => Behind::End(scanned.end),
        (None, Some(last)) => behind(segment, group, last),
        (None, None) => {
            // If the file ends before the place of its first record, it was cut short, and may have held entries.
            let records = segment.get(BLOCK_BYTES as usize..).unwrap_or_default();
            let is_empty = records.len() as u64 >= BLOCK_BYTES && records.iter().all(|byte| *byte == 0);
            if is_empty { Behind::End(End::Open { offset: BLOCK_BYTES }) } else { Behind::Rotten }
        }
    };
    let footer = footer(segment, group);
    Ok(Salvaged { header, runs, footer, scanned, behind, written })
}

fn behind(segment: &Bytes, group: GroupId, last: &Place) -> Behind {
    let is_whole =
        SegmentHeader::decode(segment).is_some_and(|header| segment.len() as u64 >= header.allocated);
    match scan::end_behind(segment, group, last.run.last, last.end, last.ends_batch) {
        Some(end @ End::Sealed { .. }) => Behind::End(end),
        Some(end) if is_whole => Behind::End(end),
        _ => Behind::Rotten,
    }
}

/// The footer of a sealed segment stands in its last block.
fn footer(segment: &Bytes, group: GroupId) -> Option<Footer> {
    let at = (segment.len() as u64).checked_sub(BLOCK_BYTES)?;
    let footer = Footer::decode(&segment[at as usize..])?;
    (footer.group == group && footer.offset == at && footer.version == VERSION).then_some(footer)
}

struct Looking<'a> {
    segment: &'a Bytes,
    group: GroupId,
    position: u64,
    /// The run that the next record may belong to, and where that record must begin then.
    open: Option<(Place, u64)>,
    runs: Vec<Place>,
    written: Sn,
}

impl Looking<'_> {
    /// Looks at one place; false at the segment's end.
    fn step(&mut self) -> Result<bool, Damage> {
        let Some(rest) = self.segment.get(self.position as usize..).filter(|rest| rest.len() >= HEADER_BYTES)
        else {
            return Ok(false);
        };
        let Some(header) = Header::decode(rest).filter(|header| header.group == self.group) else {
            self.position += 8;
            return Ok(true);
        };
        let damage = |expected: &str, found: String| {
            Err(Damage { offset: self.position, expected: expected.into(), found })
        };
        if !header.is_supported() {
            return damage("record version 1", header.version.to_string());
        }
        let total = header.record_bytes();
        let record = rest.get(..total).filter(|_| header.payload_length as usize <= PAYLOAD_BYTES_MAX);
        let Some(record) = record.filter(|record| header.payload_is_intact(record)) else {
            // The header is intact, and so tells how far it goes; unless it goes too far.
            self.written = self.written.max(header.id.sn);
            self.position +=
                if record.is_some() { next(&header, self.position, total) - self.position } else { 8 };
            return Ok(true);
        };
        let Some(entry) = entry(&header, record, self.segment, self.position) else {
            return damage("a kind of entry that this program knows", format!("kind {}", header.kind));
        };
        let (offset, end) = (self.position, self.position + total as u64);
        self.position = next(&header, offset, total);
        match &mut self.open {
            Some((place, at)) if *at == offset && follows(&entry, place.run.last) => {
                (place.run.last, place.end, place.ends_batch) = (entry.point(), end, header.is_last);
                *at = self.position;
            }
            _ => {
                let run = Run {
                    before: entry.previous_chain,
                    first: entry.id.sn,
                    first_epoch: entry.id.epoch,
                    last: entry.point(),
                };
                let begun = (Place { run, offset, end, ends_batch: header.is_last }, self.position);
                self.runs.extend(self.open.replace(begun).map(|(place, _)| place));
            }
        }
        Ok(true)
    }
}

fn next(header: &Header, offset: u64, total: usize) -> u64 {
    let end = offset + total as u64;
    if header.is_last { end.next_multiple_of(BLOCK_BYTES) } else { end }
}

fn follows(entry: &Entry, last: LogPoint) -> bool {
    entry.id.sn.0 == last.id.sn.0 + 1 && entry.previous_chain == last.chain && entry.id.epoch >= last.id.epoch
}

fn entry(header: &Header, record: &[u8], segment: &Bytes, offset: u64) -> Option<Entry> {
    debug_assert_eq!(record.len(), header.record_bytes());
    let start = offset as usize + HEADER_BYTES;
    let payload = segment.slice(start..start + header.payload_length as usize);
    Some(Entry { id: header.id, kind: header.entry_kind()?, previous_chain: header.previous_chain, payload })
}

/// The entries of a run as its segment holds them now; fewer if they have changed since.
pub(crate) fn entries<'a>(segment: &'a Bytes, place: &Place) -> impl Iterator<Item = Entry> + 'a {
    let mut position = place.offset;
    let end = place.end;
    std::iter::from_fn(move || {
        let rest = segment.get(position as usize..).filter(|_| position < end)?;
        let header = Header::decode(rest)?;
        let total = header.record_bytes();
        let record = rest.get(..total).filter(|record| header.payload_is_intact(record))?;
        let entry = entry(&header, record, segment, position)?;
        position = next(&header, position, total);
        Some(entry)
    })
}
