//! The bond of a home with the root group: Hello, session, directory lease.

use super::{Home, NotNow, Permit};
use crate::{AskId, Dix, Dropped, HelloId, Session, ToRoot, broken::Broken};
use base::{Epoch, Moment};
use std::collections::VecDeque;

/// Renewals under way that are remembered.
const RENEWALS_MAX: usize = 16;

/// What shows that this server is its group's active.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Own {
    /// Its group's members claim nothing until then.
    pub lease_end: Moment,
    /// The last proof began then.
    pub proved: Option<Moment>,
    /// When a proof was last asked for.
    pub asked_at: Option<Moment>,
}

/// How this group stands with the root group.
#[derive(Clone, Debug, Hash)]
pub(super) struct Bond {
    /// The highest epoch of the root group that was heard of. What comes from an older one is dropped.
    root_epoch: Epoch,
    /// The Hello said last.
    hello: HelloId,
    /// Since when one is to be said: a proof that this server leads its group must have begun later.
    wanted_at: Moment,
    /// When it was said; `None`: one is to be said now.
    said_at: Option<Moment>,
    /// At the last step this server was its group's active, for certain, since `wanted_at`.
    can_greet: bool,
    pub session: Option<Session>,
    /// Served is after everything up to here was received.
    end: Dix,
    is_leased: bool,
    pub is_caught_up: bool,
    lease_end: Moment,
    /// Counts the times between lapses: what was looked at in one is not judged in another.
    period: u64,
    /// Requests for the lease whose answer may still come: number and moment of sending.
    renewals: VecDeque<(u64, Moment)>,
    renew_number: u64,
    renewed_at: Moment,
}

impl Bond {
    pub fn new(epoch: Epoch, now: Moment) -> Self {
        Self {
            root_epoch: Epoch(0),
            hello: HelloId { epoch, number: 0 },
            wanted_at: now,
            said_at: None,
            can_greet: false,
            session: None,
            end: Dix(0),
            is_leased: false,
            is_caught_up: false,
            lease_end: Moment::default(),
            period: 0,
            renewals: VecDeque::new(),
            renew_number: 0,
            renewed_at: now,
        }
    }

    /// From here on nothing is evaluated before the next welcome.
    fn part(&mut self, now: Moment) {
        self.wanted_at = now;
        self.session = None;
        self.is_caught_up = false;
        self.is_leased = false;
        self.lease_end = Moment::default();
        self.said_at = None;
        self.renewals.clear();
    }
}

impl Home {
    /// Whether anything may be evaluated: a read, a plan, a hold, a message of an outbox.
    pub fn may_evaluate(&self, now: Moment) -> bool {
        self.is_serving() && now < self.bond.lease_end
    }

    /// Whether the session's beginning was received; the lease may be over all the same.
    pub fn is_serving(&self) -> bool {
        self.bond.session.is_some() && self.bond.is_leased && self.bond.is_caught_up && self.alarm.is_none()
    }

    /// The session with the root group's active.
    pub fn session(&self) -> Option<Session> {
        self.bond.session
    }

    /// Until when the directory lease may be counted on.
    pub fn lease_end(&self) -> Moment {
        self.bond.lease_end
    }

    /// Tests the lease, before anything is looked at.
    ///
    /// # Errors
    /// Nothing may be looked at now: the call waits ([`Home::wait`]).
    pub fn begin(&self, now: Moment) -> Result<Permit, NotNow> {
        let looks_anyhow = self.settings.breaks(Broken::NoLeaseBefore) && self.bond.is_leased;
        if self.may_evaluate(now) || looks_anyhow {
            Ok(Permit { period: self.bond.period, applied: self.received.applied().dix })
        } else {
            Err(NotNow)
        }
    }

    /// Whether what was looked at under this permit still stands.
    pub(super) fn stands(&self, now: Moment, permit: Permit) -> bool {
        let is_same = permit.period == self.bond.period && permit.applied == self.received.applied().dix;
        self.may_evaluate(now) && (is_same || self.settings.breaks(Broken::NoLeaseBefore))
    }

    pub(super) fn is_of_session(&mut self, now: Moment, session: Session) -> bool {
        let reason = match self.bond.session {
            Some(own) if own == session => return true,
            _ if session.root_epoch < self.bond.root_epoch => Dropped::OldRoot,
            _ => Dropped::OtherSession,
        };
        // A root group's active that is not known yet: it is greeted.
        if session.root_epoch > self.bond.root_epoch {
            self.bond.root_epoch = session.root_epoch;
            self.bond.part(now);
        }
        self.counts.note(reason);
        false
    }

    pub(super) fn on_say_hello(&mut self, now: Moment, root_epoch: Epoch, denied: Option<Session>) {
        if root_epoch < self.bond.root_epoch {
            return self.counts.note(Dropped::OldRoot);
        }
        let is_denied = denied.is_some() && denied == self.bond.session;
        if root_epoch > self.bond.root_epoch || is_denied {
            self.bond.root_epoch = root_epoch;
            self.bond.part(now);
        } else {
            self.counts.note(Dropped::Overtaken);
        }
    }

