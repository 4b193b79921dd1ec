//! The meaning of an entry of the log, in one line.

use base::{Entry, EntryKind, MemberLife};
use metad::EpochStart;
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

/// The meaning of the payload; or why it cannot be read.
pub fn meaning(entry: &Entry) -> String {
    match entry.kind {
        EntryKind::Operation => match Edit::decode(&entry.payload) {
            Ok(edit) => told(&edit),
            Err(error) => format!("an edit that cannot be read: {error}"),
        },
        EntryKind::EpochStart => epoch_start(entry),
        EntryKind::Checkpoint => match journal::Checkpoint::decode(&entry.payload) {
            Some(image) => format!("the image {} of {} bytes is usable", image.file_name(), image.file_bytes),
            None => "a checkpoint that cannot be read".to_owned(),
        },
    }
}

/// Entries name the leader from level 2 on.
fn epoch_start(entry: &Entry) -> String {
    let epoch = entry.id.epoch;
    let Some(start) = EpochStart::decode(&entry.payload) else {
        return format!("epoch {epoch} begins, with a first entry that cannot be read");
    };
    let leader = start.leader.map(|leader| {
        let MemberLife { store, boot } = leader;
        format!(
            ", led by member {} (generation {} of its store, start {boot})",
            store.member, store.generation
        )
    });
    let unclean = if start.is_unclean { ", after an unclean election" } else { "" };
    format!("epoch {epoch} begins{}{unclean}", leader.unwrap_or_default())
}

fn told(edit: &Edit) -> String {
    let mut text = format!("{}  {}", time(edit.time.ms), plain(&format!("{:?}", edit.body)));
    if let Some(dues) = &edit.dues {
        text += &format!("  owes {}", plain(&format!("{dues:?}")));
    }
    if let Some(origin) = &edit.origin {
        text += &format!("  for call {} of {}", origin.call.0, origin.client);
    }
    text
}

/// How the program shows a value to its developers, as people read it: `Create(CreateEdit { parent: InodeId(7), mode: 420,
/// acl: None })` becomes `Create parent=7 mode=0644 acl=-`. Texts in quotes stay as they are.
fn plain(shown: &str) -> String {
    let mut text = String::new();
    // The closing bracket of each open one.
    let mut open: Vec<&str> = Vec::new();
    let mut is_within = false;
    let mut rest = shown;
    while let Some(first) = rest.chars().next() {
        let word_end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, behind) = rest.split_at(word_end);
        if !word.is_empty() {
            rest = behind;
            if let Some(behind) = rest.strip_prefix(" {") {
                // The kind of a value within a value is known from its name.
                let is_whole = !std::mem::replace(&mut is_within, true);
                text += if is_whole { "" } else { "{" };
                open.push(if is_whole { "" } else { "}" });
                rest = behind.trim_start();
            } else if let Some(behind) = rest.strip_prefix('(') {
                if open.is_empty() {
                    text += &format!("{word} ");
                }
                open.push("");
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix(": ") {
                text += &format!("{word}=");
                rest = behind;
            } else {
                match (word, word.parse::<u32>()) {
                    ("None", _) => text.push('-'),
                    (_, Ok(mode)) if text.ends_with("mode=") => text += &format!("{mode:04o}"),
                    _ => text += word,
                }
            }
            continue;
        }
        let taken = match first {
            '"' => {
                let end = end_of_quoted(rest);
                text += &rest[..end];
                end
            }
            '[' | '(' | '{' => {
                text.push(first);
                open.push(match first {
                    '[' => "]",
                    '(' => ")",
                    _ => "}",
                });
                1
            }
            ']' | ')' | '}' => {
                text.truncate(text.trim_end().len());
                text += open.pop().unwrap_or_default();
                1
            }
            ',' => 1,
            other => {
                text.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    text.trim_end().to_owned()
}

/// The offset behind the closing quote of the quoted text with which `text` begins.
fn end_of_quoted(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
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

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn values_are_shown_without_the_programs_own_spelling() {
        for (shown, expected) in [
            ("Cleanup(CleanupEdit { inodes: [] })", "Cleanup inodes=[]"),
            (
                "Create(CreateEdit { parent: InodeId(7), missing: [], name: \"a, \\\"b\\\" { c\", mode: 420, acl: None })",
                "Create parent=7 missing=[] name=\"a, \\\"b\\\" { c\" mode=0644 acl=-",
            ),
            (
                "Mkdirs(MkdirsEdit { directories: [NewDirectory { id: InodeId(1), mode: 493 }, NewDirectory { id: InodeId(2), mode: 493 }], owner: \"ä\" })",
                "Mkdirs directories=[{id=1 mode=0755} {id=2 mode=0755}] owner=\"ä\"",
            ),
            (
                "Complete(CompleteEdit { committed: Some(Block { id: BlockId(1), length: 6 }), drop_last: false })",
                "Complete committed={id=1 length=6} drop_last=false",
            ),
            ("Dues { preserve: [(InodeId(1), SnapshotId(2))], kept: [] }", "preserve=[(1 2)] kept=[]"),
            ("Unit", "Unit"),
        ] {
            assert_eq!(plain(shown), expected);
        }
    }
}
