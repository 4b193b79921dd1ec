//! Downloads an image into the journal's staging directory.

use base::MemberId;
use bytes::Bytes;
use journal::{Checkpoint, Staged, StagedImage, StagingError};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// How far a download is, for those who ask; all zero when there is none.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Bytes that are here, and bytes in all.
    pub fn get(&self) -> Option<(u64, u64)> {
        let total = self.total.load(Ordering::Acquire);
        (total > 0).then(|| (self.done.load(Ordering::Acquire), total))
    }

    fn set(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Release);
        self.total.store(total, Ordering::Release);
    }
}

/// A source of pieces of images.
pub trait Pieces {
    fn member(&self) -> MemberId;
    /// Bytes of an image's file, at most `length`; an error where it does not have them, or is gone. Blocks.
    fn read(&self, checkpoint: &Checkpoint, offset: u64, length: u32) -> Result<Bytes, String>;
}

/// The means of a download.
pub struct Means<'a> {
    pub progress: &'a Progress,
    pub piece_bytes: u32,
    /// 0: as fast as it goes.
    pub bytes_per_second: u64,
    /// Looked at between two pieces.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// How long to wait when no source has the next piece.
const PAUSE: Duration = Duration::from_millis(300);
/// How many times all sources are asked in vain before the download is given up. The bytes that have come stay.
const ROUNDS_MAX: usize = 6;
const TELL_PERIOD: Duration = Duration::from_secs(5);
/// The least number of pieces a second while the pace is bounded, unless the pieces would be smaller than
/// [`PIECE_BYTES_MIN`].
const PIECES_PER_SECOND: u64 = 10;
const PIECE_BYTES_MIN: u64 = 16 << 10;

/// A piece comes as fast as the network carries it: it is small against what a second may carry, so that the pace is kept
/// within a second, too.
fn piece_within_pace(piece_bytes: u32, bytes_per_second: u64) -> u64 {
    match bytes_per_second {
        0 => u64::from(piece_bytes),
        pace => u64::from(piece_bytes).min((pace / PIECES_PER_SECOND).max(PIECE_BYTES_MIN)),
    }
}

/// Fetches what is missing of a staged image, from the first source as long as it answers, then from the next.
/// Blocks.
pub fn fetch(means: &Means<'_>, sources: &[impl Pieces], mut staged: Staged) -> Result<StagedImage, String> {
    let checkpoint = *staged.checkpoint();
    let result = fetch_pieces(means, sources, &mut staged, &checkpoint);
    means.progress.set(0, 0);
    result?;
    staged.finish().map_err(|error| match &error {
        StagingError::Verify { .. } => format!("{error}; it is thrown away"),
        _ => error.to_string(),
    })
}

fn fetch_pieces(
    means: &Means<'_>,
    sources: &[impl Pieces],
    staged: &mut Staged,
    checkpoint: &Checkpoint,
) -> Result<(), String> {
    let Means { progress, piece_bytes, bytes_per_second, is_stopped } = means;
    let (total, first) = (checkpoint.file_bytes, staged.have());
    let piece_bytes = piece_within_pace(*piece_bytes, *bytes_per_second);
    let (began, mut told) = (Instant::now(), Instant::now());
    let (mut current, mut failures) = (0, 0);
    let from = sources.first().map_or(MemberId(0), Pieces::member);
    tracing::info!(at = %checkpoint.at, have = first, total, %from, "an image is being fetched");
    while !staged.is_complete() {
        if is_stopped() {
            return Err("the server is stopping".into());
        }
        let have = staged.have();
        progress.set(have, total);
        let Some(source) = sources.get(current % sources.len().max(1)) else {
            return Err("there is no other member to fetch it from".into());
        };
        let length = piece_bytes.min(total - have) as u32;
        match source.read(checkpoint, have, length) {
            Ok(data) => {
                staged.write_chunk(have, &data).map_err(|error| error.to_string())?;
                failures = 0;
            }
            Err(error) => {
                tracing::warn!(from = %source.member(), at = have, error, "the image is sought elsewhere");
                failures += 1;
                current += 1;
                if failures >= ROUNDS_MAX * sources.len() {
                    return Err(format!("no member has it whole: {error}"));
                }
                if failures % sources.len() == 0 {
                    std::thread::sleep(PAUSE);
                }
                continue;
            }
        }
        if told.elapsed() >= TELL_PERIOD {
            told = Instant::now();
            let percent = staged.have() * 100 / total;
            tracing::info!(have = staged.have(), total, percent, from = %source.member(), "fetching an image");
        }
        if *bytes_per_second > 0 {
            let due = Duration::from_secs_f64((staged.have() - first) as f64 / *bytes_per_second as f64);
            std::thread::sleep(due.saturating_sub(began.elapsed()).min(TELL_PERIOD));
        }
    }
    let took_ms = began.elapsed().as_millis() as u64;
    tracing::info!(at = %checkpoint.at, bytes = total - first, took_ms, "the image is here");
    Ok(())
}

#[cfg(test)]
mod tests;
