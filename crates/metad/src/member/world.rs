//! The exchange with the coordinator.

use super::{
    inbox::{Event, Patience},
    shared::Shared,
};
use crate::peers::Address;
use base::{GroupId, MemberId};
use coord::{Basis, ChangeError, MemberRecord, Version};
use group::{ChangeFailed, Input, ViewChange};
use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

impl Shared {
    pub fn change_view(self: &Arc<Self>, change: ViewChange) {
        let shared = self.clone();
        let asked = change.name();
        let done = Box::new(move |answer: Result<Version, ChangeError>| {
            let group = shared.group;
            let answer = match answer {
                Ok(version) => Ok(version.0),
                Err(ChangeError::BadVersion) => Err(ChangeFailed::BadVersion),
                Err(error @ (ChangeError::MemberChanged(_) | ChangeError::Refused { .. })) => {
                    tracing::warn!(%group, %error, "a change of the view was not made");
                    Err(ChangeFailed::NotMade)
                }
                Err(ChangeError::Unknown { reason }) => {
                    tracing::warn!(%group, reason, "whether a change of the view was made is unknown");
                    Err(ChangeFailed::Unknown)
                }
            };
            shared.push(Event::Input(Input::Changed { asked, answer }), Patience::None);
        });
        let expected = Basis { version: Version(change.expected_version), change_id: change.expected_id };
        self.coordinator.change(self.group, expected, change.view, &change.requires, done);
    }

    /// Reads the view for the member.
    pub fn read_view(self: &Arc<Self>) {
        // A read that was begun before a caller asked may miss a change that the caller knows of: each asker begins
        // its own, and only a crowd is told to wait for the next look.
        const UNDER_WAY_MAX: u64 = 8;
        if self.view_reads.fetch_add(1, Ordering::AcqRel) >= UNDER_WAY_MAX {
            self.view_reads.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let shared = self.clone();
        let done = Box::new(move |answer: Result<Option<coord::Versioned>, coord::ReadError>| {
            shared.view_reads.fetch_sub(1, Ordering::AcqRel);
            match answer {
                Ok(Some(known)) => {
                    let input = Input::View { view: known.view, version: known.version.0 };
                    shared.push(Event::Input(input), Patience::None);
                }
                Ok(None) => {
                    tracing::error!(group = %shared.group, "the coordinator knows nothing of this group")
                }
                // The next look tries again.
                Err(error) => tracing::warn!(group = %shared.group, %error, "the view could not be read"),
            }
        });
        self.coordinator.read(self.group, done);
    }

    pub fn read_members(self: &Arc<Self>) {
        let shared = self.clone();
        self.coordinator.read_members(
            self.group,
            Box::new(move |answer| match answer {
                Ok(records) => shared.on_members(records),
                Err(error) => tracing::debug!(%error, "the members' records could not be read"),
            }),
        );
    }

    pub fn on_members(&self, records: Vec<MemberRecord>) {
        let records: BTreeMap<MemberId, MemberRecord> =
            records.into_iter().map(|record| (record.life.store.member, record)).collect();
        if let Some(peers) = self.peers.get() {
            let addresses = records
                .iter()
                .filter(|(_, record)| !record.peer_address.is_empty())
                .map(|(member, record)| {
                    let is_trusted = self.trusts_refused_connections && !record.rpc_address.is_empty();
                    let rpc = is_trusted.then(|| (record.life, record.rpc_address.clone()));
                    (*member, Address { peer: record.peer_address.clone(), rpc })
                })
                .collect();
            peers.set_members(&addresses);
        }
        if let Some(mine) = records.get(&self.me.member)
            && mine.life.store.generation > self.me.generation
        {
            let reason = format!(
                "another server has become member {} with a newer generation of its store ({})",
                self.me.member, mine.life.store.generation
            );
            self.end(crate::ended::Ended::Failed(reason));
        }
        self.tell_again(records.get(&self.me.member));
        *self.records.lock() = records;
    }

    /// A coordinator that was put back from a copy knows of an earlier life of this member, or of none. The active
    /// could not let it in sync then: that is asked for in the name of this very life.
    fn tell_again(&self, told: Option<&MemberRecord>) {
        let Some(mine) = self.own_record.get() else { return };
        let age = |record: &MemberRecord| (record.life.store.generation, record.life.boot);
        if told.is_some_and(|told| age(told) >= age(mine)) {
            return;
        }
        let group = self.group;
        tracing::warn!(%group, "the coordinator has forgotten this life of the member; it is told again");
        let done = Box::new(move |answer: Result<(), ChangeError>| {
            if let Err(error) = answer {
                // The next look tries again.
                tracing::warn!(%group, %error, "the coordinator has not taken this member's record");
            }
        });
        self.coordinator.write_member(group, mine.clone(), done);
    }

    /// Looks at the coordinator from time to time: a hint may have got lost.
    pub fn look_again(self: &Arc<Self>) {
        self.read_view();
        self.read_members();
    }

    pub fn watch_coordinator(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        self.coordinator.watch(
            self.group,
            Arc::new(move |_: GroupId, event| {
                let Some(shared) = weak.upgrade() else { return };
                match event {
                    coord::Event::View => shared.read_view(),
                    coord::Event::Members => shared.read_members(),
                    coord::Event::LockGone => shared.push(Event::Input(Input::LockGone), Patience::None),
                    coord::Event::Disconnected => {
                        let now = shared.env.clock.moment();
                        shared.coordinator_lost.lock().get_or_insert(now);
                        tracing::warn!(group = %shared.group, "the coordinator is out of reach");
                    }
                    coord::Event::Connected | coord::Event::Expired => {
                        *shared.coordinator_lost.lock() = None;
                        shared.look_again();
                    }
                }
            }),
        );
    }

    /// The lock is a hint for others and for people: held while this member serves.
    pub fn keep_lock(&self) {
        let mut holds = self.holds_lock.lock();
        let wanted = self.is_serving.load(Ordering::Acquire);
        if wanted && !*holds {
            self.coordinator.hold_lock(self.group, self.me.member, self.epoch());
        } else if !wanted && *holds {
            self.coordinator.release_lock(self.group);
        }
        *holds = wanted;
    }

    pub fn confirm(self: &Arc<Self>, done: Box<dyn FnOnce(Result<(), String>) + Send>) {
        if !self.is_serving.load(Ordering::Acquire) && !self.is_reading.load(Ordering::Acquire) {
            return done(Err("this member is not active".into()));
        }
        // A view that another member leads, or a reign that is not told of yet, proves nothing here.
        let told = self.epoch();
        let Some((version, change_id)) = self.look(|member| member.basis_of_lead(told)) else {
            return done(Err("this member does not lead by the view that it knows".into()));
        };
        let shared = self.clone();
        self.coordinator.confirm(
            self.group,
            Basis { version: Version(version), change_id },
            self.me.member,
            Box::new(move |answer| {
                if answer == Err(ChangeError::BadVersion) {
                    shared.read_view();
                }
                done(answer.map_err(|error| error.to_string()));
            }),
        );
    }
}
