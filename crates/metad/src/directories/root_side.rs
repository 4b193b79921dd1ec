//! The root group's side: the machine that orders entries, the entries that have not committed in the root group, and the operations that ask homes, with
//! the calls that wait for them.

use super::{
    asked::{AskedOps, Known, asks_of},
    step::{After, Input, Send, Shown, settings},
};
use crate::points::{self, Point};
use base::{Epoch, GroupId, Moment, Sn, directory_log::Dix};
use bytes::{Bytes, BytesMut};
use dirlog::{
    Mark, OpId, Root, ToGroup,
    root::{self, Decided, Planning, Recovered},
    wire,
};
use namespace::{Edit, Namespace, ops::Body, questions::Question};
use rpc::{Call, Replier};
use std::collections::{BTreeMap, VecDeque};

/// An entry that has not committed in the root group.
struct Uncommitted {
    sn: Sn,
    dix: Dix,
    /// The group that exists from here on.
    group: Option<GroupId>,
}

/// Operations that ask homes are named by their calls, below this number.
const UNASKED: u64 = 1 << 63;

/// The name of the operation that a call asks for.
pub fn op_of(call: &Call) -> OpId {
    OpId(super::waiting::name_of(call).0 & (UNASKED - 1))
}

pub struct RootSide {
    root: Root,
    uncommitted: VecDeque<Uncommitted>,
    /// The operations that ask nobody, counted from [`UNASKED`] on.
    last_op: u64,
    asked: AskedOps,
    /// Every group has carried out all entries up to this one.
    dropped: Dix,
}

