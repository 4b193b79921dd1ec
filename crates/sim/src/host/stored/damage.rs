//! A store whose synced bytes rot, and the way back: the journal's own repair, with what other members give it.

use super::StoredLog;
use crate::{Fault, Loss, host::LogDisk};
use base::{Entry, LogPoint, Sn};
use env::{Disk, Env};
use journal::{RecoverError, Repair};
use std::{path::PathBuf, sync::Arc};

/// Damage to the synced bytes of a log, and what a start finds of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rot {
    pub what: String,
    /// Entries between intact ones that are missing: from the first to the last of each hole.
    pub holes: Vec<(Sn, Sn)>,
    /// The end of the log is gone, or is not certain.
    pub loses_end: bool,
}

/// How often a kind of rot is looked for that can be borne.
const TRIES: usize = 12;
/// Bytes of entries in one answer to a member whose store is damaged.
const ANSWER_BYTES: usize = 2_000;

impl StoredLog {
    pub fn is_damaged(&self) -> bool {
        self.damaged.is_some()
    }

    /// The process ends, and bytes of the log that were synced rot before the next start. Of some kinds of rot one is taken that
    /// `is_bearable`; `None` if there is none. Then the store is what it was.
    ///
    /// The disk returned is what the checkers look at: a store that is damaged counts as what it held, because all of that has to be
    /// proved back.
    pub fn rot(&mut self, before: &LogDisk, is_bearable: impl Fn(&Rot) -> bool) -> (LogDisk, Option<Rot>) {
        if self.dice.chance(20) {
            return self.rot_of_state(before);
        }
        let loss = *self.dice.pick(&[Loss::ProcessOnly, Loss::Nothing, Loss::All]);
        self.disk.crash(loss);
        self.journal = None;
        for _ in 0..TRIES {
            let Some((path, sound, what)) = self.spoil() else { break };
            let found = self.probe(before, what).filter(|rot| is_bearable(rot));
            let Some(rot) = found else {
                self.disk.put(&path, &sound);
                continue;
            };
            return match self.try_open() {
                Ok(after) => (after, Some(rot)),
                Err(RecoverError::Damaged { .. }) => {
                    self.damaged = Some(Arc::default());
                    let mut kept = before.clone();
                    kept.entries.truncate(kept.durable);
                    (kept, Some(rot))
                }
                Err(error) => panic!("rot is taken for something else: {error}"),
            };
        }
        (self.open(), None)
    }

    /// A bit rots in a file of which there are two copies, or that only tells what others tell as well: nothing is lost by that.
    fn rot_of_state(&mut self, before: &LogDisk) -> (LogDisk, Option<Rot>) {
        // The second copy of a promise is written behind the first, and nobody waits for its sync.
        self.disk.crash(*self.dice.pick(&[Loss::ProcessOnly, Loss::Nothing]));
        self.journal = None;
        let name = *self.dice.pick(&["member.0", "member.1", "promise", "commit"]);
        let path = self.directory.join(name);
        let length = self.disk.length(&path).unwrap_or(0);
        if length == 0 {
            return (self.open(), None);
        }
        let (at, bit) = (self.dice.below(length), self.dice.below(8) as u8);
        self.disk.flip_bit(&path, at, bit);
        let after = self.open();
        let what = format!("a bit at {at} of {name}");
        assert!(after.promised >= before.promised, "{what}: the journal has forgotten a promise");
        assert!(
            after.is_suspect || !before.is_suspect,
            "{what}: an end that is not certain is taken for certain"
        );
        assert!(after.holds_durably(before.durable_end()), "{what}: entries are gone");
        assert!(after.known_commit <= before.end().id.sn, "{what}: more is called committed than there was");
        (after, Some(Rot { what, holes: Vec::new(), loses_end: false }))
    }

    /// Spoils one file of the log. Returns its path, its sound content and what was done.
    fn spoil(&mut self) -> Option<(PathBuf, Vec<u8>, String)> {
        let log = self.directory.join("log");
        let mut files = self.disk.files();
        files.retain(|(path, content)| path.starts_with(&log) && !content.is_empty());
        if files.is_empty() {
            return None;
        }
        let (path, sound) = self.dice.pick(&files).clone();
        let mut content = sound.clone();
        // Behind the last byte that is not zero there is nothing that could rot.
        let used = content.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
        let at = self.dice.below(used as u64) as usize;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A start cannot miss a whole file of which nothing else tells: the last one, that was being written.
        let may_go = !name.ends_with(".open");
        let what = match self.dice.below(10) {
            9 if may_go => {
                self.disk.remove_file(&path).expect("it was listed");
                self.disk.sync_directory(&log).expect("the disk is sound");
                return Some((path, sound, format!("the file {name}")));
            }
            // Nor can it tell zeros in the place of the last record from a log that ended before it.
            6 | 7 if may_go => {
                let sector = at / 512 * 512;
                let end = (sector + 512).min(content.len());
                content[sector..end].fill(0);
                format!("the sector at {sector} of {name}")
            }
            8 => {
                content.truncate(at);
                format!("all of {name} from {at} on")
            }
            _ => {
                content[at] ^= 1 << self.dice.below(8);
                format!("a bit at {at} of {name}")
            }
        };
        self.disk.put(&path, &content);
        Some((path, sound, what))
    }