    pub(super) fn on_welcome(
        &mut self,
        now: Moment,
        hello: HelloId,
        session: Session,
        end: Dix,
        is_leased: bool,
        open_from: AskId,
    ) {
        if session.root_epoch < self.bond.root_epoch {
            return self.counts.note(Dropped::OldRoot);
        }
        let said_at = match self.bond.said_at {
            Some(said_at) if hello == self.bond.hello && self.bond.session.is_none() => said_at,
            _ => return self.counts.note(Dropped::Overtaken),
        };
        // An old active's entries that are not in this log were never visible: nothing of them has happened.
        if !self.settings.breaks(Broken::OldEntriesStay) {
            self.received.drop_unapplied();
        }
        let ended = self.holds.begin_session(open_from);
        self.end_holds(ended);
        self.calls.begin_session();
        let bond = &mut self.bond;
        bond.root_epoch = session.root_epoch;
        bond.session = Some(session);
        bond.end = end;
        bond.is_leased = is_leased;
        bond.period += 1;
        bond.renewed_at = now;
        if is_leased {
            bond.lease_end = said_at.plus_ms(self.settings.held_ms());
        }
        bond.is_caught_up = is_leased && self.settings.breaks(Broken::ServesBeforeReceiving);
    }

    pub(super) fn on_unwelcome(&mut self, hello: HelloId, root_epoch: Epoch, why: String) {
        if root_epoch < self.bond.root_epoch {
            return self.counts.note(Dropped::OldRoot);
        }
        if hello != self.bond.hello {
            return self.counts.note(Dropped::Overtaken);
        }
        // Also within the session that this Hello began: what the group lacks turns out to be gone.
        self.raise(why);
    }

    pub(super) fn on_granted(&mut self, now: Moment, number: u64) {
        let bond = &mut self.bond;
        let Some(sent_at) = bond.renewals.iter().find(|(sent, _)| *sent == number).map(|(_, at)| *at) else {
            return self.counts.note(Dropped::Overtaken);
        };
        bond.renewals.retain(|(sent, _)| *sent > number);
        let until = sent_at.plus_ms(self.settings.held_ms());
        if until <= bond.lease_end {
            return;
        }
        if now >= bond.lease_end {
            bond.period += 1;
        }
        bond.lease_end = until;
    }

    /// Notes that the beginning of the session has been received.
    pub(super) fn look_after_the_bond(&mut self, now: Moment) {
        let has_all = self.received.progress().received >= self.bond.end;
        if self.bond.session.is_none() || self.bond.is_caught_up || !has_all {
            return;
        }
        if self.bond.is_leased {
            // A group that has begun with a copy of the root group's tree may have entries in it that are not visible.
            self.bond.is_caught_up = self.received.visible() >= self.received.applied().dix;
        } else {
            // Caught up without a lease: now it is asked for.
            self.bond.part(now);
        }
    }

    /// Says Hello, or asks for the lease, when that is due.
    pub(super) fn keep_bond(&mut self, now: Moment) {
        self.bond.can_greet = self.leads_since_wanted(now);
        if self.alarm.is_some()
            || now < self.bond_due()
            || (self.bond.session.is_none() && !self.bond.can_greet)
        {
            return;
        }
        let progress = self.received.progress();
        let applied = self.received.applied();
        let bond = &mut self.bond;
        match bond.session {
            None => {
                bond.hello.number += 1;
                bond.said_at = Some(now);
                let committed = progress.committed;
                self.out.push(ToRoot::Hello {
                    hello: bond.hello,
                    root_epoch: bond.root_epoch,
                    applied,
                    committed,
                });
            }
            Some(session) => {
                bond.renew_number += 1;
                bond.renewed_at = now;
                bond.renewals.push_back((bond.renew_number, now));
                if bond.renewals.len() > RENEWALS_MAX {
                    bond.renewals.pop_front();
                }
                self.out.push(ToRoot::Renew { session, number: bond.renew_number, progress });
            }
        }
    }

    /// Whether this server was its group's active, for certain, after it had heard of the root that is to be greeted.
    fn leads_since_wanted(&self, now: Moment) -> bool {
        let is_proved = self.own.proved.is_some_and(|began| began >= self.bond.wanted_at);
        now < self.own.lease_end || is_proved || self.settings.breaks(Broken::HelloUnproved)
    }

    /// Whether the holder of the lease in its own group can be taken for certain at this moment.
    pub(super) fn leads(&self, now: Moment) -> bool {
        now < self.own.lease_end || self.settings.breaks(Broken::HoldUnproved)
    }

    /// A Hello is due, or a hold is to be told, and nothing shows that this server leads its group. Asked for again after a while.
    pub(super) fn wants_proof(&mut self, now: Moment) -> bool {
        let wants = self.waits_for_proof(now);
        let is_late = self.own.asked_at.is_none_or(|at| now.ms_since(at) >= self.settings.hello_ms);
        if wants && is_late {
            self.own.asked_at = Some(now);
        }
        wants && is_late
    }

    fn waits_for_proof(&self, now: Moment) -> bool {
        let greets = self.bond.session.is_none() && now >= self.bond_due() && !self.leads_since_wanted(now);
        self.alarm.is_none() && (greets || self.holds.wait_for_proof())
    }

    fn bond_due(&self) -> Moment {
        match (self.bond.session, self.bond.said_at) {
            (None, None) => Moment::default(),
            (None, Some(said_at)) => said_at.plus_ms(self.settings.hello_ms),
            (Some(_), _) => self.bond.renewed_at.plus_ms(self.settings.renew_ms),
        }
    }

    pub(super) fn bond_deadline(&self) -> Option<Moment> {
        if self.alarm.is_some() {
            return None;
        }
        let retry = self.own.asked_at.map(|at| at.plus_ms(self.settings.hello_ms));
        let due = self.bond_due();
        Some(match self.bond.session {
            // The last step has asked for a proof, or an earlier one has, and has not got it.
            None if !self.bond.can_greet => retry.unwrap_or_default().max(due),
            None => due,
            Some(_) if self.holds.wait_for_proof() => due.min(retry.unwrap_or_default()),
            Some(_) => due,
        })
    }
}
