//! The paths of a request, one after the other, with nothing allocated.

/// The paths that a request names, as its caller wrote them.
#[derive(Clone, Debug)]
pub struct Paths<'a> {
    named: [Option<&'a str>; 2],
    more: &'a [String],
}

impl<'a> Paths<'a> {
    /// No more than two paths.
    pub(crate) fn of<const N: usize>(paths: [&'a str; N]) -> Self {
        const { assert!(N <= 2, "there is room for two") };
        let mut paths = paths.into_iter();
        Self { named: [paths.next(), paths.next()], more: &[] }
    }

    /// All paths of a list.
    pub(crate) fn all(paths: &'a [String]) -> Self {
        Self { named: [None, None], more: paths }
    }

    /// A path, and a list of others behind it.
    pub(crate) fn with(path: &'a str, more: &'a [String]) -> Self {
        Self { named: [Some(path), None], more }
    }
}

impl<'a> Iterator for Paths<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if let Some(path) = self.named.iter_mut().find_map(Option::take) {
            return Some(path);
        }
        let (path, rest) = self.more.split_first()?;
        self.more = rest;
        Some(path)
    }
}

impl<'a> From<&'a str> for Paths<'a> {
    fn from(path: &'a str) -> Self {
        Self::of([path])
    }
}
