//! A member's log in the journal that ships, on a simulated disk. [`damage`] is about bytes that rot, [`images`] about images.
//!
//! [`LogDisk`] remains what the checkers look at. While the process runs, it mirrors what the journal was told; after the
//! end of a process it is what the journal's recovery found on the disk. So a start goes on from the shipping recovery:
//! torn tails, marks of commits that were written late, promises in their file.

mod damage;
mod images;

pub use damage::Rot;

use super::LogDisk;
use crate::{Fault, Loss, SimClock, SimDisk, SimRandom, dice::Dice};
use base::{Durable, Entry, Epoch, GroupId, LogPoint, MemberStore, Sn};
use bytes::Bytes;
use env::Env;
use group::{LogReadFailed, ReadLog};
use journal::{FailedStore, Identity, Journal, NextStart, ReadLogError, RecoverError, Repair, Word};
use parking_lot::Mutex;
use std::{io::Read, path::PathBuf, sync::Arc};

/// See the module's description. Clones are the same store.
#[derive(Clone)]
pub struct StoredLog {
    disk: SimDisk,
    env: Env,
    settings: journal::Settings,
    directory: PathBuf,
    dice: Dice,
    /// `None`: the process has ended, and the disk was not read again yet.
    journal: Option<Journal>,
    /// The log cannot be read back. The repair is there while a process is at it.
    damaged: Option<Arc<Mutex<Option<Repair>>>>,
    /// The image that the last start went on from, with its content.
    image: Option<(LogPoint, Bytes)>,
    /// The image of this entry takes the place of the log with the next start.
    installs: Option<LogPoint>,
}

impl std::fmt::Debug for StoredLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the journal in {}", self.directory.display())
    }
}

impl StoredLog {
    /// An empty store, open. `lies`: the disk only says that it syncs.
    pub fn format(store: MemberStore, mut dice: Dice, lies: bool) -> Self {
        let disk = SimDisk::new(dice.split());
        let env = Env {
            clock: Arc::new(SimClock::new()),
            disk: Arc::new(disk.clone()),
            random: Arc::new(SimRandom::new(dice.split())),
            descriptors: Arc::new(env::Descriptors::new(1 << 20)),
        };
        let settings = journal::Settings {
            segment_bytes: journal::Settings::SEGMENT_BYTES_MIN * (1 + dice.below(4)),
            flights_max: 1 + dice.below(3) as usize,
            batch_bytes_max: 4_096,
            waiting_bytes_max: usize::MAX,
            reserve_bytes: 1 << 20,
        };
        let directory = PathBuf::from("/sim/store");
        let identity = Identity { cluster_id: "CID-sim".into(), group: GroupId(1), member: store.member };
        journal::format(&env, &directory, &identity).expect("a fresh disk can be formatted");
        let mut stored = Self {
            disk,
            env,
            settings,
            directory,
            dice,
            journal: None,
            damaged: None,
            image: None,
            installs: None,
        };
        stored.open();
        if lies {
            stored.disk.lie_about_syncs();
        }
        stored
    }

    fn journal(&self) -> &Journal {
        self.journal.as_ref().expect("the store is open between two ends of a process")
    }

    /// Reads the disk as a start does, and tells what is there.
    fn open(&mut self) -> LogDisk {
        self.try_open().unwrap_or_else(|error| panic!("the log cannot be read: {error}"))
    }

    fn recovery(&self) -> journal::Recovery {
        journal::open(&self.env, &self.directory, self.settings)
            .unwrap_or_else(|error| panic!("the store cannot be opened: {error}"))
    }

    fn try_open(&mut self) -> Result<LogDisk, RecoverError> {
        let mut recovery = self.recovery();
        let image = recovery.load_image(|reader| {
            let mut content = Vec::new();
            reader.read_to_end(&mut content)?;
            Ok(Bytes::from(content))
        })?;
        let mut entries = Vec::new();
        let replayed = recovery.replay(|entry| {
            entries.push(entry);
            Ok(())
        });
        let (journal, recovered) = replayed?;
        entries.extend(recovered.tail);
        // Nothing here strikes images, so one that is called usable is.
        let unusable =
            recovered.findings.iter().find(|finding| finding.what.contains("image cannot be used"));
        assert!(unusable.is_none(), "the journal calls an image usable that is not: {unusable:?}");
        let promised = journal.state().promised;
        self.journal = Some(journal);
        let start = image.as_ref().map_or(LogPoint::default(), |(at, _)| *at);
        self.image = image;
        Ok(LogDisk {
            promised,
            start,
            durable: entries.len(),
            entries,
            known_commit: recovered.base.id.sn,
            is_suspect: recovered.is_suspect,
        })
    }

    /// The process ends, and with it perhaps the power. `before` is what the log was; all of it that was durable must be
    /// there afterwards.
    pub fn end(&mut self, loss: Loss, before: &LogDisk) -> LogDisk {
        // Some of what was submitted may have been carried out meanwhile.
        while self.disk.submitted_count() > 0 && self.dice.chance(50) {
            self.complete_one();
        }
        self.disk.crash(loss);
        self.journal = None;
        let mut after = self.open();
        // A start may be cut short as well, or be followed by another one.
        if self.dice.chance(10) {
            self.disk.crash(*self.dice.pick(&[Loss::Random, Loss::All, Loss::ProcessOnly]));
            self.journal = None;
            after = self.open();
        }
        assert!(after.promised >= before.promised, "the journal has forgotten a promise");
        if let Some(at) = self.installs.take() {
            assert_eq!((after.start, after.end()), (at, at), "the image takes the place of the log");
            return after;
        }
        let durable = before.durable_end();
        assert!(
            after.holds_durably(durable),
            "the journal had made {} durable, and has only {} after {loss:?} was lost",
            durable.id,
            after.end().id
        );
        assert!(
            after.known_commit <= before.end().id.sn,
            "the journal takes more for committed than there was"
        );
        after
    }

