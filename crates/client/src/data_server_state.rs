//! The judgement on a data server, by what the metadata server tells of it.

use crate::{DataServer, Volume};
use proto::clover::admin::{GetGroupResponseProto, SlowServerProto};

/// HDFS's value, for servers that do not tell theirs, in milliseconds.
const STALE_AFTER_MS: u64 = 30_000;
/// A server or a volume with fewer free bytes is full: it takes no block of the usual smallest size.
pub const FULL_BELOW_BYTES: u64 = 1 << 20;

/// The most important thing about a data server. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DataServerState {
    /// The metadata server has given it up.
    Dead,
    /// It has not been heard for longer than usual.
    Stale,
    Full,
    /// Others say that it is slow.
    Slow,
    Live,
}

impl DataServerState {
    /// The word for people and scripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Stale => "stale",
            Self::Full => "full",
            Self::Slow => "slow",
            Self::Live => "live",
        }
    }
}

impl DataServer {
    /// Since the server was last heard, in milliseconds; `None` where that is not known. `now_ms`: by the clock of the metadata server, in
    /// milliseconds since 1970.
    pub fn silent_ms(&self, now_ms: u64) -> Option<u64> {
        (self.last_contact_ms > 0).then(|| now_ms.saturating_sub(self.last_contact_ms))
    }

    /// The word of others that the server is slow, by the group that was asked.
    pub fn slowness<'a>(&self, group: Option<&'a GetGroupResponseProto>) -> Option<&'a SlowServerProto> {
        group?.slow_servers.iter().find(|slow| slow.uuid == self.uuid)
    }

    /// How the server is. `group`: the answer of the group that was asked, if it is known. `now_ms`: as in [`DataServer::silent_ms`].
    pub fn state(&self, group: Option<&GetGroupResponseProto>, now_ms: u64) -> DataServerState {
        let stale_after_ms = group.and_then(|group| group.stale_after_ms).unwrap_or(STALE_AFTER_MS);
        let is_stale = self.silent_ms(now_ms).is_some_and(|ms| ms > stale_after_ms);
        match self.is_alive {
            false => DataServerState::Dead,
            true if is_stale => DataServerState::Stale,
            true if self.capacity > 0 && self.remaining < FULL_BELOW_BYTES => DataServerState::Full,
            true if self.slowness(group).is_some() => DataServerState::Slow,
            true => DataServerState::Live,
        }
    }
}

impl Volume {
    /// Whether it takes no further block though it works.
    pub fn is_full(&self) -> bool {
        !self.is_failed && self.capacity > 0 && self.remaining < FULL_BELOW_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_a_server_is_its_state() {
        let well = DataServer {
            uuid: "one".into(),
            is_alive: true,
            capacity: 1 << 30,
            remaining: 1 << 29,
            last_contact_ms: 1_000_000,
            ..DataServer::default()
        };
        let slow = SlowServerProto { uuid: "one".into(), ..SlowServerProto::default() };
        let group = GetGroupResponseProto {
            stale_after_ms: Some(10_000),
            slow_servers: vec![slow],
            ..GetGroupResponseProto::default()
        };
        let of = |server: &DataServer, now_ms| server.state(Some(&group), now_ms).word();
        assert_eq!(well.state(None, 1_030_000), DataServerState::Live);
        assert_eq!(of(&well, 1_010_000), "slow");
        let full = DataServer { remaining: 10, ..well.clone() };
        assert_eq!((of(&full, 1_010_000), of(&full, 1_010_001)), ("full", "stale"));
        assert_eq!(of(&DataServer { is_alive: false, ..full }, 1_010_001), "dead");
        // A server that has never told its room is not full, and one that was never heard is not stale.
        let unknown = DataServer { is_alive: true, ..DataServer::default() };
        assert_eq!((of(&unknown, 5_000_000), unknown.silent_ms(5_000_000)), ("live", None));
    }

    #[test]
    fn a_failed_volume_is_not_full() {
        let volume = Volume { capacity: 1 << 30, remaining: 5, ..Volume::default() };
        assert!(volume.is_full());
        assert!(!Volume { is_failed: true, ..volume.clone() }.is_full());
        assert!(!Volume { capacity: 0, ..volume }.is_full());
    }
}
