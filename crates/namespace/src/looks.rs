//! What is known of large subtrees before a plan is made.
//!
//! A few plans rest on all that is below a directory: a recursive delete needs rights on every directory below, and a quota
//! counts every inode. The answer must hold at the moment of the edit, so it cannot be found earlier and believed. Nor may the
//! one writer look at millions of inodes while all others wait.
//!
//! So such a plan looks at a subtree by itself only if that is small. Otherwise [`crate::next_step`] comes to
//! [`crate::Step::Look`]: the driver takes a [`crate::Look`] in slices, while others read and write, and then asks for the step again.
//! In between a [`Watch`] tells whether an edit may have changed the answer. If none did, the answer is the one that the plan
//! would find itself, and it is taken. If one did, the driver looks anew. A subtree that is written to all the time would be looked
//! at for ever, so the plan looks by itself after [`SPOILT_MAX`] vain attempts, however long that takes.

use crate::{SnapshotId, quota::Amounts};
use base::InodeId;
use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// How often a subtree may change under the look at it before the plan looks by itself.
const SPOILT_MAX: u32 = 3;
/// Looks in all before the plan looks by itself. A plan asks three questions at most; a rename elsewhere may make them others.
const LOOKS_MAX: u32 = 8;

/// A question about a subtree that a plan asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Whether the caller has all rights on each directory that is not empty, from this one down.
    Rights(InodeId),
    Amounts(Counted),
}

/// A subtree whose amounts are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    pub top: InodeId,
    /// The storage policy in force at the top.
    pub policy: u8,
    /// In which snapshot the top has [died](crate::Namespace::died), or will have; after all of them if it is in the tree.
    pub died: SnapshotId,
    /// Everything is counted. Otherwise the noted usage of directories with a quota is used; it rests on the present policies.
    pub anew: bool,
}

impl Question {
    /// The directory below which the answer is found.
    pub fn top(&self) -> InodeId {
        match self {
            Self::Rights(top) => *top,
            Self::Amounts(counted) => counted.top,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The directories about whose files other groups have to be asked: they allow not everything, or have a sticky bit.
    Rights(Result<Arc<[InodeId]>, Denial>),
    Amounts(Amounts),
}

/// The reason why a caller may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The directory does not allow it.
    OfDirectory(InodeId),
    /// The sticky bit of the directory protects this child of it.
    BySticky { parent: InodeId, child: InodeId },
    /// The sticky bit of the directory protects a file that another group has.
    ByStickyElsewhere(InodeId),
}

/// The answers that were found for one request. A plan that is given them with its [`crate::Context`] looks at small subtrees only.
#[derive(Debug)]
pub struct Looks {
    /// Inodes that a plan visits by itself to answer one question.
    at_once_max: usize,
    found: Vec<(Question, Answer, Arc<Watch>)>,
    taken: u32,
    spoilt: u32,
    /// The question that the plan which is being made cannot answer. Whatever that plan comes to is of no use.
    wanted: Cell<Option<Question>>,
}

impl Looks {
    /// A plan visits so many inodes by itself to answer one question.
    pub fn new(at_once_max: usize) -> Self {
        Self { at_once_max, found: Vec::new(), taken: 0, spoilt: 0, wanted: Cell::default() }
    }

    /// The plan is to look by itself, however large the subtrees are.
    pub fn give_up(&mut self) {
        self.at_once_max = usize::MAX;
    }

    /// Takes the answer of a look that was taken. `None`: it was broken off. `watch` was set before it began.
    pub(crate) fn learn(&mut self, question: Question, answer: Option<Answer>, watch: Arc<Watch>) {
        self.taken += 1;
        match answer {
            Some(answer) if watch.is_intact() => self.found.push((question, answer, watch)),
            _ => self.spoilt += 1,
        }
        if self.spoilt >= SPOILT_MAX || self.taken >= LOOKS_MAX {
            self.give_up();
        }
    }

    /// The question that the last plan could not answer, if any.
    pub(crate) fn take_wanted(&self) -> Option<Question> {
        self.wanted.take()
    }

    /// The answer to a question: known, or found by a look at so many inodes at most. `None`: the plan is of no use, a look
    /// comes first.
    pub(crate) fn answer(
        &self,
        question: Question,
        look: impl FnOnce(usize) -> Option<Answer>,
    ) -> Option<Answer> {
        let known = self.found.iter().rev().find(|(asked, _, watch)| *asked == question && watch.is_intact());
        if let Some((_, answer, _)) = known {
            return Some(answer.clone());
        }
        if self.wanted.get().is_some() {
            return None;
        }
        let answer = look(self.at_once_max);
        if answer.is_none() {
            self.wanted.set(Some(question));
        }
        answer
    }
}

/// Tells whether an edit has changed something at or below a directory since the watch was set.
#[derive(Debug)]
pub struct Watch {
    pub(crate) top: InodeId,
    is_spoilt: AtomicBool,
}

impl Watch {
    pub(crate) fn new(top: InodeId) -> Self {
        Self { top, is_spoilt: AtomicBool::new(false) }
    }

    pub fn is_intact(&self) -> bool {
        !self.is_spoilt.load(Ordering::Acquire)
    }

    pub(crate) fn spoil(&self) {
        self.is_spoilt.store(true, Ordering::Release);
    }
}
