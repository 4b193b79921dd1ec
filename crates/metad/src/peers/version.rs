//! The versions of the members' protocol that a release speaks, and the one on which two members agree.
//!
//! Each side names the oldest and the newest that it speaks, and the newest common one is used for that connection.
//! So members of two neighbouring releases work together, and a group is brought to a new release one member at a
//! time. A version says which messages there are, and which fields each of them has ([`super::codec`]). The frames
//! and the handshake stay as they are in [`Version::FIRST`]; additions of later versions to the two first frames go
//! behind their present content, where older releases pass over them.

use std::fmt;

/// A version of the members' protocol, the same for both directions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u16);

impl Version {
    /// The first version that members agree on. Before it, all members had to speak one and the same version.
    pub const FIRST: Self = Self(3);
    /// Grants say how many data servers reach their sender.
    pub const DATA_SERVERS: Self = Self(4);
    /// Members tell each other of requests that have ended a server.
    pub const FATAL_REQUESTS: Self = Self(5);
    /// Members tell each other that a client watches the namespace's changes.
    pub const WATCHED: Self = Self(6);
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The versions that one side speaks: all from the oldest to the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    pub oldest: Version,
    pub newest: Version,
}

impl Versions {
    /// The versions that this release speaks. Raise `newest` when a message or a field is added, and keep `oldest`
    /// until no release is left from which an upgrade without an outage is promised.
    pub const OURS: Self = Self { oldest: Version::FIRST, newest: Version::WATCHED };

    pub fn contains(self, version: Version) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }

    /// The newest that both sides speak.
    pub fn newest_common(self, other: Self) -> Option<Version> {
        let (oldest, newest) = (self.oldest.max(other.oldest), self.newest.min(other.newest));
        (oldest <= newest).then_some(newest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.oldest == self.newest {
            true => write!(f, "version {}", self.newest),
            false => write!(f, "versions {} to {}", self.oldest, self.newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(oldest: u16, newest: u16) -> Versions {
        Versions { oldest: Version(oldest), newest: Version(newest) }
    }

    #[test]
    fn the_newest_that_both_speak_is_used() {
        assert_eq!(versions(3, 5).newest_common(versions(4, 9)), Some(Version(5)));
        assert_eq!(versions(4, 9).newest_common(versions(3, 5)), Some(Version(5)));
        assert_eq!(versions(3, 3).newest_common(versions(3, 3)), Some(Version(3)));
        assert_eq!(versions(3, 4).newest_common(versions(5, 6)), None);
        assert_eq!(
            versions(9, 3).newest_common(versions(3, 9)),
            None,
            "a range the wrong way round is empty"
        );
    }
}
