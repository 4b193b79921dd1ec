//! The way of entries to the disk: waiting, under way, durable.

use crate::{
    AppendDone, AppendError, Fault, MemberState, Sealed, Settings, StateError,
    index::{Index, Mark, Place},
    keeping::Keeping,
    member_state::StateFile,
    promise::{self, PromiseFile},
    proof::proof_of,
    record::{PAYLOAD_BYTES_MAX, batch_bytes, encode_batch},
    segment::{self, OpenSegment},
    watermark::{self, Slot, Watermark},
};
use base::{Durable, Entry, Epoch, GroupId, LogPoint, Sn};
use env::{Env, disk::Lock, pulse};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

pub(crate) struct Opened {
    pub env: Env,
    pub directory: PathBuf,
    pub settings: Settings,
    pub file: StateFile,
    pub lock: Box<dyn Lock>,
    pub end: LogPoint,
    pub log_bytes: u64,
    pub promise: PromiseFile,
    pub index: Index,
}

/// A lock that is held across an operation of the disk is taken with [`pulse::lock`]: a thread of the disk, or the namespace's
/// writer, that waits for it waits for the disk and does not hang.
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) directory: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) group: GroupId,
    pub(crate) store_uuid: [u8; 16],
    generation: u64,
    pub(crate) inner: Mutex<Inner>,
    /// Told when something that waited or was under way is done.
    pub(crate) changed: Condvar,
    /// Held across its flushes; appends never take it.
    pub(crate) file: Mutex<StateFile>,
    /// Held across its sync.
    promise: Mutex<PromiseFile>,
    pub(crate) keeping: Mutex<Keeping>,
    /// A thread holds it while it removes the segments that no checkpoint needs any more.
    pub(crate) purge: Mutex<()>,
    /// The last segment that was looked at, to see whether packing it frees room.
    pub(crate) packed: Mutex<Option<Sealed>>,
    /// Taken last, held briefly.
    pub(crate) index: Mutex<Index>,
    watermark: Mutex<Watermark>,
    /// The staging directory is in use.
    pub(crate) is_staging: AtomicBool,
    /// Held while a file is put under the spare segment's name, or taken away from it.
    pub(crate) spare: Mutex<()>,
}

pub(crate) struct Inner {
    /// The store's lock, held for what it does when it goes.
    pub lock: Option<Box<dyn Lock>>,
    /// The last entry taken.
    pub end: LogPoint,
    /// The last entry given to a segment.
    pub sent: LogPoint,
    pub promised: Epoch,
    pub known_commit: Sn,
    pub waiting: VecDeque<Ticket>,
    pub waiting_bytes: usize,
    /// The batches that are being written, in the order of their entries.
    pub flights: VecDeque<Flight>,
    pub flight_count: u64,
    /// Flights not done yet.
    pub under_way: usize,
    /// All entries up to here are durable.
    pub durable: Sn,
    pub segment: Option<OpenSegment>,
    /// The segment is to be followed by another although it is not full.
    pub ends_segment: bool,
    /// A thread is replacing the segment.
    pub rolling: bool,
    /// Callbacks that may run, in order.
    pub ready: VecDeque<(AppendDone, Option<Arc<Fault>>)>,
    /// A thread is running callbacks.
    pub delivering: bool,
    pub fault: Option<Arc<Fault>>,
    /// All that can be done to remember the fault has been done. No caller hears of the fault before.
    pub fault_is_noted: bool,
    pub closed: bool,
    /// Bytes of entries taken, those of recovery included.
    pub log_bytes: u64,
    /// How often the log was cut: what was read across a cut is void.
    pub cuts: u64,
}

pub(crate) struct Ticket {
    pub entries: Vec<Entry>,
    pub bytes: usize,
    pub done: AppendDone,
}

pub(crate) struct Flight {
    number: u64,
    /// `None` when there is nothing to write.
    last: Option<Sn>,
    done: Vec<AppendDone>,
    result: Option<io::Result<()>>,
    file: PathBuf,
}

