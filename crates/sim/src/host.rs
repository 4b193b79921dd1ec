//! One member of a group with its log, carried out to the letter and without time. The model check and the simulated
//! cluster share it.
//!
//! The log is a plain one: appended entries are in the page cache until the caller says that they are durable, and a
//! crash loses the others. Promises and cuts reach the disk at once, as the driver of a server makes them do.
//! Everything that the world beyond the disk must do is left in [`Happened`].

mod repairing;
mod stored;

pub use stored::{Rot, StoredLog};

use crate::Loss;
use base::{Durable, Entry, Epoch, LogPoint, MemberId, MemberLife, MemberStore, Moment, Sn};
use bytes::Bytes;
use group::{
    Effects, Input, LogReadFailed, Member, Message, Outgoing, ReadLog, Restored, Settings, ViewChange,
};
use journal::{Checkpoint, Word};
use std::{
    collections::VecDeque,
    hash::{Hash, Hasher},
};

/// The content of one member's disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LogDisk {
    pub promised: Epoch,
    /// The point that the entries follow: the empty log, or an image.
    pub start: LogPoint,
    /// Written, in order. The first `durable` of them survive a crash.
    pub entries: Vec<Entry>,
    pub durable: usize,
    /// Written lazily: at most what has committed.
    pub known_commit: Sn,
    pub is_suspect: bool,
}

impl LogDisk {
    pub fn end(&self) -> LogPoint {
        self.entries.last().map_or(self.start, Entry::point)
    }

    pub fn durable_end(&self) -> LogPoint {
        self.durable.checked_sub(1).map_or(self.start, |last| self.entries[last].point())
    }

    /// The entry's point, if it is there.
    pub fn point(&self, sn: Sn) -> Option<LogPoint> {
        if sn == self.start.id.sn {
            return Some(self.start);
        }
        self.index(sn).map(|index| self.entries[index].point())
    }

    /// The number of the last entry.
    pub fn end_sn(&self) -> Sn {
        self.entries.last().map_or(self.start.id.sn, |entry| entry.id.sn)
    }

    pub fn holds_durably(&self, point: LogPoint) -> bool {
        match self.index(point.id.sn) {
            Some(index) => index < self.durable && self.entries[index].point() == point,
            // An image stands for all that is before it.
            None => point.id.sn <= self.start.id.sn,
        }
    }

    /// The entry, if it is there and not in an image.
    pub fn entry(&self, sn: Sn) -> Option<&Entry> {
        self.index(sn).map(|index| &self.entries[index])
    }

    fn index(&self, sn: Sn) -> Option<usize> {
        let index = sn.0.checked_sub(self.start.id.sn.0 + 1)? as usize;
        (index < self.entries.len()).then_some(index)
    }

    fn cut(&mut self, after: LogPoint) -> Vec<Entry> {
        let keep = (after.id.sn.0 - self.start.id.sn.0) as usize;
        assert_eq!(self.point(after.id.sn), Some(after), "a log is cut after an entry that it holds");
        self.durable = self.durable.min(keep);
        self.entries.split_off(keep)
    }

    /// The entry at which the state machine of a restarted server begins, and the entries behind it.
    fn recovered(&self) -> (LogPoint, Vec<Entry>) {
        let base = self.known_commit.0.clamp(self.start.id.sn.0, self.end().id.sn.0);
        let split = (base - self.start.id.sn.0) as usize;
        (self.point(Sn(base)).expect("clamped to the log"), self.entries[split..].to_vec())
    }

    fn read(&self, asked: &ReadLog) -> Result<(LogPoint, Vec<Entry>), LogReadFailed> {
        let previous = self.point(asked.after).ok_or(LogReadFailed::Gone)?;
        let from = (asked.after.0 - self.start.id.sn.0) as usize;
        let to = (asked.up_to.0.saturating_sub(self.start.id.sn.0) as usize).min(self.entries.len());
        let mut bytes = 0;
        let mut entries = Vec::new();
        for entry in &self.entries[from..to.max(from)] {
            bytes += entry.payload.len();
            if bytes > asked.bytes_max as usize && !entries.is_empty() {
                break;
            }
            entries.push(entry.clone());
        }
        Ok((previous, entries))
    }
}

