//! The release that a member runs, and the levels that it knows: told in the first two frames of a connection.
//!
//! ```text
//! behind a hello or a challenge   oldest level u16, newest level u16, length of the release's name u8, the name,
//!                                 what later versions add
//! ```
//!
//! Releases that know of no levels say nothing, and pass over what is said here.

use base::{
    Level, Levels, MemberId,
    level::{RELEASE, RELEASE_BYTES_MAX},
};
use bytes::{Buf, BufMut};
use std::fmt;

/// The release that a member runs, as it names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Empty where it has said nothing.
    pub name: String,
    pub levels: Levels,
}

impl Release {
    /// This program.
    pub fn ours() -> Self {
        Self { name: RELEASE.to_owned(), levels: Levels::OURS }
    }

    /// The release of a member whose program knows of no levels.
    pub fn unsaid() -> Self {
        Self { name: String::new(), levels: Levels::UNSAID }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16_le(self.levels.oldest.0);
        out.put_u16_le(self.levels.newest.0);
        let name = &self.name.as_bytes()[..self.name.len().min(RELEASE_BYTES_MAX)];
        out.put_u8(name.len() as u8);
        out.put_slice(name);
    }

    /// Decodes the bytes behind a hello or a challenge; `None` if they make no sense.
    pub(super) fn decode(mut rest: &[u8]) -> Option<Self> {
        if rest.is_empty() {
            return Some(Self::unsaid());
        }
        let (oldest, newest) = (Level(rest.try_get_u16_le().ok()?), Level(rest.try_get_u16_le().ok()?));
        let length = usize::from(rest.try_get_u8().ok()?);
        let name = rest.get(..length).filter(|_| length <= RELEASE_BYTES_MAX)?;
        let name =
            std::str::from_utf8(name).ok().filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic()))?;
        (Level::FIRST <= oldest && oldest <= newest)
            .then(|| Self { name: name.to_owned(), levels: Levels { oldest, newest } })
    }

    /// Whether `member`, which runs this, may talk to members of a group that is at this level; the sentence says why not.
    ///
    /// # Errors
    /// The text names the member, the level that its release does not know, and the release that is needed.
    pub fn may_take_part(&self, member: MemberId, level: Level) -> Result<(), String> {
        if self.levels.contains(level) {
            return Ok(());
        }
        let needed = level
            .release()
            .map_or_else(String::new, |release| format!(": start it with release {release} or a later one"));
        Err(format!("member {member} runs {self}, and the group is at level {level}{needed}"))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.name, Level::EPOCH_LEADERS.release()) {
            ("", Some(first)) => write!(f, "a release before {first}, which knows {}", self.levels),
            (name, _) => write!(f, "release {name}, which knows {}", self.levels),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(oldest: u16, newest: u16) -> Levels {
        Levels { oldest: Level(oldest), newest: Level(newest) }
    }

    #[test]
    fn what_a_member_says_reads_back_and_later_words_are_passed_over() {
        let release = Release { name: "0.3.0-rc.1".into(), levels: levels(1, 7) };
        let mut bytes = Vec::new();
        release.encode(&mut bytes);
        for length in 1..bytes.len() {
            assert_eq!(Release::decode(&bytes[..length]), None, "cut to {length}");
        }
        bytes.extend_from_slice(b"of a later release");
        assert_eq!(Release::decode(&bytes), Some(release));
        assert_eq!(Release::decode(b""), Some(Release::unsaid()));
    }

    #[test]
    fn what_nobody_says_makes_no_sense() {
        for (name, levels) in [("0.2.0", levels(3, 2)), ("0.2.0", levels(0, 2)), ("0.2\n", levels(1, 2))] {
            let mut bytes = Vec::new();
            Release { name: name.into(), levels }.encode(&mut bytes);
            assert_eq!(Release::decode(&bytes), None, "{name:?} {levels}");
        }
        let mut long = vec![1, 0, 2, 0, 200];
        long.extend_from_slice(&[b'1'; 200]);
        assert_eq!(Release::decode(&long), None);
    }

    #[test]
    fn a_member_below_the_groups_level_is_told_what_it_needs() {
        let refusal = Release::unsaid().may_take_part(MemberId(3), Level(2)).unwrap_err();
        assert!(refusal.contains("member 3 runs a release before 0.2.0, which knows level 1"), "{refusal}");
        assert!(refusal.contains("start it with release 0.2.0"), "{refusal}");
        assert_eq!(Release::unsaid().may_take_part(MemberId(3), Level(1)), Ok(()));
        let later = Release { name: "0.9.0".into(), levels: levels(3, 5) };
        let refusal = later.may_take_part(MemberId(2), Level(1)).unwrap_err();
        assert!(refusal.contains("levels 3 to 5"), "{refusal}");
    }
}
