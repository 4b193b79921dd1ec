//! One replica of a data server: its block file beside its meta file.

use super::Args;
use anyhow::Context;
use base::ChecksumKind;
use blockstore::{
    layout::Place,
    survey::{ReplicaSurvey, survey_replica},
};
use env::Disk;
use serde_json::{Value, json};
use std::{io::Write, path::Path};

const REMEDY: &str = "other data servers may have whole replicas: `clover fsck` tells";

/// Whether all of it is sound.
pub fn show(disk: &dyn Disk, path: &Path, args: &Args, out: &mut impl Write) -> anyhow::Result<bool> {
    let found = survey_replica(disk, path, &mut |_| true).with_context(|| path.display().to_string())?;
    match args.json {
        true => writeln!(out, "{}", as_json(path, &found))?,
        false => tell(path, &found, out)?,
    }
    Ok(found.is_sound())
}

/// The place in words, and as one word for programs.
fn place(found: &ReplicaSurvey) -> (&'static str, &'static str) {
    match found.place {
        Some(Place::Finalized) => ("a finished replica", "finalized"),
        Some(Place::BeingWritten) => ("a replica that is being written, or was when its server ended", "rbw"),
        Some(Place::Temporary) => ("a copy that has not arrived whole; a start throws it away", "tmp"),
        None => ("a replica outside of a data directory", "elsewhere"),
    }
}

fn checksum_name(kind: ChecksumKind) -> &'static str {
    match kind {
        ChecksumKind::Null => "NULL",
        ChecksumKind::Crc32 => "CRC32",
        ChecksumKind::Crc32c => "CRC32C",
    }
}

fn tell(path: &Path, found: &ReplicaSurvey, out: &mut impl Write) -> anyhow::Result<()> {
    let bytes =
        |length: Option<u64>| length.map_or_else(|| "-".to_owned(), |length| format!("{length} bytes"));
    writeln!(out, "{}", path.display())?;
    writeln!(out, "kind       {}", place(found).0)?;
    let stamp = found.generation_stamp.map_or_else(|| "unknown".to_owned(), |stamp| stamp.to_string());
    writeln!(out, "block      {}, generation stamp {stamp}", found.id.0 as i64)?;
    writeln!(out, "block file {}", bytes(found.length))?;
    writeln!(out, "meta file  {}", bytes(found.meta_length))?;
    if let Some(checksum) = found.checksum {
        let chunks = found.chunk_count().map_or_else(String::new, |count| format!(", {count} chunks"));
        let kind = checksum_name(checksum.kind);
        writeln!(out, "checksum   {kind}, one for each {} bytes{chunks}", checksum.bytes_per_checksum)?;
    }
    if let Some(length) = found.length.filter(|length| found.is_sound() && found.vouched_length < *length) {
        let behind = length - found.vouched_length;
        writeln!(out, "note       the last {behind} bytes have no checksum yet; a start cuts them off")?;
    }
    for other in &found.other_metas {
        writeln!(out, "note       {} is of another stamp", other.display())?;
    }
    for damage in &found.damage {
        match damage.offset {
            Some(offset) => writeln!(out, "DAMAGED at offset {offset}: {}", damage.what)?,
            None => writeln!(out, "DAMAGED: {}", damage.what)?,
        }
    }
    writeln!(out, "verdict: {}", verdict(found))?;
    Ok(())
}

fn verdict(found: &ReplicaSurvey) -> String {
    if !found.is_sound() {
        return format!("NOT SOUND. {REMEDY}");
    }
    match found.checksum.map(|checksum| checksum.kind) {
        Some(ChecksumKind::Null) => "its lengths are right; without checksums no byte can be checked".into(),
        _ => format!("sound; {} chunks match their checksums", found.matching_chunk_count),
    }
}

fn as_json(path: &Path, found: &ReplicaSurvey) -> Value {
    let damage = found.damage.iter().map(|damage| json!({ "offset": damage.offset, "what": damage.what }));
    json!({
        "replica": path,
        "place": place(found).1,
        "block": found.id.0 as i64,
        "generation_stamp": found.generation_stamp.map(|stamp| stamp.0),
        "block_file": found.block,
        "length": found.length,
        "meta_file": found.meta,
        "meta_length": found.meta_length,
        "checksum": found.checksum.map(|checksum| checksum_name(checksum.kind)),
        "bytes_per_checksum": found.checksum.map(|checksum| checksum.bytes_per_checksum),
        "chunks": found.chunk_count(),
        "matching_chunks": found.matching_chunk_count,
        "vouched_length": found.vouched_length,
        "other_meta_files": found.other_metas,
        "damage": damage.collect::<Vec<_>>(),
        "sound": found.is_sound(),
        "verdict": verdict(found),
    })
}
