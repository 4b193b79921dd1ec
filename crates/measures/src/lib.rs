//! Measures that are taken while a server works: how often something happens, how long it takes, and for whom.
//!
//! Nothing here reads a clock: a measure is told when something began and ended. Recording is made for the path of every
//! call: one short lock that hardly any other thread wants, and no allocation after the first call of a kind.
//! Reading is for people and monitors, some times a minute, and may take longer.

mod calls;
mod figures;
mod times;
mod users;

pub use calls::{Calls, Desk, Measured, MethodFigures, STAGES};
pub use figures::Figures;
pub use times::Times;
pub use users::{TopUser, WINDOWS};