/// The effects of one input on the world beyond the member and its disk, in order.
#[derive(Debug, Default)]
pub struct Happened {
    pub changes: Vec<ViewChange>,
    pub messages: Vec<(MemberId, Message)>,
    /// The effects that may be delivered, in the order of the steps; messages and proofs are taken care of.
    pub outgoing: Vec<Outgoing>,
    pub promised: Vec<Epoch>,
    pub appended: Vec<Entry>,
    /// The entries that were cut off, oldest first.
    pub cut: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub struct Host {
    pub store: MemberStore,
    pub boot: u64,
    pub disk: LogDisk,
    /// The journal that keeps all of [`Host::disk`], in stories that play it; `None`: `disk` is the disk itself.
    journal: Option<Box<StoredLog>>,
    /// `None`: the process is not there.
    pub member: Option<Member>,
    /// The effects that wait for the disk. Each is released when the log is durable up to this length (in entries,
    /// the cut ones not counted).
    waiting: VecDeque<(usize, Outgoing)>,
    /// The last entry that the state machine has applied; an active's runs ahead of what has committed.
    pub applied: LogPoint,
    /// Plants a bug: promises are forgotten in a crash.
    pub forgets_promises: bool,
}

/// The search compares states. It plays no journals: their disks have no state that could be compared.
impl Hash for Host {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { store, boot, disk, journal, member, waiting, applied, forgets_promises } = self;
        assert!(journal.is_none(), "only stories play journals");
        (store, boot, disk, member, waiting, applied, forgets_promises).hash(state);
    }
}

impl Host {
    pub fn new(store: MemberStore) -> Self {
        Self {
            store,
            boot: 0,
            disk: LogDisk::default(),
            journal: None,
            member: None,
            waiting: VecDeque::new(),
            applied: LogPoint::default(),
            forgets_promises: false,
        }
    }

    /// A host whose log is the journal that ships, on a simulated disk.
    pub fn with_journal(store: MemberStore, journal: StoredLog) -> Self {
        Self { journal: Some(Box::new(journal)), ..Self::new(store) }
    }

    pub fn life(&self) -> MemberLife {
        MemberLife { store: self.store, boot: self.boot }
    }

    pub fn member(&self) -> &Member {
        self.member.as_ref().expect("the process is there")
    }

    pub fn is_up(&self) -> bool {
        self.member.is_some()
    }

    /// A new process on this store.
    pub fn start(&mut self, settings: Settings, now: Moment, seed: u64) {
        assert!(
            self.member.is_none() && !self.is_damaged(),
            "one process a store, and a store that is whole"
        );
        self.boot += 1;
        let (base, tail) = self.disk.recovered();
        self.applied = base;
        let restored = Restored {
            promised: self.disk.promised,
            base,
            tail,
            boot: self.boot,
            is_suspect: self.disk.is_suspect,
            ..Restored::default()
        };
        self.member = Some(Member::new(settings, self.store, restored, now, seed));
    }

    /// The process ends. `keep`: how many of the entries that were not durable are there afterwards.
    pub fn crash(&mut self, keep: usize) {
        self.member = None;
        self.waiting.clear();
        let left = (self.disk.durable + keep).min(self.disk.entries.len());
        self.disk.entries.truncate(left);
        // All entries that the next start reads are synced by it before they count.
        self.disk.durable = left;
        if self.forgets_promises {
            self.disk.promised = Epoch(0);
        }
    }

    /// The process of a member with a journal ends, and with it perhaps the power. The disk holds afterwards what the
    /// journal's recovery finds. False: the member has no journal.
    pub fn lose(&mut self, loss: Loss) -> bool {
        let Some(journal) = &mut self.journal else { return false };
        self.member = None;
        self.waiting.clear();
        if journal.is_damaged() {
            journal.end_damaged(loss);
        } else {
            self.disk = journal.end(loss, &self.disk);
            // An image in the place of another history is in a store of its own.
            self.store.generation = journal.generation();
        }
        true
    }

