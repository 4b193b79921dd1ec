//! The rules of one namespace over several groups: who orders changes of directories, when each takes effect
//! everywhere, and who waits for what meanwhile.
//!
//! Two machines speak with each other. The [`Root`] is the part of the root group's active: it orders the entries of the directory
//! log, knows who has received them, grants directory leases, and asks homes for holds. A [`Home`] is the part of the active of every
//! other group: it receives entries, keeps their marks in doubt, applies those that are visible, and says which calls wait.
//!
//! An entry is bytes and marks to them; they never know what an edit does. They never know a socket, a disk, a thread or a clock
//! either: time is an argument, and whatever the world must do is in the effects of a step. The replica-group protocol below is not
//! seen: a driver says what has committed in its own group.
//!
//! Start with [`Mark`] and [`Entry`], then [`Home::judge`] for what a call goes through, and [`Root::step`].

mod broken;
mod counts;
mod doubt;
pub mod home;
mod message;
mod names;
pub mod root;
mod settings;
pub mod wire;

pub use base::directory_log::{AskId, Dix, Entry, Mark, MarkKind, Point};
#[cfg(feature = "broken")]
pub use broken::Broken;
pub use counts::{Counts, Dropped};
pub use doubt::Doubt;
pub use home::Home;
pub use message::{Ask, Progress, ToGroup, ToRoot};
pub use names::{CallId, HelloId, OpId, Session};
pub use root::Root;
pub use settings::Settings;
