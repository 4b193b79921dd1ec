//! The thread of a volume that carries out what its plan says.

use super::{
    config::TurnsConfig,
    plan::{Kind, Piece, Plan, Step, StreamId, Ticket},
    stream_file::StreamFile,
};
use base::Moment;
use env::Clock;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    sync::Arc,
    task::Waker,
    time::Duration,
};

/// The turns of one volume. The thread ends when this is dropped; nobody waits for it, since its disk may hang.
pub struct Turns {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    clock: Arc<dyn Clock>,
    pub config: TurnsConfig,
    state: Mutex<State>,
    /// Wakes the thread.
    work: Condvar,
    /// Wakes those who wait for urgent work, or for a read.
    granted: Condvar,
}

pub(super) struct State {
    pub plan: Plan,
    files: BTreeMap<StreamId, Arc<StreamFile>>,
    /// How far the disk has read for readers.
    read: BTreeMap<StreamId, u64>,
    /// Senders that wait for room, and readers that wait for bytes.
    wakers: BTreeMap<StreamId, Waker>,
    running: BTreeSet<Ticket>,
    /// There is no thread any more: nobody waits.
    is_over: bool,
    figures: TurnFigures,
    last: Option<StreamId>,
}

/// The figures of a volume's turns since the start, and what it has queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnFigures {
    pub turns: u64,
    pub written_out_bytes: u64,
    pub queued_bytes: u64,
    /// Writers that wait for room in the queue.
    pub refused: u64,
}

impl Turns {
    /// # Errors
    /// The system cannot start the thread.
    pub fn start(name: String, config: TurnsConfig, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let state = State {
            plan: Plan::new(config.limits),
            files: BTreeMap::new(),
            read: BTreeMap::new(),
            wakers: BTreeMap::new(),
            running: BTreeSet::new(),
            is_over: false,
            figures: TurnFigures::default(),
            last: None,
        };
        let shared = Arc::new(Shared {
            clock,
            config,
            state: Mutex::new(state),
            work: Condvar::new(),
            granted: Condvar::new(),
        });
        let worker = Worker { shared: shared.clone(), under_way: VecDeque::new() };
        std::thread::Builder::new().name(name).spawn(move || worker.work())?;
        Ok(Self { shared })
    }

    /// Nobody takes turns any more, and no file is kept open.
    pub fn end(&self) {
        self.shared.end();
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub fn figures(&self) -> TurnFigures {
        let state = self.shared.state.lock();
        TurnFigures {
            queued_bytes: state.plan.queued_bytes(),
            refused: state.plan.line_length() as u64,
            ..state.figures
        }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Shared {
    pub fn now(&self) -> Moment {
        self.clock.moment()
    }

    /// The state; `None` once there is no thread any more.
    pub fn state(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.state.lock();
        (!state.is_over).then_some(state)
    }

    pub fn open(&self, kind: Kind, file: Arc<StreamFile>) -> StreamId {
        let mut state = self.state.lock();
        let id = state.plan.open(kind);
        if !state.is_over {
            state.files.insert(id, file);
        }
        id
    }

    /// Something has happened that the thread may have to hear of.
    pub fn nudge(&self) {
        self.work.notify_one();
    }

    /// Waits until this urgent work has the disk.
    pub fn wait_for_disk(&self) -> Option<Ticket> {
        let mut state = self.state()?;
        let ticket = state.plan.ask_urgent();
        self.work.notify_one();
        while !state.running.contains(&ticket) {
            if state.is_over {
                return None;
            }
            self.granted.wait(&mut state);
        }
        Some(ticket)
    }

    pub fn give_disk_back(&self, ticket: Ticket) {
        let mut state = self.state.lock();
        state.running.remove(&ticket);
        state.plan.urgent_done(ticket);
        self.work.notify_one();
    }

    fn end(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        state.files.clear();
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.work.notify_all();
        self.granted.notify_all();
        wakers.into_values().for_each(Waker::wake);
    }
}

impl State {
    /// Wakes this sender or reader when there is news.
    pub fn wake_later(&mut self, id: StreamId, waker: &Waker) {
        self.wakers.insert(id, waker.clone());
    }

    /// The byte behind the last that the disk has read for this reader.
    pub fn read_until(&self, id: StreamId) -> u64 {
        self.read.get(&id).copied().unwrap_or(0)
    }

    /// There may be room for senders and bytes for readers; they are to be woken without the lock.
    #[must_use]
    pub fn roomy(&mut self) -> BTreeMap<StreamId, Waker> {
        self.files.retain(|id, _| self.plan.has(*id));
        self.read.retain(|id, _| self.plan.has(*id));
        std::mem::take(&mut self.wakers)
    }
}

struct Worker {
    shared: Arc<Shared>,
    /// The pieces that the disk has, the oldest first.
    under_way: VecDeque<(Piece, Arc<StreamFile>)>,
}

impl Drop for Worker {
    /// Also if it has panicked: nobody must wait for a thread that is gone.
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Worker {
    fn work(mut self) {
        let shared = self.shared.clone();
        let mut state = shared.state.lock();
        while !state.is_over {
            match state.plan.next(shared.now()) {
                Step::Begin(piece) => {
                    let Some(file) = state.begin(&piece) else { continue };
                    MutexGuard::unlocked(&mut state, || file.begin(&piece));
                    self.under_way.push_back((piece, file));
                }
                Step::Finish => {
                    let finished = self.under_way.pop_front();
                    if let Some((piece, file)) = &finished {
                        MutexGuard::unlocked(&mut state, || file.finish(piece));
                    }
                    if let Some(piece) = state.plan.done()
                        && piece.kind == Kind::Read
                    {
                        state.read.insert(piece.stream, piece.end);
                    }
                    let wakers = state.roomy();
                    MutexGuard::unlocked(&mut state, || wakers.into_values().for_each(Waker::wake));
                    shared.granted.notify_all();
                }
                Step::Urgent(tickets) => {
                    state.running.extend(tickets);
                    shared.granted.notify_all();
                }
                Step::Wait { until: None } => shared.work.wait(&mut state),
                Step::Wait { until: Some(until) } => {
                    let ms = until.ms_since(shared.now()).max(1);
                    shared.work.wait_for(&mut state, Duration::from_millis(ms));
                }
            }
        }
    }
}

impl State {
    fn begin(&mut self, piece: &Piece) -> Option<Arc<StreamFile>> {
        if self.last.replace(piece.stream) != Some(piece.stream) {
            self.figures.turns += 1;
        }
        if piece.kind == Kind::Write {
            self.figures.written_out_bytes += piece.bytes();
        }
        self.files.get(&piece.stream).cloned()
    }
}
