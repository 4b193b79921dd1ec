//! What the active of this group and those of other groups have to say to each other about blocks.
//!
//! A file that moved between homes has blocks in the pools of other groups ([`namespace::exports`]).
//!
//! - [`ways`]: the way of a question to another group's active, and of its answer.
//! - [`deliver`]: sends the messages of the outbox ([`namespace::outbox`]) until the other groups have carried them out.
//! - [`places`]: asks where the foreign blocks of an answer are, and what homes know of listed directories, before it goes out.
//! - [`service`]: carries out what others send, and tells them where blocks of this group's pool are.

mod deliver;
pub mod places;
pub mod service;
mod ways;

pub use deliver::run;
pub use ways::{Question, Ways, elsewhere};
