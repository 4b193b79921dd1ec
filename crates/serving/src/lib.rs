//! The rules by which a metadata server answers: on what an answer rests, and when it may go out.
//!
//! [`admission`] says whether a call is taken at all. [`Tree`] is the namespace with what is known of its edits in flight:
//! every entry of the log goes through it, on an active, on a standby and in recovery. [`decide`] is what becomes of a
//! change: answered before, refused before, refused now, or a step to be taken. An answer then waits up to twice.
//! [`CommitQueue`] holds it until everything that it rests on is certain; [`Until`] says what that is, by entries of logs. If it rests on reading, [`Unproved`] holds it
//! until it is proved that no other member can have led before the read. [`Points`] holds the reads of a member that does not lead until the active has said how far the log has committed. [`Parked`] holds calls that wait for a report of a
//! data server. [`RecentEvents`] has what the latest entries tell clients that watch. [`settle`] says when the block map hears of an edit: replicas are deleted for what has committed only.
//!
//! Nothing here knows a socket, a thread or a clock. A driver says what has happened and is told what may go out;
//! `metad` is that driver in a server, `sim` in a simulated cluster.

pub mod admission;
mod broken;
mod commit_queue;
mod decide;
mod doubt;
mod parked;
mod points;
pub mod recent_events;
mod refusals;
pub mod server_orders;
pub mod settle;
mod tree;
mod unproved;
mod until;

#[cfg(feature = "broken")]
pub use broken::Broken;
pub use broken::Rules;
pub use commit_queue::{CommitQueue, Waits};
pub use decide::{Basis, Decision, Known, decide, note};
pub use parked::Parked;
pub use points::{PointQuestion, Points, Told, shows};
pub use recent_events::RecentEvents;
pub use refusals::Refusals;
pub use tree::{ApplyError, Said, Tree, apply_entry, apply_entry_telling, digest_of};
pub use unproved::{Fate, Full, ProofSettings, Question, Reign, Step, Unproved};
pub use until::{LOGS, Log, Until};
