//! Data servers in a simulated cluster: they register with all members, report, follow claims to lead, and carry out orders.
//!
//! The members' side is what ships: [`blocks::BlockMap`] with the rules by which it hears of edits ([`serving::settle`]), and so is
//! the rule by which a data server obeys ([`blocks::Leadership`]). Played are the data server's store, and the order of its messages.

pub mod data_server;
mod ending;
mod faults;
mod members;
pub mod needed;
mod orders;
mod orders_of_operators;
pub mod room;
pub mod side;
mod talking;
pub mod words;
mod writing;

pub use room::{Counts, DataRoom};
