//! The outcome: conditions, and the verdict that they come to.

use crate::{Code, Severity};
use serde::Serialize;
use std::fmt;

/// Something about a cluster that a person should know of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    pub code: Code,
    pub severity: Severity,
    /// The groups whose facts say so; empty where the condition is of no group.
    pub groups: Vec<u32>,
    /// The servers, disks or addresses that are meant, as `member 2` or `10.0.0.7:9866`, at most 100; empty where it is the whole group.
    pub subjects: Vec<String>,
    /// A sentence or two, with the true numbers and names.
    pub text: String,
    /// The next command or act of a person, as a sentence.
    pub remedy: String,
}

/// How a cluster is, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Healthy,
    Warning,
    Error,
}

impl Verdict {
    /// The word, as `healthy`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A verdict with its reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    pub verdict: Verdict,
    /// Errors first; within a severity in the order of [`Code::ALL`].
    pub conditions: Vec<Condition>,
}

impl Judged {
    /// Sorts conditions, brings together what several groups say alike, and draws the verdict.
    pub(crate) fn new(conditions: Vec<Condition>) -> Self {
        let mut kept: Vec<Condition> = Vec::new();
        for one in conditions {
            let is_same = |other: &&mut Condition| {
                // Groups are asked one after the other, so they tell other times of one data server. Members of two groups may have one number.
                let says_alike = one.code.is_of_data_servers() || other.text == one.text;
                (other.code, other.severity) == (one.code, one.severity)
                    && other.subjects == one.subjects
                    && !one.subjects.is_empty()
                    && says_alike
            };
            match kept.iter_mut().find(is_same) {
                Some(other) => other.groups.extend(one.groups),
                None => kept.push(one),
            }
        }
        kept.sort_by(|one, other| {
            let rank = |of: &Condition| (std::cmp::Reverse(of.severity), of.code, of.groups.first().copied());
            rank(one).cmp(&rank(other))
        });
        let verdict = match kept.first().map(|worst| worst.severity) {
            None => Verdict::Healthy,
            Some(Severity::Warning) => Verdict::Warning,
            Some(Severity::Error) => Verdict::Error,
        };
        Self { verdict, conditions: kept }
    }

    /// Whether a condition of this code and severity holds.
    pub fn has(&self, code: Code, severity: Severity) -> bool {
        self.conditions.iter().any(|one| (one.code, one.severity) == (code, severity))
    }
}
