//! The other groups, as the root sees them.

use super::Root;
use crate::{Dix, Dropped, HelloId, Session, message::Progress};
use base::{GroupId, Moment};

/// One other group.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Follower {
    /// The last Hello that was taken. Older ones are late.
    pub hello: HelloId,
    /// `None`: the group must say Hello.
    pub session: Option<Session>,
    /// It has had a lease of this active's: what an older one granted has been replaced.
    pub was_leased: bool,
    /// Until when nothing becomes visible without it.
    pub lease_end: Option<Moment>,
    /// `lease_end` had come at the last step.
    pub is_lapsed: bool,
    pub received: Dix,
    pub queued: Dix,
    /// Applied there, and the application has committed. `None`: it has not told this active.
    pub committed: Option<Dix>,
    /// The last entry that was sent in this session.
    pub sent: Dix,
    /// When something was last sent, or acknowledged.
    pub moved_at: Moment,
    /// The last prefix that it was told to be visible.
    pub told_visible: Dix,
    /// The entries behind this one are being read for it.
    pub reading: Option<Dix>,
    /// Requests for a lease, or Hellos, that wait for a proof.
    pub wanted: Vec<Wanted>,
}

/// A request for a lease that waits for a proof that this server leads still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub at: Moment,
    pub what: Request,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Request {
    Hello { hello: HelloId, applied: crate::Point },
    Renewal { session: Session, number: u64 },
}

impl Follower {
    /// Whether it may be serving: nothing becomes visible that it has not received.
    pub fn is_leased(&self, now: Moment) -> bool {
        self.lease_end.is_some_and(|end| now < end)
    }
}

/// Where another group stands with the root, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub group: GroupId,
    /// It has said Hello, and its session is not over.
    pub has_session: bool,
    /// Nothing becomes visible without it. At the last step its lease was not over.
    pub is_leased: bool,
    pub received: Dix,
    /// Applied there, and committed. `None`: it has not told this root.
    pub committed: Option<Dix>,
}

impl Root {
    /// Where the other groups stand, by their numbers.
    pub fn standings(&self) -> Vec<Standing> {
        let standing = |(group, follower): (&GroupId, &Follower)| Standing {
            group: *group,
            has_session: follower.session.is_some(),
            is_leased: follower.lease_end.is_some() && !follower.is_lapsed,
            received: follower.received,
            committed: follower.committed,
        };
        self.groups.iter().map(standing).collect()
    }

    pub(super) fn is_of_session(&mut self, group: GroupId, session: Session) -> bool {
        if self.groups[&group].session == Some(session) {
            return true;
        }
        let is_old = session.root_epoch < self.epoch;
        self.counts.note(if is_old { Dropped::OldRoot } else { Dropped::OtherSession });
        false
    }

    pub(super) fn on_progress(&mut self, group: GroupId, progress: Progress) {
        let end = self.tail.end().dix;
        let follower = self.groups.get_mut(&group).expect("the group is known");
        if progress.received > end || progress.queued > end || progress.committed > progress.received {
            return self.counts.note(Dropped::Malformed);
        }
        follower.received = follower.received.max(progress.received);
        follower.queued = follower.queued.max(progress.queued);
        follower.committed = follower.committed.max(Some(progress.committed));
        follower.sent = follower.sent.max(progress.queued);
    }

    pub(super) fn on_given_up(&mut self, group: GroupId) {
        self.groups.remove(&group);
        self.ops.on_group_gone(group);
    }

    pub(super) fn look_for_purge(&mut self, effects: &mut super::Effects) {
        let counts_applied = self.settings.breaks(crate::broken::Broken::PurgesUncommitted);
        let needed_after = |follower: &Follower| match follower.committed {
            // The group applies, or will apply soon, each entry that is visible and that it has received.
            Some(_) if counts_applied => follower.received,
            committed => committed.unwrap_or(Dix(0)),
        };
        let to = self.groups.values().map(needed_after).min().unwrap_or(self.visible).min(self.visible);
        if to > self.purged {
            self.purged = to;
            self.tail.purge(to);
            effects.purge = Some(to);
        }
    }
}
