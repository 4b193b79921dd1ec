//! The side of a group that follows the directory log: the machine that receives entries, the entries that the writer has still to apply, the asks of the
//! root group that the writer has still to answer, and the calls that the machine has put off.

use super::{
    awaited::Awaited,
    step::{After, Input, Send, Shown, settings},
    waiting::{WaitingCalls, name_of},
};
use crate::points::{self, Point};
use base::{
    Epoch, GroupId, Moment, Sn,
    directory_log::{Dix, Mark},
};
use bytes::BytesMut;
use dirlog::{
    Ask, CallId, Entry, Home, ToGroup, ToRoot,
    home::{self, CallKind, Verdict},
    wire,
};
use namespace::{
    Namespace,
    questions::{self, Answer},
};
use rpc::{Call, Replier};
use std::collections::VecDeque;

/// With more entries than this waiting for the writer, no further ones are received.
const TO_APPLY_MAX: usize = 2_000;

/// A call that is to be carried out again, and does not come to be judged for so long, keeps no entries out any more.
const AGAIN_MS: u64 = 200;

/// What becomes of a call before it is carried out.
pub enum Judged {
    Go(Replier),
    /// It waits here, and is carried out again later.
    Waits,
    /// Entries are to be applied first, by the writer.
    Behind(Replier),
    /// Too many calls wait: its client is to come again.
    Full(Replier),
}

pub struct HomeSide {
    home: Home,
    epoch: Epoch,
    /// Entries that the writer is to apply. They stay here until it does: a turn that is put off takes none.
    to_apply: VecDeque<Entry>,
    /// A turn of the writer is queued, for these and for asks.
    is_queued: bool,
    /// Entries of the directory log that were applied and have not committed in this group.
    uncommitted: VecDeque<(Sn, Dix)>,
    /// The last one that has.
    committed: Dix,
    waiting: WaitingCalls,
    /// Calls that are to be carried out again. The machine keeps later entries out until they have been judged.
    told: Awaited<CallId>,
    /// Calls that were told, and that another group answers: the next step tells the machine.
    sent_on: Vec<CallId>,
    /// Asks to be evaluated in a turn of the writer.
    asks: Vec<Ask>,
}

