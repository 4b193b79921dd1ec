//! Drives this server's membership in its group: steps the machine, and carries out its effects.
//!
//! The member is stepped by whatever thread has an input for it, one at a time ([`inbox`], [`pump`]); [`driver`] carries out
//! the effects of a step, and [`disk`] those that wait for the disk. [`threads`] has the one that beacons come from, which
//! waits for nothing but the [`timer`], and the one that reads the log for others. [`world`] speaks with the coordinator.
//! [`shared`] is the state that all of them look at; it knows none of them.
//!
//! Entries that have committed elsewhere, and this member's new role, go to the namespace's [`Writer`] as [`Followed`]: a
//! role is published once everything before it has been applied.

mod disk;
mod disk_queue;
mod driver;
mod inbox;
mod pump;
mod reader;
mod room;
mod shared;
mod standing;
mod threads;
mod timer;
mod world;
mod writer;

pub use shared::Parts;
pub use standing::{Followed, OrderDone, Standing};
pub use writer::Writer;

use crate::{
    ended::Ended,
    fatal,
    peers::{PeerCounters, PeerEvent, Peers, Release, letter::Letter},
};
use base::{EntryKind, Epoch, Level, LogPoint, MemberId, MemberStore, Moment, Sn};
use bytes::Bytes;
use coord::{Coordinator, MemberRecord};
use disk_queue::Task;
use group::{Agreement, Input, Member, Order, Proposal, Role, StateDigest, Status};
use inbox::{Event, Patience};
use journal::Journal;
use parking_lot::Mutex;
use shared::Shared;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Weak, atomic::Ordering},
    thread::JoinHandle,
};
use tokio::sync::watch;

/// The work that a proposal leaves for after the namespace is unlocked; for [`GroupMember::carry_on`].
#[derive(Default)]
#[must_use]
pub struct Proposed(driver::After);

/// This server's member, shared by the writer (which proposes), the journal's threads (which prove) and all who
/// ask.
#[derive(Clone)]
pub struct GroupMember {
    shared: Arc<Shared>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl GroupMember {
    pub fn new(parts: Parts) -> Self {
        Self { shared: Arc::new(Shared::new(parts)), threads: Arc::default() }
    }

    /// The function that takes events of other members.
    pub fn hear(&self) -> Arc<dyn Fn(PeerEvent) + Send + Sync> {
        let shared = Arc::downgrade(&self.shared);
        Arc::new(move |event| {
            let Some(shared) = shared.upgrade() else { return };
            let input = match event {
                PeerEvent::Connected(member) => {
                    shared.tell_fatal_requests(member);
                    shared.tell_watched(member);
                    Input::PeerConnected(member)
                }
                PeerEvent::Watched { left_ms } => {
                    return shared.watchers.learn(left_ms, shared.env.clock.moment());
                }
                PeerEvent::Told { text } => return shared.fatal.learn(&text),
                PeerEvent::Gone(member) => Input::PeerGone(member),
                PeerEvent::Ended(life) => Input::PeerEnded { store: life.store, boot: life.boot },
                PeerEvent::Said { from, boot, message } => Input::Message { from, boot, message },
            };
            shared.push(Event::Input(input), Patience::None);
        })
    }

    /// Begins to take part: with `peers`, if there are others. This member's own record is among them.
    ///
    /// # Panics
    /// The system cannot start a thread.
    pub fn start(&self, peers: Option<Peers>, records: Vec<MemberRecord>) {
        if let Some(peers) = peers {
            let _ = self.shared.peers.set(peers);
        }
        let telling = Arc::downgrade(&self.shared);
        self.shared.fatal.tell_with(move |text| {
            let shared = telling.upgrade();
            if let Some(peers) = shared.as_ref().and_then(|shared| shared.peers.get()) {
                peers.send_to_all(fatal::LOCK_PATIENCE, &Letter::FatalRequests(text));
            }
        });
        if let Some(mine) = records.iter().find(|record| record.life.store.member == self.shared.me.member) {
            let _ = self.shared.own_record.set(mine.clone());
        }
        self.shared.on_members(records);
        let thread = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(work).expect("a thread can be started")
        };
        let (disk, reader) = (self.shared.clone(), self.shared.clone());
        let timer: Weak<Shared> = Arc::downgrade(&self.shared);
        self.threads.lock().extend([
            thread("group-disk", Box::new(move || disk.run_disk())),
            thread("group-reader", Box::new(move || reader.run_reader())),
            thread("group-timer", Box::new(move || threads::run_timer(&timer))),
        ]);
        self.shared.watch_coordinator();
        self.shared.read_view();
    }

