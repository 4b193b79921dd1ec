//! Images of other members, fetched for one of two reasons.
//!
//! - A checkpoint has committed whose image another member has made: it is fetched and kept beside the log, which
//!   may then be purged behind it. A member that cannot get it keeps its log.
//! - This member is so far behind that nobody has the entries any more that it lacks: the newest image takes the
//!   place of its log. The server goes on meanwhile; once the image is here it starts again, in its process, from
//!   the image.
//!
//! One at a time, on one thread: both use the store's staging directory.

use crate::{
    exchange::{
        PIECE_BYTES,
        fetch::{self, Means},
        source::{self, Source},
    },
    partition::Partition,
    peers::Secret,
};
use base::Sn;
use env::pulse;
use group::ImageFate;
use journal::{Checkpoint, StagedImage};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::runtime::Handle;

/// How late something to fetch may be noticed.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
const AGREE_PERIOD: Duration = Duration::from_millis(20);
/// The pause after a fetch that has failed, in milliseconds.
const RETRY_MS: u64 = 5_000;

/// Runs on a thread of its own until `stop`.
pub fn run(partition: &Arc<Partition>, secret: Option<&Secret>, stop: &AtomicBool, runtime: &Handle) {
    let needs_image = partition.member.needs_image();
    let mut checkpoints = partition.checkpoints.subscribe();
    // Nothing is fetched before this; and a checkpoint that could not be had is not tried again before it.
    let mut not_before = partition.moment();
    let mut wanted: Option<Checkpoint> = None;
    let mut failures = 0;
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(LOOK_PERIOD);
        pulse::step();
        if checkpoints.has_changed().unwrap_or(false) {
            let payload = checkpoints.borrow_and_update().clone();
            wanted = payload.and_then(|payload| Checkpoint::decode(&payload));
            not_before = partition.moment();
        }
        if partition.moment() < not_before || partition.member.ended().borrow().is_some() {
            continue;
        }
        let is_stopped = || stop.load(Ordering::Acquire);
        let fetching = Fetching { partition, secret, runtime, is_stopped: &is_stopped, failures };
        // A member that is complete, in sync or an exile, throws nothing away: others may come to rely on its
        // entries.
        let result = if *needs_image.borrow() && !partition.member.status().is_eligible {
            fetching.renew()
        } else if let Some(checkpoint) = wanted {
            fetching.adopt(&checkpoint).map(|()| wanted = None)
        } else {
            continue;
        };
        failures = if result.is_ok() { 0 } else { failures + 1 };
        if let Err(reason) = result {
            if !is_stopped() {
                tracing::warn!(reason, "an image could not be fetched; it is tried again");
            }
            not_before = partition.moment().plus_ms(RETRY_MS);
        }
    }
}

/// Waits until the members have compared their states at the checkpoint of an image, and it is known whether a start may go by it.
pub fn wait_for_agreement(
    partition: &Partition,
    is_own: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), String> {
    let began = partition.moment();
    loop {
        // First, for what this member has made itself is on its way to be compared.
        std::thread::sleep(AGREE_PERIOD);
        pulse::step();
        match partition.member.agreement().of_image(is_own, partition.moment().ms_since(began)) {
            ImageFate::Counts => return Ok(()),
            ImageFate::Refused(reason) => return Err(format!("no image is taken: {reason}")),
            ImageFate::Waits => {}
        }
        if is_stopped() {
            return Err("the server is stopping".into());
        }
    }
}

struct Fetching<'a> {
    partition: &'a Partition,
    secret: Option<&'a Secret>,
    runtime: &'a Handle,
    is_stopped: &'a dyn Fn() -> bool,
    /// Each puts another source first: one whose own copy has rotted must not be asked for ever.
    failures: usize,
}

impl Fetching<'_> {
    /// Makes a committed checkpoint usable here.
    fn adopt(&self, checkpoint: &Checkpoint) -> Result<(), String> {
        let journal = self.partition.member.journal();
        wait_for_agreement(self.partition, journal.open_image(checkpoint).is_ok(), self.is_stopped)?;
        if journal.images().last().is_some_and(|image| image.at.id.sn >= checkpoint.at.id.sn) {
            return Ok(());
        }
        if journal.open_image(checkpoint).is_err() {
            let image = self.fetch(source::sources(self.partition, self.secret, self.runtime), checkpoint)?;
            journal.keep_image(image).map_err(|error| error.to_string())?;
        }
        journal.checkpoint_committed(checkpoint).map_err(|error| error.to_string())?;
        tracing::info!(at = %checkpoint.at, "the image of the checkpoint is here");
        Ok(())
    }

    /// Fetches the newest image that any member has and ends this server, to start again from it.
    fn renew(&self) -> Result<(), String> {
        let partition = self.partition;
        let committed = partition.commit.committed();
        let (checkpoint, holders) = self.newest(committed)?;
        tracing::warn!(
            at = %checkpoint.at, %committed, bytes = checkpoint.file_bytes,
            "this member is too far behind for the log; an image is to take its place"
        );
        let image = self.fetch(holders, &checkpoint)?;
        if partition.member.status().is_eligible || partition.commit.committed() >= checkpoint.at.id.sn {
            return Err("this member has caught up meanwhile".into());
        }
        // First the end: what still arrives finds a server on its way out, and not a failed journal. The store
        // is let go of only when this thread has ended.
        partition.member.restart(&format!("its log is replaced by the image of {}", checkpoint.at));
        partition.member.journal().install(image).map_err(|error| error.to_string())
    }

    /// The newest image, and who has it.
    fn newest(&self, committed: Sn) -> Result<(Checkpoint, Vec<Source>), String> {
        let sources = source::sources(self.partition, self.secret, self.runtime);
        let mut found: Vec<(Source, Vec<Checkpoint>)> = Vec::new();
        let mut errors = String::new();
        for source in sources {
            if (self.is_stopped)() {
                return Err("the server is stopping".into());
            }
            match source.images() {
                Ok(images) => found.push((source, images)),
                Err(error) => errors += &format!(" Member {}: {error}.", source.member),
            }
        }
        let images = found.iter().flat_map(|(_, images)| images);
        let newest = images
            .filter(|image| image.at.id.sn > committed)
            .max_by_key(|image| image.at.id)
            .copied()
            .ok_or_else(|| format!("No other member has an image of more than {committed}.{errors}"))?;
        let holders =
            found.into_iter().filter(|(_, images)| images.contains(&newest)).map(|(source, _)| source);
        Ok((newest, holders.collect()))
    }

    fn fetch(&self, mut sources: Vec<Source>, checkpoint: &Checkpoint) -> Result<StagedImage, String> {
        if sources.is_empty() {
            return Err("there is no other member to fetch an image from".into());
        }
        let first = self.failures % sources.len();
        sources.rotate_left(first);
        let journal = self.partition.member.journal();
        let staged = journal.stage(*checkpoint).map_err(|error| error.to_string())?;
        let missing = checkpoint.file_bytes - staged.have();
        let free_bytes = journal.room().map_err(|error| error.to_string())?.free_bytes;
        if free_bytes < missing {
            return Err(format!("the {missing} bytes missing of an image do not fit into {free_bytes}"));
        }
        let means = Means {
            progress: &self.partition.fetching,
            piece_bytes: PIECE_BYTES,
            bytes_per_second: self.partition.config.group.fetch_bytes_per_second,
            is_stopped: self.is_stopped,
        };
        fetch::fetch(&means, &sources, staged)
    }
}
