//! The level of the group: the rest of this server is told when it rises, and an operator hears what stands in the way.

use crate::{member::GroupMember, peers::Release};
use base::{Level, MemberId, Sn, Timestamp, level::RELEASE};
use group::PeerStatus;
use namespace::GroupLevel;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU16, Ordering},
};

/// A member that was silent for longer may be another by now.
const HEARD_MS: u64 = 1_000;

/// How far the rest of this server was told.
#[derive(Debug)]
pub struct Upgrade {
    said: AtomicU16,
    /// When this process began: since then this member runs this release.
    pub began: Timestamp,
}

impl Upgrade {
    pub fn new(began: Timestamp) -> Self {
        Self { said: AtomicU16::new(Level::FIRST.0), began }
    }

    /// Looks whether the entry that has raised the level has committed. If so, all later writes are at that level.
    pub fn look(&self, known: &GroupLevel, committed: Sn, member: &GroupMember) {
        let has_committed = known.since.sn <= committed;
        if known.level.0 <= self.said.load(Ordering::Relaxed) || !has_committed || member.is_ending() {
            return;
        }
        self.said.store(known.level.0, Ordering::Relaxed);
        tracing::info!(level = %known.level, release = %known.release, "the group is at this level");
        member.say_level(known.level);
    }
}

/// A sentence for Hadoop's tools that says that the upgrade is not final; `None` where it is.
pub fn unfinished(level: Level) -> Option<String> {
    (level < Level::NEWEST).then(|| {
        format!(
            "The group is at level {level}, and release {RELEASE} knows level {}. Making that final needs a proof of the cluster's \
             secret: `clover admin upgrade finalize`, once all members run this release. Until then each can go back.",
            Level::NEWEST
        )
    })
}

/// Why the group cannot be brought to this level now. Each member must be there, and must know it: one that is not could come back
/// with an older release, and would be shut out.
pub fn obstacles(member: &GroupMember, wanted: Level) -> Vec<String> {
    let status = member.status();
    let Some((view, _)) = &status.view else { return vec!["the group's view is not known yet".into()] };
    let me = member.me().member;
    let others = view.members.iter().copied().filter(|member| *member != me);
    in_the_way(others, &status.peers, &member.releases(), wanted)
}

fn in_the_way(
    others: impl Iterator<Item = MemberId>,
    peers: &[PeerStatus],
    releases: &BTreeMap<MemberId, Release>,
    wanted: Level,
) -> Vec<String> {
    let of = |member: MemberId| {
        let is_heard =
            |peer: &PeerStatus| peer.is_connected && peer.heard_ms_ago.is_some_and(|ms| ms <= HEARD_MS);
        let is_there = peers.iter().any(|peer| peer.member == member && is_heard(peer));
        match releases.get(&member).filter(|_| is_there) {
            None => Some(format!(
                "member {member} does not run or is not reached: start it, or take it out with `clover admin group remove {member}`"
            )),
            Some(release) if release.levels.contains(wanted) => None,
            Some(release) => {
                let needed = wanted.release().unwrap_or("a later release");
                Some(format!(
                    "member {member} runs {release}: level {wanted} needs release {needed} or a later one"
                ))
            }
        }
    };
    others.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Levels;

    fn peer(member: u32, is_connected: bool) -> PeerStatus {
        PeerStatus {
            member: MemberId(member),
            is_connected,
            heard_ms_ago: Some(1),
            end: None,
            matched: Sn(0),
            state: "in sync",
            data_servers: 0,
            is_ready: true,
        }
    }

    #[test]
    fn who_is_away_or_does_not_know_the_level_is_named() {
        let older = Release { name: String::new(), levels: Levels::UNSAID };
        let releases = BTreeMap::from([
            (MemberId(2), Release::ours()),
            (MemberId(3), older),
            // It was there before.
            (MemberId(4), Release::ours()),
        ]);
        let peers = [peer(2, true), peer(3, true), peer(4, false)];
        let found = in_the_way((2..=5).map(MemberId), &peers, &releases, Level::NEWEST);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("member 3 runs a release before 0.2.0"), "{found:?}");
        assert!(
            found[1].starts_with("member 4 does not run") && found[2].starts_with("member 5 does not run")
        );
        assert_eq!(
            in_the_way([MemberId(2)].into_iter(), &peers, &releases, Level::NEWEST),
            Vec::<String>::new()
        );
    }
}
