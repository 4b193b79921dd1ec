//! A backup taken while the group serves: an image, and the committed entries behind it, from the members' disks into
//! a directory of the machine that asks ([`journal::archive`]).
//!
//! Members answer as they do among themselves ([`crate::exchange`]), to a program that proves that it knows the cluster's secret. They read
//! files, a piece for each question, and hold no lock of the namespace for it; a standby is asked before the active.
//!
//! - Only entries that the answering member knows to have committed are fetched, so no archived entry is ever cut off
//!   again.
//! - Every entry must follow the one before it by serial number, epoch and chain. An entry that does not is of
//!   another history.
//! - The active alone says that the backup's end is the group's ([`history`]).
//! - A backup is *complete* up to a time when it holds every entry that stood in the active's log at that time: every
//!   later call carries a later time.

mod fetch;
mod history;
mod look;
mod members;
pub mod places;
mod restore;
mod target;
mod tree;
mod until;

pub use look::Look;
pub use members::{Group, Place};
pub use restore::{RestoreError, Restored, Wish, place_of_root, restore};
pub use target::{Found, TargetError, Until};
pub use tree::{TreeError, tree_of_now};
pub use until::{Blocks, Rebuilt, find, last_place, rebuild};

use base::{Entry, EntryKind, Epoch, LogPoint, MemberId, Sn};
use env::Env;
use history::{History, Next};
use journal::archive::{ArchiveError, Archiver};
use members::{Members, Told};
use namespace::Edit;
use std::{
    path::Path,
    time::{Duration, Instant},
};
use thiserror::Error;
use tokio::runtime::Handle;

/// How often members are asked for more.
const PERIOD: Duration = Duration::from_millis(500);
/// An edit takes its time when the active begins with it, and stands in the log a moment later. So much later at most.
const BEGUN_MS: u64 = 100;
/// How long members may be unable to give what is wanted, before an order that does not follow ends.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often a backup that follows asks where the members are.
const FIND_PERIOD: Duration = Duration::from_secs(10);
/// How many bytes are written before they are synced.
const SYNC_BYTES: usize = 32 << 20;

#[derive(Debug, Error)]
pub enum BackupError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(
        "the group's log ends at entry {end}, and this backup goes up to {archived}: the group has lost what the backup has, by an \
         unclean election, or because it was restored. Keep this directory, and back up into another one"
    )]
    WentBack { archived: Sn, end: Sn },
    #[error(
        "the group has another entry {at} than this backup: after an unclean election or a restore it has gone on from an earlier \
         entry. Keep this directory, and back up into another one"
    )]
    OtherHistory { at: Sn },
    #[error(
        "the secret is another one than this cluster's: name the members' secret_file with --secret-file, or with --config the configuration of a member"
    )]
    Secret,
    #[error("{0} runs a release that does not know backups: take it to this release first")]
    OldRelease(MemberId),
    #[error("no member gives what is wanted: {0}")]
    Nobody(String),
    #[error("it was interrupted; what is here stays, and the same order goes on with it")]
    Stopped,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Goes on archiving until it is stopped.
    pub follow: bool,
    /// 0: as fast as it goes.
    pub bytes_per_second: u64,
}

/// A piece of news of a backup that is being taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An image is fetched: bytes that are here, and bytes in all.
    Image { from: MemberId, at: Sn, have: u64, total: u64 },
    /// Entries are fetched.
    Entries { from: MemberId, at: Sn, up_to: Sn },
    /// These entries are in no member's log any more, and so they are not in the backup.
    Missed { after: Sn, up_to: Sn },
    /// A round is over.
    Round(Round),
    /// No member gives more for now.
    Waits(String),
}

/// The state of a backup after a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    pub archived: LogPoint,
    /// The last entry that is known to have committed.
    pub committed: Sn,
    /// The active and its epoch.
    pub active: Option<(MemberId, Epoch)>,
    pub complete_ms: Option<u64>,
    /// How long ago that was, by the active's clock.
    pub behind_ms: Option<u64>,
}

