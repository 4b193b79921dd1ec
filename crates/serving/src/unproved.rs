//! Answers that rest on reading, until it is proved that no other member has led before the read.
//!
//! While the lease lasts that is proved: no other member can have been elected. The lease is looked at after the answer was
//! evaluated. Where it has run out and this member still answers, the answer waits for the next grant; where no grant
//! comes, as with a member that left the in-sync set and cannot be reached, the coordinator is asked: once for all that
//! wait, and not more often than every 50 ms. An answer of the coordinator proves the reads that were
//! begun before the question.
//!
//! A lease is measured by a clock, and a clock can stand still. With [`ProofSettings::rests_on_lease`] off no answer rests
//! on a lease. The coordinator is asked about each, once for all that came while it was asked the last time.
//!
//! Every proof is for one epoch: that in which the read was begun. Between two reigns of a member another may have led.

use crate::broken::{Broken, Rules};
use base::{Epoch, Moment};

/// The least time between two questions to the coordinator, where a lease may prove answers too.
const ASK_PERIOD_MS: u64 = 50;

/// How answers are proved.
#[derive(Clone, Copy, Debug)]
pub struct ProofSettings {
    /// A lease proves an answer; otherwise only the coordinator does.
    pub rests_on_lease: bool,
    /// How long an answer waits for a proof before its call is given up.
    pub patience_ms: u64,
    /// The most bytes of answers that wait.
    pub bytes_max: usize,
}

impl ProofSettings {
    /// Whether an answer may go out at once. Its read was begun in `epoch`, and is over.
    pub fn is_proved(&self, rules: Rules, reign: Reign, epoch: Epoch) -> bool {
        rules.break_rule(Broken::ReadsNeedNoProof)
            || self.rests_on_lease
                && reign.answers
                && reign.holds_lease
                && (reign.epoch == epoch || rules.break_rule(Broken::ProofOfAnyReign))
    }
}

/// A member's lead at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Reign {
    /// No other member can have been elected: its lease lasts, and its threads make progress. A driver reads this first.
    pub holds_lease: bool,
    /// It answers calls. A driver reads this second.
    pub answers: bool,
    /// The epoch in which it led last. A driver reads this last.
    pub epoch: Epoch,
}

/// A question to the coordinator: is the view still the one by which this member leads?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    pub number: u64,
    /// The epoch of the member that asks.
    epoch: Epoch,
    asked_at: Moment,
}

impl Question {
    /// How long its answer is waited for before the coordinator is asked again.
    pub const PATIENCE_MS: u64 = 1_000;
}

/// The end of an answer's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is proved, and goes out.
    Send,
    /// It will not be proved here. The member that leads now answers the call.
    HandOver,
    /// Its patience is at its end, and whether this member leads is not known.
    GiveUp,
}

/// The things to do after a look at the answers that wait.
#[derive(Debug)]
pub struct Step<T> {
    pub done: Vec<(T, Fate)>,
    /// The coordinator is to be asked this, and [`Unproved::answered`] told what it says.
    pub ask: Option<Question>,
}

/// There is no room for an answer that would have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes of answers wait already for a proof that this member still leads")]
pub struct Full {
    pub bytes: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    answer: T,
    bytes: usize,
    since: Moment,
    /// The epoch in which the read was begun.
    epoch: Epoch,
    /// The number of the first question that is asked after the read.
    question: u64,
}

/// Answers of the type `T` that wait for a proof.
#[derive(Debug)]
pub struct Unproved<T> {
    settings: ProofSettings,
    waiting: Vec<Waiting<T>>,
    bytes: usize,
    /// The number of the next question.
    next: u64,
    under_way: Option<Question>,
    ask_not_before: Moment,
    rules: Rules,
}

