//! Ordered operations of the root group that wait for what homes tell.

use super::{awaited::Awaited, waiting::COPIES_MAX};
use base::{GroupId, Moment};
use dirlog::{
    OpId,
    root::{AskOf, Fact},
};
use namespace::questions::{self, Question, Told};
use rpc::{Call, Replier};
use std::collections::BTreeMap;

/// An operation whose facts were told, and that is not planned within this time, gives up what homes hold for it.
const PLAN_MS: u64 = 5_000;

/// One of them.
struct Asked {
    /// The calls whose operation it is: copies of one call.
    calls: Vec<(Call, Replier)>,
    /// By home.
    questions: BTreeMap<GroupId, Vec<Question>>,
    /// What homes have told: the operation is to be planned with that.
    told: Option<Told>,
}

/// All of them.
pub struct AskedOps {
    ops: BTreeMap<OpId, Asked>,
    /// The operations that homes have told all, and whose calls are to come.
    told: Awaited<OpId>,
}

impl Default for AskedOps {
    fn default() -> Self {
        Self { ops: BTreeMap::new(), told: Awaited::new(PLAN_MS) }
    }
}

/// Whether the operation of a call has asked homes, and what these have told.
pub enum Known {
    /// The operation has not asked.
    New(Replier),
    /// The operation waits for homes, and the call with it.
    Waits,
    /// Homes have told this.
    Told(Told, Replier),
    /// Too many copies of the call wait already.
    Full(Replier),
}

/// The questions to each home, as the machine sends them.
pub fn asks_of(questions: &BTreeMap<GroupId, Vec<Question>>) -> Vec<AskOf> {
    let ask = |(group, questions): (&GroupId, &Vec<Question>)| AskOf {
        group: *group,
        marks: questions.iter().flat_map(Question::marks).collect(),
        body: questions::encode(questions).into(),
    };
    questions.iter().map(ask).collect()
}

impl AskedOps {
    pub fn begin(
        &mut self,
        op: OpId,
        questions: BTreeMap<GroupId, Vec<Question>>,
        call: Call,
        reply: Replier,
    ) {
        self.ops.insert(op, Asked { calls: vec![(call, reply)], questions, told: None });
    }

    /// The operation asks anew: these questions, or without any the same as before. The call is given back if the operation is over.
    pub fn begin_anew(
        &mut self,
        op: OpId,
        questions: Option<BTreeMap<GroupId, Vec<Question>>>,
        call: Call,
        reply: Replier,
    ) -> Option<(Call, Replier)> {
        let Some(asked) = self.ops.get_mut(&op) else { return Some((call, reply)) };
        asked.told = None;
        self.told.remove(op);
        if let Some(questions) = questions {
            asked.questions = questions;
        }
        asked.calls.push((call, reply));
        None
    }

    /// Keeps a copy of the call if the operation waits for homes.
    pub fn know(&mut self, op: OpId, call: &Call, reply: Replier) -> Known {
        match self.ops.get_mut(&op) {
            None => Known::New(reply),
            Some(Asked { told: Some(told), .. }) => Known::Told(told.clone(), reply),
            Some(asked) if asked.calls.len() >= COPIES_MAX => Known::Full(reply),
            Some(asked) => {
                asked.calls.push((call.clone(), reply));
                Known::Waits
            }
        }
    }

    /// Homes have told all. Returns the calls that are to be carried out with it; `None` if the answers make no sense.
    pub fn tell(&mut self, op: OpId, facts: &[Fact], now: Moment) -> Option<Vec<(Call, Replier)>> {
        let asked = self.ops.get_mut(&op)?;
        let mut told = Told::default();
        let is_whole = facts.iter().all(|fact| {
            asked.questions.get(&fact.group).is_some_and(|questions| told.take(questions, &fact.body))
        });
        if !is_whole {
            return None;
        }
        asked.told = Some(told);
        self.told.insert(op, now);
        Some(std::mem::take(&mut asked.calls))
    }

    /// The questions of an operation, to be asked once more.
    pub fn questions(&self, op: OpId) -> Option<Vec<AskOf>> {
        self.ops.get(&op).map(|asked| asks_of(&asked.questions))
    }

    /// The operation is over. Returns the calls that wait for it.
    pub fn end(&mut self, op: OpId) -> Vec<(Call, Replier)> {
        self.told.remove(op);
        self.ops.remove(&op).map_or_else(Vec::new, |asked| asked.calls)
    }

    /// Operations whose facts were told long ago: their calls have not come.
    pub fn take_late(&mut self, now: Moment) -> Vec<OpId> {
        let late = self.told.take_late(now);
        late.iter().for_each(|op| _ = self.ops.remove(op));
        late
    }

    pub fn take_all(&mut self) -> Vec<(Call, Replier)> {
        std::mem::take(&mut self.ops).into_values().flat_map(|asked| asked.calls).collect()
    }
}