impl RootSide {
    /// Everything that this member has inherited is applied, and certain up to `committed`.
    pub fn new(namespace: &Namespace, epoch: Epoch, committed: Sn, now: Moment) -> Self {
        let groups: Vec<GroupId> = namespace.further_groups().collect();
        let (base, entries) = namespace.directory_entries_in_doubt();
        let purged = namespace.kept_directory_entries_from();
        let recovered = Recovered { base, entries, visible: base.dix, purged };
        let mut side = Self {
            root: Root::new(settings(), epoch, &groups, recovered, now),
            uncommitted: VecDeque::new(),
            last_op: UNASKED,
            asked: AskedOps::default(),
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

    /// Makes the edit an entry, which is applied as the entry `sn` of the group's own log. `op` names an operation that has asked homes. `None`: what
    /// they have told is void, and they are asked anew; that does not happen to an edit without an `op`.
    pub fn order(
        &mut self,
        op: Option<OpId>,
        edit: Edit,
        marks: Vec<Mark>,
        payload: Bytes,
        sn: Sn,
        now: Moment,
    ) -> Option<Edit> {
        points::pass(Point::RootPlanned);
        let (visible, dropped) = (self.root.visible(), self.dropped);
        let name = op.unwrap_or_else(|| {
            self.last_op += 1;
            OpId(self.last_op)
        });
        let entry = match self.root.append(now, name, marks, payload) {
            Decided::Stands(entry) => entry,
            Decided::AskedAnew => return None,
        };
        if let Some(op) = op {
            // Its calls have been taken out.
            self.asked.end(op);
        }
        let group = match &edit.body {
            Body::AddGroup(added) => Some(added.group),
            _ => None,
        };
        self.uncommitted.push_back(Uncommitted { sn, dix: entry.dix, group });
        Some(Namespace::ordered(edit, entry, visible, dropped))
    }

    /// Whether the operation of this call has asked homes, and what these have told. If the operation still waits for homes, the call is kept here.
    pub fn know(&mut self, call: &Call, reply: Replier) -> Known {
        self.asked.know(op_of(call), call, reply)
    }

    /// Asks homes. The call comes again when they have told. It is given back if too many operations wait.
    pub fn ask(
        &mut self,
        questions: Vec<Question>,
        tree: &Namespace,
        now: Moment,
        call: Call,
        reply: Replier,
    ) -> Option<(Call, Replier)> {
        let op = op_of(&call);
        let mut by_home: BTreeMap<GroupId, Vec<Question>> = BTreeMap::new();
        for question in questions {
            by_home.entry(question.group(tree)).or_default().push(question);
        }
        if self.asked.questions(op).is_some() {
            self.root.ask_anew(now, op, asks_of(&by_home));
            return self.asked.begin_anew(op, Some(by_home), call, reply);
        }
        match self.root.order(now, op, asks_of(&by_home)) {
            Ok(()) => {
                self.asked.begin(op, by_home, call, reply);
                None
            }
            Err(_) => Some((call, reply)),
        }
    }

    /// What homes have told was void when the operation was to stand on it. The call comes again. It is given back if its operation is over.
    pub fn wait_again(&mut self, call: Call, reply: Replier) -> Option<(Call, Replier)> {
        self.asked.begin_anew(op_of(&call), None, call, reply)
    }

    /// The operation of this call is refused by what homes have told, after it has seen this. False: that is void, and homes are asked anew.
    pub fn refuse(&mut self, op: OpId, seen: &[Mark], now: Moment) -> bool {
        match self.root.refuse(now, op, seen) {
            Decided::Stands(()) => {
                self.asked.end(op);
                true
            }
            Decided::AskedAnew => false,
        }
    }

    /// The calls that wait here. This member leads no more, and others answer them.
    pub fn take_waiting(&mut self) -> Vec<(Call, Replier)> {
        self.asked.take_all()
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
        let late = self.asked.take_late(now);
        late.iter().for_each(|op| self.root.give_up(*op));
        let effects = match input {
            Input::Root(input) => self.root.step(now, input),
            Input::FromHome(from, messages) => {
                let messages = messages.into_iter();
                self.root.step_all(now, messages.map(|message| root::Input::Message { from, message }))
            }
            Input::Proved(began) => self.root.step(now, root::Input::Proved { began }),
            Input::Tick => self.root.step(now, root::Input::Tick),
            Input::Committed(sn) => match self.take_committed(sn) {
                Some(dix) => {
                    points::pass(Point::RootCommitted);
                    self.root.step(now, root::Input::Committed(dix))
                }
                // Homes hear of what was given up.
                None if !late.is_empty() => self.root.step(now, root::Input::Tick),
                None => return,
            },
            Input::FromRoot(_) => return,
        };
        self.carry_out(now, effects, send, after);
        after.deadline = self.root.deadline();
    }

    fn carry_out(&mut self, now: Moment, effects: root::Effects, send: Send<'_>, after: &mut After) {
        let root::Effects { messages, plan, refused, visible, prove, read, purge } = effects;
        for Planning { op, facts } in plan {
            match self.asked.tell(op, &facts, now) {
                Some(calls) => after.again.extend(calls),
                None => match self.asked.questions(op) {
                    Some(asks) => {
                        tracing::error!(op = op.0, "homes have told what answers no question");
                        self.root.ask_anew(now, op, asks);
                    }
                    None => self.root.give_up(op),
                },
            }
        }
        for op in refused {
            after.refused.extend(self.asked.end(op));
        }
        let mut has_entries = false;
        for (group, message) in messages {
            has_entries |= matches!(&message, ToGroup::Append { entries, .. } if !entries.is_empty());
            let mut bytes = BytesMut::new();
            wire::encode_to_group(&message, &mut bytes);
            send(group, bytes.freeze());
        }
        points::pass_if(Point::RootSent, || has_entries);
        after.visible = after.visible.max(visible);
        after.prove |= prove;
        after.reads.extend(read);
        self.dropped = self.dropped.max(purge.unwrap_or_default());
    }

    pub fn show(&self) -> Shown {
        let (end, visible) = (self.root.end().dix, self.root.visible());
        let (in_doubt, waiting) = (self.root.doubt().len(), self.root.waiting());
        let groups = self.root.standings();
        Shown { end, visible, groups, is_serving: true, trouble: None, in_doubt, waiting, holds: 0 }
    }
}
