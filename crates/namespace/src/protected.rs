//! Directories that nobody may delete or rename while there is anything in them, not even the superuser.
//!
//! HDFS's `fs.protected.directories`, a guard against the slip of a hand: only emptiness counts, not the caller, nor
//! whether permissions are checked. A directory that holds a protected one is guarded with it.

use base::{FsError, FsResult};
use std::{collections::BTreeSet, ops::Bound};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtectedDirectories {
    /// Absolute, without a slash at the end.
    paths: BTreeSet<String>,
    /// Directories below them are protected as well; `dfs.protected.subdirectories.enable`.
    below_too: bool,
}

impl ProtectedDirectories {
    /// Reads paths with commas between. The error is the first that is no absolute path, or names what cannot be deleted anyway.
    ///
    /// # Errors
    /// The text is the first part that is no absolute path, is the root, or has a component that is `.`, `..`,
    /// `.reserved` or `.snapshot`.
    pub fn parse(text: &str, below_too: bool) -> Result<Self, String> {
        let mut paths = BTreeSet::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let names: Vec<&str> = part.split('/').filter(|name| !name.is_empty()).collect();
            let is_plain = names.iter().all(|name| !matches!(*name, "." | ".." | ".reserved" | ".snapshot"));
            if !part.starts_with('/') || names.is_empty() || !is_plain {
                return Err(part.to_owned());
            }
            paths.insert(format!("/{}", names.join("/")));
        }
        Ok(Self { paths, below_too })
    }

    /// Whether the directory at this path, which has children, may go. `has_children` tells whether there is a directory with
    /// children at another path.
    ///
    /// # Errors
    /// [`FsError::AccessDenied`] if it, or a directory with children below it, is protected; with `below_too` also if a
    /// directory above it is protected.
    pub(crate) fn check(&self, path: &str, has_children: impl Fn(&str) -> bool) -> FsResult<()> {
        if self.paths.contains(path) {
            let message = format!("Cannot delete/rename non-empty protected directory {path}");
            return Err(FsError::AccessDenied(message));
        }
        // In the order of bytes all that is below a directory stands together: "0" follows "/".
        let below = (Bound::Excluded(format!("{path}/")), Bound::Excluded(format!("{path}0")));
        if let Some(descendant) = self.paths.range(below).find(|descendant| has_children(descendant)) {
            let message = format!("Cannot delete/rename non-empty protected subdirectory {descendant}");
            return Err(FsError::AccessDenied(message));
        }
        let above = path.rmatch_indices('/').map(|(end, _)| &path[..end]);
        match above.filter(|_| self.below_too).find(|above| self.paths.contains(*above)) {
            Some(above) => Err(FsError::AccessDenied(format!(
                "Cannot delete/rename subdirectory under protected subdirectory {above}"
            ))),
            None => Ok(()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::ProtectedDirectories;

    #[test]
    fn paths_are_absolute_and_plain() {
        let parsed = ProtectedDirectories::parse(" /a , /b//c/,,", false).expect("two paths");
        assert_eq!(parsed.paths.iter().map(String::as_str).collect::<Vec<_>>(), ["/a", "/b/c"]);
        assert_eq!(ProtectedDirectories::parse("", true).map(|parsed| parsed.paths.len()), Ok(0));
        for wrong in ["a", "/", "/a/../b", "/.reserved/raw/a", "/a/.snapshot/s", "/a,b"] {
            let refused = ProtectedDirectories::parse(wrong, false).expect_err(wrong);
            assert!(wrong.ends_with(&refused), "{wrong}: {refused}");
        }
    }
}