impl HomeSide {
    /// Everything that this member has inherited is applied, and has committed.
    pub fn new(namespace: &Namespace, epoch: Epoch, now: Moment) -> Self {
        let (applied, own) = (namespace.directory_log(), namespace.applied().sn.0);
        Self {
            home: Home::new(settings(), namespace.group(), epoch, applied, own, now),
            epoch,
            to_apply: VecDeque::new(),
            is_queued: false,
            uncommitted: VecDeque::new(),
            committed: applied.dix,
            waiting: WaitingCalls::default(),
            told: Awaited::new(AGAIN_MS),
            sent_on: Vec::new(),
            asks: Vec::new(),
        }
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub fn deadline(&self) -> Option<Moment> {
        self.home.deadline()
    }

    /// The next entry to apply. The turn that asks is the one that was queued, or comes before it.
    pub fn next_to_apply(&mut self) -> Option<Entry> {
        self.to_apply.pop_front()
    }

    /// The queued turn of the writer is over, or was dropped because this member does not serve. The next step queues another one, if that is wanted.
    pub fn end_turn(&mut self) {
        self.is_queued = false;
    }

    /// The writer has applied the entry `dix` as the entry `sn` of the own log.
    pub fn on_applied(&mut self, sn: Sn, dix: Dix) {
        self.uncommitted.push_back((sn, dix));
    }

    /// Says whether a call may be carried out now, on this tree, which is locked. `marks` adds what it rests on; false: on anything.
    pub fn judge(
        &mut self,
        tree: &Namespace,
        now: Moment,
        kind: CallKind,
        call: &Call,
        reply: Replier,
        marks: impl FnOnce(&mut Vec<Mark>) -> bool,
    ) -> Judged {
        if tree.directory_log().dix < self.home.applied().dix {
            return Judged::Behind(reply);
        }
        let name = name_of(call);
        self.told.remove(name);
        // A copy of a call that was sent on: this one may wait.
        self.sent_on.retain(|sent_on| *sent_on != name);
        let mut seen = Vec::new();
        let verdict = match self.home.begin(now) {
            Err(_) => self.home.wait(now, name),
            Ok(permit) => {
                let is_quiet = self.home.doubt().is_empty() && self.home.holds().next().is_none();
                if !is_quiet && !marks(&mut seen) {
                    seen = self.home.doubt().marks().collect();
                }
                self.home.judge(now, name, kind, permit, &seen)
            }
        };
        match verdict {
            Verdict::Go => Judged::Go(reply),
            Verdict::Waits => match self.waiting.wait(name, call, reply) {
                None => Judged::Waits,
                Some(reply) => Judged::Full(reply),
            },
            Verdict::Refused => Judged::Full(reply),
            Verdict::Again => unreachable!("nothing can have been applied since the call began"),
        }
    }

    /// Whether calls are to be carried out again that have not come.
    pub fn awaits_calls(&self) -> bool {
        !self.told.is_empty()
    }

    /// Another group answers this call. True: it was to be carried out again here, and a step is due, by which nothing is kept out for it.
    pub fn forget(&mut self, call: &Call) -> bool {
        let name = name_of(call);
        let was_told = self.told.remove(name);
        self.sent_on.extend(was_told.then_some(name));
        was_told
    }

    /// Answers the asks that wait, on this tree, which is locked in the writer's turn.
    pub fn answer_asks(&mut self, tree: &Namespace, now: Moment) {
        if tree.directory_log().dix < self.home.applied().dix {
            return;
        }
        for ask in std::mem::take(&mut self.asks) {
            let Ok(permit) = self.home.begin(now) else { return };
            let answers: Option<Vec<Answer>> = match questions::decode(&ask.body) {
                Ok(questions) => questions.iter().map(|question| tree.tell(question)).collect(),
                Err(error) => {
                    tracing::error!(%error, "the root group asks what cannot be read");
                    None
                }
            };
            // What other groups have still to carry out takes a moment: the root group asks again.
            let answers = answers.filter(|answers| !answers.iter().any(Answer::is_in_the_way));
            match answers {
                Some(answers) => {
                    let fact = questions::encode_answers(tree.directory_log().dix, answers).into();
                    // Whatever becomes of it, the machine tells the root group, or names the ask again.
                    let _ = self.home.hold(now, permit, ask.ask, fact, tree.applied().sn.0);
                    points::pass(Point::HomeHeld);
                }
                None => self.home.in_the_way(ask.ask),
            }
        }
    }

    /// The calls that wait here. This member leads no more, and others answer them.
    pub fn take_waiting(&mut self) -> Vec<(Call, Replier)> {
        self.waiting.take_all()
    }

    pub fn step(&mut self, now: Moment, lease_end: Moment, input: Input, send: Send<'_>, after: &mut After) {
        self.home.note_own_lease(lease_end);
        let mut inputs: Vec<home::Input> = match input {
            Input::FromRoot(messages) => {
                // As if entries had got lost: the root group sends them again, and does not wait for a group that does not keep up.
                let is_behind = self.to_apply.len() > TO_APPLY_MAX;
                let is_taken = |message: &ToGroup| !is_behind || !matches!(message, ToGroup::Append { .. });
                messages.into_iter().filter(is_taken).map(home::Input::Message).collect()
            }
            Input::Proved(began) => vec![home::Input::Proved { began }],
            Input::Tick => vec![home::Input::Tick],
            Input::Committed(sn) => {
                let before = self.committed;
                while let Some((_, dix)) = self.uncommitted.pop_front_if(|(at, _)| *at <= sn) {
                    self.committed = dix;
                }
                points::pass_if(Point::HomeRelayed, || self.committed > before);
                vec![home::Input::Committed { own: sn.0, applied: self.committed }]
            }
            Input::Root(_) | Input::FromHome(..) => return,
        };
        let over = self.told.take_late(now).into_iter().chain(self.sent_on.drain(..));
        inputs.extend(over.map(home::Input::Forget));
        let received = self.home.last_received();
        let effects = self.home.step_all(now, inputs);
        points::pass_if(Point::HomeReceived, || self.home.last_received() > received);
        self.carry_out(now, effects, send, after);
        after.deadline = self.home.deadline();
        let is_wanted = !self.to_apply.is_empty() || !self.asks.is_empty();
        let is_new = is_wanted && !std::mem::replace(&mut self.is_queued, true);
        after.turn = is_new.then_some(self.epoch);
    }

    fn carry_out(&mut self, now: Moment, effects: home::Effects, send: Send<'_>, after: &mut After) {
        let home::Effects { apply, messages, again, refused, asks, prove, alarm } = effects;
        for name in again {
            self.told.insert(name, now);
            after.again.extend(self.waiting.take(name));
        }
        for name in refused {
            self.told.remove(name);
            after.refused.extend(self.waiting.take(name));
        }
        // Those of this step are all that are wanted.
        self.asks = asks;
        for message in messages {
            points::pass_if(Point::HomeTold, || matches!(message, ToRoot::Held { .. }));
            let mut bytes = BytesMut::new();
            wire::encode_to_root(&message, &mut bytes);
            send(GroupId::ROOT, bytes.freeze());
        }
        self.to_apply.extend(apply);
        after.prove |= prove;
        after.alarm = alarm.map(|why| (self.epoch, why)).or(after.alarm.take());
    }

    pub fn show(&self) -> Shown {
        let applied = self.home.applied().dix;
        Shown {
            end: self.home.last_received(),
            visible: applied,
            groups: Vec::new(),
            is_serving: self.home.is_serving(),
            trouble: self.home.alarm().map(str::to_owned),
            in_doubt: self.home.doubt().len(),
            waiting: self.waiting.len(),
            holds: self.home.holds().count(),
        }
    }
}

#[cfg(test)]
mod tests;
