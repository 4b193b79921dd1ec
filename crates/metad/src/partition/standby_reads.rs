//! The reads that wait for a read point, while this member does not lead.

use parking_lot::Mutex;
use rpc::{Call, Replier};
use serving::{PointQuestion, Points, Rules, Told};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// How long a read waits here at most before it is handed to the active.
pub const PATIENCE: Duration = Duration::from_millis(100);
/// Reads that wait here at most. More are handed on, which has limits of its own.
const READS_MAX: usize = 16_384;

/// The reads that wait here, and what became of others.
#[derive(Default)]
pub struct StandbyReads {
    /// `None`: all are handed on.
    waiting: Option<Mutex<Waiting>>,
    /// Hears of entries that were applied.
    pub applied: Notify,
    answered: AtomicU64,
    handed_on: AtomicU64,
    questions: AtomicU64,
}

struct Waiting {
    points: Points<Read>,
    /// The active has not answered: until then nobody asks it.
    not_before: Instant,
}

/// A read that waits.
pub struct Read {
    pub call: Call,
    pub reply: Replier,
    /// It is handed on then.
    pub until: Instant,
}

/// Numbers for pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Reads that were answered here.
    pub answered: u64,
    /// Reads that waited here, and were handed to the active.
    pub handed_on: u64,
    /// Questions to the active.
    pub questions: u64,
}

impl StandbyReads {
    /// For a member of several. The default hands all reads on.
    pub fn new() -> Self {
        let waiting = Waiting { points: Points::new(Rules::default()), not_before: Instant::now() };
        Self { waiting: Some(Mutex::new(waiting)), ..Self::default() }
    }

    /// Whether reads may be answered here at all.
    pub fn are_on(&self) -> bool {
        self.waiting.is_some()
    }

    pub fn numbers(&self) -> Numbers {
        Numbers {
            answered: self.answered.load(Ordering::Relaxed),
            handed_on: self.handed_on.load(Ordering::Relaxed),
            questions: self.questions.load(Ordering::Relaxed),
        }
    }

    /// Takes a read. The first part has the question that is to be asked now. The second part gives the read back: too many wait, or the active
    /// has just not answered.
    pub fn wait(&self, call: Call, reply: Replier) -> (Option<PointQuestion>, Option<(Call, Replier)>) {
        let Some(waiting) = &self.waiting else { return (None, Some((call, reply))) };
        let now = Instant::now();
        let mut waiting = waiting.lock();
        if waiting.points.len() >= READS_MAX || now < waiting.not_before {
            return (None, Some((call, reply)));
        }
        (waiting.points.wait(Read { call, reply, until: now + PATIENCE }), None)
    }

    /// The question was answered, or not in time: the reads that it was for, and the next question.
    pub fn told(&self, question: PointQuestion, has_answered: bool) -> Told<Read> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        let Some(waiting) = &self.waiting else { return Told { reads: Vec::new(), ask: None } };
        let mut waiting = waiting.lock();
        if !has_answered {
            waiting.not_before = Instant::now() + PATIENCE;
        }
        waiting.points.told(question)
    }

    pub fn note_answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    pub fn note_handed_on(&self) {
        self.handed_on.fetch_add(1, Ordering::Relaxed);
    }
}
