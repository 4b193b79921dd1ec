//! The bounded check of the group's machine: every order of events in a small group.
//!
//! The very [`group::Member`] that a server runs is stepped here, with its log on a modelled disk ([`crate::host`]),
//! a network that holds back and loses, and a coordinator whose answers get lost. A [`World`] is a value; the check
//! clones it, lets one [`Event`] happen, and asks whether the rules of [`crate::check`] hold, until it has been
//! everywhere within its [`Bounds`]. Time has no meaning: clocks jump ahead when the check says so, each member's by
//! itself, so a rule that holds here rests on no clock. Rules that rest on clocks (leases) are for
//! [`crate::cluster`].
//!
//! Bounded: it is not a proof. A rule left out on purpose ([`group::Broken`]) must be found.

mod bounds;
mod event;
mod exhaust;
mod explore;
mod hunt;
mod search;
mod tell;
mod world;

pub use bounds::Bounds;
pub use event::Event;
pub use exhaust::{exhaust, memory_of};
pub(crate) use explore::go;
pub use explore::{Counterexample, Report, replay, shorten, tell, wander, wander_many};
pub use hunt::{bounds_for, hunt};
pub use search::{Search, Told};
pub use world::World;
pub(crate) use world::{Hashed, hash_of};

/// How far a clock jumps: longer than any of [`Bounds::small_settings`] but those that are to wait for ever.
pub const WAKE_MS: u64 = 10_000;