impl Inner {
    /// The end of the log after these entries, if they may follow.
    pub fn check(&self, entries: &[Entry]) -> Result<LogPoint, AppendError> {
        if let Some(fault) = &self.fault {
            return Err(AppendError::Failed(fault.clone()));
        }
        if self.closed {
            return Err(AppendError::Closed);
        }
        let mut end = self.end;
        for entry in entries {
            // An entry of an older epoch than the promised one is lawful: a new active hands on the entries that it
            // inherited. Whether a sender may append is for the member to judge.
            let follows = entry.id.sn.0 == end.id.sn.0 + 1
                && entry.id.epoch >= end.id.epoch
                && entry.previous_chain == end.chain;
            if !follows {
                return Err(AppendError::OutOfOrder { id: entry.id, end: end.id });
            }
            if entry.payload.len() > PAYLOAD_BYTES_MAX {
                return Err(AppendError::TooLarge { bytes: entry.payload.len(), limit: PAYLOAD_BYTES_MAX });
            }
            end = entry.point();
        }
        Ok(end)
    }

    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.flights.is_empty() && self.ready.is_empty() && !self.delivering
    }

    /// How many tickets make the next batch, and its bytes in the segment.
    fn plan_batch(&self, settings: &Settings) -> (usize, u64) {
        let mut bytes = 0;
        let count = self
            .waiting
            .iter()
            .take_while(|ticket| {
                let is_first = bytes == 0;
                bytes += ticket.bytes;
                is_first || bytes <= settings.batch_bytes_max
            })
            .count();
        let entries = self.waiting.iter().take(count).flat_map(|ticket| &ticket.entries);
        (count, batch_bytes(entries))
    }

    /// Takes that many tickets off the queue, as a flight in its place.
    fn take_off(&mut self, count: usize) -> (u64, Vec<Entry>) {
        let number = self.flight_count;
        let (mut entries, mut done) = (Vec::new(), Vec::new());
        for ticket in self.waiting.drain(..count) {
            self.waiting_bytes -= ticket.bytes;
            entries.extend(ticket.entries);
            done.push(ticket.done);
        }
        let last = entries.last().map(Entry::point);
        self.sent = last.unwrap_or(self.sent);
        let file = self.segment.as_ref().map(|segment| segment.path.clone()).unwrap_or_default();
        // Nothing to write: durable as soon as all before it is.
        let result = last.is_none().then_some(Ok(()));
        self.flights.push_back(Flight { number, last: last.map(|last| last.id.sn), done, result, file });
        self.flight_count += 1;
        (number, entries)
    }

    /// Moves what has become durable, or never will, to the callbacks that may run.
    fn settle(&mut self) {
        if self.fault.is_some() && !self.fault_is_noted {
            return;
        }
        while let Some(flight) = self.flights.front_mut() {
            if self.fault.is_none() {
                match &flight.result {
                    None => return,
                    Some(Ok(())) => self.durable = flight.last.unwrap_or(self.durable),
                    Some(Err(_)) => unreachable!("a failed flight has set the fault"),
                }
            }
            let done = std::mem::take(&mut flight.done);
            self.ready.extend(done.into_iter().map(|done| (done, self.fault.clone())));
            self.flights.pop_front();
        }
        if self.fault.is_some() {
            let waiting = std::mem::take(&mut self.waiting);
            self.waiting_bytes = 0;
            self.ready.extend(waiting.into_iter().map(|ticket| (ticket.done, self.fault.clone())));
        }
    }
}

impl Shared {
    pub(crate) fn new(opened: Opened) -> Self {
        let state = &opened.file.state;
        Self {
            group: state.identity.group,
            store_uuid: state.store_uuid,
            generation: state.generation,
            watermark: Mutex::default(),
            is_staging: AtomicBool::new(false),
            inner: Mutex::new(Inner {
                lock: Some(opened.lock),
                end: opened.end,
                sent: opened.end,
                promised: state.promised,
                known_commit: state.known_commit,
                waiting: VecDeque::new(),
                waiting_bytes: 0,
                flights: VecDeque::new(),
                flight_count: 0,
                under_way: 0,
                durable: opened.end.id.sn,
                segment: None,
                ends_segment: false,
                rolling: false,
                ready: VecDeque::new(),
                delivering: false,
                fault: None,
                fault_is_noted: false,
                closed: false,
                log_bytes: opened.log_bytes,
                cuts: 0,
            }),
            changed: Condvar::new(),
            file: Mutex::new(opened.file),
            promise: Mutex::new(opened.promise),
            keeping: Mutex::new(Keeping::default()),
            purge: Mutex::new(()),
            packed: Mutex::new(None),
            index: Mutex::new(opened.index),
            spare: Mutex::new(()),
            env: opened.env,
            directory: opened.directory,
            settings: opened.settings,
        }
    }

    pub(crate) fn log_directory(&self) -> PathBuf {
        self.directory.join(crate::store::LOG)
    }

