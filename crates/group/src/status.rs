//! A member's account of itself, for operators and pages.

use crate::{Known, Role, Takeover};
use base::{Epoch, GroupView, LogPoint, MemberId, MemberStore, Sn};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub role: Role,
    /// The view as last confirmed or read, with its version.
    pub view: Option<(GroupView, u64)>,
    /// The highest epoch promised, durable.
    pub promised: Epoch,
    /// The last entry of the log, durable or not.
    pub end: LogPoint,
    pub committed: Sn,
    /// The member that leads, as far as this one knows: itself, or the member that it last heard of.
    pub active: Option<MemberId>,
    /// This member leads, or has heard the one that does within its lease: calls that are passed on arrive.
    pub hears_active: bool,
    /// This store is in the in-sync set or among the exiles.
    pub is_eligible: bool,
    pub is_in_sync: bool,
    /// Enough members are in sync for entries to commit.
    pub is_writable: bool,
    /// The other members, as the active sees them; empty on a member that does not lead.
    pub peers: Vec<PeerStatus>,
    /// The trouble that keeps this member from taking part as it should, and what to do. A person must look.
    pub trouble: Option<String>,
    /// The proofs of the others' stores since this member began.
    pub known: BTreeMap<MemberId, (MemberStore, Known)>,
    /// This life's takeovers, newest last.
    pub last_takeovers: Vec<Takeover>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    pub member: MemberId,
    /// Its address does not refuse.
    pub is_connected: bool,
    pub heard_ms_ago: Option<u64>,
    /// Durable there and verified in this epoch.
    pub matched: Sn,
    pub end: Option<LogPoint>,
    /// "in sync", "exile", "catching up", "reading the log", "needs an image", "contradicts", "silent".
    pub state: &'static str,
    /// How many data servers reach it, and whether it knows where the blocks are, as it last said.
    pub data_servers: u32,
    pub is_ready: bool,
}
