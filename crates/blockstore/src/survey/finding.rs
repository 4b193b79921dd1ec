//! The findings of a survey: files of a data directory that are damaged, missing, or of no use.

use std::path::PathBuf;

/// Findings that are kept with path and words. All are counted.
pub const KEPT_COUNT_MAX: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// A replica, or the directory, cannot be served as it is.
    Damage,
    /// Left from something that was interrupted, or from somebody else. No server uses it, and no data depend on it.
    Stranger,
}

/// One file or directory with a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: PathBuf,
    pub severity: Severity,
    /// The fault in words. They follow the path, and both together are one sentence.
    pub what: String,
}

/// All findings of a survey: counted, and the first [`KEPT_COUNT_MAX`] of each severity kept.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub damage_count: u64,
    pub stranger_count: u64,
    pub kept: Vec<Finding>,
}

impl Findings {
    pub fn damage(&mut self, path: impl Into<PathBuf>, what: impl Into<String>) {
        self.damage_count += 1;
        self.keep(self.damage_count, Severity::Damage, path.into(), what.into());
    }

    pub fn stranger(&mut self, path: impl Into<PathBuf>, what: impl Into<String>) {
        self.stranger_count += 1;
        self.keep(self.stranger_count, Severity::Stranger, path.into(), what.into());
    }

    fn keep(&mut self, number: u64, severity: Severity, path: PathBuf, what: String) {
        if number <= KEPT_COUNT_MAX as u64 {
            self.kept.push(Finding { path, severity, what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_full_of_strangers_hides_no_damage() {
        let mut findings = Findings::default();
        for number in 0..5_000 {
            findings.stranger(format!("/{number}"), "is not ours");
        }
        findings.damage("/blk_1", "is damaged");
        assert_eq!((findings.stranger_count, findings.damage_count), (5_000, 1));
        assert_eq!(findings.kept.len(), KEPT_COUNT_MAX + 1);
        assert_eq!(findings.kept.last().unwrap().severity, Severity::Damage);
    }
}