    /// The disk of a member with a journal fails, and its process ends. False: nothing was on its way to the disk.
    pub fn fail_disk(&mut self) -> bool {
        let Some(journal) = &mut self.journal else { return false };
        let fails = journal.fail(&mut self.disk);
        if fails {
            self.member = None;
            self.waiting.clear();
        }
        fails
    }

    /// A store whose disk has failed may be opened again: its own member follows another one that leads, or an operator
    /// vouches for it.
    pub fn take_back(&mut self, word: Word) {
        match &mut self.journal {
            Some(journal) => self.disk = journal.take_back(word, &self.disk),
            None => self.disk.is_suspect |= word == Word::Member,
        }
    }

    /// The store is worth nothing any more: an empty one in a new generation.
    pub fn begin_anew(&mut self) {
        assert!(self.member.is_none(), "the process has ended");
        self.store.generation += 1;
        self.disk = match &mut self.journal {
            Some(journal) => journal.begin_anew(self.disk.promised),
            None => LogDisk { promised: self.disk.promised, ..LogDisk::default() },
        };
        self.applied = LogPoint::default();
    }

    pub fn step(&mut self, now: Moment, input: Input, happened: &mut Happened) {
        let Some(member) = &mut self.member else { return };
        // An active's state machine applies before it proposes.
        let proposed = match &input {
            Input::Propose(proposals) => proposals.len(),
            _ => 0,
        };
        let effects = member.step(now, input);
        member.is_consistent().unwrap_or_else(|broken| panic!("member {}: {broken}", self.store.member));
        self.carry_out(now, effects, proposed > 0, happened);
    }

    /// Lets go of the oldest `count` entries, which an image stands for.
    pub fn forget_before(&mut self, count: usize, start: LogPoint) {
        assert!(count <= self.disk.durable, "only what is durable is purged");
        self.disk.entries.drain(..count);
        self.disk.durable -= count;
        self.disk.start = start;
        for (needed, _) in &mut self.waiting {
            *needed = needed.saturating_sub(count);
        }
    }

    /// The journal, in stories that play it.
    pub fn stored(&self) -> Option<&StoredLog> {
        self.journal.as_deref()
    }

    /// Another member's image takes the place of everything here, when the process has ended. False: the file is not the
    /// one that is wanted.
    pub fn install_stored(&mut self, checkpoint: &Checkpoint, file: &Bytes) -> bool {
        self.journal.as_mut().expect("this is about journals").install(checkpoint, file)
    }

    /// The group has committed the entry that makes the image usable: the journal lets go of what it replaces. False:
    /// the file here is another image.
    pub fn checkpoint_committed(&mut self, checkpoint: &Checkpoint) -> bool {
        let journal = self.journal.as_ref().expect("this is about journals");
        let Some(begins_after) = journal.checkpoint_committed(checkpoint) else { return false };
        let count = begins_after.0.saturating_sub(self.disk.start.id.sn.0) as usize;
        if count > 0 {
            let start = self.disk.entries[count - 1].point();
            self.forget_before(count, start);
        }
        true
    }

    /// An image of another member takes the place of everything here. The process has ended.
    pub fn install(&mut self, at: LogPoint) {
        assert!(self.member.is_none(), "the process has ended");
        assert!(self.journal.is_none(), "a journal installs its images itself");
        let promised = self.disk.promised;
        self.disk = LogDisk { promised, start: at, known_commit: at.id.sn, ..LogDisk::default() };
    }

