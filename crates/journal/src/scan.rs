//! Reading a segment: tells records, bytes that were never written, and rotten ones from each other.
//!
//! The rules, for the place where reading stops at entry *n*:
//!
//! - A record whose checksum is right but that does not follow (group, epoch, sn, chain): refused.
//! - A record whose checksum is wrong and that does not look cut off: rotten, refused.
//! - A record that is missing or looks cut off, with a later record that proves *n* durable: refused.
//! - A record that is missing or looks cut off, otherwise: the end of the log. Batches of which several were under
//!   way reach the disk in any order, so intact ones may follow. They were never acknowledged.

use crate::{
    block::{Footer, SegmentHeader, VERSION},
    record::{BLOCK_BYTES, HEADER_BYTES, Header, PAYLOAD_BYTES_MAX, header_looks_torn, record_looks_torn},
};
use base::{Entry, GroupId, LogPoint, Sn};
use bytes::Bytes;

/// Why a segment is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub offset: u64,
    pub expected: String,
    pub found: String,
}

/// How a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The segment ends with its footer, at this offset.
    Sealed { offset: u64 },
    /// The segment is open: nothing was written from this offset on.
    Open { offset: u64 },
    /// The bytes from here on are of writes that were cut off.
    Torn { offset: u64 },
}

/// The result of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    pub end: End,
    pub last: LogPoint,
    pub count: u64,
    /// Bytes that should be zero and are not, where nothing is lost by it.
    pub dirty_padding: Vec<u64>,
}

/// Reads a whole segment that continues `after`, which is `None` when the segment is the first one looked at.
/// `visit` gets each intact entry with its offset and may stop the scan.
///
/// # Errors
/// A [`Damage`] tells where the header, a record or the footer is damaged, does not continue `after`, or is of another
/// group; or that the file is shorter than its header says. The inner result holds the error of `visit`.
pub fn scan<E>(
    segment: &Bytes,
    group: GroupId,
    after: Option<LogPoint>,
    mut visit: impl FnMut(u64, Entry) -> Result<(), E>,
) -> Result<Result<Scanned, E>, Damage> {
    let header = check_header(segment, group, after)?;
    let mut scan = Scan {
        segment,
        group,
        position: BLOCK_BYTES,
        in_batch: false,
        last: header.previous,
        count: 0,
        dirty_padding: Vec::new(),
    };
    let end = loop {
        match scan.next()? {
            Step::Entry(offset, entry) => {
                if let Err(stop) = visit(offset, entry) {
                    return Ok(Err(stop));
                }
            }
            Step::End(end) => break end,
        }
    };
    let length = segment.len() as u64;
    if let End::Open { offset } | End::Torn { offset } = end
        && length < header.allocated
    {
        return Err(Damage {
            offset,
            expected: format!("a footer, or {} bytes as allocated", header.allocated),
            found: format!("neither in a file of {length} bytes"),
        });
    }
    Ok(Ok(Scanned { end, last: scan.last, count: scan.count, dirty_padding: scan.dirty_padding }))
}

/// How a segment ends behind its last intact record, which is of the entry `last`, ends at the offset `end`, and may end its batch.
/// `None`: something stands there that cannot be read.
pub(crate) fn end_behind(
    segment: &Bytes,
    group: GroupId,
    last: LogPoint,
    end: u64,
    ends_batch: bool,
) -> Option<End> {
    let position = if ends_batch { end.next_multiple_of(BLOCK_BYTES) } else { end };
    let in_batch = !ends_batch;
    let mut scan = Scan { segment, group, position, in_batch, last, count: 0, dirty_padding: Vec::new() };
    // A footer counts entries that this scan has not seen: that it names the last one is enough.
    if let Some(offset) = scan.footer_behind() {
        let footer = Footer::decode(&segment[offset as usize..]);
        return footer.filter(|footer| footer.end == last).map(|_| End::Sealed { offset });
    }
    match scan.next().ok()? {
        Step::End(end) => Some(end),
        Step::Entry(..) => None,
    }
}

