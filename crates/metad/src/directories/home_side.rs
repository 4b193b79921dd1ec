//! The side of a group that follows the directory log: the machine that receives entries, and the entries that the writer has still to apply.

use super::step::{After, Input, Send, Shown, settings};
use base::{Epoch, GroupId, Moment, Sn, directory_log::Dix};
use bytes::BytesMut;
use dirlog::{Entry, Home, home, wire};
use namespace::Namespace;
use std::collections::VecDeque;

pub struct HomeSide {
    home: Home,
    epoch: Epoch,
    /// Entries that the writer is to apply. They stay here until it does: a turn that is put off takes none.
    to_apply: VecDeque<Entry>,
    /// Entries of the directory log that were applied and have not committed in this group.
    uncommitted: VecDeque<(Sn, Dix)>,
    /// The last one that has.
    committed: Dix,
}

impl HomeSide {
    /// Everything that this member has inherited is applied, and has committed.
    pub fn new(namespace: &Namespace, epoch: Epoch, now: Moment) -> Self {
        let (applied, own) = (namespace.directory_log(), namespace.applied().sn.0);
        Self {
            home: Home::new(settings(), namespace.group(), epoch, applied, own, now),
            epoch,
            to_apply: VecDeque::new(),
            uncommitted: VecDeque::new(),
            committed: applied.dix,
        }
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub fn deadline(&self) -> Option<Moment> {
        self.home.deadline()
    }

    pub fn next_to_apply(&mut self) -> Option<Entry> {
        self.to_apply.pop_front()
    }

    /// The writer has applied the entry `dix` as the entry `sn` of the own log.
    pub fn on_applied(&mut self, sn: Sn, dix: Dix) {
        self.uncommitted.push_back((sn, dix));
    }

    pub fn step(&mut self, now: Moment, lease_end: Moment, input: Input, send: Send<'_>, after: &mut After) {
        self.home.note_own_lease(lease_end);
        let input = match input {
            Input::Home(input) => input,
            Input::Proved(began) => home::Input::Proved { began },
            Input::Tick => home::Input::Tick,
            Input::Committed(sn) => {
                while let Some((_, dix)) = self.uncommitted.pop_front_if(|(at, _)| *at <= sn) {
                    self.committed = dix;
                }
                home::Input::Committed { own: sn.0, applied: self.committed }
            }
            Input::Root(_) => return,
        };
        let effects = self.home.step(now, input);
        self.carry_out(effects, send, after);
        after.deadline = self.home.deadline();
        after.apply = (!self.to_apply.is_empty()).then_some(self.epoch);
    }

    fn carry_out(&mut self, effects: home::Effects, send: Send<'_>, after: &mut After) {
        let home::Effects { apply, messages, again, refused, asks, prove, alarm } = effects;
        assert!(again.is_empty() && refused.is_empty(), "no call waits here yet");
        if !asks.is_empty() {
            tracing::debug!(
                count = asks.len(),
                "the root group asks for holds, which this release gives none of"
            );
        }
        for message in messages {
            let mut bytes = BytesMut::new();
            wire::encode_to_root(&message, &mut bytes);
            send(GroupId::ROOT, bytes.freeze());
        }
        self.to_apply.extend(apply);
        after.prove |= prove;
        after.alarm = alarm.or(after.alarm.take());
    }

    pub fn show(&self) -> Shown {
        let applied = self.home.applied().dix;
        Shown {
            end: self.home.last_received(),
            visible: applied,
            groups: Vec::new(),
            is_serving: self.home.is_serving(),
            trouble: self.home.alarm().map(str::to_owned),
        }
    }
}