    /// A sync fails, and with it the journal; the process ends. False: nothing was on its way to the disk.
    pub fn fail(&mut self, before: &mut LogDisk) -> bool {
        if self.disk.submitted_count() == 0 {
            return false;
        }
        self.disk.fail_sync(0, Fault::Io);
        self.complete_one();
        self.disk.complete_all();
        let fault = self.journal().fault();
        assert!(fault.is_some(), "a journal does not go on after a failed sync");
        self.disk.crash(*self.dice.pick(&[Loss::ProcessOnly, Loss::Random]));
        self.journal = None;
        let failed = self.failed();
        let end = failed.end().unwrap_or_else(|error| panic!("the medium cannot be read: {error}"));
        let durable = before.durable_end().id.sn;
        assert!(
            end.id.sn >= durable,
            "up to {durable} was durable before the disk failed, and {} is left",
            end.id
        );
        assert!(failed.promised() >= before.promised, "the journal has forgotten a promise");
        before.entries.truncate((end.id.sn.0 - before.start.id.sn.0) as usize);
        before.durable = before.entries.len();
        assert_eq!(before.end(), end, "the medium holds what was written");
        (before.promised, before.known_commit) = (failed.promised(), failed.state().known_commit);
        true
    }

    fn failed(&self) -> FailedStore {
        let failed = FailedStore::open(&self.env, &self.directory);
        failed.expect("its state is sound").expect("a note says that the disk has failed")
    }

    /// The store is taken back after a failed sync.
    pub fn take_back(&mut self, word: Word, before: &LogDisk) -> LogDisk {
        let taken =
            self.failed().take_back(word).unwrap_or_else(|error| panic!("it is not taken back: {error}"));
        assert_eq!(taken.end, before.end(), "nothing has changed since the disk was looked at");
        let after = self.open();
        assert_eq!(after.end(), before.end(), "the store holds what the medium held");
        assert!(after.promised >= before.promised, "a store that is taken back keeps its promise");
        assert!(
            after.is_suspect || word == Word::Operator,
            "only a person vouches for the end of such a log"
        );
        after
    }

    /// The store is given up, with its content: an empty one of the next generation takes its place.
    pub fn begin_anew(&mut self, promised: Epoch) -> LogDisk {
        self.journal().distrust("planted by a story").expect("the disk is sound");
        self.disk.crash(Loss::ProcessOnly);
        self.journal = None;
        let after = self.open();
        assert!(after.entries.is_empty(), "a store that was given up begins with {}", after.end().id);
        assert_eq!(self.journal().state().next_start, NextStart::Recover);
        assert!(after.promised >= promised, "a store that was given up keeps its promise");
        after
    }

    /// Makes a promise durable.
    pub fn promise(&self, epoch: Epoch) -> Durable {
        let promised = self.journal().promise(epoch);
        promised.unwrap_or_else(|error| panic!("{epoch} cannot be promised: {error}"))
    }

    /// Hands entries to the journal; they are durable when [`Self::write_out`] says so.
    pub fn append(&self, entries: Vec<Entry>) {
        let taken = self.journal().append(entries, Box::new(|_| ()));
        taken.unwrap_or_else(|error| panic!("entries are not taken: {error}"));
    }

    /// Cuts the log, once all that is under way was written, as the journal waits for it.
    pub fn cut(&self, after: LogPoint) -> Durable {
        self.disk.complete_all();
        self.journal().cut(after).unwrap_or_else(|error| panic!("the log is not cut: {error}"))
    }

    fn complete_one(&mut self) {
        let count = self.disk.submitted_count() as u64;
        self.disk.complete(self.dice.below(count) as usize);
    }

    /// Batches reach the disk in any order until the log is durable up to there. Returns how far it is then.
    pub fn write_out(&mut self, up_to: Sn) -> Sn {
        while self.journal().durable() < up_to && self.disk.submitted_count() > 0 {
            self.complete_one();
        }
        assert!(self.journal().fault().is_none(), "the journal has failed on a sound disk");
        self.journal().durable()
    }

    /// Entries for a member that is behind, as a server's reader finds them.
    ///
    /// # Errors
    /// [`LogReadFailed::Failed`] if the entry asked for is not durable yet.
    pub fn read(&self, asked: &ReadLog) -> Result<(LogPoint, Vec<Entry>), LogReadFailed> {
        let read = self.journal().read(asked.after, asked.up_to, asked.bytes_max as usize);
        read.map_err(|error| match error {
            ReadLogError::Gone { .. } => LogReadFailed::Gone,
            ReadLogError::Failed { .. } => LogReadFailed::Failed,
        })
    }

    /// Notes the commit, and does now and then the work that a server does about once a second.
    pub fn note_commit(&mut self, sn: Sn) {
        self.journal().note_commit(sn);
        match self.dice.below(40) {
            0..2 => self.journal().persist_commit().expect("the disk is sound"),
            2 => self.journal().prepare_segment().expect("the disk is sound"),
            3 => drop(self.journal().pack_segment().expect("the disk is sound")),
            _ => {}
        }
    }

    /// The mark of a torn end goes.
    pub fn tail_is_sound(&self) {
        self.journal().tail_is_sound().expect("the disk is sound");
    }
}
