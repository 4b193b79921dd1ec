//! Times, always handed in as arguments: nothing below the services reads a clock.

/// Wall-clock time in milliseconds since 1970, as HDFS stores it in inodes. It may jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    pub ms: u64,
}

impl Timestamp {
    pub const fn from_ms(ms: u64) -> Self {
        Self { ms }
    }
}

/// A point on a monotonic clock, in nanoseconds since an arbitrary start. It never goes back, and means
/// nothing in another process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    pub ns: u64,
}

impl Moment {
    pub const fn from_ms(ms: u64) -> Self {
        Self { ns: ms * 1_000_000 }
    }

    pub const fn ms(self) -> u64 {
        self.ns / 1_000_000
    }

    /// Milliseconds from `earlier` to `self`; 0 when `earlier` is later.
    pub const fn ms_since(self, earlier: Moment) -> u64 {
        self.ns.saturating_sub(earlier.ns) / 1_000_000
    }

    pub const fn plus_ms(self, ms: u64) -> Self {
        Self { ns: self.ns + ms * 1_000_000 }
    }
}
