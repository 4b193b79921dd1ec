//! A whole store: what the member knows of itself, its segments and its images, each read to the end.

use super::{Args, REMEDY, image, segment};
use crate::table;
use data_encoding::HEXLOWER;
use env::Disk;
use journal::{NextStart, survey::Survey};
use serde_json::{Value, json};
use std::{io::Write, path::Path};

/// One file of the store.
struct Row {
    name: String,
    first: String,
    last: String,
    entries: u64,
    bytes: u64,
    state: String,
    is_sound: bool,
}

/// Whether all of it is sound.
pub fn show(disk: &dyn Disk, directory: &Path, args: &Args, out: &mut impl Write) -> anyhow::Result<bool> {
    let survey = journal::survey::survey(disk, directory).map_err(anyhow::Error::msg)?;
    let mut rows = Vec::new();
    for path in &survey.images {
        rows.push(image_row(disk, path, args.deep)?);
    }
    let mut findings = survey.findings.clone();
    let mut end: Option<base::Sn> = None;
    for path in &survey.segments {
        let read = segment::read(path, |_, _| ())?;
        if let (Some(end), Some(first)) = (end, read.first)
            && first.sn.0 != end.0 + 1
        {
            findings.push(format!("{} does not continue the log, which ended at {end}", path.display()));
        }
        end = read.result.as_ref().ok().map(|scanned| scanned.last.id.sn);
        rows.push(segment_row(path, &read));
    }
    let is_sound = rows.iter().all(|row| row.is_sound) && findings.is_empty();
    match args.json {
        true => writeln!(out, "{}", as_json(directory, &survey, &rows, &findings))?,
        false => tell(directory, &survey, &rows, &findings, out)?,
    }
    Ok(is_sound)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn segment_row(path: &Path, read: &segment::Read) -> Row {
    let scanned = read.result.as_ref().ok();
    Row {
        name: name(path),
        first: read.first.map_or_else(|| "-".to_owned(), |id| id.to_string()),
        last: scanned.map_or_else(|| "-".to_owned(), |scanned| scanned.last.id.to_string()),
        entries: scanned.map_or(0, |scanned| scanned.count),
        bytes: read.bytes.len() as u64,
        state: match &read.result {
            Ok(_) => read.end(),
            Err(damage) => {
                format!("{}: expected {}, found {}", read.end(), damage.expected, damage.found)
            }
        },
        is_sound: read.is_sound(),
    }
}

fn image_row(disk: &dyn Disk, path: &Path, deep: bool) -> anyhow::Result<Row> {
    let mut row = Row {
        name: name(path),
        first: "-".to_owned(),
        last: "-".to_owned(),
        entries: 0,
        bytes: disk.length(path)?,
        state: "image".to_owned(),
        is_sound: true,
    };
    match image::read(disk, path, deep) {
        Ok(read) => row.last = read.header.at.id.to_string(),
        Err(error) => {
            row.state = format!("DAMAGED {error:#}");
            row.is_sound = false;
        }
    }
    Ok(row)
}

fn flags(survey: &Survey) -> Vec<String> {
    let state = &survey.state;
    let mut flags = Vec::new();
    if state.is_suspect {
        flags.push(
            "suspect: the end of its log may be missing, until an active has vouched for it".to_owned(),
        );
    }
    match state.next_start {
        NextStart::Recover => {}
        NextStart::Discard => flags.push("puts its log and images aside at the next start".to_owned()),
        NextStart::Install => flags.push("starts next from an image that was fetched".to_owned()),
    }
    if let Some(note) = &state.fault_note {
        flags.push(format!("refuses to start: {note} (`clover meta accept-disk` takes the note away)"));
    }
    flags
}

fn tell(
    directory: &Path,
    survey: &Survey,
    rows: &[Row],
    findings: &[String],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let state = &survey.state;
    writeln!(out, "{}", directory.display())?;
    writeln!(out, "cluster    {}", state.identity.cluster_id)?;
    writeln!(out, "group      {}, member {}", state.identity.group, state.identity.member)?;
    writeln!(out, "store      {}, generation {}", HEXLOWER.encode(&state.store_uuid), state.generation)?;
    writeln!(out, "promised   epoch {}", survey.promised)?;
    writeln!(out, "committed  at least up to {}", survey.known_commit)?;
    writeln!(out, "starts     {}", state.boot)?;
    for checkpoint in &state.checkpoints {
        writeln!(out, "image      {}, {} bytes", checkpoint.file_name(), checkpoint.file_bytes)?;
    }
    for flag in flags(survey) {
        writeln!(out, "note       {flag}")?;
    }
    let head = ["FILE", "FIRST", "LAST", "ENTRIES", "BYTES", "STATE"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|row| {
        let (entries, bytes) = (row.entries.to_string(), row.bytes.to_string());
        vec![row.name.clone(), row.first.clone(), row.last.clone(), entries, bytes, row.state.clone()]
    }));
    writeln!(out)?;
    for line in table::lines(&lines) {
        writeln!(out, "{line}")?;
    }
    for finding in findings {
        writeln!(out, "amiss: {finding}")?;
    }
    writeln!(out, "verdict: {}", verdict(rows, findings))?;
    Ok(())
}

/// The verdict about the whole store, in a sentence.
fn verdict(rows: &[Row], findings: &[String]) -> String {
    let damaged = rows.iter().filter(|row| !row.is_sound).count();
    let many =
        |count: usize, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    match (damaged, findings.len()) {
        (0, 0) => format!("sound; {} read to the end", many(rows.len(), "file")),
        (0, amiss) => format!("NOT SOUND: {}. {REMEDY}", many(amiss, "thing") + " amiss"),
        (damaged, 0) => format!("NOT SOUND: {damaged} of {} damaged. {REMEDY}", many(rows.len(), "file")),
        (damaged, amiss) => format!(
            "NOT SOUND: {damaged} of {} damaged, and {} amiss. {REMEDY}",
            many(rows.len(), "file"),
            many(amiss, "thing")
        ),
    }
}

fn as_json(directory: &Path, survey: &Survey, rows: &[Row], findings: &[String]) -> Value {
    let state = &survey.state;
    let files = rows.iter().map(|row| {
        json!({
            "file": row.name, "first": row.first, "last": row.last, "entries": row.entries,
            "bytes": row.bytes, "state": row.state, "sound": row.is_sound,
        })
    });
    json!({
        "store": directory,
        "cluster_id": state.identity.cluster_id,
        "group": state.identity.group.0,
        "member": state.identity.member.0,
        "uuid": HEXLOWER.encode(&state.store_uuid),
        "generation": state.generation,
        "promised_epoch": survey.promised.0,
        "known_commit": survey.known_commit.0,
        "starts": state.boot,
        "notes": flags(survey),
        "files": files.collect::<Vec<_>>(),
        "findings": findings,
        "sound": rows.iter().all(|row| row.is_sound) && findings.is_empty(),
        "verdict": verdict(rows, findings),
    })
}
