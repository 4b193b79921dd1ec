//! The end of a doubt: what has to be certain before an answer may go out.

use base::Sn;

/// The number of logs whose entries can leave an answer in doubt.
pub const LOGS: usize = 2;

/// A log whose entries can leave an answer in doubt. Each log has its own rule by which an entry becomes certain, and its
/// entries become certain in their order. Two logs have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log(usize);

impl Log {
    /// The log of the own group. Its entries are certain once they have committed.
    pub const OWN: Self = Self(0);
    /// The directory log, in the root group. Its entries are certain once they are visible. Where there is one group it is empty.
    pub const DIRECTORIES: Self = Self(1);

    /// The log that stands at this place in an [`Until`].
    pub const fn at(place: usize) -> Self {
        Self(place)
    }

    pub(crate) const fn place(self) -> usize {
        self.0
    }
}

/// An entry of each of `N` logs: the last one that has to be certain before a doubt is over, or the last one that is.
/// [`Sn`] 0, before the first entry, is always certain. A place in the directory log counts as an [`Sn`] here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until<const N: usize = LOGS>([Sn; N]);

impl<const N: usize> Until<N> {
    /// Nothing is in doubt.
    pub const NOW: Self = Self([Sn(0); N]);

    /// An entry of one log; nothing of the others.
    pub const fn entry(log: Log, sn: Sn) -> Self {
        let mut logs = [Sn(0); N];
        logs[log.place()] = sn;
        Self(logs)
    }

    /// An entry of the own log.
    pub const fn own(sn: Sn) -> Self {
        Self::entry(Log::OWN, sn)
    }

    /// Keeps what is waited for in `log`, and drops what is waited for in the other logs.
    #[must_use]
    pub const fn only(&self, log: Log) -> Self {
        Self::entry(log, self.of(log))
    }

    /// The entry of one log.
    pub const fn of(&self, log: Log) -> Sn {
        self.0[log.place()]
    }

    pub(crate) fn set(&mut self, log: Log, sn: Sn) {
        self.0[log.place()] = sn;
    }

    /// The later entry of either in each log: until both doubts are over.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|place| self.0[place].max(other.0[place])))
    }

    /// A log in which this goes beyond what is certain, if there is one.
    pub fn open(&self, certain: &Self) -> Option<Log> {
        (0..N).find(|place| self.0[*place] > certain.0[*place]).map(Log)
    }

    /// Whether all of it is certain.
    pub fn is_over(&self, certain: &Self) -> bool {
        self.open(certain).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: Log = Log::at(1);

    #[test]
    fn two_doubts_are_over_when_both_logs_are_certain() {
        let both = Until::<2>::own(Sn(7)).and(Until::entry(OTHER, Sn(3))).and(Until::own(Sn(5)));
        assert_eq!((both.of(Log::OWN), both.of(OTHER)), (Sn(7), Sn(3)));
        assert_eq!(both.open(&Until::NOW), Some(Log::OWN));
        assert_eq!(both.open(&Until::own(Sn(7))), Some(OTHER));
        assert_eq!(both.open(&Until::entry(OTHER, Sn(9))), Some(Log::OWN));
        assert!(both.is_over(&Until::own(Sn(7)).and(Until::entry(OTHER, Sn(3)))));
        assert!(Until::<2>::NOW.is_over(&Until::NOW));
    }
}
