//! Looks again, slowly and for ever, at the files that this member keeps and writes no more: its images and the
//! sealed segments of its log. A rotten file is replaced by another member's copy before it is needed; a start would
//! find it otherwise, and the whole store would have to be renewed.
//!
//! One thread; it reads at the rate that is set and waits between two pieces. It logs the files that it cannot mend
//! with every pass, and `/metrics` tells their number.

mod counts;

pub use counts::Counts;

use crate::{
    exchange::{
        PIECE_BYTES,
        fetch::{self, Means, Progress},
        source::{self, Source},
    },
    partition::Partition,
    peers::Secret,
};
use base::{Entry, Sn};
use env::pulse;
use journal::{Checkpoint, Look, Rot, Sealed};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::runtime::Handle;

/// How late the end, or the time of the next pass, may be noticed.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Runs on a thread of its own until `stop`.
pub fn run(partition: &Arc<Partition>, secret: Option<&Secret>, stop: &AtomicBool, runtime: &Handle) {
    let (bytes_per_second, period_ms) =
        (partition.config.group.scrub_bytes_per_second, partition.config.group.scrub_period_ms);
    if bytes_per_second == 0 {
        return;
    }
    let scrub = Scrub { partition, secret, stop, runtime, bytes_per_second };
    // A start has just read what it needed.
    let mut next = partition.moment().plus_ms(period_ms);
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(LOOK_PERIOD);
        pulse::step();
        if partition.moment() < next || partition.member.ended().borrow().is_some() {
            continue;
        }
        scrub.pass();
        next = partition.moment().plus_ms(period_ms);
    }
}

struct Scrub<'a> {
    partition: &'a Partition,
    secret: Option<&'a Secret>,
    stop: &'a AtomicBool,
    runtime: &'a Handle,
    bytes_per_second: u64,
}

/// A file that is looked at.
#[derive(Clone, Copy)]
enum Kept {
    Image(Checkpoint),
    Segment(Sealed),
}

impl Scrub<'_> {
    fn pass(&self) {
        let journal = self.partition.member.journal();
        let images = journal.images().into_iter().map(Kept::Image);
        let kept: Vec<Kept> = images.chain(journal.sealed().into_iter().map(Kept::Segment)).collect();
        let counts = &self.partition.scrub;
        let mut left = 0;
        for kept in kept {
            match self.look(kept) {
                Look::Sound | Look::Gone => {}
                Look::Ended => return,
                Look::Rotten(rot) => {
                    counts.rotten.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(file = %rot.file.display(), what = rot.what, "a file of the store has rotted");
                    match self.mend(kept) {
                        Ok(()) => {
                            counts.mended.fetch_add(1, Ordering::Relaxed);
                            tracing::warn!(file = %rot.file.display(), "it was mended with another member's copy");
                        }
                        Err(reason) => {
                            left += 1;
                            self.complain(&rot, &reason);
                        }
                    }
                }
            }
        }
        counts.left.store(left, Ordering::Relaxed);
        counts.passes.fetch_add(1, Ordering::Relaxed);
        tracing::info!(left, bytes = counts.bytes.load(Ordering::Relaxed), "the store was looked through");
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.partition.member.ended().borrow().is_some()
    }

    fn look(&self, kept: Kept) -> Look {
        let mut pace = |bytes: u64| {
            self.partition.scrub.bytes.fetch_add(bytes, Ordering::Relaxed);
            let pause = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
            let mut left = pause;
            while !left.is_zero() && !self.is_stopped() {
                let now = left.min(LOOK_PERIOD);
                std::thread::sleep(now);
                pulse::step();
                left -= now;
            }
            !self.is_stopped()
        };
        let journal = self.partition.member.journal();
        match kept {
            Kept::Image(checkpoint) => journal.look_at_image(&checkpoint, &mut pace),
            Kept::Segment(sealed) => journal.look_at_segment(sealed, &mut pace),
        }
    }

    fn complain(&self, rot: &Rot, reason: &str) {
        tracing::error!(
            file = %rot.file.display(), reason,
            "it could not be mended, and is tried again with the next pass. Bring the other members back; if this one is \
             stopped before, its store is renewed by them at its start"
        );
    }

    fn mend(&self, kept: Kept) -> Result<(), String> {
        let sources = source::sources(self.partition, self.secret, self.runtime);
        if sources.is_empty() {
            return Err("there is no other member to ask".into());
        }
        match kept {
            Kept::Image(checkpoint) => self.mend_image(&sources, checkpoint)?,
            Kept::Segment(sealed) => self.mend_segment(&sources, sealed)?,
        }
        match self.look(kept) {
            Look::Rotten(rot) => Err(format!("it does not read back: {}", rot.what)),
            Look::Sound | Look::Gone | Look::Ended => Ok(()),
        }
    }

    fn mend_image(&self, sources: &[Source], checkpoint: Checkpoint) -> Result<(), String> {
        let journal = self.partition.member.journal();
        let staged = journal.stage(checkpoint).map_err(|error| error.to_string())?;
        let means = Means {
            // The progress is not that of the download which a junior's page shows.
            progress: &Progress::default(),
            piece_bytes: PIECE_BYTES,
            bytes_per_second: self.partition.config.group.fetch_bytes_per_second,
            is_stopped: &|| self.is_stopped(),
        };
        let image = fetch::fetch(&means, sources, staged)?;
        journal.replace_image(image).map_err(|error| error.to_string())
    }

    fn mend_segment(&self, sources: &[Source], sealed: Sealed) -> Result<(), String> {
        let journal = self.partition.member.journal();
        let (previous, end) =
            journal.bounds_of(sealed).ok_or("neither it nor those beside it tell what it should hold")?;
        let mut reasons = String::new();
        for source in sources {
            if self.is_stopped() {
                return Err("this server is stopping".into());
            }
            let entries = self.entries(source, previous.id.sn, end.id.sn);
            match entries.and_then(|entries| {
                journal.mend_segment(sealed, &entries).map_err(|error| {
                    let source = std::error::Error::source(&error).map(ToString::to_string);
                    source.unwrap_or_else(|| error.to_string())
                })
            }) {
                Ok(()) => return Ok(()),
                Err(reason) => reasons += &format!(" Member {}: {reason}.", source.member),
            }
        }
        Err(format!("no other member has its entries.{reasons}"))
    }

    /// Fetches the entries of a segment at most, in answers of a few megabytes.
    fn entries(&self, source: &Source, after: Sn, up_to: Sn) -> Result<Vec<Entry>, String> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut at = after;
        while at < up_to {
            if self.is_stopped() {
                return Err("this server is stopping".into());
            }
            let (_, answer) = source.read_log(at, up_to)?.ok_or("it does not have these entries any more")?;
            let Some(last) = answer.last() else { return Err(format!("nothing after entry {at}")) };
            if last.id.sn <= at || last.id.sn > up_to {
                return Err(format!("entry {} where {at} was to be followed", last.id));
            }
            at = last.id.sn;
            entries.extend(answer);
        }
        Ok(entries)
    }
}
