//! The root group's side: the machine that orders entries, and which of them have not committed in the root group.

use super::step::{After, Input, Send, Shown, settings};
use base::{Epoch, GroupId, Moment, Sn, directory_log::Dix};
use bytes::{Bytes, BytesMut};
use dirlog::{
    Mark, OpId, Root,
    root::{self, Decided, Recovered},
    wire,
};
use namespace::{Edit, Namespace, ops::Body};
use std::collections::VecDeque;

/// An entry that has not committed in the root group.
struct Uncommitted {
    sn: Sn,
    dix: Dix,
    /// The group that exists from here on.
    group: Option<GroupId>,
}

pub struct RootSide {
    root: Root,
    uncommitted: VecDeque<Uncommitted>,
    last_op: u64,
    /// Every group has carried out all entries up to this one.
    dropped: Dix,
}

impl RootSide {
    /// Everything that this member has inherited is applied, and certain up to `committed`.
    pub fn new(namespace: &Namespace, epoch: Epoch, committed: Sn, now: Moment) -> Self {
        let groups: Vec<GroupId> = namespace.further_groups().collect();
        let (base, entries) = namespace.directory_entries_in_doubt();
        let recovered = Recovered { base, entries, visible: base.dix };
        let mut side = Self {
            root: Root::new(settings(), epoch, &groups, recovered, now),
            uncommitted: VecDeque::new(),
            last_op: 0,
            dropped: Dix(0),
        };
        let (sn, dix) = (namespace.applied().sn, namespace.directory_log().dix);
        side.uncommitted.push_back(Uncommitted { sn, dix, group: None });
        side.inherited_is_certain(committed);
        side
    }

    /// Entries of the own log have committed up to here. What follows from that is for the next step.
    pub fn inherited_is_certain(&mut self, committed: Sn) {
        if let Some(dix) = self.take_committed(committed) {
            self.root.note_committed(dix);
        }
    }

    pub fn epoch(&self) -> Epoch {
        self.root.epoch()
    }

    pub fn visible(&self) -> Dix {
        self.root.visible()
    }

    pub fn deadline(&self) -> Option<Moment> {
        self.root.deadline()
    }

    /// Makes the edit an entry, which is applied as the entry `sn` of the group's own log.
    pub fn order(&mut self, edit: Edit, marks: Vec<Mark>, payload: Bytes, sn: Sn, now: Moment) -> Edit {
        self.last_op += 1;
        let (visible, dropped) = (self.root.visible(), self.dropped);
        let entry = match self.root.append(now, OpId(self.last_op), marks, payload) {
            Decided::Stands(entry) => entry,
            Decided::AskedAnew => unreachable!("an operation that has asked nobody rests on nothing"),
        };
        let group = match &edit.body {
            Body::AddGroup(added) => Some(added.group),
            _ => None,
        };
        self.uncommitted.push_back(Uncommitted { sn, dix: entry.dix, group });
        Namespace::ordered(edit, entry, visible, dropped)
    }

    /// The last entry of the directory log that has committed with this, if there is a new one.
    fn take_committed(&mut self, sn: Sn) -> Option<Dix> {
        let mut committed = None;
        while let Some(entry) = self.uncommitted.pop_front_if(|entry| entry.sn <= sn) {
            committed = Some(entry.dix);
            if let Some(group) = entry.group {
                self.root.note_joined(group);
            }
        }
        committed
    }

    pub fn step(&mut self, now: Moment, lease_end: Moment, input: Input, send: Send<'_>, after: &mut After) {
        self.root.note_own_lease(lease_end);
        let input = match input {
            Input::Root(input) => input,
            Input::Proved(began) => root::Input::Proved { began },
            Input::Tick => root::Input::Tick,
            Input::Committed(sn) => match self.take_committed(sn) {
                Some(dix) => root::Input::Committed(dix),
                None => return,
            },
            Input::Home(_) => return,
        };
        let effects = self.root.step(now, input);
        self.carry_out(effects, send, after);
        after.deadline = self.root.deadline();
    }

    fn carry_out(&mut self, effects: root::Effects, send: Send<'_>, after: &mut After) {
        let root::Effects { messages, plan, refused, visible, prove, read, purge } = effects;
        assert!(plan.is_empty() && refused.is_empty(), "no operation asks homes yet");
        for (group, message) in messages {
            let mut bytes = BytesMut::new();
            wire::encode_to_group(&message, &mut bytes);
            send(group, bytes.freeze());
        }
        after.visible = after.visible.max(visible);
        after.prove |= prove;
        after.reads.extend(read);
        self.dropped = self.dropped.max(purge.unwrap_or_default());
    }

    pub fn show(&self) -> Shown {
        let (end, visible) = (self.root.end().dix, self.root.visible());
        Shown { end, visible, groups: self.root.standings(), is_serving: true, trouble: None }
    }
}
