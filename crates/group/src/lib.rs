//! The replica-group protocol as a pure machine.
//!
//! A [`Member`] is one server's part in one group: it decides what must be durable where, when an entry has
//! committed, and who leads. To it an edit is an id and bytes. It must never know the disk, the network, the
//! coordinator's kind or the clock: time is an argument, and everything that it wants done is in the
//! [`Effects`] of a step.
//!
//! Start with [`Input`], which is all that can wake a member, then [`Member::step`].

mod broken;
pub mod commit;
pub mod effects;
pub mod epoch_start;
pub mod input;
pub mod member;
pub mod message;
mod peer;
mod proposal;
pub mod repair;
pub mod settings;
pub mod status;
mod tail;
pub mod watch;

#[cfg(feature = "broken")]
pub use broken::Broken;
pub use effects::{Effects, Outgoing, Role, Takeover, ViewChange};
pub use epoch_start::{EpochStart, IdSteps};
pub use input::{ChangeFailed, ChangeName, Input, LogReadFailed, Order, Proof, ReadLog, ReadPurpose};
pub use member::{Agreement, ImageFate, Member, Restored};
pub use message::{Append, Known, Message, StateDigest};
pub use proposal::Proposal;
pub use settings::Settings;
pub use status::{PeerStatus, Status};
pub use watch::{Sign, Stands, Watch};
