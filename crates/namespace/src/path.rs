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
        let Some((length, depth)) = measure(text.as_bytes()) else {
            return Err(FsError::InvalidPath(text.into()));
        };
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
        if path.text.as_bytes().contains(&b':') {
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
        // A component takes two bytes at least, with its slash.
        let too_deep = text.len().div_ceil(2) > limits.path_depth_max
            && text.split('/').filter(|component| !component.is_empty()).count() > limits.path_depth_max;
        if too_long || too_deep {
            return Err(FsError::Io(format!(
                "{operation}: Pathname too long.  Limit {} characters, {} levels.",
                limits.path_length_max, limits.path_depth_max
            )));
        }
        Ok(())
    }

    pub fn components(&self) -> Components<'_> {
        Components { rest: self.text.strip_prefix('/') }
    }

    /// The components behind the first `depth`.
    pub fn components_behind(&self, depth: usize) -> Components<'_> {
        match depth {
            0 => self.components(),
            _ if depth >= self.depth => Components { rest: None },
            _ => Components { rest: Some(&self.text[self.end_of(depth) + 1..]) },
        }
    }

    /// Where the first `depth` components end, of which there are at least as many.
    fn end_of(&self, depth: usize) -> usize {
        // Mostly it is the parent that is asked for.
        (depth..self.depth).fold(self.text.len(), |end, _| {
            self.text.as_bytes()[..end].iter().rposition(|byte| *byte == b'/').unwrap_or_default()
        })
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
        if depth == 0 || self.is_root() { "/" } else { &self.text[..self.end_of(depth)] }
    }

    pub fn parent(&self) -> &str {
        self.prefix(self.depth.saturating_sub(1))
    }
}

/// The names of a path, from the outermost or from the innermost. They are short, so that looking at byte after byte costs less than a search made for
/// long texts.
#[derive(Clone, Debug)]
pub struct Components<'a> {
    rest: Option<&'a str>,
}

impl<'a> Iterator for Components<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest?;
        match rest.as_bytes().iter().position(|byte| *byte == b'/') {
            Some(end) => {
                self.rest = Some(&rest[end + 1..]);
                Some(&rest[..end])
            }
            None => self.rest.take(),
        }
    }
}

impl DoubleEndedIterator for Components<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let rest = self.rest?;
        match rest.as_bytes().iter().rposition(|byte| *byte == b'/') {
            Some(start) => {
                self.rest = Some(&rest[..start]);
                Some(&rest[start + 1..])
            }
            None => self.rest.take(),
        }
    }
}

/// The length of a path without a slash at its end, and the number of its components, in one pass. `None` if the text is
/// no path that [`Path::parse`] takes.
fn measure(text: &[u8]) -> Option<(usize, usize)> {
    let (b'/', names) = text.split_first()? else { return None };
    let names = names.strip_suffix(b"/").unwrap_or(names);
    if names.is_empty() {
        // The root.
        return (text.len() == 1).then_some((0, 0));
    }
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    let (mut depth, mut start) = (1, 0);
    for (at, byte) in names.iter().enumerate() {
        match byte {
            b'/' if is_name(&names[start..at]) => (depth, start) = (depth + 1, at + 1),
            b'/' | 0 => return None,
            _ => {}
        }
    }
    is_name(&names[start..]).then_some((1 + names.len(), depth))
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
    fn components_are_those_between_slashes_from_either_end() -> FsResult<()> {
        for text in ["/", "/a", "/a/", "/a/b", "/ä/b c/…/d", "/a/b/c/d/e"] {
            let path = Path::parse(text)?;
            let wanted: Vec<&str> = text.split('/').filter(|name| !name.is_empty()).collect();
            assert_eq!(path.components().collect::<Vec<_>>(), wanted, "{text}");
            assert_eq!(path.depth(), wanted.len());
            assert!(path.components().rev().eq(wanted.iter().rev().copied()), "{text}");
            for depth in 0..=wanted.len() + 1 {
                let behind: Vec<&str> = path.components_behind(depth).collect();
                assert_eq!(behind, wanted[depth.min(wanted.len())..], "{text} behind {depth}");
                assert_eq!(path.prefix(depth), format!("/{}", wanted[..depth.min(wanted.len())].join("/")));
            }
        }
        Ok(())
    }

    /// The limit is that of HDFS; a path that is short cannot be too deep.
    #[test]
    fn a_path_is_too_deep_by_its_components() {
        let limits = Limits { path_depth_max: 3, ..Limits::default() };
        for text in ["/a/b/c", "a/b/c", "/a/b/c/", "//a//b//c//"] {
            assert_eq!(Path::check_length(text, "mkdirs", &limits), Ok(()), "{text}");
        }
        for text in ["/a/b/c/d", "a/b/c/d", "//a/b/c/d"] {
            assert!(matches!(Path::check_length(text, "mkdirs", &limits), Err(FsError::Io(_))), "{text}");
        }
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