    /// A client asks for events, which this member and the others keep from here on.
    pub fn on_watcher(&self) {
        let (now, watchers) = (self.shared.env.clock.moment(), &self.shared.watchers);
        if watchers.ask(now)
            && let Some((peers, left_ms)) = self.shared.peers.get().zip(watchers.left_ms(now))
        {
            peers.send_to_all(fatal::LOCK_PATIENCE, &Letter::Watched { left_ms });
        }
    }

    /// This server's start has found that a client watches.
    pub fn go_on_watched(&self) {
        self.shared.watchers.go_on(self.shared.env.clock.moment());
    }

    /// Notes on disk whether a client watches, for the next start.
    pub fn note_watchers(&self, directory: &Path) {
        let shared = &self.shared;
        shared.watchers.note(&*shared.env.disk, directory, shared.env.clock.moment());
    }

    /// Whether events are kept now.
    pub fn is_watched(&self, now: Moment) -> bool {
        self.shared.watchers.are_there(now)
    }

    /// The epoch in which this member last was active.
    pub fn epoch(&self) -> Epoch {
        self.shared.epoch()
    }

    /// How far the log has committed, as the others may have been told by now. Answers here go out a little later, with the watermark of [`crate::commit`].
    pub fn log_committed(&self) -> Sn {
        self.shared.look(Member::committed)
    }

    pub fn end(&self) -> LogPoint {
        self.shared.look(|member| member.end())
    }

    /// The member's role at this moment; [`GroupMember::standing`] has the one that may be acted on.
    pub fn role(&self) -> Role {
        self.shared.look(|member| member.role().clone())
    }

    pub fn status(&self) -> Status {
        let now = self.shared.env.clock.moment();
        self.shared.look(|member| member.status(now))
    }

    /// How long the coordinator has been out of reach; `None` while it is within.
    pub fn coordinator_away_ms(&self) -> Option<u64> {
        let lost = *self.shared.coordinator_lost.lock();
        Some(self.shared.env.clock.moment().ms_since(lost?))
    }

    pub fn me(&self) -> MemberStore {
        self.shared.me
    }

    /// Role and active as published.
    pub fn standing(&self) -> Standing {
        self.shared.standing.borrow().clone()
    }

    /// Sees every change of the standing, or at least the last one.
    pub fn subscribe(&self) -> watch::Receiver<Standing> {
        self.shared.standing.subscribe()
    }

    /// Whether this member takes operations. Leave to answer is more: [`GroupMember::may_answer`].
    pub fn is_serving(&self) -> bool {
        self.shared.is_serving.load(Ordering::Acquire)
    }

    /// Whether this member takes operations, and is not being stopped.
    pub fn may_go_on(&self) -> bool {
        self.is_serving() && !self.shared.is_stopping.load(Ordering::Acquire)
    }

    /// Whether this member leads with too few in sync since it took over: it answers what rests on nothing that may have
    /// committed or not, and refuses all else.
    pub fn is_reading(&self) -> bool {
        self.shared.is_reading.load(Ordering::Acquire)
    }

    /// Whether this server is about to end: what is in memory is relied on no more.
    pub fn is_ending(&self) -> bool {
        self.shared.is_ending.load(Ordering::Acquire)
    }

    /// Whether calls are answered here, all of them or some.
    pub fn answers(&self) -> bool {
        self.is_serving() || self.is_reading()
    }

    /// Whether enough members are in sync for an edit to commit.
    pub fn is_writable(&self) -> bool {
        self.shared.is_writable.load(Ordering::Acquire)
    }

    /// The member that leads, as far as is known here, and its record.
    pub fn active(&self) -> Option<(MemberId, MemberRecord)> {
        let active = self.shared.standing.borrow().active?;
        let record = self.shared.records.lock().get(&active)?.clone();
        Some((active, record))
    }

    /// The members' records.
    pub fn records(&self) -> BTreeMap<MemberId, MemberRecord> {
        self.shared.records.lock().clone()
    }

    /// Whether an answer that was evaluated before this call may be sent: no other member can have been elected yet.
    /// Where this is false while the member answers, [`GroupMember::confirm`] may still prove it.
    pub fn may_answer(&self) -> bool {
        let now = self.shared.env.clock.moment();
        // The lease is looked at first: that of a later reign stands there before the member answers in it.
        self.shared.lease_end() > now && self.shared.watched.may_speak(now) && self.answers()
    }

