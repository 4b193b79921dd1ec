//! Segments and images: the bytes that last.
//!
//! One directory holds one member's store of one group: the member's durable state, its log in segments,
//! and images of the state machine. The formats are described in `docs/format/journal.md` and
//! `docs/format/image.md`. This crate knows entries as an id, a kind and bytes; it must never know what an
//! edit means, who else is in the group, or who leads it.
//!
//! A store is used in this order, which the types enforce:
//!
//! 1. [`format()`] makes the directory, once.
//! 2. [`open`] gives a [`Recovery`]: [`Recovery::load_image`], then [`Recovery::replay`].
//! 3. `replay` gives the [`Journal`], which appends. [`Journal::append`] submits and returns; callbacks
//!    run in order once their entries are durable, and carry the proof.
//! 4. [`Journal::write_image`] writes an image beside the running service; once the group has committed the
//!    [`Checkpoint`] entry that names it, [`Journal::checkpoint_committed`] lets go of what it replaces.
//!
//! A failed fsync is final: the journal refuses every later append and remembers the first reason.

pub mod append;
pub mod archive;
pub mod aside;
pub mod block;
pub mod checkpoint;
mod cut;
pub mod error;
pub mod failed;
mod flow;
pub mod image;
mod index;
mod keeping;
pub mod member_state;
pub mod pack;
mod promise;
mod proof;
mod read;
pub mod record;
pub mod recovery;
mod renewal;
pub mod repair;
mod restore;
mod room;
pub mod salvage;
pub mod scan;
pub mod scrub;
mod seal;
mod segment;
pub mod settings;
pub mod staging;
pub mod store;
pub mod survey;
pub mod watermark;

pub use append::{AppendDone, Journal};
pub use checkpoint::Checkpoint;
pub use error::{
    AcceptError, AppendError, Fault, FormatError, ImageError, OpenError, ReadLogError, RecoverError,
    StagingError, StateError,
};
pub use failed::{FailedStore, TakenBack, Word};
pub use image::{ImageReader, ImageWriter};
pub use member_state::{MemberState, NextStart};
pub use pack::Packed;
pub use recovery::{ApplyError, Finding, Recovered, Recovery};
pub use repair::{Hole, Mended, Repair};
pub use restore::{PutBack, restore};
pub use room::Room;
pub use salvage::Run;
pub use scrub::{Look, Rot, Sealed};
pub use settings::{Identity, Settings};
pub use staging::{Staged, StagedImage};
pub use store::{Accepted, accept_fault, distrust, format, format_with_image, hold, open, outlive};
