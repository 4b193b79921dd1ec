//! The part of the namespace that this server's group holds.

pub mod condition;
pub mod leading;
pub mod parked;
pub mod upgrade;