    /// Entries that the disk has still to sync.
    pub fn unsynced(&self) -> usize {
        self.disk.entries.len() - self.disk.durable
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The disk has synced the next `count` entries.
    pub fn sync(&mut self, now: Moment, count: usize, happened: &mut Happened) {
        self.disk.durable = (self.disk.durable + count).min(self.disk.entries.len());
        if let Some(journal) = &mut self.journal {
            let durable = journal.write_out(self.disk.durable_end().id.sn);
            self.disk.durable = (durable.0 - self.disk.start.id.sn.0) as usize;
        }
        self.release_durable(now, happened);
    }

    pub fn read_log(&self, asked: ReadLog) -> Input {
        let result = match &self.journal {
            Some(journal) => journal.read(&asked),
            None => self.disk.read(&asked),
        };
        Input::LogRead { asked, result }
    }

    /// Has the journal write down that entries up to `sn` have committed, when it is convenient. False if the log is no
    /// journal.
    pub fn note_commit(&mut self, sn: Sn) -> bool {
        self.journal.as_mut().map(|journal| journal.note_commit(sn)).is_some()
    }

    /// An active has vouched for the end of this log.
    pub fn tail_is_sound(&mut self) {
        self.disk.is_suspect = false;
        if let Some(journal) = &self.journal {
            journal.tail_is_sound();
        }
    }

    fn release_durable(&mut self, now: Moment, happened: &mut Happened) {
        while let Some((length, _)) = self.waiting.front()
            && *length <= self.disk.durable
        {
            let (_, outgoing) = self.waiting.pop_front().expect("seen above");
            self.deliver(now, outgoing, happened);
        }
    }

    fn carry_out(&mut self, now: Moment, mut effects: Effects, is_applied: bool, happened: &mut Happened) {
        happened.changes.extend(effects.take_change());
        happened.messages.extend(effects.take_messages());
        let outgoing = effects.take_outgoing();
        self.deliver(now, outgoing, happened);
        let mut proof = None;
        if let Some(epoch) = effects.promise() {
            assert!(epoch >= self.disk.promised, "a promise never falls");
            self.disk.promised = epoch;
            if let Some(journal) = &self.journal {
                proof = Some(journal.promise(epoch));
            }
            happened.promised.push(epoch);
        }
        if let Some(after) = effects.cut() {
            happened.cut.extend(self.disk.cut(after));
            if let Some(journal) = &self.journal {
                proof = Some(journal.cut(after));
            }
            let length = self.disk.entries.len();
            for (needed, _) in &mut self.waiting {
                *needed = (*needed).min(length);
            }
        }
        let entries = effects.take_entries();
        for entry in &entries {
            assert_eq!(
                (entry.previous_chain, entry.id.sn),
                (self.disk.end().chain, Sn(self.disk.end().id.sn.0 + 1)),
                "an entry follows the one before it"
            );
            self.disk.entries.push(entry.clone());
            if is_applied {
                self.applied = entry.point();
            }
        }
        if let Some(journal) = self.journal.as_ref().filter(|_| !entries.is_empty()) {
            journal.append(entries.clone());
        }
        // A promise or a cut is made on the spot; only entries take their time.
        let is_synced = entries.is_empty() && (effects.promise().is_some() || effects.cut().is_some());
        happened.appended.extend(entries);
        if !effects.needs_disk() {
            let outgoing = effects.release_at_once();
            return self.deliver(now, outgoing, happened);
        }
        let outgoing = effects.release(proof.unwrap_or_else(Durable::attest));
        if is_synced {
            self.deliver(now, outgoing, happened);
        } else {
            self.waiting.push_back((self.disk.entries.len(), outgoing));
            self.release_durable(now, happened);
        }
    }

    fn deliver(&mut self, now: Moment, mut outgoing: Outgoing, happened: &mut Happened) {
        happened.messages.append(&mut outgoing.messages);
        let proof = outgoing.proof.take();
        for entry in &outgoing.apply {
            assert_eq!(entry.id.sn.0, self.applied.id.sn.0 + 1, "entries are applied in their order");
            self.applied = entry.point();
        }
        for entry in &outgoing.apply_ahead {
            assert_eq!(entry.id.sn.0, self.applied.id.sn.0 + 1, "entries are applied in their order");
            self.applied = entry.point();
        }
        if let Some(committed) = outgoing.committed {
            assert!(
                committed <= self.applied.id.sn,
                "what is called committed was given to the state machine"
            );
        }
        if outgoing != Outgoing::default() {
            happened.outgoing.push(outgoing);
        }
        if let Some(proof) = proof {
            self.step(now, Input::Durable(proof), happened);
        }
    }
}