/// If an intact header, record or footer of a version that this program does not know stands at the offset where a scan
/// was refused, returns a sentence with the version found and the one known.
pub(crate) fn unknown_version(segment: &[u8], offset: u64) -> Option<String> {
    let rest = segment.get(offset as usize..)?;
    let is_known = |version: u32, what: &str, known: u32| {
        (version != known)
            .then(|| format!("{what} at offset {offset} has version {version}, and {known} is known"))
    };
    if offset == 0 {
        return SegmentHeader::decode(rest).and_then(|it| is_known(it.version, "the header", VERSION));
    }
    if let Some(header) = Header::decode(rest) {
        return is_known(header.version.into(), "the record", crate::record::VERSION.into());
    }
    Footer::decode(rest).and_then(|footer| is_known(footer.version, "the footer", VERSION))
}

fn check_header(segment: &[u8], group: GroupId, after: Option<LogPoint>) -> Result<SegmentHeader, Damage> {
    let damage = |expected: String, found: String| Damage { offset: 0, expected, found };
    let header = SegmentHeader::decode(segment).ok_or_else(|| {
        damage("an intact segment header".into(), format!("{} bytes that are none", segment.len().min(4096)))
    })?;
    if header.version != VERSION {
        return Err(damage(format!("format version {VERSION}"), header.version.to_string()));
    }
    if header.group != group {
        return Err(damage(format!("group {group}"), format!("group {}", header.group)));
    }
    if let Some(after) = after
        && header.previous != after
    {
        return Err(damage(
            format!("a segment that continues {after}"),
            format!("one that continues {}", header.previous),
        ));
    }
    Ok(header)
}

enum Step {
    Entry(u64, Entry),
    End(End),
}

struct Scan<'a> {
    segment: &'a Bytes,
    group: GroupId,
    position: u64,
    /// The last record was not the last of its batch.
    in_batch: bool,
    last: LogPoint,
    count: u64,
    dirty_padding: Vec<u64>,
}

