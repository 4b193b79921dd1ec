//! This member's side of the directory log: the machine, and what is known of it without its lock.

use super::{
    asked::Known,
    home_side::{HomeSide, Judged},
    links::Links,
    root_side::RootSide,
    step::{After, Input, Shown},
};
use base::{
    Epoch, GroupId, Moment, Sn,
    directory_log::{Dix, Entry, Mark},
};
use dirlog::{OpId, home::CallKind, root::ReadLog};
use namespace::{Edit, Namespace, questions::Question};
use parking_lot::{Condvar, Mutex};
use rpc::{Call, Replier};
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// See the module's documentation.
#[derive(Default)]
pub struct Directories {
    side: Mutex<Side>,
    /// There is something to step: false in a cluster of one group.
    is_used: AtomicBool,
    /// A home awaits calls that have waited. Asked by each call that is sent on, without the machine's lock.
    awaits_calls: AtomicBool,
    pub(super) links: OnceLock<Links>,
    /// Answers calls that have waited here, on a thread of its own.
    pub(super) answer: OnceLock<AnswerLater>,
    /// Entries that the root wants to read. The thread does that: a step may run under the namespace's lock.
    reads: Mutex<Vec<ReadLog>>,
    pub(super) is_proving: AtomicBool,
    /// Why this group cannot follow the directory log, for people.
    trouble: Mutex<Option<String>>,
    /// When the thread looks again, by the clock of moments, and what wakes it before.
    looks_at_ns: AtomicU64,
    is_woken: Mutex<bool>,
    wake: Condvar,
}

/// See [`Directories`].
pub type AnswerLater = Box<dyn Fn(Vec<(Call, Replier)>) + Send + Sync>;

#[derive(Default)]
enum Side {
    /// This member does not lead.
    #[default]
    Idle,
    /// This member leads in the epoch, and its group cannot follow the directory log.
    Stuck(Epoch),
    Root(Box<RootSide>),
    Home(Box<HomeSide>),
}

impl Directories {
    /// This member leads its group in `epoch` from here on, or reads in its name. `namespace` has all that it has inherited, which is certain up to
    /// `committed`. It runs on the writer's thread, with the namespace locked. Returns the last entry that is known to be visible.
    pub fn begin(&self, namespace: &Namespace, epoch: Epoch, committed: Sn, now: Moment) -> Dix {
        let mut side = self.side.lock();
        // A member that has read at first, or whose hand-over has failed, serves in the same epoch. Its machine stays: a new one would give the names
        // of its sessions and Hellos a second time.
        match (&mut *side, namespace.group()) {
            (Side::Root(root), _) if root.epoch() == epoch => root.inherited_is_certain(committed),
            (Side::Home(home), _) if home.epoch() == epoch => {}
            (Side::Stuck(stuck), _) if *stuck == epoch => return Dix(0),
            (side, GroupId::ROOT) => {
                *side = Side::Root(Box::new(RootSide::new(namespace, epoch, committed, now)))
            }
            (side, _) => *side = Side::Home(Box::new(HomeSide::new(namespace, epoch, now))),
        }
        let visible = match &*side {
            Side::Root(root) => root.visible(),
            _ => Dix(0),
        };
        drop(side);
        *self.trouble.lock() = None;
        let is_used = namespace.group() != GroupId::ROOT || namespace.is_shared();
        self.is_used.store(is_used, Ordering::Release);
        self.wake();
        visible
    }

    /// This member leads no more. Returns the calls that have waited here.
    pub fn end(&self) -> Vec<(Call, Replier)> {
        let side = std::mem::take(&mut *self.side.lock());
        self.is_used.store(false, Ordering::Release);
        match side {
            Side::Home(mut home) => home.take_waiting(),
            Side::Root(mut root) => root.take_waiting(),
            _ => Vec::new(),
        }
    }

    /// Says whether a call may be carried out now that this group decides as a home. `tree` is this member's, locked, and nothing may be applied to it before
    /// the call is carried out. `marks` adds what the call rests on; false: on anything.
    pub fn judge(
        &self,
        tree: &Namespace,
        now: Moment,
        kind: CallKind,
        call: &Call,
        reply: Replier,
        marks: impl FnOnce(&mut Vec<Mark>) -> bool,
    ) -> Judged {
        match &mut *self.side.lock() {
            Side::Home(home) => home.judge(tree, now, kind, call, reply, marks),
            // This member leads no more, or its group cannot follow the directory log: the client is to come again.
            _ => Judged::Full(reply),
        }
    }

