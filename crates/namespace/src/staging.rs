//! Names of directories in which programs gather files before they are moved to where they belong.

use std::sync::Arc;

/// Names as in a listing; a star at the end stands for anything.
///
/// Directories with such a name, and all below them, are in the slot of the directory above. So a job's files are renamed within one home when the job
/// commits its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagingNames(Arc<[Box<str>]>);

impl StagingNames {
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(Box::from).collect())
    }

    /// Whether one of these names is that of a staging directory.
    pub fn have_any<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> bool {
        names.any(|name| {
            self.0.iter().any(|staging| match staging.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == &**staging,
            })
        })
    }
}

impl Default for StagingNames {
    /// Those of MapReduce's committers, Hive, Spark and Tez.
    fn default() -> Self {
        Self::new([
            "_temporary",
            ".hive-staging*",
            ".spark-staging*",
            ".staging",
            "_tmp.*",
            "_task_tmp.*",
            "__magic*",
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_or_begin_so() {
        let names = StagingNames::default();
        let has = |path: &str| names.have_any(path.split('/'));
        assert!(has("out/_temporary/0/task_1") && has("t/.hive-staging_hive_2026-01-01_1/-ext-10000"));
        assert!(!has("out/_temporary2") && !has("my.spark-staging") && !has(""));
    }
}