    /// The moment until which the other members have promised to elect nobody else. The beginning of time: this member has no such promise, or has let go of
    /// it by a hand-over.
    pub fn lease_end(&self) -> Moment {
        // The lease is looked at first: that of a later reign stands there before the member answers in it.
        let lease_end = self.shared.lease_end();
        let may_speak = self.shared.watched.may_speak(self.shared.env.clock.moment()) && self.answers();
        if may_speak { lease_end } else { Moment::default() }
    }

    /// This server stops: no answer rests on a lease from here on. Once its ports are closed, the other members may take its process for ended, and wait
    /// for the lease no longer.
    pub fn give_up_lease(&self) {
        self.shared.has_given_up_lease.store(true, Ordering::Release);
    }

    /// Asks the coordinator whether the view is still the one in which this member is active: what was
    /// evaluated before this call may be answered if so.
    pub fn confirm(&self, done: impl FnOnce(Result<(), String>) + Send + 'static) {
        self.shared.confirm(Box::new(done));
    }

    /// An operator's order; `done` hears what became of it. It is given between two turns of the writer, so
    /// that no operation is cut in half by a hand-over.
    pub fn order(&self, order: Order, done: OrderDone) {
        self.shared.order(order, done);
    }

    /// Whether this server could answer clients at once if it led.
    pub fn say_ready(&self, is_ready: bool) {
        self.shared.push(Event::Input(Input::Ready(is_ready)), Patience::None);
    }

    /// How many data servers have reached this server lately.
    pub fn say_data_servers(&self, count: u32) {
        self.shared.push(Event::Input(Input::DataServers(count)), Patience::None);
    }

    /// Tells the group the digest of the namespace at a checkpoint that has committed.
    pub fn say_digest(&self, digest: StateDigest) {
        self.shared.push(Event::Input(Input::Digest(digest)), Patience::None);
    }

    /// The group is at this level: an entry that says so has committed. From here on it is written so, in this store and at the
    /// coordinator, and members that do not know it are refused.
    pub fn say_level(&self, level: Level) {
        self.require_level(level);
        self.shared.disk.push(Task::NoteLevel(level));
        self.shared.disk.wake();
        self.shared.push(Event::Input(Input::Level(level)), Patience::None);
    }

    /// Members that do not know this level are refused, so all who are met know it.
    pub fn required_level(&self) -> Level {
        self.shared.peers.get().map_or(Level::FIRST, Peers::required_level)
    }

    /// Members that do not know this level are refused from now on.
    pub fn require_level(&self, level: Level) {
        if let Some(peers) = self.shared.peers.get() {
            peers.require_level(level);
        }
    }

    /// The release that each of the others named when it last connected or was reached.
    pub fn releases(&self) -> BTreeMap<MemberId, Release> {
        self.shared.peers.get().map(Peers::releases).unwrap_or_default()
    }

    /// Whether all members have made the same of the log.
    pub fn agreement(&self) -> Agreement {
        self.shared.look(Member::agreement)
    }

    /// A majority of the members has made something else of the log than this one, which has stopped: where they differ. Its store is
    /// to be given up with [`GroupMember::give_up`] once the evidence is kept.
    pub fn differs(&self) -> Option<String> {
        self.shared.differs.lock().clone()
    }

    /// Puts the store aside, and ends this server to be started again without it. Blocks.
    pub fn give_up(&self, reason: String) {
        self.shared.disk.push(Task::Distrust(reason));
        self.shared.work_on_disk();
    }

    /// Lets another member lead, if there is one; for a server on its way out.
    pub fn step_down(&self) {
        self.shared.between(Input::StepDown);
    }

    /// True once the entries that are missing here are gone elsewhere: an image is to be fetched.
    pub fn needs_image(&self) -> watch::Receiver<bool> {
        self.shared.needs_image.subscribe()
    }

    /// The entry that an image must hold at least so that a member which is far behind can be renewed.
    pub fn image_wanted(&self) -> Sn {
        Sn(self.shared.image_wanted.load(Ordering::Acquire))
    }

    /// Asks the active to append this. The request may be lost.
    pub fn suggest(&self, proposal: Proposal) {
        self.shared.push(Event::Input(Input::Suggest(proposal)), Patience::None);
    }