/// The counts of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The last entry of the backup before this run.
    pub before: Option<LogPoint>,
    pub round: Round,
    pub entries: u64,
    pub bytes: u64,
    pub image_bytes: u64,
}

/// The caller of a backup: it says where the members are and when to stop, and is told the news.
pub trait Operator {
    /// The places of the members; `None` if none can be asked.
    fn find(&mut self) -> Option<Vec<Place>>;
    fn is_stopped(&self) -> bool;
    fn tell(&mut self, event: Event);
}

/// Backs up into `directory`. Blocks until it has what had committed when it began, or with [`Options::follow`] until it is stopped.
///
/// # Errors
/// [`BackupError::Archive`] if the directory is not this cluster's backup, is in use, or cannot be read or written;
/// [`BackupError::Secret`] if the secret is another one than the members'; [`BackupError::Nobody`] if no member gives
/// what is wanted, [`BackupError::OldRelease`] if one runs a release without backups; [`BackupError::WentBack`] if the
/// group has lost what the backup has, [`BackupError::OtherHistory`] if it has another history;
/// [`BackupError::Stopped`] if `operator` stopped it. The backup keeps the entries that it has by then.
pub fn run(
    env: &Env,
    directory: &Path,
    group: Group,
    runtime: &Handle,
    options: Options,
    operator: &mut dyn Operator,
) -> Result<Summary, BackupError> {
    let members = Members::new(group, runtime.clone());
    let mut run = Run {
        env,
        directory,
        options,
        members,
        archiver: None,
        epoch: Epoch(0),
        history: History::default(),
        is_confirmed: false,
        pending: Vec::new(),
        end_ms: None,
        gone_since: None,
        summary: Summary::default(),
        operator,
        began: Instant::now(),
    };
    let result = run.run();
    if let Some(archiver) = &mut run.archiver {
        // The entries that were synced stay whether or not this fails. A sealed segment only spares later reads some checks.
        let sealed = archiver.seal();
        if result.is_ok() {
            sealed?;
        }
    }
    result.map(|()| run.summary)
}

/// The time of an edit; other entries have none.
pub fn time_of(entry: &Entry) -> Option<u64> {
    match entry.kind {
        EntryKind::Operation => Edit::decode(&entry.payload).ok().map(|edit| edit.time.ms),
        _ => None,
    }
}

struct Run<'a> {
    env: &'a Env,
    directory: &'a Path,
    options: Options,
    members: Members,
    archiver: Option<Archiver>,
    epoch: Epoch,
    history: History,
    /// The active was seen in this round to have the very entry with which the backup ends.
    is_confirmed: bool,
    /// The last entry of the active's log at certain times (ms since 1970). With that entry the backup is complete up
    /// to that time.
    pending: Vec<(u64, Sn)>,
    end_ms: Option<u64>,
    /// Since when no member that answers has the next entry, while others are silent.
    gone_since: Option<Instant>,
    summary: Summary,
    operator: &'a mut dyn Operator,
    began: Instant,
}

