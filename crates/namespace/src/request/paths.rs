//! The paths of a request, one after the other, with nothing allocated.

/// The paths that a request names, as its caller wrote them.
#[derive(Clone, Debug)]
pub struct Paths<'a> {
    named: [Option<&'a str>; 2],
}

impl<'a> Paths<'a> {
    /// One path or two.
    pub(super) fn of<const N: usize>(paths: [&'a str; N]) -> Self {
        const { assert!(N <= 2, "there is room for two") };
        let mut paths = paths.into_iter();
        Self { named: [paths.next(), paths.next()] }
    }
}

impl<'a> Iterator for Paths<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.named.iter_mut().find_map(Option::take)
    }
}
