//! A segment of the log: its entries, how it ends, and what is around a place that is damaged.

use super::{Args, REMEDY, dump, entry};
use anyhow::{Context, bail};
use base::{Entry, GroupId};
use bytes::Bytes;
use journal::{
    record::{HEADER_BYTES, Header},
    scan::{Damage, End, Scanned, scan},
};
use serde_json::json;
use std::{convert::Infallible, io::Write, path::Path};

/// A segment is 64 MiB unless its server was told otherwise; more than this is none.
const FILE_BYTES_MAX: u64 = 4 << 30;
/// How many records behind a damaged place are shown.
const RECORDS_BEHIND: usize = 5;
const DUMPED_BYTES: usize = 128;

/// The result of reading one segment.
pub struct Read {
    pub bytes: Bytes,
    pub group: GroupId,
    pub first: Option<base::TxId>,
    pub result: Result<Scanned, Damage>,
}

impl Read {
    pub fn is_sound(&self) -> bool {
        self.result.is_ok()
    }

    /// How it ends, in words.
    pub fn end(&self) -> String {
        match &self.result {
            Ok(scanned) => match scanned.end {
                End::Sealed { .. } => "sealed".to_owned(),
                End::Open { offset } => format!("open, written up to {offset}"),
                End::Torn { offset } => format!("open, cut off at {offset}"),
            },
            Err(damage) => format!("DAMAGED at {}", damage.offset),
        }
    }
}

/// Reads a segment whole; `visit` gets each intact entry and its offset.
pub fn read(path: &Path, mut visit: impl FnMut(u64, &Entry)) -> anyhow::Result<Read> {
    let of = || path.display().to_string();
    let length = std::fs::metadata(path).with_context(of)?.len();
    if length > FILE_BYTES_MAX {
        bail!("{} has {length} bytes: too many for a segment", path.display());
    }
    let bytes = Bytes::from(std::fs::read(path).with_context(of)?);
    // The group of the segment is not checked here. If the header is missing, the scan reports that.
    let group = journal::block::SegmentHeader::decode(&bytes).map_or(GroupId(0), |header| header.group);
    let mut first = None;
    let result = scan(&bytes, group, None, |offset, entry| {
        first.get_or_insert(entry.id);
        visit(offset, &entry);
        Ok::<(), Infallible>(())
    });
    let result = result.map(|scanned| scanned.unwrap_or_else(|never| match never {}));
    Ok(Read { bytes, group, first, result })
}

/// Whether all of it is sound.
pub fn show(path: &Path, args: &Args, out: &mut impl Write) -> anyhow::Result<bool> {
    let mut failed = None;
    if !args.json {
        writeln!(out, "{}", path.display())?;
    }
    let read = read(path, |offset, found| {
        if failed.is_some() || !(args.from..=args.to).contains(&found.id.sn.0) {
            return;
        }
        let written = match args.json {
            true => writeln!(out, "{}", entry::as_json(offset, found)),
            false => writeln!(
                out,
                "  {offset:>10}  {}  {}  {} bytes  {}",
                found.id,
                entry::kind(found),
                found.payload.len(),
                entry::meaning(found)
            ),
        };
        failed = written.err();
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    match args.json {
        true => writeln!(out, "{}", end_as_json(path, &read))?,
        false => tell_end(&read, out)?,
    }
    Ok(read.is_sound())
}

fn end_as_json(path: &Path, read: &Read) -> serde_json::Value {
    let mut line =
        json!({ "file": path, "group": read.group.0, "end": read.end(), "sound": read.is_sound() });
    match &read.result {
        Ok(scanned) => {
            line["entries"] = scanned.count.into();
            line["last_epoch"] = scanned.last.id.epoch.0.into();
            line["last_sn"] = scanned.last.id.sn.0.into();
            line["chain"] = scanned.last.chain.to_string().into();
        }
        Err(damage) => {
            line["damage"] = json!({
                "offset": damage.offset, "expected": damage.expected, "found": damage.found
            });
        }
    }
    line
}

fn tell_end(read: &Read, out: &mut impl Write) -> anyhow::Result<()> {
    match &read.result {
        Ok(scanned) => {
            writeln!(
                out,
                "group {}, {} entries up to {}, {}",
                read.group,
                scanned.count,
                scanned.last,
                read.end()
            )?;
            for offset in &scanned.dirty_padding {
                writeln!(out, "harmless: a byte at {offset} should be zero and is not")?;
            }
            writeln!(out, "verdict: sound; each entry follows the one before it")?;
        }
        Err(damage) => {
            writeln!(
                out,
                "DAMAGED at offset {}: expected {}, found {}",
                damage.offset, damage.expected, damage.found
            )?;
            let at = (damage.offset as usize).min(read.bytes.len());
            let end = (at + DUMPED_BYTES).min(read.bytes.len());
            for line in dump(&read.bytes[at..end], damage.offset) {
                writeln!(out, "{line}")?;
            }
            for line in behind(&read.bytes, at) {
                writeln!(out, "{line}")?;
            }
            writeln!(out, "verdict: NOT SOUND from offset {} on. {REMEDY}", damage.offset)?;
        }
    }
    Ok(())
}

/// The records behind a damaged place whose headers can be read.
fn behind(bytes: &Bytes, damaged: usize) -> Vec<String> {
    let mut lines = Vec::new();
    // Records begin at multiples of eight.
    let mut at = damaged.next_multiple_of(8) + if damaged.is_multiple_of(8) { 8 } else { 0 };
    while lines.len() <= RECORDS_BEHIND && at + HEADER_BYTES <= bytes.len() {
        let Some(header) = Header::decode(&bytes[at..]) else {
            at += 8;
            continue;
        };
        if lines.is_empty() {
            lines.push("records behind it whose headers can be read:".to_owned());
        }
        let record = bytes.get(at..at + header.record_bytes());
        let state = match record {
            Some(record) if header.payload_is_intact(record) => "intact",
            Some(_) => "its payload is damaged",
            None => "cut off by the end of the file",
        };
        lines.push(format!(
            "  {at:>10}  {}  kind {}  {} bytes  {state}; entries up to {} were durable when it was written",
            header.id, header.kind, header.payload_length, header.durable
        ));
        at += header.record_bytes().max(8);
    }
    if lines.is_empty() {
        lines.push("no record can be read behind it".to_owned());
    }
    lines
}