    /// Sends batches to the disk until enough are under way or nothing waits.
    pub(crate) fn pump(self: &Arc<Self>) {
        loop {
            let mut inner = self.inner.lock();
            if inner.fault.is_some()
                || inner.rolling
                || inner.waiting.is_empty()
                || inner.under_way >= self.settings.flights_max
            {
                return;
            }
            let (tickets, bytes) = inner.plan_batch(&self.settings);
            if bytes == 0 {
                inner.take_off(tickets);
                inner.settle();
                drop(inner);
                self.deliver();
                continue;
            }
            let open = if inner.ends_segment { None } else { inner.segment.as_mut() };
            let Some(offset) = open.and_then(|segment| segment.reserve(bytes)) else {
                if inner.under_way > 0 {
                    return; // The last one to come back goes on.
                }
                inner.ends_segment = false;
                self.roll(inner, bytes);
                continue;
            };
            let mark = Mark { previous: inner.sent, offset };
            let (number, entries) = inner.take_off(tickets);
            inner.under_way += 1;
            let durable = inner.durable;
            let segment = inner.segment.as_mut().expect("it had room");
            segment.wrote(entries.last().expect("it has bytes").point(), entries.len() as u64);
            let file = segment.file.clone();
            self.index.lock().mark(segment.start(), Place::FIRST_LIFE, mark);
            drop(inner);
            // Encoded outside the lock: others may take the next batch meanwhile, its place is another.
            let encoded = encode_batch(&entries, self.group, durable);
            let myself = self.clone();
            let done = Box::new(move |result| myself.on_flight_done(number, result));
            file.submit_write_sync(encoded, offset, done);
        }
    }

    fn on_flight_done(self: &Arc<Self>, number: u64, result: io::Result<()>) {
        let failed = {
            let mut inner = self.inner.lock();
            inner.under_way -= 1;
            let Some(flight) = inner.flights.iter_mut().find(|flight| flight.number == number) else {
                return; // The journal failed meanwhile and has already answered.
            };
            let failed = result
                .as_ref()
                .err()
                .map(|error| (flight.file.clone(), copy_of(error), !env::disk::is_want(error)));
            flight.result = Some(result);
            if failed.is_none() {
                inner.settle();
            }
            failed
        };
        if let Some((file, error, untrusted)) = failed {
            self.fail("writing or syncing a batch", file, &error, untrusted);
        }
        self.pump();
        self.deliver();
        self.changed.notify_all();
    }

    /// Runs callbacks in order, on one thread at a time, under no lock.
    fn deliver(&self) {
        let mut inner = self.inner.lock();
        if inner.delivering {
            return;
        }
        inner.delivering = true;
        while let Some((done, fault)) = inner.ready.pop_front() {
            MutexGuard::unlocked(&mut inner, || match fault {
                None => done(Ok(proof_of(Ok(())).expect("settled as synced"))),
                Some(fault) => done(Err(fault)),
            });
        }
        inner.delivering = false;
        drop(inner);
        self.changed.notify_all();
    }

    /// Replaces a full segment, or makes the first one. Nothing is under way.
    fn roll(&self, mut inner: MutexGuard<'_, Inner>, bytes: u64) {
        let first = inner.waiting.iter().find_map(|ticket| ticket.entries.first()).expect("there are bytes");
        let next = segment::Next { epoch: first.id.epoch, previous: inner.sent, batch_bytes: bytes };
        inner.rolling = true;
        let old = inner.segment.take();
        drop(inner);
        let result = segment::roll(self, old, &next);
        let mut inner = self.inner.lock();
        inner.rolling = false;
        match result {
            Ok(segment) => inner.segment = Some(segment),
            Err((file, error)) => {
                drop(inner);
                // A disk that is full has not lied: the store may be trusted once there is room.
                let untrusted = !env::disk::is_want(&error);
                self.fail("beginning a new segment", file, &error, untrusted);
                self.deliver();
            }
        }
    }

    /// The end of this journal. Remembers the first reason, in memory and, if the disk may have lied, in the
    /// member's state.
    pub(crate) fn fail(
        &self,
        operation: &'static str,
        file: PathBuf,
        error: &io::Error,
        untrusted: bool,
    ) -> Arc<Fault> {
        let (fault, is_first) = self.refuse_more(operation, file, error);
        if is_first {
            self.note_fault(&fault, untrusted);
        }
        fault
    }

    /// From here on nothing more is taken. A thread whose write or sync has failed calls this before it gives back the lock of that file:
    /// no other thread may write there in between, and have its sync succeed. True: this is the first fault, to be noted with
    /// [`Shared::note_fault`].
    pub(crate) fn refuse_more(
        &self,
        operation: &'static str,
        file: PathBuf,
        error: &io::Error,
    ) -> (Arc<Fault>, bool) {
        let mut inner = self.inner.lock();
        if let Some(first) = &inner.fault {
            return (first.clone(), false);
        }
        let (reason, kind, durable) = (error.to_string(), error.kind(), inner.durable);
        let fault = Arc::new(Fault { operation, file, reason, kind, durable });
        inner.fault = Some(fault.clone());
        (fault, true)
    }

