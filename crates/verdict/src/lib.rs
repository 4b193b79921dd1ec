//! Whether a cluster is well: one verdict, computed in one place from one structure of facts.
//!
//! ```text
//! answers of servers --told--> Facts --judge--> Judged { verdict, conditions }
//! ```
//!
//! A [`Condition`] is something that a person should know of. Each has a [`Code`] that never changes its meaning, a sentence with the true
//! numbers and names, and the next thing to do. A condition is an *error* when clients cannot read or change something now, and a *warning* when
//! the cluster serves, and redundancy, room or certainty is less than it should be. The verdict is the worst of the conditions.
//!
//! A fact that is not known gives no condition. `clover status` asks all servers and knows most; a server that tells of itself knows what it sees.
//!
//! Everything here is values in and values out. Start with [`judge`]. `docs/operating/conditions.md` has a section for each code.

mod clocks;
mod code;
mod condition;
mod facts;
mod judge;
mod severity;
pub mod told;
mod words;

pub use clocks::{Apart, furthest};
pub use code::Code;
pub use condition::{Condition, Judged, Verdict};
pub use facts::{
    Blocks, Clock, Contest, Data, DataServer, Disk, Facts, Group, Leader, Member, Presence, Role, SlowDisk,
    SlowServer, Unanswered, View,
};
pub use judge::{
    CAPACITY_LOW_PERCENT, CAPACITY_OUT_PERCENT, CLOCKS_APART_MS, DISK_LOW_PERCENT, FLUSH_SLOW_MS, judge,
};
pub use severity::Severity;