impl<T> Unproved<T> {
    pub fn new(settings: ProofSettings, rules: Rules) -> Self {
        Self {
            settings,
            waiting: Vec::new(),
            bytes: 0,
            next: 1,
            under_way: None,
            ask_not_before: Moment::default(),
            rules,
        }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Keeps an answer of so many bytes until it is proved. Its read was begun in `epoch`, and is over.
    ///
    /// # Errors
    /// The answer and [`Full`], if others that wait leave it no room. A single answer always has room.
    pub fn wait(&mut self, answer: T, bytes: usize, epoch: Epoch, now: Moment) -> Result<(), (T, Full)> {
        if self.bytes > 0 && self.bytes + bytes > self.settings.bytes_max {
            return Err((answer, Full { bytes: self.bytes }));
        }
        self.bytes += bytes;
        let question = match self.rules.break_rule(Broken::ProofOfLaterReads) {
            true => 0,
            false => self.next,
        };
        self.waiting.push(Waiting { answer, bytes, since: now, epoch, question });
        Ok(())
    }

    /// When to look again at the latest, if nothing happens before.
    pub fn deadline(&self) -> Option<Moment> {
        let first = self.waiting.iter().map(|waiting| waiting.since).min()?;
        let patience_ends = first.plus_ms(self.settings.patience_ms);
        let asks_at = match &self.under_way {
            Some(question) => question.asked_at.plus_ms(Question::PATIENCE_MS),
            None => self.ask_not_before,
        };
        Some(patience_ends.min(asks_at))
    }

    /// Looks at what waits: after a grant, after a change of the reign, and at the deadline. `reign` is read after the last
    /// answer was given to [`Unproved::wait`]: threads that share this read it under their lock.
    pub fn look(&mut self, reign: Reign, now: Moment) -> Step<T> {
        let (settings, rules) = (self.settings, self.rules);
        let done = self.take(|waiting| {
            let is_of_this_reign = waiting.epoch == reign.epoch || rules.break_rule(Broken::ProofOfAnyReign);
            if !reign.answers || !is_of_this_reign {
                Some(Fate::HandOver)
            } else if settings.is_proved(rules, reign, waiting.epoch) {
                Some(Fate::Send)
            } else if now.ms_since(waiting.since) >= settings.patience_ms {
                Some(Fate::GiveUp)
            } else {
                None
            }
        });
        Step { done, ask: self.next_question(reign, now) }
    }

    fn next_question(&mut self, reign: Reign, now: Moment) -> Option<Question> {
        let is_waited_for =
            self.under_way.is_some_and(|question| now.ms_since(question.asked_at) < Question::PATIENCE_MS);
        if self.waiting.is_empty() || is_waited_for || now < self.ask_not_before {
            return None;
        }
        let question = Question { number: self.next, epoch: reign.epoch, asked_at: now };
        self.next += 1;
        self.under_way = Some(question);
        Some(question)
    }

    /// The coordinator has answered: with `is_confirmed`, the view is the one by which the member led when it asked. An
    /// answer that comes after the next question was asked is not listened to.
    pub fn answered(&mut self, question: Question, is_confirmed: bool, reign: Reign) -> Vec<(T, Fate)> {
        if self.under_way != Some(question) {
            return Vec::new();
        }
        self.under_way = None;
        self.ask_not_before = match is_confirmed && !self.settings.rests_on_lease {
            true => question.asked_at,
            false => question.asked_at.plus_ms(ASK_PERIOD_MS),
        };
        // The member may have asked a moment later than the question was made, in the next of its reigns.
        let is_of_this_reign =
            question.epoch == reign.epoch || self.rules.break_rule(Broken::ProofOfAnyReign);
        if !is_confirmed || !is_of_this_reign {
            return Vec::new();
        }
        let any_reign = self.rules.break_rule(Broken::ProofOfAnyReign);
        self.take(|waiting| {
            let is_proved =
                waiting.question <= question.number && (waiting.epoch == question.epoch || any_reign);
            is_proved.then_some(Fate::Send)
        })
    }

    fn take(&mut self, mut fate: impl FnMut(&Waiting<T>) -> Option<Fate>) -> Vec<(T, Fate)> {
        let mut done = Vec::new();
        let mut kept = Vec::new();
        for waiting in self.waiting.drain(..) {
            match fate(&waiting) {
                Some(fate) => {
                    self.bytes -= waiting.bytes;
                    done.push((waiting.answer, fate));
                }
                None => kept.push(waiting),
            }
        }
        self.waiting = kept;
        done
    }
}

#[cfg(test)]
mod tests;