    /// Another group answers this call. True: a step is due.
    pub(super) fn forget(&self, call: &Call) -> bool {
        // A call that is awaited was given out by a step, which has said so before.
        if !self.awaits_calls.load(Ordering::Acquire) {
            return false;
        }
        match &mut *self.side.lock() {
            Side::Home(home) => home.forget(call),
            _ => false,
        }
    }

    /// In the root group: whether the operation of this call has asked homes, and what these have told. No other group asks homes.
    pub fn know(&self, call: &Call, reply: Replier) -> Known {
        match &mut *self.side.lock() {
            Side::Root(root) => root.know(call, reply),
            _ => Known::New(reply),
        }
    }

    /// Asks homes, and keeps the call until they have told. It is given back if too many wait.
    pub fn ask(
        &self,
        questions: Vec<Question>,
        tree: &Namespace,
        now: Moment,
        call: Call,
        reply: Replier,
    ) -> Option<(Call, Replier)> {
        match &mut *self.side.lock() {
            Side::Root(root) => root.ask(questions, tree, now, call, reply),
            _ => Some((call, reply)),
        }
    }

    /// Keeps a call whose operation asks homes anew. It is given back if that is over.
    pub fn wait_again(&self, call: Call, reply: Replier) -> Option<(Call, Replier)> {
        match &mut *self.side.lock() {
            Side::Root(root) => root.wait_again(call, reply),
            _ => Some((call, reply)),
        }
    }

    /// Makes the edit of an operation that rests on what homes have told an entry, as [`Self::order`] does. `Err`: what they have told is void.
    pub fn order_asked(
        &self,
        namespace: &Namespace,
        op: OpId,
        edit: Edit,
        epoch: Epoch,
        sn: Sn,
        now: Moment,
    ) -> Result<Edit, ()> {
        let mut side = self.side.lock();
        let Side::Root(root) = &mut *side else { return Ok(edit) };
        if root.epoch() != epoch {
            return Ok(edit);
        }
        match namespace.as_entry(&edit) {
            Some((marks, payload)) => root.order(Some(op), edit, marks, payload, sn, now).ok_or(()),
            // It changes no directory, and rests on its own group alone.
            None => {
                root.refuse(op, &[], now);
                Ok(edit)
            }
        }
    }

    /// The operation is refused, or changes nothing. False: what homes have told is void.
    pub fn refuse(&self, op: OpId, seen: &[Mark], now: Moment) -> bool {
        match &mut *self.side.lock() {
            Side::Root(root) => root.refuse(op, seen, now),
            _ => true,
        }
    }

    /// Answers what the root group asks, in the writer's turn.
    pub(super) fn answer_asks(&self, tree: &Namespace, epoch: Epoch, now: Moment) {
        match &mut *self.side.lock() {
            Side::Home(home) if home.epoch() == epoch => home.answer_asks(tree, now),
            _ => {}
        }
    }

    /// Makes the edit an entry of the directory log, if it has to be one. To be called in the writer's turn, right before the edit is
    /// applied as the entry `sn` of the group's own log.
    pub fn order(&self, namespace: &Namespace, edit: Edit, epoch: Epoch, sn: Sn, now: Moment) -> Edit {
        let Some((marks, payload)) = namespace.as_entry(&edit) else { return edit };
        self.is_used.store(true, Ordering::Release);
        match &mut *self.side.lock() {
            Side::Root(root) if root.epoch() == epoch => root
                .order(None, edit, marks, payload, sn, now)
                .unwrap_or_else(|| unreachable!("an operation that has asked nobody rests on nothing")),
            // Deposed within this turn: the log will not take the edit.
            _ => {
                let end = namespace.directory_log();
                let entry = Entry::after(end, epoch, None, marks.into(), payload);
                Namespace::ordered(edit, entry, Dix(0), Dix(0))
            }
        }
    }

    /// Whether there is anything to step.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Whether there is a machine, which takes messages of other groups.
    pub(super) fn is_leading(&self) -> bool {
        !matches!(*self.side.lock(), Side::Idle | Side::Stuck(_))
    }

