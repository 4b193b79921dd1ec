//! The way of a member to the coordinator, which a story can cut off, spoil, and listen at.

use base::{Epoch, GroupId, GroupView, MemberId, MemberLife};
use coord::{
    Basis, ChangeError, Coordinator, Done, Event, MemberRecord, ReadError, Version, Versioned, Watch, wait,
};
use metad::CoordinatorConfig;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// The state of a way. Cheap to clone; all clones are one way.
#[derive(Clone, Default)]
pub struct Way(Arc<State>);

#[derive(Default)]
struct State {
    is_cut_off: AtomicBool,
    confirmations: AtomicU64,
    /// How many creations of a view still fail, and in which manner.
    failing: Mutex<(u32, How)>,
    watches: Mutex<Vec<(GroupId, Watch)>>,
}

/// How a creation fails.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum How {
    /// The view is not made.
    #[default]
    Refused,
    /// The view is made, and the answer is lost.
    AnswerLost,
}

impl Way {
    /// Cuts the way: no question is answered, no event is told, and the outcome of a change is unknown.
    pub fn cut(&self) {
        self.0.is_cut_off.store(true, Ordering::Release);
    }

    pub fn mend(&self) {
        self.0.is_cut_off.store(false, Ordering::Release);
    }

    /// The next creations of a view fail.
    pub fn fail_creations(&self, count: u32, how: How) {
        *self.0.failing.lock().unwrap() = (count, how);
    }

    /// How often the coordinator was asked to confirm a view.
    pub fn confirmations(&self) -> u64 {
        self.0.confirmations.load(Ordering::Relaxed)
    }

    /// Makes an event up.
    pub fn tell(&self, event: Event) {
        self.0.watches.lock().unwrap().iter().for_each(|(group, watch)| watch(*group, event));
    }

    /// The coordinator at the end of this way.
    pub fn to(&self, real: Arc<dyn Coordinator>) -> Arc<dyn Coordinator> {
        Arc::new(Distant { real, way: self.clone() })
    }

    /// Puts itself between a member that is configured so and its coordinator.
    pub fn lay(&self, config: &mut CoordinatorConfig) {
        let CoordinatorConfig::Shared(real) = &*config else { panic!("the coordinator is shared") };
        *config = CoordinatorConfig::Shared(self.to(real.clone()));
    }

    fn is_cut_off(&self) -> bool {
        self.0.is_cut_off.load(Ordering::Acquire)
    }

    /// How the next creation fails, if it does.
    fn failure(&self) -> Option<How> {
        let mut failing = self.0.failing.lock().unwrap();
        failing.0 = failing.0.checked_sub(1)?;
        Some(failing.1)
    }
}

/// The coordinator as one member reaches it.
struct Distant {
    real: Arc<dyn Coordinator>,
    way: Way,
}

fn silence() -> ReadError {
    ReadError { reason: "cut off by a test".into() }
}

fn doubt() -> ChangeError {
    ChangeError::Unknown { reason: "cut off by a test".into() }
}

impl Coordinator for Distant {
    fn read(&self, group: GroupId, done: Done<Result<Option<Versioned>, ReadError>>) {
        match self.way.is_cut_off() {
            true => done(Err(silence())),
            false => self.real.read(group, done),
        }
    }

    fn create(&self, group: GroupId, view: GroupView, done: Done<Result<Version, ChangeError>>) {
        let reason = "planted by a test".to_owned();
        match self.way.failure() {
            None => self.real.create(group, view, done),
            Some(How::Refused) => done(Err(ChangeError::Refused { reason })),
            Some(How::AnswerLost) => {
                let _ = wait(|made| self.real.create(group, view, made));
                done(Err(ChangeError::Unknown { reason }));
            }
        }
    }

    fn change(
        &self,
        group: GroupId,
        expected: Basis,
        view: GroupView,
        requires: &[MemberLife],
        done: Done<Result<Version, ChangeError>>,
    ) {
        match self.way.is_cut_off() {
            true => done(Err(doubt())),
            false => self.real.change(group, expected, view, requires, done),
        }
    }

    fn read_members(&self, group: GroupId, done: Done<Result<Vec<MemberRecord>, ReadError>>) {
        match self.way.is_cut_off() {
            true => done(Err(silence())),
            false => self.real.read_members(group, done),
        }
    }

    fn write_member(&self, group: GroupId, record: MemberRecord, done: Done<Result<(), ChangeError>>) {
        self.real.write_member(group, record, done);
    }

    fn confirm(
        &self,
        group: GroupId,
        expected: Basis,
        member: MemberId,
        done: Done<Result<(), ChangeError>>,
    ) {
        self.way.0.confirmations.fetch_add(1, Ordering::Relaxed);
        match self.way.is_cut_off() {
            true => done(Err(doubt())),
            false => self.real.confirm(group, expected, member, done),
        }
    }

    fn hold_lock(&self, group: GroupId, member: MemberId, epoch: Epoch) {
        self.real.hold_lock(group, member, epoch);
    }

    fn release_lock(&self, group: GroupId) {
        self.real.release_lock(group);
    }

    fn groups(&self, done: Done<Result<Vec<GroupId>, ReadError>>) {
        self.real.groups(done);
    }

    fn read_cluster(&self, done: Done<Result<Option<Vec<u8>>, ReadError>>) {
        self.real.read_cluster(done);
    }

    fn create_cluster(&self, text: Vec<u8>, done: Done<Result<(), ChangeError>>) {
        self.real.create_cluster(text, done);
    }

    fn watch(&self, group: GroupId, watch: Watch) {
        self.way.0.watches.lock().unwrap().push((group, watch.clone()));
        let way = self.way.clone();
        let unless_cut_off: Watch = Arc::new(move |group, event| {
            if !way.is_cut_off() {
                watch(group, event);
            }
        });
        self.real.watch(group, unless_cut_off);
    }
}
