//! One namespace over several groups: the machines of [`dirlog`] with a small model of trees, groups' logs and clients.
//!
//! [`World`] is a value. The search ([`crate::model::exhaust`]) goes from it every way there is within [`Bounds`]; [`hunt`] goes many at
//! random. The machines are the ones that ship; what stands in for the rest is small: a tree of names ([`tree`]), a group as a log with
//! a committed prefix and takeovers that keep or lose what is behind it, links that lose, double and reorder, and one clock. Clocks that
//! drift, and groups of three members, are for [`cluster`].
//!
//! What is checked stands in [`checks`]; every answer that a client gets must fit one order of all calls ([`history`]).

mod bounds;
mod checks;
pub mod cluster;
mod event;
pub mod history;
mod hunt;
mod ordering;
mod sites;
pub mod tree;
mod world;

pub use bounds::{Bounds, Planted};
pub use event::Event;
pub use hunt::{bounds_for, bounds_for_planted, hunt, wander, wander_many};
pub use world::World;
