//! The map of replicas: reports of data servers in, commands for them out.
//!
//! A [`BlockMap`] is told by the metadata service which blocks the namespace has, and by the data servers
//! which replicas they hold. From both it answers where a block can be read, where a new one should be
//! written, which replicas have to be copied or deleted, and whether enough has been reported to leave safe
//! mode. All of it is soft state: rebuilt from reports after a start, never journaled.
//!
//! It is a pure machine. Time comes in as [`base::Moment`], chance as a seed; it does no I/O, holds no lock and knows
//! neither paths nor the wire. It must never know the namespace (a block's file is a number to it), sockets or
//! protobuf.
//!
//! The methods of [`BlockMap`] are of five kinds:
//! - **told by the namespace**: `add_block`, `commit`, `complete`, `reopen`, `set_pipeline`,
//!   `set_replication`, `remove`, `set_unknown_replicas`, `satisfy`;
//! - **told by data servers**: `register`, `answer_heartbeat`, `begin_report` / `report_slice` / `finish_report`,
//!   `incremental_report`, `report_bad` ;
//! - **told by operators**: `order_admin_state`, and the settings of [`Config`];
//! - **questions**: `locations`, `facts`, `list_blocks`, `choose_targets`, `safe_mode_message`, `stats`;
//! - **time**: `tick` and `sweep` .
//!
//! The other side of a command is here too: [`Leadership`] says which metadata server a data server obeys.
//!
//! Mutators leave news for waiting callers in [`Events`], fetched with `take_events`.
//!
//! Memory: a block is a 32-byte record in 64 KiB pages and four bytes in the index; there is no list of blocks per
//! storage. When a storage's blocks are needed (its server died, or its report lacks something), a sweep over the
//! pages finds them, a slice at a time.

pub mod admin_order;
pub mod balance;
pub mod config;
pub mod outliers;
pub mod server;
pub mod words;

mod answering;
mod arena;
mod avoided;
mod broken;
mod consistency;
mod construction;
mod contested;
mod edits;
mod efforts;
mod excess;
mod findings;
mod full_report;
mod held;
mod hints;
mod in_turn;
mod incremental_report;
mod lap;
mod late_words;
mod leadership;
mod leaving;
mod listing;
mod map;
mod media;
mod membership;
mod need;
mod newcomers;
mod ordered;
mod out_of_sight;
mod pending;
mod placement;
mod postponed;
mod queue;
mod racks;
mod random;
mod reading;
mod record;
mod recovery;
mod redundancy;
mod replica;
mod safe_mode;
mod satisfy;
mod seen;
mod servers;
mod service;
mod slow;
mod slow_reports;
mod spread;
mod standing;
mod stats;
mod storage;
mod sweep;
mod takeover;
mod unknown;
mod waiting;

pub use admin_order::AdminOrder;
pub use answering::{Answer, Terms};
pub use base::AdminState;
#[cfg(feature = "broken")]
pub use broken::Broken;
pub use broken::Rules;
pub use config::{Config, SafeModeConfig};
pub use contested::Contest;
pub use efforts::Satisfied;
pub use held::Amount;
pub use leadership::{Claim, Leadership, Mandate, Obeyed};
pub use listing::{Listed, Slice, Wanted};
pub use map::BlockMap;
pub use placement::Placement;
pub use record::LENGTH_BEYOND;
pub use safe_mode::{SafeModeProgress, Stage as SafeModeStage};
pub use server::{DataServer, Registration, StorageReport, StorageState, StorageType, VolumeFailures};
pub use slow::{SlowServer, Suspicion};
pub use slow_reports::{PER_SERVER_MAX as SLOW_REPORTS_PER_SERVER, SlowDisk, SlowPeer};
pub use standing::{BlockStandings, Standing, StandingReplica};
pub use stats::{ServerFilter, Stats, StorageStats};
pub use waiting::{ReplicaPlace, Replicas, Waiting};
pub use words::{
    BlockState, Command, CorruptReason, Events, Facts, Heartbeat, HeldBack, Increment, Located, Location,
    Reader, Recovery, RegisterError, ReplicaState, ReportDone, ReportId, ReportedReplica, ServerError,
    ServerId, SessionKey, Transfer, UcReplica,
};

#[cfg(test)]
mod tests;
