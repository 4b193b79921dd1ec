//! The operations of every coordinator, and what their answers promise.

use base::{Epoch, GroupId, GroupView, MemberId, MemberLife};
use std::sync::Arc;
use thiserror::Error;

/// Rises with every change of a group's view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// A state of the view that a caller has seen. The version alone does not name it: a coordinator that was put back from a
/// backup counts on from an older version, and comes to the same one again with another view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Basis {
    pub version: Version,
    /// The [`GroupView::change_id`] of the view that was seen.
    pub change_id: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    pub version: Version,
    pub view: GroupView,
}

impl Versioned {
    /// The basis to name in a change of this view.
    pub fn basis(&self) -> Basis {
        Basis { version: self.version, change_id: self.view.change_id }
    }
}

/// A member's record: its present life and its addresses. Only that member writes it, at each start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberRecord {
    pub life: MemberLife,
    /// `host:port` where other members reach it.
    pub peer_address: String,
    /// `host:port` where clients and data servers reach it.
    pub rpc_address: String,
    /// `host:port` of its pages.
    pub http_address: String,
}

impl MemberRecord {
    /// Whether this record may stand where `held` stands: it must not tell of an earlier life.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] if this record tells of an earlier life than `held`.
    pub(crate) fn may_replace(&self, held: Option<&Self>) -> Result<(), ChangeError> {
        let Some(held) = held else { return Ok(()) };
        let order = |life: &MemberLife| (life.store.generation, life.boot);
        if order(&self.life) >= order(&held.life) {
            return Ok(());
        }
        let reason = format!(
            "member {} has started {} times with generation {} of its store, and is said to start for the {}. time \
             with generation {}: is this a copy of its store, or a second server with its number?",
            held.life.store.member,
            held.life.boot,
            held.life.store.generation,
            self.life.boot,
            self.life.store.generation
        );
        Err(ChangeError::Refused { reason })
    }
}

/// The coordinator could not be read. The caller keeps what it read before, and tries again.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the coordinator cannot be read: {reason}")]
pub struct ReadError {
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// Read again: the view is no longer the one expected. The change was not made.
    #[error("the view has changed meanwhile")]
    BadVersion,
    /// Read again: this member lives another life than the change required. The change was not made.
    #[error("member {0} has started again meanwhile")]
    MemberChanged(MemberId),
    /// Tell the operator: the change was not made, and would not be if it were repeated.
    #[error("the coordinator refused: {reason}")]
    Refused { reason: String },
    /// Repeat the identical change until the answer is another: it may have been made.
    #[error("the coordinator's answer is unknown: {reason}")]
    Unknown { reason: String },
}

/// Called once, on any thread; must not block.
pub type Done<T> = Box<dyn FnOnce(T) + Send>;

/// An event that a watch tells. Each is a hint to read again: several changes may be told as one, late, or twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The view may have changed.
    View,
    /// A member's record may have changed.
    Members,
    /// The group's lock is no longer held.
    LockGone,
    /// The coordinator is out of reach. Nothing is known to be wrong.
    Disconnected,
    /// The coordinator is within reach (again). Changes that were missed meanwhile are told as `View` and `Members`.
    Connected,
    /// The session has ended and a new one has begun: the lock was lost meanwhile, and has been made again.
    Expired,
}

/// Called on any thread, in the order of the events; must not block. It lives as long as the coordinator, so
/// it should hold weakly what lives shorter.
pub type Watch = Arc<dyn Fn(GroupId, Event) + Send + Sync>;

/// Keeps the view of each group, its members' records, and the text that names the cluster. Methods return at once;
/// answers come through `done`, perhaps before they return.
///
/// - A change that was answered with success is durable and seen by every read that starts afterwards.
/// - Versions of a group rise and are never used twice, not even after a restart.
/// - A value that cannot be understood is an error that names the place; it never reads as "there is none".
pub trait Coordinator: Send + Sync {
    /// The view, at least as new as the last change that was answered before this call. `None`: there is no
    /// such group yet.
    fn read(&self, group: GroupId, done: Done<Result<Option<Versioned>, ReadError>>);

    /// All groups that have a view, rising. As new as a view that [`Coordinator::read`] reads.
    fn groups(&self, done: Done<Result<Vec<GroupId>, ReadError>>);

    /// Makes a group's first view. `BadVersion` when there is one.
    fn create(&self, group: GroupId, view: GroupView, done: Done<Result<Version, ChangeError>>);

    /// Replaces the view if it is still the one `expected`, and if the record of each of these members still says
    /// this life.
    fn change(
        &self,
        group: GroupId,
        expected: Basis,
        view: GroupView,
        requires: &[MemberLife],
        done: Done<Result<Version, ChangeError>>,
    );

    /// The members' records, sorted by member. They are as new as the view of [`Coordinator::read`].
    fn read_members(&self, group: GroupId, done: Done<Result<Vec<MemberRecord>, ReadError>>);

    /// Makes or replaces a member's record. `Refused` when the one that is there tells of a later life: then
    /// two processes take themselves for this member.
    fn write_member(&self, group: GroupId, record: MemberRecord, done: Done<Result<(), ChangeError>>);

    /// Success proves that the view was still the one `expected` at some moment after this call began. `BadVersion`
    /// when it was not.
    fn confirm(&self, group: GroupId, expected: Basis, member: MemberId, done: Done<Result<(), ChangeError>>);

    /// Keeps the group's lock for this member for as long as the process lives, or until it is released. A
    /// hint for others, and for people; nothing may rest on it. It is taken as soon as it is free.
    fn hold_lock(&self, group: GroupId, member: MemberId, epoch: Epoch);

    /// Gives up the lock that was held through this coordinator.
    fn release_lock(&self, group: GroupId);

    /// The text that names the cluster. `None`: there is no cluster yet.
    fn read_cluster(&self, done: Done<Result<Option<Vec<u8>>, ReadError>>);

    /// Writes the text that names the cluster, once. `BadVersion` when there is one.
    fn create_cluster(&self, text: Vec<u8>, done: Done<Result<(), ChangeError>>);

    /// Tells of events from now on, for as long as the coordinator lives.
    fn watch(&self, group: GroupId, watch: Watch);
}

/// Waits for an answer on this thread.
///
/// # Panics
/// The coordinator drops the question without an answer, which none may do.
pub fn wait<T: Send + 'static>(ask: impl FnOnce(Done<T>)) -> T {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    ask(Box::new(move |answer| {
        let _ = sender.send(answer);
    }));
    receiver.recv().expect("a coordinator answers every question")
}
