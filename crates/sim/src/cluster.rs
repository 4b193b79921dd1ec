//! A whole cluster in one thread on virtual time: members with their logs and namespaces, clients, a network, a
//! coordinator, and clocks that drift.
//!
//! Everything follows from one seed: the same seed gives the same bytes. [`World`] is the clockwork; what is
//! done to it is a scenario ([`crate::scenario::cluster`]); [`observer::Observer`] sees all and holds it against
//! the rules of [`crate::check`] after every step.

mod all_at_once;
mod calling;
mod changes;
pub mod client;
pub mod clock;
pub mod data;
pub mod faults;
pub mod happening;
mod hearing;
mod held;
mod holding;
mod images;
pub mod keeper;
mod lives;
mod mending;
pub mod network;
pub mod observer;
pub mod read_points;
pub mod reference;
pub mod renewing;
pub mod request;
pub mod server;
pub mod serving;
mod standby_reads;
mod standing;
pub mod threads;
pub mod world;

pub use happening::{DataFault, Fault, OrderOfOperator, Whom};
pub use world::{Shape, World};
