//! A look at a large subtree, in slices.

use crate::{
    Context, Namespace,
    access::{Access, subtree::SubtreeCheck},
    looks::{Answer, Looks, Question, Watch},
    snapshots::count::Counting,
};
use std::sync::Arc;

/// A look under way: as far as it has come.
#[derive(Debug)]
pub struct Look {
    question: Question,
    progress: Progress,
    answer: Option<Answer>,
}

#[derive(Debug)]
enum Progress {
    Rights(SubtreeCheck),
    Amounts(Counting),
}

impl Look {
    pub fn new(question: Question) -> Self {
        let progress = match question {
            Question::Rights(top) => Progress::Rights(SubtreeCheck::of_all_rights(top)),
            Question::Amounts(counted) => Progress::Amounts(Counting::new(counted)),
        };
        Self { question, progress, answer: None }
    }

    /// Looks at `count_max` inodes at most. True when it has come to its end. `ctx` has the caller of the plan.
    pub fn step(&mut self, ns: &Namespace, ctx: &Context<'_>, count_max: usize) -> bool {
        self.answer = match &mut self.progress {
            Progress::Rights(check) => check.rights(ns, &Access::new(ctx), count_max),
            Progress::Amounts(counting) => counting.step(ns, count_max).map(Answer::Amounts),
        };
        self.answer.is_some()
    }

    /// Lets a request know the answer. If the look was broken off, the request knows that it was in vain. `watch` was set before
    /// the look began.
    pub fn tell(self, looks: &mut Looks, watch: Arc<Watch>) {
        looks.learn(self.question, self.answer, watch);
    }
}