    /// Remembers the fault in the member's state, if the disk may have lied. Takes the lock of that state.
    pub(crate) fn note_fault(&self, fault: &Arc<Fault>, untrusted: bool) {
        tracing::error!(%fault, untrusted, "the journal refuses everything from now on");
        if untrusted {
            let mut file = pulse::lock(&self.file);
            file.state.fault_note = Some(fault.to_string());
            // When the store is taken back, this number tells whether all acknowledged entries are there.
            file.state.next = file.state.next.max(Sn(fault.durable.0 + 1));
            if let Err((path, error)) = file.store(&*self.env.disk) {
                tracing::error!(file = %path.display(), %error, "the failure could not be noted");
            }
        }
        let mut inner = self.inner.lock();
        inner.fault_is_noted = true;
        inner.settle();
        drop(inner);
        self.changed.notify_all();
    }

    /// Waits until all that was taken is durable, or never will be. Callbacks may still be on their way.
    pub(crate) fn wait_until_written(&self) {
        let mut inner = self.inner.lock();
        while inner.fault.is_none()
            && !(inner.waiting.is_empty() && inner.flights.is_empty() && !inner.rolling)
        {
            self.changed.wait_for(&mut inner, pulse::IDLE);
            pulse::step();
        }
    }

    /// Writes down what is known to have committed.
    pub(crate) fn persist_commit(&self) -> Result<(), StateError> {
        let sn = {
            let inner = self.inner.lock();
            if let Some(fault) = &inner.fault {
                return Err(StateError::Failed(fault.clone()));
            }
            inner.known_commit.min(inner.durable)
        };
        let slot = Slot { store_uuid: self.store_uuid, generation: self.generation, sn, writes: 0 };
        pulse::lock(&self.watermark)
            .write(&*self.env.disk, &self.directory, slot)
            .map_err(|source| StateError::Io { file: self.directory.join(watermark::FILE_NAME), source })
    }

    /// Makes a promise durable, in its own file, so that it need not wait for a change of the state.
    pub(crate) fn promise(&self, epoch: Epoch) -> Result<Durable, StateError> {
        let mut file = pulse::lock(&self.promise);
        let promised = {
            let inner = self.inner.lock();
            if let Some(fault) = &inner.fault {
                return Err(StateError::Failed(fault.clone()));
            }
            inner.promised
        };
        if epoch < promised {
            return Err(StateError::PromiseGoesBack { epoch, promised });
        }
        // It rises after the sync only, so this very promise is durable: each message of an epoch asks for it again.
        if epoch == promised {
            return Ok(proof_of(Ok(())).expect("written and synced"));
        }
        match proof_of(file.write(epoch)) {
            Ok(proof) => {
                self.inner.lock().promised = epoch;
                Ok(proof)
            }
            Err(error) => {
                let path = self.directory.join(promise::FILE_NAME);
                let fault = self.fail("writing the promise", path, &error, !env::disk::is_want(&error));
                drop(file);
                self.deliver();
                Err(StateError::Failed(fault))
            }
        }
    }

    /// Changes the member's state and makes it durable, together with what is written lazily.
    ///
    /// # Errors
    /// [`StateError::Failed`] if the journal has failed, or fails now because the state cannot be written.
    pub(crate) fn change_state(&self, change: impl FnOnce(&mut MemberState)) -> Result<Durable, StateError> {
        let mut file = pulse::lock(&self.file);
        let (known_commit, durable, promised) = {
            let inner = self.inner.lock();
            if let Some(fault) = &inner.fault {
                return Err(StateError::Failed(fault.clone()));
            }
            (inner.known_commit, inner.durable, inner.promised)
        };
        file.state.promised = file.state.promised.max(promised);
        file.state.known_commit = file.state.known_commit.max(known_commit.min(durable));
        file.state.next = file.state.next.max(Sn(durable.0 + 1));
        change(&mut file.state);
        let mut path = PathBuf::new();
        let synced = file.store(&*self.env.disk).map_err(|(failed, error)| {
            path = failed;
            error
        });
        match proof_of(synced) {
            Ok(proof) => Ok(proof),
            Err(error) => {
                let (fault, is_first) = self.refuse_more("writing the member's state", path, &error);
                drop(file);
                if is_first {
                    self.note_fault(&fault, !env::disk::is_want(&error));
                }
                self.deliver();
                Err(StateError::Failed(fault))
            }
        }
    }
}

fn copy_of(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}
