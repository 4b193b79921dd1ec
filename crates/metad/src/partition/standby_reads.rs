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
/// After a question without an answer, or after a wait for entries that did not come, reads are handed on at once for so long: at first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
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
    /// Until then reads are handed on at once.
    not_before: Instant,
    /// How long the next pause is.
    pause: Duration,
}

impl Waiting {
    /// Begins a pause, unless one is under way: the reads of one question fail together.
    fn pause(&mut self) {
        let now = Instant::now();
        if now < self.not_before {
            return;
        }
        self.not_before = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }
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
        let (points, now) = (Points::new(Rules::default()), Instant::now());
        let waiting = Waiting { points, not_before: now, pause: PAUSE_MIN };
        Self { waiting: Some(Mutex::new(waiting)), ..Self::default() }
    }

    /// Whether reads are answered here, as far as this knows.
    pub fn are_taken(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| Instant::now() >= waiting.lock().not_before)
    }

    pub fn numbers(&self) -> Numbers {
        Numbers {
            answered: self.answered.load(Ordering::Relaxed),
            handed_on: self.handed_on.load(Ordering::Relaxed),
            questions: self.questions.load(Ordering::Relaxed),
        }
    }

    /// Takes a read. Returns the question that is to be asked now, if one is.
    ///
    /// # Errors
    /// The read itself: reads are not answered here, too many wait, or a pause is under way.
    pub fn wait(&self, call: Call, reply: Replier) -> Result<Option<PointQuestion>, Box<(Call, Replier)>> {
        let Some(waiting) = &self.waiting else { return Err(Box::new((call, reply))) };
        let now = Instant::now();
        let mut waiting = waiting.lock();
        if waiting.points.len() >= READS_MAX || now < waiting.not_before {
            drop(waiting);
            return Err(Box::new((call, reply)));
        }
        Ok(waiting.points.wait(Read { call, reply, until: now + PATIENCE }))
    }

    /// The question was answered, or not in time: the reads that it was for, and the next question.
    pub fn told(&self, question: PointQuestion, has_answered: bool) -> Told<Read> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        let Some(waiting) = &self.waiting else { return Told { reads: Vec::new(), ask: None } };
        let mut waiting = waiting.lock();
        if !has_answered {
            waiting.pause();
        }
        waiting.points.told(question)
    }

    /// Notes whether the tree has come as far as a read point before patience ended.
    pub fn note_shown(&self, is_shown: bool) {
        let Some(waiting) = &self.waiting else { return };
        let mut waiting = waiting.lock();
        match is_shown {
            true => waiting.pause = PAUSE_MIN,
            false => waiting.pause(),
        }
    }

    pub fn note_answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    pub fn note_handed_on(&self) {
        self.handed_on.fetch_add(1, Ordering::Relaxed);
    }
}
