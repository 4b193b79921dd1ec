//! What every coordinator can do, and what its answers promise.

use base::{GroupId, GroupView};
use std::sync::Arc;
use thiserror::Error;

/// Rises with every change of a group's view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    pub version: Version,
    pub view: GroupView,
}

/// The view could not be read; try again.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the coordinator cannot be read: {reason}")]
pub struct ReadError {
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// Read again: the view is no longer at the version expected. The change was not made.
    #[error("the view has changed meanwhile")]
    BadVersion,
    /// Repeat the identical change until the answer is another: it may have been made.
    #[error("the coordinator's answer is unknown: {reason}")]
    Unknown { reason: String },
}

/// Called once, on any thread.
pub type Done<T> = Box<dyn FnOnce(T) + Send>;

/// Called after a change, on any thread; a hint: several changes may be told as one, late, or twice.
pub type Watch = Arc<dyn Fn(GroupId) + Send + Sync>;

/// Keeps the view of each group. Methods return at once; answers come through `done`, perhaps before they
/// return.
///
/// - A change that was answered with a version is durable and seen by every read that starts afterwards.
/// - Versions of a group rise and are never used twice, not even after a restart.
pub trait Coordinator: Send + Sync {
    /// The view, at least as new as the last change that was answered before this call. `None`: there is no
    /// such group yet.
    fn read(&self, group: GroupId, done: Done<Result<Option<Versioned>, ReadError>>);

    /// Makes a group's first view. `BadVersion` when there is one.
    fn create(&self, group: GroupId, view: GroupView, done: Done<Result<Version, ChangeError>>);

    /// Replaces the view if it is still at `expected`.
    fn change(
        &self,
        group: GroupId,
        expected: Version,
        view: GroupView,
        done: Done<Result<Version, ChangeError>>,
    );

    /// Tells of changes from now on, for as long as the coordinator lives.
    fn watch(&self, group: GroupId, watch: Watch);
}

/// Waits for an answer on this thread.
pub fn wait<T: Send + 'static>(ask: impl FnOnce(Done<T>)) -> T {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    ask(Box::new(move |answer| {
        let _ = sender.send(answer);
    }));
    receiver.recv().expect("a coordinator answers every question")
}
