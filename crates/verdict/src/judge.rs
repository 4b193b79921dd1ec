//! The one place where facts become conditions.

mod data;
mod group;
mod members;
#[cfg(test)]
mod tests;

use crate::{Code, Condition, Facts, Group, Judged, Presence, Severity, words::list};

/// All data servers together are nearly full when less of their room is left than this share, in percent.
pub const CAPACITY_LOW_PERCENT: u64 = 10;
/// With less than this share left, writes fail soon or already: an error.
pub const CAPACITY_OUT_PERCENT: u64 = 1;
/// A volume is nearly full when less of its room is left than this share, in percent.
pub const DISK_LOW_PERCENT: u64 = 5;
/// Clocks of metadata servers that differ by more than this, in milliseconds, are told.
pub const CLOCKS_APART_MS: u64 = 2_000;
/// A mean flush of the journal that takes longer than this, in milliseconds, is slow.
pub const FLUSH_SLOW_MS: u64 = 500;

/// The subjects of a condition are cut off here.
const SUBJECTS_MAX: usize = 100;

/// The verdict on a cluster, with its reasons.
pub fn judge(facts: &Facts) -> Judged {
    let mut found = Found::default();
    let answers = |group: &Group| group.members.iter().any(|member| member.presence == Presence::Answers);
    if !facts.groups.iter().any(answers) && !facts.unanswered.is_empty() {
        nobody_answers(facts, &mut found);
        return Judged::new(found.conditions);
    }
    found.has_several = facts.groups.len() > 1;
    for group in &facts.groups {
        found.group = Some(group.number);
        group::judge(group, &mut found);
        members::judge(group, &mut found);
        // Judged without a leader too: a follower's knowledge is better than none.
        if let Some(data) = &group.data {
            data::judge(group, data, &mut found);
        }
    }
    Judged::new(found.conditions)
}

fn nobody_answers(facts: &Facts, found: &mut Found) {
    let told: Vec<String> =
        facts.unanswered.iter().map(|one| format!("{} ({})", one.address, one.reason)).collect();
    found.say(
        Code::NoAnswer,
        Severity::Error,
        facts.unanswered.iter().map(|one| one.address.clone()).collect(),
        format!("No metadata server answers: {}.", list(&told)),
        "Start them, or name another one: `clover status --fs hdfs://HOST:PORT`. `clover doctor` looks at the way there.",
    );
}

/// The conditions that have been found, and the group that is being looked at.
#[derive(Default)]
struct Found {
    group: Option<u32>,
    /// There is more than one group, so that commands have to name the group that they mean.
    has_several: bool,
    conditions: Vec<Condition>,
}

impl Found {
    /// A command for the group that is being looked at: `command("group", "minimum 2")` is `clover admin group minimum 2`.
    fn command(&self, of: &str, rest: &str) -> String {
        let group = self.group.filter(|_| self.has_several).map(|group| format!(" --group {group}"));
        format!("clover admin {of}{} {rest}", group.unwrap_or_default()).trim_end().to_owned()
    }

    fn say(
        &mut self,
        code: Code,
        severity: Severity,
        mut subjects: Vec<String>,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        subjects.truncate(SUBJECTS_MAX);
        let groups = self.group.into_iter().collect();
        let (text, remedy) = (text.into(), remedy.into());
        self.conditions.push(Condition { code, severity, groups, subjects, text, remedy });
    }

    fn warn(
        &mut self,
        code: Code,
        subjects: Vec<String>,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.say(code, Severity::Warning, subjects, text, remedy);
    }

    fn error(&mut self, code: Code, text: impl Into<String>, remedy: impl Into<String>) {
        self.say(code, Severity::Error, Vec::new(), text, remedy);
    }
}