    /// Looks at a copy of the disk, with the eyes of a start. `None`: a start misses nothing.
    fn probe(&mut self, before: &LogDisk, what: String) -> Option<Rot> {
        let disk = self.disk.copy_with(self.dice.split());
        let env = Env { disk: Arc::new(disk.clone()), ..self.env.clone() };
        let mut copy = Self { disk, env, journal: None, damaged: None, ..self.clone() };
        match copy.try_open() {
            Ok(after) if after.holds_durably(before.durable_end()) => None,
            Ok(after) => {
                assert!(
                    after.is_suspect,
                    "a start takes a log for sound that ends before what was durable: {what}"
                );
                Some(Rot { what, holes: Vec::new(), loses_end: true })
            }
            Err(RecoverError::Damaged { .. }) => {
                copy.disk.crash(Loss::ProcessOnly);
                let repair = copy.recovery().repair().unwrap_or_else(|error| panic!("{what}: {error}"));
                let holes = repair.holes();
                let bounded = holes.iter().filter_map(|hole| Some((Sn(hole.after.0 + 1), hole.last?.0)));
                let loses_end = holes.iter().any(|hole| hole.last.is_none());
                Some(Rot { what, holes: bounded.collect(), loses_end })
            }
            Err(error) => panic!("rot of {what} is taken for something else: {error}"),
        }
    }

    /// The process of a damaged store ends, and with it perhaps the power.
    pub fn end_damaged(&mut self, loss: Loss) {
        self.damaged = Some(Arc::default());
        self.disk.crash(loss);
    }

    /// Looks through the store, once a life.
    pub fn begin_repair(&mut self) {
        let place = self.damaged.clone().expect("only a damaged store is repaired");
        let mut place = place.lock();
        if place.is_none() {
            let repair = self.recovery().repair();
            *place =
                Some(repair.unwrap_or_else(|error| panic!("the store cannot be looked through: {error}")));
        }
    }

    /// Does something with the repair, if a process is at it.
    pub fn with_repair<T>(&self, work: impl FnOnce(&mut Repair) -> T) -> Option<T> {
        self.damaged.as_ref()?.lock().as_mut().map(work)
    }

    /// Writes what was repaired. `is_continued`: the end of the log is another member's.
    ///
    /// # Errors
    /// That was cut off, and the process ends. The store, as it is left, may be whole all the same.
    pub fn mend(&mut self, before: &LogDisk, is_continued: bool) -> Result<LogDisk, LogDisk> {
        let place = self.damaged.take().expect("only a damaged store is mended");
        let repair = place.lock().take().expect("its process is at it");
        let end = repair.end();
        match self.dice.below(8) {
            0 => self.disk.fail_sync(self.dice.below(12), Fault::Io),
            1 => self.disk.fail_write(self.dice.below(8), Fault::Full),
            _ => {}
        }
        let mended = repair.mend();
        let is_cut_off = mended.is_err();
        let loss = *self.dice.pick(&[Loss::ProcessOnly, Loss::Random, Loss::All]);
        self.disk.crash(loss);
        let after = match self.try_open() {
            Ok(after) => after,
            Err(RecoverError::Damaged { .. }) if is_cut_off => {
                self.damaged = Some(Arc::default());
                return Err(before.clone());
            }
            Err(error) => panic!("a store that was mended cannot be read: {error}"),
        };
        assert!(after.promised >= before.promised, "a store that was mended has forgotten a promise");
        // Entries that were written and not synced, and are in no file that was mended, may go with the power.
        if !is_cut_off && loss == Loss::ProcessOnly {
            assert_eq!(after.end(), end, "a store that was mended ends elsewhere");
        }
        assert!(
            after.is_suspect || (!is_continued && after.holds_durably(before.durable_end())),
            "the journal had made {} durable, and takes a mended log for certain that ends with {}",
            before.durable_end().id,
            after.end().id
        );
        if is_cut_off { Err(after) } else { Ok(after) }
    }

    /// A damaged store is given up, with its content: an empty one of the next generation takes its place.
    pub fn give_up(&mut self, before: &LogDisk) -> LogDisk {
        self.damaged = None;
        self.disk.crash(Loss::ProcessOnly);
        journal::distrust(&self.env, &self.directory, "planted by a story").expect("the disk is sound");
        let after = self.open();
        assert!(after.entries.is_empty(), "a store that was given up begins with {}", after.end().id);
        assert!(after.promised >= before.promised, "a store that was given up keeps its promise");
        after
    }

    /// The generation that the store calls its own.
    pub fn generation(&self) -> u64 {
        self.journal().state().generation
    }

    /// Entries for a member whose store is damaged, and the point before them; `None` if there are none.
    pub fn entries_for(&self, after: Sn, up_to: Sn) -> Option<(LogPoint, Vec<Entry>)> {
        if self.is_damaged() {
            return self
                .with_repair(|repair| repair.read(after, up_to, ANSWER_BYTES).ok().flatten())
                .flatten();
        }
        self.journal().read(after, up_to, ANSWER_BYTES).ok()
    }

    /// The last entry that is durable, and the one at this place.
    pub fn points(&self, at: Sn) -> (LogPoint, Option<LogPoint>) {
        let point = |sn: Sn| self.journal().read(sn, sn, 0).ok().map(|(point, _)| point);
        let end = point(self.journal().durable());
        (end.expect("the end of a sound log can be read"), point(at))
    }
}
