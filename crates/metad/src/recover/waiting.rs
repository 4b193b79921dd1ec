//! A member that cannot take part yet, and waits for another one to lead, or for a person.

use super::leader;
use crate::{Cluster, MetaConfig};
use base::{Epoch, GroupId, GroupView, LogPoint, MemberId, Sn};
use coord::{Coordinator, MemberRecord, Versioned};
use env::Env;
use std::{fmt, path::PathBuf, sync::Arc};

/// The facts that such a member knows. They suffice to answer others, and to notice that it need not wait any longer.
pub struct Waiting {
    pub member: MemberId,
    pub cluster_id: String,
    pub group: GroupId,
    /// The view as it was when the wait began.
    pub view: Versioned,
    pub records: Vec<MemberRecord>,
    pub generation: u64,
    pub boot: u64,
    /// The end of its log on the medium; `None` if that could not be read.
    pub end: Option<LogPoint>,
    /// A sentence or two for people: what has happened, and what it waits for.
    pub reason: String,
    pub(super) cause: Cause,
    pub(super) env: Env,
    pub(super) store: PathBuf,
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) user: String,
}

/// The reason that keeps the member from taking part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The disk has failed, and no other member leads in this epoch or a later one. With `durable` the medium does not
    /// hold all that it held: the other one has to serve, and to have as much.
    FailedDisk { promised: Epoch, durable: Option<Sn> },
    /// The store is to be put aside, and there is no room for that, or something else has the name.
    NoRoomAside,
}

impl Waiting {
    pub(super) fn for_failed_disk(
        env: &Env,
        config: &MetaConfig,
        cluster: &Cluster,
        coordinator: &Arc<dyn Coordinator>,
        failed: &journal::FailedStore,
        why: &str,
    ) -> Result<Self, coord::ReadError> {
        let group = cluster.group;
        let view = coord::wait(|done| coordinator.read(group, done))?;
        let records = coord::wait(|done| coordinator.read_members(group, done))?;
        let end = failed.end();
        let log = match &end {
            Ok(end) => format!(
                "its log ends with {} on the medium, and was durable up to {}",
                end.id,
                failed.durable()
            ),
            Err(error) => format!("its log cannot be read back whole: {error}"),
        };
        let reason = format!(
            "its disk has failed: {}; {log}. It goes on by itself as soon as another member leads ({why}). Where no member \
             can lead, because the disks of all have failed, `clover admin group` says on which one to run `clover meta \
             accept-disk`, and what that risks",
            failed.note()
        );
        Ok(Self {
            member: config.group.member,
            cluster_id: cluster.cluster_id.clone(),
            group,
            view: view
                .unwrap_or_else(|| Versioned { version: Default::default(), view: GroupView::new(&[], 0) }),
            records,
            generation: failed.state().generation,
            boot: failed.state().boot,
            end: end.ok(),
            reason,
            cause: Cause::FailedDisk { promised: failed.promised(), durable: None },
            env: env.clone(),
            store: crate::format::Layout::of(&config.name_directory, cluster.group).store,
            coordinator: coordinator.clone(),
            user: config.limits.access.superuser.to_string(),
        })
    }

    /// The store was given up, and cannot be put aside before a person has made room.
    pub(super) fn for_room_aside(
        env: &Env,
        config: &MetaConfig,
        cluster: &Cluster,
        coordinator: &Arc<dyn Coordinator>,
        error: &journal::OpenError,
    ) -> Result<Self, coord::ReadError> {
        let group = cluster.group;
        let store = crate::format::Layout::of(&config.name_directory, cluster.group).store;
        let view = coord::wait(|done| coordinator.read(group, done))?;
        let records = coord::wait(|done| coordinator.read_members(group, done))?;
        let (generation, boot) = journal::survey::survey(&*env.disk, &store)
            .map_or((0, 0), |survey| (survey.state.generation, survey.state.boot));
        Ok(Self {
            member: config.group.member,
            cluster_id: cluster.cluster_id.clone(),
            group,
            view: view
                .unwrap_or_else(|| Versioned { version: Default::default(), view: GroupView::new(&[], 0) }),
            records,
            generation,
            boot,
            end: None,
            reason: format!("{error}. It goes on by itself then"),
            cause: Cause::NoRoomAside,
            env: env.clone(),
            store,
            coordinator: coordinator.clone(),
            user: config.limits.access.superuser.to_string(),
        })
    }

    /// The medium does not hold everything any more that was durable up to here.
    pub(super) fn lacking(mut self, durable: Sn) -> Self {
        if let Cause::FailedDisk { durable: lacking, .. } = &mut self.cause {
            *lacking = Some(durable);
        }
        self
    }

    /// Whether a start may succeed now. Blocks for a question to another member.
    pub fn is_over(&self) -> bool {
        let Cause::FailedDisk { promised, durable } = self.cause else {
            return journal::aside::can_be_put_aside(&*self.env.disk, &self.store);
        };
        let leads = || leader::find(&*self.coordinator, self.group, self.member, promised, &self.user);
        let survey = journal::survey::survey(&*self.env.disk, &self.store);
        // A person has accepted the store meanwhile.
        survey.is_ok_and(|survey| survey.state.fault_note.is_none())
            || leads().is_ok_and(|leader| durable.is_none_or(|durable| leader.has(durable)))
    }

    pub fn disk_failed(&self) -> bool {
        matches!(self.cause, Cause::FailedDisk { .. })
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "member {} waits: {}", self.member, self.reason)
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("member", &self.member)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}