impl Scan<'_> {
    fn next(&mut self) -> Result<Step, Damage> {
        let rest = &self.segment[self.position.min(self.segment.len() as u64) as usize..];
        if let Some(header) = Header::decode(rest) {
            return self.record(header, rest);
        }
        if let Some(at) = self.footer_behind() {
            self.position = at;
            self.in_batch = false;
            return self.footer(&self.segment[at as usize..]);
        }
        let seen = &rest[..rest.len().min(HEADER_BYTES)];
        if !header_looks_torn(seen) {
            return Err(self.damage(
                format!("entry {}", self.next_sn()),
                "a record header whose checksum is wrong".into(),
            ));
        }
        let all_zero = seen.iter().all(|byte| *byte == 0);
        self.tail(all_zero && !self.in_batch)
    }

    /// The offset of the footer, if the next thing in the file is one. A footer may also stand inside a batch: a
    /// recovery or a cut may have sealed the segment behind any record. Then there are zeros up to the block of the
    /// footer, perhaps fewer than a header has bytes.
    fn footer_behind(&self) -> Option<u64> {
        let block = self.position.next_multiple_of(BLOCK_BYTES);
        let is_there = self.segment.get(block as usize..).is_some_and(Footer::begins);
        let between = self.segment.get(self.position as usize..block as usize).filter(|_| is_there)?;
        between.iter().all(|byte| *byte == 0).then_some(block)
    }

    fn record(&mut self, header: Header, rest: &[u8]) -> Result<Step, Damage> {
        self.follows(&header)?;
        let total = header.record_bytes();
        let Some(record) = rest.get(..total) else {
            return Err(self.damage(
                format!("entry {} of {total} bytes", header.id),
                format!("the end of the file after {} bytes of it", rest.len()),
            ));
        };
        if !header.payload_is_intact(record) {
            if record_looks_torn(record, self.position) {
                return self.tail(false);
            }
            return Err(
                self.damage(format!("entry {}", header.id), "a payload whose checksum is wrong".into())
            );
        }
        let kind = header.entry_kind().ok_or_else(|| {
            self.damage("a kind of entry that this program knows".into(), format!("kind {}", header.kind))
        })?;
        let offset = self.position;
        let start = offset as usize + HEADER_BYTES;
        let entry = Entry {
            id: header.id,
            kind,
            previous_chain: header.previous_chain,
            payload: self.segment.slice(start..start + header.payload_length as usize),
        };
        self.last = entry.point();
        self.count += 1;
        self.position += total as u64;
        self.in_batch = !header.is_last;
        if header.is_last {
            let end = self.position.next_multiple_of(BLOCK_BYTES).min(self.segment.len() as u64);
            let padding = &self.segment[self.position as usize..end as usize];
            if let Some(at) = padding.iter().position(|byte| *byte != 0) {
                self.dirty_padding.push(self.position + at as u64);
            }
            self.position = self.position.next_multiple_of(BLOCK_BYTES);
        }
        Ok(Step::Entry(offset, entry))
    }

    /// An intact record that does not belong here is never a cut-off write.
    fn follows(&self, header: &Header) -> Result<(), Damage> {
        if !header.is_supported() {
            return Err(self.damage("record version 1".into(), header.version.to_string()));
        }
        if header.group != self.group {
            return Err(self.damage(format!("group {}", self.group), format!("group {}", header.group)));
        }
        if header.id.sn != self.next_sn() {
            return Err(self.damage(format!("entry {}", self.next_sn()), format!("entry {}", header.id)));
        }
        if header.id.epoch < self.last.id.epoch {
            return Err(self.damage(
                format!("epoch {} or later", self.last.id.epoch),
                format!("entry {}: the epoch goes back", header.id),
            ));
        }
        if header.previous_chain != self.last.chain {
            return Err(self.damage(
                format!("an entry that follows {}", self.last),
                format!("entry {} that follows chain {}", header.id, header.previous_chain),
            ));
        }
        if header.is_first == self.in_batch {
            let wanted = if self.in_batch { "the batch to go on" } else { "a batch to begin" };
            return Err(self.damage(wanted.into(), format!("entry {} out of its batch", header.id)));
        }
        if header.payload_length as usize > PAYLOAD_BYTES_MAX {
            return Err(self.damage(
                format!("at most {PAYLOAD_BYTES_MAX} bytes"),
                format!("entry {} of {} bytes", header.id, header.payload_length),
            ));
        }
        Ok(())
    }

    fn footer(&mut self, rest: &[u8]) -> Result<Step, Damage> {
        let Some(footer) = Footer::decode(rest) else {
            // The footer says nothing that the records before it do not say. If the file's name says that it is
            // sealed, the caller, which knows the name, refuses it.
            return self.tail(false);
        };
        let found = (footer.group, footer.end, footer.count, footer.offset);
        let expected = (self.group, self.last, self.count, self.position);
        if found != expected || footer.version != VERSION {
            return Err(self.damage(
                format!("a footer after {} entries, the last {}", self.count, self.last),
                format!("one after {} entries, the last {}", footer.count, footer.end),
            ));
        }
        Ok(Step::End(End::Sealed { offset: self.position }))
    }

    /// Entry *n* is missing or cut off. Damage, if any later record proves that it was durable once.
    fn tail(&self, nothing_written: bool) -> Result<Step, Damage> {
        let missing = self.next_sn();
        let mut at = (self.position + 1).next_multiple_of(BLOCK_BYTES);
        let mut something_follows = false;
        while let Some(block) = self.segment.get(at as usize..).filter(|block| block.len() >= HEADER_BYTES) {
            if let Some(header) = Header::decode(block)
                && header.group == self.group
                && header.id.sn > missing
            {
                something_follows = true;
                if header.durable >= missing {
                    return Err(self.damage(
                        format!("entry {missing}, which was durable when entry {} was written", header.id),
                        format!("nothing intact up to offset {at}"),
                    ));
                }
            }
            at += BLOCK_BYTES;
        }
        let offset = self.position;
        Ok(Step::End(if nothing_written && !something_follows {
            End::Open { offset }
        } else {
            End::Torn { offset }
        }))
    }

    fn next_sn(&self) -> Sn {
        Sn(self.last.id.sn.0.saturating_add(1))
    }

    fn damage(&self, expected: String, found: String) -> Damage {
        Damage { offset: self.position, expected, found }
    }
}

#[cfg(test)]
mod tests;
