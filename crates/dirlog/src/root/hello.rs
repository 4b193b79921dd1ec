//! Hello, Welcome and the directory lease, at the root.

use super::{
    Effects, Root,
    followers::{Follower, Request, Wanted},
};
use crate::{Dix, Dropped, HelloId, Point, Session, ToGroup, broken::Broken};
use base::{GroupId, Moment};

/// Requests of one group that wait for a proof.
const WANTED_MAX: usize = 8;

impl Root {
    /// Asks the groups that have not said Hello to do so.
    pub(super) fn greet(&mut self, now: Moment) {
        if self.greets_at().is_none_or(|due| now < due) {
            return;
        }
        self.greeted_at = Some(now);
        let silent = self.groups.iter().filter(|(_, follower)| follower.session.is_none());
        let hello = ToGroup::SayHello { root_epoch: self.epoch, denied: None };
        self.out.extend(silent.map(|(group, _)| (*group, hello.clone())));
    }

    pub(super) fn greets_at(&self) -> Option<Moment> {
        self.groups.values().any(|follower| follower.session.is_none()).then(|| match self.greeted_at {
            None => Moment::default(),
            Some(at) => at.plus_ms(self.settings.hello_ms),
        })
    }

    pub(super) fn on_hello(
        &mut self,
        now: Moment,
        group: GroupId,
        hello: HelloId,
        applied: Point,
        committed: Dix,
        effects: &mut Effects,
    ) {
        let epoch = self.epoch;
        let follower = self.groups.get_mut(&group).expect("the group is known");
        if hello <= follower.hello {
            return self.counts.note(Dropped::Overtaken);
        }
        if committed > applied.dix {
            return self.counts.note(Dropped::Malformed);
        }
        // Who says Hello evaluates nothing until it is welcomed; its holds are void from here on.
        follower.hello = hello;
        follower.session = None;
        follower.wanted.clear();
        follower.reading = None;
        let is_other = self.tail.point(applied.dix).is_some_and(|own| own.chain != applied.chain);
        let refusal = if applied.dix > self.tail.end().dix {
            Some(format!(
                "the group has applied the directory log up to {}, and the root group's ends at {}: the root group has lost entries",
                applied.dix,
                self.tail.end().dix
            ))
        } else if applied.dix < self.purged {
            Some(format!(
                "the group has applied the directory log up to {}, and the root group has purged it up to {}: the group has lost what it had \
                 carried out, and must be restored from an image of a later entry",
                applied.dix, self.purged
            ))
        } else if is_other && !self.settings.breaks(Broken::AnyChainTaken) {
            Some(format!(
                "the group has applied {applied}, which is not in the root group's directory log: the root group has lost entries, or the \
                 group belongs elsewhere"
            ))
        } else {
            None
        };
        match refusal {
            Some(why) => self.out.push((group, ToGroup::Unwelcome { hello, root_epoch: epoch, why })),
            None => {
                // Also less than it had said before: it has lost what it had carried out, and what it lacks is kept for it.
                follower.committed = Some(committed);
                self.want(now, group, Request::Hello { hello, applied }, effects);
            }
        }
    }

    pub(super) fn on_renew(&mut self, now: Moment, group: GroupId, number: u64, effects: &mut Effects) {
        let Some(session) = self.groups[&group].session else { return };
        self.want(now, group, Request::Renewal { session, number }, effects);
    }

    /// Grants at once while this server's own lease holds; otherwise a proof must show that it leads, and that began after the request came.
    fn want(&mut self, now: Moment, group: GroupId, what: Request, effects: &mut Effects) {
        if now < self.own_lease_end || self.settings.breaks(Broken::LeaseByDeposed) {
            return self.grant(now, group, Wanted { at: now, what });
        }
        let follower = self.groups.get_mut(&group).expect("the group is known");
        if follower.wanted.len() >= WANTED_MAX {
            follower.wanted.remove(0);
        }
        follower.wanted.push(Wanted { at: now, what });
        effects.prove = true;
    }

    pub(super) fn on_proved(&mut self, now: Moment, began: Moment, _: &mut Effects) {
        for group in self.groups.keys().copied().collect::<Vec<_>>() {
            let follower = self.groups.get_mut(&group).expect("it is a key");
            let (proved, others) = follower.wanted.drain(..).partition(|wanted: &Wanted| wanted.at <= began);
            follower.wanted = others;
            let proved: Vec<Wanted> = proved;
            proved.into_iter().for_each(|wanted| self.grant(now, group, wanted));
        }
    }

    pub(super) fn wants_proof(&self, now: Moment) -> bool {
        now >= self.own_lease_end && self.groups.values().any(|follower| !follower.wanted.is_empty())
    }

    fn grant(&mut self, now: Moment, group: GroupId, wanted: Wanted) {
        match wanted.what {
            Request::Hello { hello, applied } => self.welcome(now, group, hello, applied, wanted.at),
            Request::Renewal { session, number } => self.renew(now, group, session, number, wanted.at),
        }
    }

    fn welcome(&mut self, now: Moment, group: GroupId, hello: HelloId, applied: Point, asked_at: Moment) {
        let end = self.tail.end().dix;
        let lease_end = asked_at.plus_ms(self.settings.lease_ms);
        let open_from = self.ops.open_from(self.settings.breaks(Broken::AskOverOnceAppended));
        let is_leased = end.0 - applied.dix.0 <= self.settings.lag_max;
        self.session_number += 1;
        let session = Session { root_epoch: self.epoch, number: self.session_number };
        let visible = self.visible;
        let follower = self.groups.get_mut(&group).expect("the group is known");
        if follower.hello != hello {
            return;
        }
        follower.session = Some(session);
        follower.received = applied.dix;
        follower.queued = applied.dix;
        follower.sent = applied.dix;
        follower.moved_at = now;
        follower.told_visible = visible;
        if is_leased {
            follower.lease_end = follower.lease_end.max(Some(lease_end));
            follower.was_leased = true;
        } else {
            follower.lease_end = None;
        }
        self.out.push((group, ToGroup::Welcome { hello, session, end, visible, open_from, is_leased }));
        self.send_first(group, applied);
        self.ops.wake_queued();
    }

    fn renew(&mut self, now: Moment, group: GroupId, session: Session, number: u64, asked_at: Moment) {
        let is_slow = self.is_slow(now, group) && !self.settings.breaks(Broken::RenewsTheSlow);
        let open_from = self.ops.open_from(self.settings.breaks(Broken::AskOverOnceAppended));
        let visible = self.visible;
        let lease_end = asked_at.plus_ms(self.settings.lease_ms);
        let follower = self.groups.get_mut(&group).expect("the group is known");
        if follower.session != Some(session) {
            return;
        }
        let is_granted = follower.lease_end.is_some() && !is_slow;
        if is_granted {
            follower.lease_end = follower.lease_end.max(Some(lease_end));
        }
        self.out.push((group, ToGroup::Renewed { session, number, is_granted, visible, open_from }));
    }

    /// Whether the group lacks an entry that others have waited for long enough. One that was kept out while calls were done again counts
    /// as come.
    fn is_slow(&self, now: Moment, group: GroupId) -> bool {
        let follower: &Follower = &self.groups[&group];
        let missing = follower.queued.next();
        let at = missing.0.saturating_sub(self.visible.next().0) as usize;
        missing > self.visible
            && self.since.get(at).is_some_and(|since| now.ms_since(*since) > self.settings.behind_ms)
    }
}
