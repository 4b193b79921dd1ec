//! A check with its outcome, and all of them as a table and as JSON.

use crate::table;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Good,
    /// It works, and may not for long, or not well.
    Warning,
    Failed,
    /// The system does not tell.
    Unknown,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warning => "warning",
            Self::Failed => "FAILED",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub required: String,
    pub found: String,
    pub outcome: Outcome,
    /// The next thing to do where it is not good.
    pub remedy: String,
}

impl Check {
    pub fn new(name: impl Into<String>, required: impl Into<String>, found: impl Into<String>) -> Self {
        let (name, required, found) = (name.into(), required.into(), found.into());
        Self { name, required, found, outcome: Outcome::Good, remedy: String::new() }
    }

    /// The outcome unless `is_good`, with what to do then.
    pub fn unless(self, is_good: bool, outcome: Outcome, remedy: impl Into<String>) -> Self {
        match is_good {
            true => self,
            false => Self { outcome, remedy: remedy.into(), ..self },
        }
    }
}

pub fn has_failed(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.outcome == Outcome::Failed)
}

pub fn text(checks: &[Check]) -> String {
    let mut rows = vec![["RESULT", "CHECK", "REQUIRED", "FOUND"].map(str::to_owned).to_vec()];
    rows.extend(checks.iter().map(|check| {
        vec![check.outcome.word().into(), check.name.clone(), check.required.clone(), check.found.clone()]
    }));
    let mut text = table::lines(&rows).join("\n") + "\n";
    // Several servers may want one and the same.
    let mut remedies: Vec<(&Check, Vec<&str>)> = Vec::new();
    for check in checks.iter().filter(|check| !check.remedy.is_empty()) {
        let is_same = |other: &&mut (&Check, Vec<&str>)| {
            (other.0.outcome, &other.0.remedy) == (check.outcome, &check.remedy)
        };
        match remedies.iter_mut().find(is_same) {
            Some((_, names)) => names.push(&check.name),
            None => remedies.push((check, vec![&check.name])),
        }
    }
    if !remedies.is_empty() {
        text += "\n";
    }
    for (check, names) in remedies {
        text += &format!("{} {}: {}\n", check.outcome.word(), names.join(", "), check.remedy);
    }
    let failed = checks.iter().filter(|check| check.outcome == Outcome::Failed).count();
    text += &match failed {
        0 => format!("\n{} checks, none failed.\n", checks.len()),
        _ => format!("\n{failed} of {} checks failed.\n", checks.len()),
    };
    text
}

pub fn as_json(checks: &[Check]) -> Value {
    let rows = checks.iter().map(|check| {
        json!({
            "check": check.name, "required": check.required, "found": check.found,
            "result": check.outcome.word().to_lowercase(), "remedy": check.remedy,
        })
    });
    json!({ "ok": !has_failed(checks), "checks": rows.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_stand_below_the_table_and_a_failure_is_counted() {
        let good = Check::new("swap", "unused", "unused").unless(true, Outcome::Failed, "never shown");
        let bad =
            Check::new("port", "free", "taken").unless(false, Outcome::Failed, "End the other program.");
        let text = text(&[good.clone(), bad.clone()]);
        assert!(text.contains("good    swap   unused    unused\n"), "{text}");
        assert!(text.contains("\nFAILED port: End the other program.\n\n1 of 2 checks failed.\n"), "{text}");
        assert!(!text.contains("never shown"));
        let json = as_json(&[good.clone(), bad]);
        assert_eq!((&json["ok"], &json["checks"][1]["result"]), (&json!(false), &json!("failed")));
        assert_eq!(as_json(&[good])["ok"], true);
    }
}