    /// Steps the machine. `None`: there is none.
    /// `look` tells the time, and until when the own lease holds. It is asked under the machine's lock, so that no later step has an earlier time.
    pub(super) fn step(&self, look: impl FnOnce() -> (Moment, Moment), input: Input) -> Option<After> {
        let send = |group, message| {
            if let Some(links) = self.links.get() {
                links.send(group, message);
            }
        };
        let mut after = After::default();
        let mut side = self.side.lock();
        let (now, lease_end) = look();
        match &mut *side {
            Side::Idle | Side::Stuck(_) => return None,
            Side::Root(root) => root.step(now, lease_end, input, &send, &mut after),
            Side::Home(home) => {
                home.step(now, lease_end, input, &send, &mut after);
                self.awaits_calls.store(home.awaits_calls(), Ordering::Release);
            }
        }
        Some(after)
    }

    /// The next entry for the writer to apply, if this member leads in `epoch` still.
    pub(super) fn next_to_apply(&self, epoch: Epoch) -> Option<Entry> {
        match &mut *self.side.lock() {
            Side::Home(home) if home.epoch() == epoch => home.next_to_apply(),
            _ => None,
        }
    }

    /// The turn of the writer that was queued is over, or was dropped.
    pub(super) fn end_turn(&self, epoch: Epoch) {
        match &mut *self.side.lock() {
            Side::Home(home) if home.epoch() == epoch => home.end_turn(),
            _ => {}
        }
    }

    /// The writer has applied an entry of the directory log as the entry `sn` of the own one.
    pub(super) fn on_applied(&self, epoch: Epoch, sn: Sn, dix: Dix) {
        match &mut *self.side.lock() {
            Side::Home(home) if home.epoch() == epoch => home.on_applied(sn, dix),
            _ => {}
        }
    }

    pub(super) fn want_reads(&self, reads: Vec<ReadLog>) {
        if !reads.is_empty() {
            self.reads.lock().extend(reads);
            self.wake();
        }
    }

    pub(super) fn take_reads(&self) -> Vec<ReadLog> {
        std::mem::take(&mut *self.reads.lock())
    }

    /// This group cannot follow the directory log: an operator must decide. It says nothing more to the root group, which goes on without it.
    /// Returns the calls that have waited here.
    pub(super) fn raise(&self, group: GroupId, epoch: Epoch, why: String) -> Vec<(Call, Replier)> {
        tracing::error!(%group, %epoch, why, "this group does not follow the directory log");
        let mut side = self.side.lock();
        let Side::Home(home) = &mut *side else { return Vec::new() };
        if home.epoch() != epoch {
            return Vec::new();
        }
        *self.trouble.lock() = Some(why);
        let waiting = home.take_waiting();
        *side = Side::Stuck(home.epoch());
        waiting
    }

    pub fn show(&self) -> Shown {
        let shown = match &*self.side.lock() {
            Side::Idle | Side::Stuck(_) => Shown::default(),
            Side::Root(root) => root.show(),
            Side::Home(home) => home.show(),
        };
        Shown { trouble: self.trouble.lock().clone().or(shown.trouble), ..shown }
    }

    /// Lets the thread sleep until something is due, `longest` at most, or it is woken.
    pub(super) fn sleep(&self, now: Moment, longest: Duration) {
        let deadline = match &*self.side.lock() {
            Side::Root(root) if self.is_used() => root.deadline(),
            Side::Home(home) => home.deadline(),
            _ => None,
        };
        let until_due = |deadline: Moment| Duration::from_nanos(deadline.ns.saturating_sub(now.ns));
        let period = deadline.map_or(longest, until_due).min(longest);
        self.looks_at_ns.store(now.ns + period.as_nanos() as u64, Ordering::Release);
        let mut is_woken = self.is_woken.lock();
        if !*is_woken && !period.is_zero() {
            self.wake.wait_for(&mut is_woken, period);
        }
        *is_woken = false;
    }

    /// Wakes the thread if it would look too late.
    pub(super) fn wake_for(&self, deadline: Option<Moment>) {
        if deadline.is_some_and(|deadline| deadline.ns < self.looks_at_ns.load(Ordering::Acquire)) {
            self.wake();
        }
    }

    pub(super) fn wake(&self) {
        *self.is_woken.lock() = true;
        self.wake.notify_all();
    }
}
