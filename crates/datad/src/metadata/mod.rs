//! The side that talks to metadata servers: one [`actor`] for each, all told the same, one obeyed.
//!
//! In reading order: who is obeyed ([`leadership`]), the life of a session ([`actor`]), its messages
//! ([`handshake`], [`heartbeat`], [`full_report`], [`incremental_report`]), and what is done when ordered
//! ([`command`]).

pub mod actor;
pub mod command;
mod corrupt_report;
pub mod full_report;
pub mod handshake;
pub mod heartbeat;
pub mod incremental_report;
pub mod leadership;
pub mod progress;
pub mod talk;
