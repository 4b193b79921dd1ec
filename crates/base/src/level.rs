//! Levels: which formats and messages the members of a group may use.
//!
//! A release knows levels from an oldest to a newest. A group is at one level, which an operator raises once all members know
//! the next one. All members write as the group's level has it, so that until then each member can go back to the
//! release that it came from.

use std::fmt;

/// A step in what may be written. Levels only rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub u16);

impl Level {
    /// The level of every group that was made before levels existed.
    pub const FIRST: Self = Self(1);
    /// The first entry of each epoch names the member that leads it.
    pub const EPOCH_LEADERS: Self = Self(2);
    /// An answer that changed nothing is noted in the journal, if older copies of its call may still come.
    pub const NOTED_ANSWERS: Self = Self(3);
    /// Changes of directories may be entries of a log that further groups follow.
    pub const SEVERAL_GROUPS: Self = Self(4);
    /// Orders that take data servers out of service may stand in the journal.
    pub const SERVER_ORDERS: Self = Self(5);
    /// The highest that this release knows. It is raised together with [`LEVELS`] when something new is to be written.
    pub const NEWEST: Self = Self::SERVER_ORDERS;

    /// The release that came with this level; `None` where this release does not know it.
    pub fn release(self) -> Option<&'static str> {
        LEVELS.iter().find(|(level, ..)| *level == self).map(|(_, release, _)| *release)
    }

    /// The new behaviour that this level switches on, as a phrase for people; `None` where this release does not know
    /// the level.
    pub fn what(self) -> Option<&'static str> {
        LEVELS.iter().find(|(level, ..)| *level == self).map(|(.., what)| *what)
    }

    /// Whether this release can read what is written at this level.
    pub fn is_known(self) -> bool {
        (Self::FIRST..=Self::NEWEST).contains(&self)
    }
}

impl Default for Level {
    fn default() -> Self {
        Self::FIRST
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// All levels that this release knows, each with the release that came with it and with what it switches on.
const LEVELS: [(Level, &str, &str); 5] = [
    (Level::FIRST, "0.1.0", "the formats of release 0.1.0"),
    (
        Level::EPOCH_LEADERS,
        "0.2.0",
        "the first entry of each epoch in the journal names the member that leads it",
    ),
    (
        Level::NOTED_ANSWERS,
        "0.2.0",
        "a repeated call that changed nothing is noted in the journal, so that no late copy of it is carried out",
    ),
    (Level::SEVERAL_GROUPS, "0.2.0", "further groups may follow the changes of directories"),
    (Level::SERVER_ORDERS, "0.2.0", "orders that take data servers out of service are kept in the journal"),
];

/// The version of this release, such as `0.2.0`.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");
/// The name of a release has at most so many bytes wherever one is written or sent.
pub const RELEASE_BYTES_MAX: usize = 32;

/// The levels that a member can read, and can write once its group is at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Levels {
    pub oldest: Level,
    pub newest: Level,
}

impl Levels {
    /// The levels that this release knows.
    pub const OURS: Self = Self { oldest: Level::FIRST, newest: Level::NEWEST };
    /// The levels of a release from before levels existed, which names none.
    pub const UNSAID: Self = Self { oldest: Level::FIRST, newest: Level::FIRST };

    pub fn contains(self, level: Level) -> bool {
        (self.oldest..=self.newest).contains(&level)
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.oldest == self.newest {
            true => write!(f, "level {}", self.newest),
            false => write!(f, "levels {} to {}", self.oldest, self.newest),
        }
    }
}

/// Something was written at a level that this release does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLevel {
    pub level: Level,
    /// The release that came with it, as the file, the entry or the coordinator names it.
    pub release: String,
}

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, release } = self;
        write!(
            f,
            "the group is at level {level}, which needs release {release} or a later one; this is release {RELEASE}, which knows {}. \
             Start release {release} or a later one",
            Levels::OURS
        )
    }
}

impl std::error::Error for UnknownLevel {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_up_to_the_newest_has_its_release_and_its_purpose() {
        let known: Vec<u16> = LEVELS.iter().map(|(level, ..)| level.0).collect();
        assert_eq!(known, (Level::FIRST.0..=Level::NEWEST.0).collect::<Vec<_>>());
        for (level, release, what) in LEVELS {
            assert!(level.is_known() && level.release() == Some(release) && level.what() == Some(what));
            assert!(release.len() <= RELEASE_BYTES_MAX);
        }
        let later = Level(Level::NEWEST.0 + 1);
        assert!(!later.is_known() && later.release().is_none() && !Level(0).is_known());
    }

    #[test]
    fn an_unknown_level_is_told_with_the_release_that_is_needed() {
        let unknown = UnknownLevel { level: Level(9), release: "7.1.0".into() };
        let text = unknown.to_string();
        assert!(text.contains("level 9") && text.contains("Start release 7.1.0"), "{text}");
        assert!(text.contains(RELEASE) && text.contains("levels 1 to 5"), "{text}");
    }
}
