//! The knowledge of an observer who sees all members of a group at once.

use crate::host::{Happened, Host};
use base::{EntryKind, Epoch, GroupView, LogPoint, MemberId, Sn};
use group::Role;
use std::collections::BTreeMap;

/// A rule that does not hold, as a sentence.
pub type Broken = String;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Truth {
    /// Every entry that any member has called committed, from sn 1 on.
    pub committed: Vec<LogPoint>,
    /// The member that led in each epoch.
    pub leaders: BTreeMap<Epoch, MemberId>,
    /// The member that made the entries of each epoch.
    pub appenders: BTreeMap<Epoch, MemberId>,
    /// The highest promise that each member's disk ever held.
    pub promises: BTreeMap<MemberId, Epoch>,
    /// Disks forget promises on purpose: what comes of it is of interest, not that they do.
    pub ignores_promises: bool,
    /// The last committed entry begins its epoch, and nothing has committed behind it.
    pub ends_with_a_start: bool,
    /// The coordinator was put back to an older view. A claimant by that view may then put another entry in the place of such a last one,
    /// which nobody has asked for: `docs/protocol/group.md` says so.
    pub may_lose_a_start: bool,
    /// An operator has accepted that committed entries may be lost.
    pub is_unclean: bool,
}

impl Truth {
    pub fn last(&self) -> Sn {
        Sn(self.committed.len() as u64)
    }

    pub fn point(&self, sn: Sn) -> Option<LogPoint> {
        self.committed.get(sn.0.checked_sub(1)? as usize).copied()
    }

    /// Takes in what one step of `host` has led to; says which rule it breaks.
    ///
    /// # Errors
    /// The step breaks a rule. The text names the rule and the member.
    pub fn observe(&mut self, host: &Host, happened: &Happened) -> Result<(), Broken> {
        use crate::check;
        let member = host.store.member;
        check::promise_never_falls::check(self, host)?;
        for entry in &happened.cut {
            check::committed_never_cut::check(self, host, entry)?;
        }
        let leads = host.member.as_ref().map(|member| member.role().clone());
        if let Some(Role::Starting { epoch } | Role::Reading { epoch } | Role::Serving { epoch }) = leads {
            for entry in happened.appended.iter().filter(|entry| entry.id.epoch == epoch) {
                check::one_appender_an_epoch::check(self, member, entry)?;
            }
        }
        for outgoing in &happened.outgoing {
            if let Some(Role::Starting { epoch } | Role::Serving { epoch }) = &outgoing.role {
                let leader = *self.leaders.entry(*epoch).or_insert(member);
                check::one_active_an_epoch::check(leader, member, *epoch)?;
            }
            for entry in &outgoing.apply {
                self.let_a_start_go(entry.point());
                check::commits_agree::check(self, member, entry.point())?;
            }
            if let Some(sn) = outgoing.committed {
                self.commit(host, sn)?;
            }
        }
        Ok(())
    }

    /// `host` knows that everything up to `sn` has committed.
    ///
    /// # Errors
    /// The member does not hold an entry that it calls committed, or holds another one than has committed.
    pub fn commit(&mut self, host: &Host, sn: Sn) -> Result<(), Broken> {
        let member = host.store.member;
        let Some(point) = host.disk.point(sn) else {
            return Err(format!("commits agree: member {member} calls {sn} committed and does not hold it"));
        };
        self.let_a_start_go(point);
        crate::check::commits_agree::check(self, member, point)?;
        for next in self.last().0 + 1..=sn.0 {
            match host.disk.point(Sn(next)) {
                Some(point) => {
                    self.committed.push(point);
                    let entry = host.disk.entry(Sn(next));
                    self.ends_with_a_start = entry.is_some_and(|entry| entry.kind == EntryKind::EpochStart);
                }
                None => {
                    return Err(format!("commits agree: member {member} commits {sn} without {next}"));
                }
            }
        }
        Ok(())
    }

    /// `point` has committed. It may have taken the place of the beginning of another epoch, in which nothing else has committed.
    fn let_a_start_go(&mut self, point: LogPoint) {
        let is_another = point.id.sn == self.last() && self.committed.last() != Some(&point);
        if self.may_lose_a_start && self.ends_with_a_start && is_another {
            self.committed.pop();
            self.ends_with_a_start = false;
        }
    }

    /// Checks the rules about all members together. They hold after every step.
    ///
    /// # Errors
    /// The logs contradict each other, a member that may be elected lacks a committed entry, or a committed entry has
    /// too few copies.
    pub fn holds(&self, hosts: &[&Host], view: &GroupView) -> Result<(), Broken> {
        use crate::check;
        check::logs_match::check(hosts)?;
        if !self.is_unclean {
            check::eligible_is_complete::check(self, hosts, view)?;
            check::enough_copies::check(self, hosts, view)?;
        }
        Ok(())
    }
}
