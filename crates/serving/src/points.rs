//! Reads at a member that does not lead.
//!
//! A client must see everything that was acknowledged before it asked. Only the active knows what that is. So the member asks the active, after the
//! read has come, how far the log has committed: the read point. The active proves as for a read of its own that it still leads.
//! Once the member's tree shows all of the log up to there ([`shows`]), it answers. What the tree shows beyond the point has
//! committed as well, or is in doubt and not told ([`crate::Tree::rests_on`]).
//!
//! One question serves all reads that came before it was sent. While it is under way, further reads wait for the next one.

use crate::broken::{Broken, Rules};
use base::{ReadPoint, TxId};

/// Whether a tree that shows the log up to `applied` shows everything up to this point.
///
/// The numbers alone do not say so. The end of the log of a member that led before, or that followed one, may be about to be cut off. But an entry of the
/// point's epoch, or of a later one, stands behind everything that had committed when the point was told, in whatever log it is.
pub fn shows(applied: TxId, point: ReadPoint, rules: Rules) -> bool {
    let is_of_the_reign = applied.epoch >= point.epoch || rules.break_rule(Broken::PointsOfAnyEpoch);
    let is_as_far = applied.sn >= point.committed || rules.break_rule(Broken::PointsNotWaitedFor);
    is_of_the_reign && is_as_far
}

/// A question for the read point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointQuestion(u64);

/// The reads that wait for a read point.
#[derive(Debug)]
pub struct Points<T> {
    rules: Rules,
    /// The question under way, and the reads that came before it was sent.
    asked: Option<(PointQuestion, Vec<T>)>,
    /// The reads that came since.
    waiting: Vec<T>,
    questions: u64,
}

/// What an answer about the read point leads to.
#[derive(Debug)]
pub struct Told<T> {
    /// The reads that it is about.
    pub reads: Vec<T>,
    /// To be asked now.
    pub ask: Option<PointQuestion>,
}

impl<T> Points<T> {
    pub fn new(rules: Rules) -> Self {
        Self { rules, asked: None, waiting: Vec::new(), questions: 0 }
    }

    /// The number of reads that wait.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.asked.as_ref().map_or(0, |(_, reads)| reads.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a read. Returns the question that is to be asked now, if none is under way.
    pub fn wait(&mut self, read: T) -> Option<PointQuestion> {
        match &mut self.asked {
            Some((_, reads)) if self.rules.break_rule(Broken::PointsOfLaterReads) => {
                reads.push(read);
                None
            }
            Some(_) => {
                self.waiting.push(read);
                None
            }
            None => {
                self.waiting.push(read);
                self.ask()
            }
        }
    }

    /// The question was answered, or given up. An answer that comes after that is about no read.
    pub fn told(&mut self, question: PointQuestion) -> Told<T> {
        match self.asked.take_if(|(asked, _)| *asked == question) {
            Some((_, reads)) => Told { reads, ask: self.ask() },
            None => Told { reads: Vec::new(), ask: None },
        }
    }

    fn ask(&mut self) -> Option<PointQuestion> {
        if self.waiting.is_empty() {
            return None;
        }
        self.questions += 1;
        let question = PointQuestion(self.questions);
        self.asked = Some((question, std::mem::take(&mut self.waiting)));
        Some(question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Epoch, Sn};

    fn at(epoch: u64, sn: u64) -> TxId {
        TxId { epoch: Epoch(epoch), sn: Sn(sn) }
    }

    fn point(epoch: u64, committed: u64) -> ReadPoint {
        ReadPoint { epoch: Epoch(epoch), committed: Sn(committed) }
    }

    #[test]
    fn a_tree_answers_once_it_shows_everything_up_to_the_point() {
        let rules = Rules::default();
        assert!(!shows(at(3, 9), point(3, 10), rules));
        assert!(shows(at(3, 10), point(3, 10), rules));
        assert!(shows(at(4, 12), point(3, 10), rules), "a later active has all that had committed before");
    }

    #[test]
    fn the_end_of_a_log_that_a_deposed_active_wrote_is_not_the_end_of_the_new_one() {
        assert!(!shows(at(2, 12), point(3, 10), Rules::default()));
    }

    #[test]
    fn one_question_serves_all_reads_that_came_before_it_and_none_that_came_later() {
        let mut points = Points::new(Rules::default());
        let first = points.wait("a").expect("nothing is under way");
        assert_eq!((points.wait("b"), points.wait("c"), points.len()), (None, None, 3));
        let told = points.told(first);
        assert_eq!(told.reads, ["a"]);
        let second = told.ask.expect("two wait");
        assert_eq!(points.wait("d"), None);
        let told = points.told(second);
        assert_eq!(told.reads, ["b", "c"]);
        let third = told.ask.expect("one waits");
        assert_eq!(points.told(third).reads, ["d"]);
        assert!(points.is_empty());
        assert!(points.wait("e").is_some(), "it begins anew");
    }

    #[test]
    fn an_answer_that_comes_after_its_question_was_given_up_is_about_no_read() {
        let mut points = Points::new(Rules::default());
        let first = points.wait("a").unwrap();
        points.wait("b");
        let second = points.told(first).ask.unwrap();
        let late = points.told(first);
        assert!(late.reads.is_empty() && late.ask.is_none());
        assert_eq!(points.told(second).reads, ["b"]);
    }
}
