//! Allowances of quotas that several groups share: [`namespace::shares`]. A call whose group may use no more of a quota waits until its group has asked the
//! root group, and is planned again with what the answer has brought.
//!
//! - [`calls`]: the calls that wait, and those that have been answered; [`ask`]: asks for them; [`serve`]: the root group's answer.

pub mod ask;
mod calls;
pub mod serve;

pub use calls::Allowances;
