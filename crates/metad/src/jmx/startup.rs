//! The start of this server in HDFS's words: the bean `StartupProgress`, and the page `/startupProgress`.
//!
//! HDFS has four phases. A start of Clover writes no image: the third phase takes no time.

use super::{Look, SERVICE, name_of};
use crate::{
    core::Core,
    start::{Progress, Reached, Stage, Start, share},
};
use base::Moment;
use env::ProcessFacts;
use serde_json::{Map, Value, json};
use std::cell::LazyCell;
use web::jmx::{Beans, Counters, Record, put_process_beans};

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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Pending,
    Running,
    Complete,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Complete => "COMPLETE",
        }
    }

    fn of(has_begun: bool, is_over: bool) -> Self {
        match (has_begun, is_over) {
            (_, true) => Self::Complete,
            (true, false) => Self::Running,
            (false, false) => Self::Pending,
        }
    }
}

struct Phase {
    name: &'static str,
    description: &'static str,
    status: Status,
    elapsed_ms: u64,
    file: Option<String>,
    bytes: Option<u64>,
    steps: Vec<Step>,
}

impl Phase {
    fn count(&self) -> u64 {
        self.steps.iter().map(|step| step.count).sum()
    }

    fn total(&self) -> u64 {
        self.steps.iter().map(|step| step.total).sum()
    }

    fn is_complete(&self) -> bool {
        self.status == Status::Complete
    }

    fn share(&self) -> f32 {
        share(self.is_complete(), self.count(), self.total()) as f32
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
            let share = share(self.is_complete(), step.count, step.total) as f32;
            shown.insert("percentComplete".into(), share.into());
            shown.insert("elapsedTime".into(), self.elapsed_ms.into());
            Value::Object(shown)
        };
        let mut shown = Map::new();
        shown.insert("name".into(), self.name.into());
        shown.insert("desc".into(), self.description.into());
        shown.insert("status".into(), self.status.word().into());
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

/// A start, as it was when it was looked at.
struct Facts {
    elapsed_ms: u64,
    phases: [Phase; 4],
}

/// The phase of a start that reads the image.
fn image_phase(
    status: Status,
    elapsed_ms: u64,
    file: Option<String>,
    steps: Vec<Step>,
    bytes: Option<u64>,
) -> Phase {
    Phase { name: "LoadingFsImage", description: "Loading fsimage", status, elapsed_ms, file, bytes, steps }
}

/// The phase that applies the journal behind the image.
fn journal_phase(status: Status, elapsed_ms: u64, entries: Step) -> Phase {
    let steps = vec![entries];
    let (name, description) = ("LoadingEdits", "Loading edits");
    Phase { name, description, status, elapsed_ms, file: None, bytes: None, steps }
}

/// The phase that would write an image.
fn checkpoint_phase(status: Status) -> Phase {
    let (name, description) = ("SavingCheckpoint", "Saving checkpoint");
    Phase { name, description, status, elapsed_ms: 0, file: None, bytes: None, steps: Vec::new() }
}

/// The phase that waits for data servers to report their blocks.
fn reports_phase(status: Status, elapsed_ms: u64, safe: u64, total: u64) -> Phase {
    let blocks = Step {
        kind: Some(("AwaitingReportedBlocks", "awaiting reported blocks")),
        file: None,
        bytes: None,
        count: safe,
        total,
    };
    let (name, description) = ("SafeMode", "Safe mode");
    Phase { name, description, status, elapsed_ms, file: None, bytes: None, steps: vec![blocks] }
}

impl Facts {
    /// Of a server that has read all that it had.
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
        let image_bytes = image.as_ref().map(|image| image.bytes);
        let image_ms = partition.start.image_ms();
        let phases = [
            image_phase(Status::Complete, image_ms, image_file, inodes.into_iter().collect(), image_bytes),
            journal_phase(Status::Complete, partition.start.journal_ms(), entries),
            checkpoint_phase(Status::Complete),
            reports_phase(
                Status::of(true, reports.ended.is_some()),
                end.ms_since(*loaded),
                reports.safe,
                reports.total,
            ),
        ];
        Self { elapsed_ms: end.ms_since(*began), phases }
    }

    /// Of a server that still reads its image or its journal. How many inodes the image has is not known before its end: its bytes are
    /// counted instead.
    fn of_loading(progress: &Progress, now: Moment) -> Self {
        let reached = progress.reached();
        let Reached { stage, image_began, image_bytes, image_bytes_read, journal_began, .. } = reached;
        let has_loaded = stage == Stage::Joining;
        let image_ms = image_began.map_or(0, |began| journal_began.unwrap_or(now).ms_since(began));
        let image = Step { kind: None, file: None, bytes: None, count: image_bytes_read, total: image_bytes };
        let entries = Step {
            kind: None,
            file: None,
            bytes: None,
            count: reached.entries_replayed,
            total: reached.entries_expected,
        };
        let size = (image_bytes > 0).then_some(image_bytes);
        let phases = [
            image_phase(
                Status::of(image_began.is_some(), journal_began.is_some()),
                image_ms,
                None,
                vec![image],
                size,
            ),
            journal_phase(
                Status::of(journal_began.is_some(), has_loaded),
                journal_began.map_or(0, |began| now.ms_since(began)),
                entries,
            ),
            checkpoint_phase(Status::of(false, has_loaded)),
            reports_phase(Status::Pending, 0, 0, 0),
        ];
        Self { elapsed_ms: now.ms_since(progress.began), phases }
    }

    fn share(&self) -> f32 {
        match self.phases.last() {
            Some(last) if last.is_complete() => 1.0,
            _ => self.phases.iter().map(Phase::share).sum::<f32>() / self.phases.len() as f32,
        }
    }

    fn page(&self) -> Value {
        json!({
            "elapsedTime": self.elapsed_ms,
            "percentComplete": self.share(),
            "phases": self.phases.iter().map(Phase::as_json).collect::<Vec<_>>(),
        })
    }

    fn bean(&self, host_name: &str) -> Value {
        let mut attributes = Map::new();
        attributes.insert("tag.Hostname".into(), host_name.into());
        attributes.insert("ElapsedTime".into(), self.elapsed_ms.into());
        attributes.insert("PercentComplete".into(), self.share().into());
        for phase in &self.phases {
            let mut put =
                |what: &str, value: Value| attributes.insert(format!("{}{what}", phase.name), value);
            put("Count", phase.count().into());
            put("ElapsedTime", phase.elapsed_ms.into());
            put("Total", phase.total().into());
            put("PercentComplete", phase.share().into());
        }
        Value::Object(attributes)
    }
}

/// The answer of `/startupProgress`.
pub fn page(core: &Core) -> Value {
    Facts::of(core).page()
}

/// The answer of `/startupProgress` while the server still reads.
pub fn page_of_loading(progress: &Progress, now: Moment) -> Value {
    Facts::of_loading(progress, now).page()
}

const OWN: &str = "StartupProgress";

pub fn put(look: &Look<'_>, beans: &mut Beans<'_>) {
    beans.put_record(look.name(OWN), STARTUP, OWN, || Facts::of(look.core).bean(&look.process().host_name));
}

/// The beans of a server that still reads: Hadoop's pages show its progress from them.
pub fn put_loading(progress: &Progress, now: Moment, beans: &mut Beans<'_>) {
    let process = LazyCell::new(ProcessFacts::now);
    put_process_beans(beans, SERVICE, || process.clone());
    let bean = || Facts::of_loading(progress, now).bean(&process.host_name);
    beans.put_record(name_of(OWN), STARTUP, OWN, bean);
}
