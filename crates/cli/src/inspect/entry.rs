//! What an entry of the log does, in one line.

use base::{Entry, EntryKind};
use namespace::Edit;
use serde_json::{Value, json};

pub fn kind(entry: &Entry) -> &'static str {
    match entry.kind {
        EntryKind::Operation => "OPERATION",
        EntryKind::EpochStart => "EPOCH_START",
        EntryKind::Checkpoint => "CHECKPOINT",
    }
}

fn time(ms: u64) -> String {
    let ms = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    ms.map_or_else(|| "at no time".to_owned(), |time| format!("{time:.3}"))
}

/// What the payload means; of one that cannot be read, why.
pub fn meaning(entry: &Entry) -> String {
    match entry.kind {
        EntryKind::Operation => match Edit::decode(&entry.payload) {
            Ok(edit) => told(&edit),
            Err(error) => format!("an edit that cannot be read: {error}"),
        },
        EntryKind::EpochStart => format!("epoch {} begins", entry.id.epoch),
        EntryKind::Checkpoint => match journal::Checkpoint::decode(&entry.payload) {
            Some(image) => format!("the image {} of {} bytes is usable", image.file_name(), image.file_bytes),
            None => "a checkpoint that cannot be read".to_owned(),
        },
    }
}

fn told(edit: &Edit) -> String {
    let mut text = format!("{}  {:?}", time(edit.time.ms), edit.body);
    if let Some(dues) = &edit.dues {
        text += &format!("  {dues:?}");
    }
    if let Some(origin) = &edit.origin {
        text += &format!("  for call {} of {}", origin.call.0, origin.client);
    }
    text
}

pub fn as_json(offset: u64, entry: &Entry) -> Value {
    json!({
        "offset": offset,
        "epoch": entry.id.epoch.0,
        "sn": entry.id.sn.0,
        "kind": kind(entry),
        "bytes": entry.payload.len(),
        "what": meaning(entry),
    })
}
