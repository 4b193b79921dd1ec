//! One server's membership in one replica group.

use crate::{Effects, IdSteps, Input, Role};
use base::{Epoch, LogPoint, MemberStore, Moment, Sn};

/// Numbers of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long after a start, in a group of several, no claim is made: leases granted before the start are
    /// forgotten and must have ended.
    pub lease_ms_max: u64,
    /// How soon a change of the view with an unknown answer is sent again.
    pub change_retry_ms: u64,
    pub id_steps: IdSteps,
}

impl Default for Settings {
    fn default() -> Self {
        Self { lease_ms_max: 400, change_retry_ms: 100, id_steps: IdSteps::default() }
    }
}

/// What the journal remembers of this member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    pub promised: Epoch,
    pub end: LogPoint,
    pub known_commit: Sn,
}

/// One server's membership in one replica group.
pub struct Member {}

impl Member {
    pub fn new(_settings: Settings, _me: MemberStore, _restored: Restored, _now: Moment) -> Self {
        todo!()
    }

    /// Takes one input; returns everything the world must now do.
    pub fn step(&mut self, _now: Moment, _input: Input) -> Effects {
        todo!()
    }

    /// When to call `step(now, Input::Tick)` if nothing else happens first.
    pub fn deadline(&self) -> Option<Moment> {
        todo!()
    }

    pub fn role(&self) -> &Role {
        todo!()
    }

    /// Entries up to here have committed.
    pub fn committed(&self) -> Sn {
        todo!()
    }

    /// The last entry of the log, durable or not.
    pub fn end(&self) -> LogPoint {
        todo!()
    }
}