impl Run<'_> {
    fn run(&mut self) -> Result<(), BackupError> {
        let mut last_good = Instant::now();
        let mut found_at: Option<Instant> = None;
        // An order that does not follow ends at the last entry that had committed when it was given.
        let mut goal: Option<Sn> = None;
        loop {
            if found_at.is_none_or(|at| at.elapsed() >= FIND_PERIOD) {
                if let Some(places) = self.operator.find() {
                    self.members.set(places);
                }
                found_at = Some(Instant::now());
            }
            let waits = match self.round() {
                Ok(None) => {
                    last_good = Instant::now();
                    let round = self.summary.round;
                    self.operator.tell(Event::Round(round));
                    let goal = *goal.get_or_insert(round.committed);
                    let is_complete =
                        round.active.is_none() || self.is_confirmed && round.complete_ms.is_some();
                    if !self.options.follow && round.archived.id.sn >= goal && is_complete {
                        return Ok(());
                    }
                    None
                }
                Ok(Some(why)) => Some(why),
                Err(error) => return Err(error),
            };
            if let Some(why) = waits {
                found_at = None;
                if !self.options.follow && last_good.elapsed() >= PATIENCE {
                    return Err(BackupError::Nobody(why));
                }
                self.operator.tell(Event::Waits(why));
            }
            let asleep = Instant::now();
            while asleep.elapsed() < PERIOD {
                if self.operator.is_stopped() {
                    return if self.options.follow { Ok(()) } else { Err(BackupError::Stopped) };
                }
                std::thread::sleep(PERIOD / 10);
            }
        }
    }

    /// Archives what there is at this moment. The text is why that was not all of it.
    fn round(&mut self) -> Result<Option<String>, BackupError> {
        let (told, why) = self.members.ask()?;
        let Some(first) = told.first() else { return Ok(Some(why)) };
        if self.archiver.is_none() {
            let archiver = Archiver::open(self.env, self.directory, &first.whose, &time_of)?;
            self.end_ms = archiver.manifest().spans.last().and_then(|span| span.end_ms);
            self.summary.before = archiver.end();
            self.archiver = Some(archiver);
        }
        self.epoch = told.iter().map(|it| it.epoch).max().unwrap_or_default().max(self.epoch);
        let active = told.iter().filter(|it| it.serves.is_some()).max_by_key(|it| it.serves).cloned();
        if let Some(active) = &active {
            self.pending.push((active.now_ms.saturating_sub(BEGUN_MS), active.end));
        }
        self.is_confirmed = false;
        let why = match self.catch_up(&told, active.as_ref())? {
            Some(why) => Some(why),
            None => self.confirm(active.as_ref())?,
        };
        self.conclude(&told, active.as_ref())?;
        Ok(why)
    }

    /// Makes what was fetched durable, and says how far the backup goes.
    fn conclude(&mut self, told: &[Told], active: Option<&Told>) -> Result<(), BackupError> {
        let archiver = self.archiver.as_mut().expect("it was opened");
        let Some(end) = archiver.end() else { return Ok(()) };
        let mut reached = None;
        if self.is_confirmed {
            reached = self.pending.iter().filter(|(_, sn)| *sn <= end.id.sn).map(|(ms, _)| *ms).max();
            self.pending.retain(|(_, sn)| *sn > end.id.sn);
        }
        archiver.sync(self.epoch, self.end_ms, reached)?;
        let complete_ms = archiver.manifest().spans.last().and_then(|span| span.complete_ms);
        self.summary.round = Round {
            archived: end,
            committed: told
                .iter()
                .map(|it| history::reach(it, active))
                .max()
                .unwrap_or_default()
                .max(end.id.sn),
            active: active.and_then(|it| Some((it.member, it.serves?))),
            complete_ms,
            behind_ms: active.and_then(|it| Some(it.now_ms.saturating_sub(complete_ms?))),
        };
        Ok(())
    }

    /// Asks the active whether the entry with which the backup ends is the group's. The text is why that is not known yet.
    fn confirm(&mut self, active: Option<&Told>) -> Result<Option<String>, BackupError> {
        let archiver = self.archiver.as_ref().expect("it was opened");
        let Some(end) = archiver.end() else { return Ok(None) };
        match (self.history.next(active, end), active) {
            (Next::Confirmed, _) => self.is_confirmed = true,
            (Next::Asks(epoch, sn), Some(active)) => match self.members.read_log(active, sn, sn) {
                Ok(Some((found, _))) => {
                    self.history.heard(epoch, end, found)?;
                    self.is_confirmed = true;
                }
                Ok(None) => return Ok(Some(format!("the active has removed entry {sn}"))),
                Err(error) => return Ok(Some(format!("the active, member {}: {error}", active.member))),
            },
            (Next::Waits | Next::Asks(..), _) => {}
        }
        Ok(None)
    }
}
