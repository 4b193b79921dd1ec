//! Paths as clients send them: taken as they are or refused, never normalised into another object.

use crate::Limits;
use base::{FsError, FsResult};
use std::borrow::Cow;

/// An absolute path without empty, `.` or `..` components. One slash at the end is allowed and means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// The path without a slash at its end; empty for the root.
    text: Cow<'a, str>,
    depth: usize,
}

impl<'a> Path<'a> {
    /// Refuses what no name in the tree can match.
    ///
    /// # Errors
    /// [`FsError::InvalidPath`] if the text does not begin with a slash, holds a NUL, or has a component that is
    /// empty, `.` or `..`.
    pub fn parse(text: impl Into<Cow<'a, str>>) -> FsResult<Self> {
        let mut text = text.into();
        let invalid = || FsError::InvalidPath(text.as_ref().into());
        if !text.starts_with('/') || text.as_bytes().contains(&0) {
            return Err(invalid());
        }
        let trimmed = text.strip_suffix('/').unwrap_or(&text);
        let mut depth = 0;
        for component in trimmed.split('/').skip(1) {
            if matches!(component, "" | "." | "..") {
                return Err(invalid());
            }
            depth += 1;
        }
        let length = trimmed.len();
        match &mut text {
            Cow::Borrowed(text) => *text = &text[..length],
            Cow::Owned(text) => text.truncate(length),
        }
        Ok(Self { text, depth })
    }

    /// A path under which something is to be created: names with a colon are refused too, as by HDFS.
    ///
    /// # Errors
    /// Those of [`Path::parse`]; and [`FsError::InvalidPath`] if a name has a colon.
    pub fn parse_new(text: impl Into<Cow<'a, str>>) -> FsResult<Self> {
        let path = Self::parse(text)?;
        if path.as_str().contains(':') {
            return Err(FsError::InvalidPath(path.as_str().into()));
        }
        Ok(path)
    }

    /// How `NameNodeRpcServer` of HDFS bounds a path before looking at it.
    ///
    /// # Errors
    /// [`FsError::Io`] if the path has more characters or more components than the limits allow.
    pub fn check_length(text: &str, operation: &str, limits: &Limits) -> FsResult<()> {
        let too_long =
            text.len() > limits.path_length_max && text.encode_utf16().count() > limits.path_length_max;
        let too_deep =
            text.split('/').filter(|component| !component.is_empty()).count() > limits.path_depth_max;
        if too_long || too_deep {
            return Err(FsError::Io(format!(
                "{operation}: Pathname too long.  Limit {} characters, {} levels.",
                limits.path_length_max, limits.path_depth_max
            )));
        }
        Ok(())
    }

    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        self.text.strip_prefix('/').into_iter().flat_map(|text| text.split('/'))
    }

    pub fn depth(&self) -> usize {
        self.depth
    }

    pub fn is_root(&self) -> bool {
        self.depth == 0
    }

    /// The last component; empty for the root.
    pub fn name(&self) -> &str {
        self.components().next_back().unwrap_or_default()
    }

    pub fn as_str(&self) -> &str {
        if self.is_root() { "/" } else { &self.text }
    }

    /// The first `depth` components.
    pub fn prefix(&self, depth: usize) -> &str {
        if depth == 0 {
            return "/";
        }
        match self.text.match_indices('/').nth(depth) {
            Some((end, _)) => &self.text[..end],
            None => self.as_str(),
        }
    }

    pub fn parent(&self) -> &str {
        self.prefix(self.depth.saturating_sub(1))
    }
}

/// Whether a whole path is `directory` itself or below it. One slash at the end of `directory` means nothing.
pub fn is_within(path: &str, directory: &str) -> bool {
    let directory = directory.strip_suffix('/').unwrap_or(directory);
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_not_canonical_are_refused() {
        for bad in ["", "a", "a/b", "//", "/a//b", "//a", "/a/./b", "/a/..", "/..", "/a\0b", "/a//", "./a"] {
            assert_eq!(Path::parse(bad), Err(FsError::InvalidPath(bad.into())), "{bad:?}");
        }
    }

    #[test]
    fn a_slash_at_the_end_means_nothing() -> FsResult<()> {
        let path = Path::parse("/a/b c/")?;
        assert_eq!((path.as_str(), path.depth(), path.name()), ("/a/b c", 2, "b c"));
        assert_eq!((path.prefix(0), path.prefix(1), path.prefix(2)), ("/", "/a", "/a/b c"));
        assert_eq!(path.parent(), "/a");
        let root = Path::parse("/")?;
        assert_eq!((root.as_str(), root.depth(), root.name()), ("/", 0, ""));
        assert_eq!(root.components().count(), 0);
        Ok(())
    }

    #[test]
    fn a_directory_has_what_is_below_it_and_not_what_begins_like_it() {
        for (path, directory) in [("/a", "/a"), ("/a/b", "/a"), ("/a/b", "/a/"), ("/a", "/"), ("/", "/")] {
            assert!(is_within(path, directory), "{path} in {directory}");
        }
        for (path, directory) in [("/ab", "/a"), ("/", "/a"), ("/a", "/a/b")] {
            assert!(!is_within(path, directory), "{path} in {directory}");
        }
    }

    #[test]
    fn names_that_hdfs_refuses_are_not_created() {
        assert!(matches!(Path::parse_new("/a:b"), Err(FsError::InvalidPath(_))));
        assert!(Path::parse_new("/a/.reserved").is_ok());
    }
}
