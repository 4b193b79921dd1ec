//! The start of this server in HDFS's words: the bean `StartupProgress`, and the page `/startupProgress`.
//!
//! HDFS has four phases. The HTTP port opens after image and journal were read, so the first two are always complete here.
//! A start of Clover writes no image: the third phase takes no time.

use super::Look;
use crate::{core::Core, start::Start};
use base::Moment;
use serde_json::{Map, Value, json};
use web::jmx::{Beans, Counters, Record};

/// The attributes that may fall: shares of the whole.
const SHARES: [&str; 5] = [
    "PercentComplete",
    "LoadingFsImagePercentComplete",
    "LoadingEditsPercentComplete",
    "SavingCheckpointPercentComplete",
    "SafeModePercentComplete",
];
const STARTUP: Record = Record { name: "StartupProgress", counters: Counters::AllBut(&SHARES) };

/// A part of a phase that is counted.
struct Step {
    /// Its name, and its description for people; `None` for a step that is known by its file.
    kind: Option<(&'static str, &'static str)>,
    file: Option<String>,
    bytes: Option<u64>,
    count: u64,
    total: u64,
}

struct Phase {
    name: &'static str,
    description: &'static str,
    is_complete: bool,
    elapsed_ms: u64,
    file: Option<String>,
    bytes: Option<u64>,
    steps: Vec<Step>,
}

/// The share of `count` in `total`, from 0 to 1.
fn share(is_complete: bool, count: u64, total: u64) -> f32 {
    match (is_complete, total) {
        (true, _) => 1.0,
        (false, 0) => 0.0,
        (false, _) => (count as f32 / total as f32).min(1.0),
    }
}

impl Phase {
    fn count(&self) -> u64 {
        self.steps.iter().map(|step| step.count).sum()
    }

    fn total(&self) -> u64 {
        self.steps.iter().map(|step| step.total).sum()
    }

    fn share(&self) -> f32 {
        share(self.is_complete, self.count(), self.total())
    }

    fn as_json(&self) -> Value {
        let step = |step: &Step| {
            let mut shown = Map::new();
            if let Some((name, description)) = step.kind {
                shown.insert("name".into(), name.into());
                shown.insert("desc".into(), description.into());
            }
            shown.insert("count".into(), step.count.into());
            put_file(&mut shown, step.file.as_deref(), step.bytes);
            shown.insert("total".into(), step.total.into());
            let share = share(self.is_complete, step.count, step.total);
            shown.insert("percentComplete".into(), share.into());
            shown.insert("elapsedTime".into(), self.elapsed_ms.into());
            Value::Object(shown)
        };
        let mut shown = Map::new();
        shown.insert("name".into(), self.name.into());
        shown.insert("desc".into(), self.description.into());
        shown.insert("status".into(), if self.is_complete { "COMPLETE" } else { "RUNNING" }.into());
        shown.insert("percentComplete".into(), self.share().into());
        shown.insert("elapsedTime".into(), self.elapsed_ms.into());
        put_file(&mut shown, self.file.as_deref(), self.bytes);
        shown.insert("steps".into(), self.steps.iter().map(step).collect());
        Value::Object(shown)
    }
}

fn put_file(shown: &mut Map<String, Value>, file: Option<&str>, bytes: Option<u64>) {
    if let Some(file) = file {
        shown.insert("file".into(), file.into());
    }
    if let Some(bytes) = bytes {
        shown.insert("size".into(), bytes.into());
    }
}

/// The whole start.
struct Progress {
    elapsed_ms: u64,
    phases: [Phase; 4],
}

impl Progress {
    fn of(core: &Core) -> Self {
        let partition = &core.partition;
        let Start { began, image, journal, replayed, loaded, .. } = &partition.start;
        let reports = partition.blocks.lock().safe_mode_progress();
        let end: Moment = reports.ended.unwrap_or_else(|| core.moment());
        let image_file = image.as_ref().map(|image| image.file.display().to_string());
        let inodes = image.as_ref().map(|image| Step {
            kind: Some(("Inodes", "inodes")),
            file: None,
            bytes: None,
            count: image.inodes,
            total: image.inodes,
        });
        let entries = Step {
            kind: None,
            file: Some(journal.display().to_string()),
            bytes: None,
            count: *replayed,
            total: *replayed,
        };
        let blocks = Step {
            kind: Some(("AwaitingReportedBlocks", "awaiting reported blocks")),
            file: None,
            bytes: None,
            count: reports.safe,
            total: reports.total,
        };
        let phases = [
            Phase {
                name: "LoadingFsImage",
                description: "Loading fsimage",
                is_complete: true,
                elapsed_ms: partition.start.image_ms(),
                file: image_file,
                bytes: image.as_ref().map(|image| image.bytes),
                steps: inodes.into_iter().collect(),
            },
            Phase {
                name: "LoadingEdits",
                description: "Loading edits",
                is_complete: true,
                elapsed_ms: partition.start.journal_ms(),
                file: None,
                bytes: None,
                steps: vec![entries],
            },
            Phase {
                name: "SavingCheckpoint",
                description: "Saving checkpoint",
                is_complete: true,
                elapsed_ms: 0,
                file: None,
                bytes: None,
                steps: Vec::new(),
            },
            Phase {
                name: "SafeMode",
                description: "Safe mode",
                is_complete: reports.ended.is_some(),
                elapsed_ms: end.ms_since(*loaded),
                file: None,
                bytes: None,
                steps: vec![blocks],
            },
        ];
        Self { elapsed_ms: end.ms_since(*began), phases }
    }

    fn share(&self) -> f32 {
        match self.phases.last() {
            Some(last) if last.is_complete => 1.0,
            _ => self.phases.iter().map(Phase::share).sum::<f32>() / self.phases.len() as f32,
        }
    }
}

/// The answer of `/startupProgress`.
pub fn page(core: &Core) -> Value {
    let progress = Progress::of(core);
    json!({
        "elapsedTime": progress.elapsed_ms,
        "percentComplete": progress.share(),
        "phases": progress.phases.iter().map(Phase::as_json).collect::<Vec<_>>(),
    })
}

pub fn put(look: &Look<'_>, beans: &mut Beans<'_>) {
    let own = "StartupProgress";
    beans.put_record(look.name(own), STARTUP, own, || bean(look));
}

fn bean(look: &Look<'_>) -> Value {
    let progress = Progress::of(look.core);
    let mut attributes = Map::new();
    attributes.insert("tag.Hostname".into(), look.process().host_name.clone().into());
    attributes.insert("ElapsedTime".into(), progress.elapsed_ms.into());
    attributes.insert("PercentComplete".into(), progress.share().into());
    for phase in &progress.phases {
        let mut put = |what: &str, value: Value| attributes.insert(format!("{}{what}", phase.name), value);
        put("Count", phase.count().into());
        put("ElapsedTime", phase.elapsed_ms.into());
        put("Total", phase.total().into());
        put("PercentComplete", phase.share().into());
    }
    Value::Object(attributes)
}
