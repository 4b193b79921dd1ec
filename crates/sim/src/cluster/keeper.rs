//! The coordinator: one value changed by compare-and-set, the members' own records, and who can reach it.

use base::{GroupView, MemberId, MemberLife};
use group::{ChangeFailed, ViewChange};
use std::collections::{BTreeMap, BTreeSet};

pub struct Keeper {
    pub view: GroupView,
    pub version: u64,
    pub records: BTreeMap<MemberId, MemberLife>,
    /// Members that cannot reach it, and since when.
    pub unreachable: BTreeMap<MemberId, u64>,
    /// No member can reach the coordinator.
    pub is_down: bool,
    /// Members whose sessions have ended.
    pub expired: BTreeSet<MemberId>,
    /// A copy of the view and its version.
    pub backup: Option<(GroupView, u64)>,
    /// The copy was put back, and no epoch has begun since.
    pub is_older: bool,
}

impl Keeper {
    pub fn new(view: GroupView) -> Self {
        Self {
            view,
            version: 1,
            records: BTreeMap::new(),
            unreachable: BTreeMap::new(),
            is_down: false,
            expired: BTreeSet::new(),
            backup: None,
            is_older: false,
        }
    }

    pub fn is_reachable(&self, member: MemberId) -> bool {
        !self.is_down && !self.unreachable.contains_key(&member)
    }

    /// The version of the view, and the change that made it.
    pub fn basis(&self) -> (u64, u64) {
        (self.version, self.view.change_id)
    }

    /// # Errors
    /// `BadVersion` if the change is based on another view than the present one, `NotMade` if a member lives another
    /// life than the change requires.
    pub fn change(&mut self, change: &ViewChange) -> Result<u64, ChangeFailed> {
        if self.basis() != (change.expected_version, change.expected_id) {
            return Err(ChangeFailed::BadVersion);
        }
        if !change.requires.iter().all(|life| self.records.get(&life.store.member) == Some(life)) {
            return Err(ChangeFailed::NotMade);
        }
        assert!(
            change.view.exiles.is_empty() || (change.view.in_sync.len() as u32) < change.view.in_sync_min,
            "there are exiles only below the minimum: {:?}",
            change.view
        );
        // But for an unclean election: of a member that was not complete, or of one that had lost the end of its log.
        let is_complete = change.view.in_sync.iter().all(|store| self.view.is_eligible(*store));
        let is_unclean = change.view.epoch > self.view.epoch
            && (!is_complete || change.view.unclean_epoch == change.view.epoch);
        assert!(
            is_unclean || change.view.commit_hint >= self.view.commit_hint,
            "the hint of what has committed never falls: {:?} after {:?}",
            change.view,
            self.view
        );
        assert!(change.view.epoch >= self.view.epoch, "epochs never fall");
        self.version += 1;
        self.view = change.view.clone();
        Ok(self.version)
    }
}
