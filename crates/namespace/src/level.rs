//! The level that the group is at, and since when: the same on every member.

use crate::digest::Digester;
use base::{Level, Timestamp, TxId, level::RELEASE_BYTES_MAX};
use std::sync::Arc;

/// The level of a group: the formats that its members may write. The default is the level of every tree whose journal
/// never raised it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupLevel {
    pub level: Level,
    /// The release that came with this level, so that an older program can name the release that it lacks. Empty at the first level.
    pub release: Arc<str>,
    /// The entry that raised it; none where the group began at it.
    pub since: TxId,
    pub at: Timestamp,
}

impl GroupLevel {
    pub(crate) fn is_first(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digester = Digester::new(b'l');
        digester.number(u64::from(self.level.0));
        digester.bytes(self.release.as_bytes());
        for number in [self.since.epoch.0, self.since.sn.0, self.at.ms] {
            digester.number(number);
        }
        digester.finish()
    }

    /// For an image: `None` for what no member can have written.
    pub(crate) fn read(level: u64, release: &str, since: TxId, at: Timestamp) -> Option<Self> {
        let level = Level(u16::try_from(level).ok()?);
        let is_whole = level > Level::FIRST && is_release(release);
        is_whole.then(|| Self { level, release: release.into(), since, at })
    }
}

/// Whether this may name a release: it is printed to people.
pub(crate) fn is_release(text: &str) -> bool {
    (1..=RELEASE_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Epoch, Sn};

    #[test]
    fn what_no_member_has_written_is_refused() {
        let since = TxId { epoch: Epoch(2), sn: Sn(9) };
        let read = |level, release: &str| GroupLevel::read(level, release, since, Timestamp::from_ms(5));
        assert_eq!(read(2, "0.2.0").map(|known| known.level), Some(Level(2)));
        let long = "1".repeat(RELEASE_BYTES_MAX + 1);
        for (level, release) in [(1, "0.1.0"), (1 << 16, "0.2.0"), (2, ""), (2, "0.2\n"), (2, &long)] {
            assert_eq!(read(level, release), None, "{level} {release:?}");
        }
    }
}