    /// Why this server cannot go on, once it cannot.
    pub fn ended(&self) -> watch::Receiver<Option<Ended>> {
        self.shared.ended.subscribe()
    }

    /// This server is to be started again in its process: what is on the disk has been changed under it.
    pub fn restart(&self, reason: &str) {
        self.shared.end(Ended::Restart(reason.to_owned()));
    }

    pub fn journal(&self) -> &Journal {
        &self.shared.journal
    }

    pub fn coordinator(&self) -> &Arc<dyn Coordinator> {
        &self.shared.coordinator
    }

    /// The counters of the members' port; `None` in a group of one.
    pub fn peer_counters(&self) -> Option<&PeerCounters> {
        self.shared.peers.get().map(Peers::counters)
    }

    pub fn peer_address(&self) -> Option<std::net::SocketAddr> {
        self.shared.peers.get().map(Peers::local_addr)
    }

    /// This server cannot go on.
    pub fn fail(&self, reason: &str) {
        self.shared.end(Ended::Failed(reason.to_owned()));
    }

    /// Blocks while the disk or a member in sync is far behind.
    pub fn wait_for_room(&self) {
        let bytes_max = 2 * self.shared.settings.window_bytes;
        self.shared.room.wait(bytes_max, || self.may_go_on());
        self.shared.journal.wait_for_room();
    }

    /// Appends entries; the commit watch hears of them. Called by the writer alone, so that the order of the
    /// log is the order in which the edits were applied, and under the namespace's lock. The end of the log behind them, or `None`
    /// when they were not taken. Then the server is about to start again. [`GroupMember::carry_on`] does the rest.
    pub fn propose(&self, entries: Vec<(EntryKind, Bytes)>) -> (Option<LogPoint>, Proposed) {
        if entries.is_empty() {
            return (Some(self.end()), Proposed::default());
        }
        let proposals = entries.into_iter().map(|(kind, payload)| Proposal { kind, payload }).collect();
        let (end, after) = self.shared.propose(proposals);
        (end, Proposed(after))
    }

    /// How long entries took from this member to its disk.
    pub fn flush_times(&self) -> measures::Figures {
        self.shared.flushes.figures()
    }

    /// Tells those that wait for commits of which the proposal heard, and gives the proposed entries to the disk. The thread that has proposed them
    /// calls it, and holds no lock: an answer may be written down with what the namespace says; and appends are quick, but now and
    /// then one begins a new file, and a slow disk takes seconds for that.
    pub fn carry_on(&self, proposed: Proposed) {
        self.shared.carry_on(proposed.0);
    }

    /// The writer has applied what came before this role.
    pub fn publish(&self, role: Role) {
        self.shared.publish(role);
    }

    /// The writer has applied everything up to here.
    pub fn committed(&self, sn: Sn) {
        self.shared.committed(sn);
    }

    /// Ends the conversation with the others.
    pub fn stop(&self) {
        self.shared.is_stopping.store(true, Ordering::Release);
        self.shared.room.wake();
        self.shared.timer.stop();
        if let Some(peers) = self.shared.peers.get() {
            peers.stop();
            // Entries that have not committed by now never will here, so no call may wait for them.
            self.shared.commit.fail("this server is stopping");
        }
        self.shared.coordinator.release_lock(self.shared.group);
    }

    /// Waits for what is under way and closes the journal.
    ///
    /// # Errors
    /// Those of [`journal::Journal::close`].
    pub fn close(&self) -> Result<(), journal::StateError> {
        self.stop();
        self.shared.reader.stop();
        let result = self.shared.journal.close();
        self.shared.disk.stop();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
        result
    }
}

impl Shared {
    fn order(self: &Arc<Self>, order: Order, done: OrderDone) {
        let ticket = self.ticket_count.fetch_add(1, Ordering::Relaxed);
        self.tickets.lock().insert(ticket, done);
        self.between(Input::Operator { ticket, order });
    }

    fn between(self: &Arc<Self>, input: Input) {
        let shared = self.clone();
        let is_taken =
            self.writer.between(Box::new(move || shared.push(Event::Input(input), Patience::None)));
        // The server is stopping: a call that waits for an answer is told by the loss of its ticket.
        if !is_taken {
            for (_, done) in std::mem::take(&mut *self.tickets.lock()) {
                done(Err("this server is stopping".into()));
            }
        }
    }
}
