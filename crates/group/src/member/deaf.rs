//! An active that data servers do not reach gives way to a member that they do reach.
//!
//! Every data server speaks to all members. A data server that can speak to the others and not to the active is of no
//! use to it: the active hears of no new replica, so no file can be closed. The members' counts are hints, and no
//! safety rests on them. The rule is made so that nothing happens without a gain:
//!
//! - The active is reached by nobody and the other one by somebody, without a break for [`crate::Settings::deaf_ms`]. Where the
//!   data servers themselves are gone both counts fall to nothing, within a heartbeat interval of each other, and where they
//!   are started both rise so. If each of two members is reached by half of them, the active stays.
//! - The other one is in sync and answers, as for any hand-over, and knows where the blocks are, unless the active does not know
//!   either: clients would wait for it.
//! - An active that was named by a hand-over waits [`PATIENCE_TIMES`] as long, so links that come and go do not send
//!   the group to and fro, and an operator who has named a member is not overruled at once.

use super::Member;
use crate::Role;
use base::{MemberId, Moment};

/// How many times longer an active waits that was handed the group. By eye: a minute, with heartbeats of 3 s.
pub(super) const PATIENCE_TIMES: u64 = 4;

impl Member {
    /// Called while this member leads. Begins a hand-over where the rule wants one.
    pub(super) fn give_way_if_deaf(&mut self, now: Moment) {
        let Some(leading) = &mut self.leading else { return };
        let counts = matches!(self.role, Role::Serving { .. }) && self.data_servers == 0;
        for peer in leading.peers.values_mut() {
            peer.hears_alone_since = match counts && peer.data_servers > 0 && !peer.is_gone {
                true => peer.hears_alone_since.or(Some(now)),
                false => None,
            };
        }
        if let Some(to) = self.hears_instead(now)
            && let Err(_not_in_sync_any_more) = self.begin_hand_over(now, None, Some(to))
        {
            self.forget_who_hears(to);
        }
    }

    /// The member that goes on instead of this active: of several the one that most data servers reach.
    fn hears_instead(&self, now: Moment) -> Option<MemberId> {
        let (leading, view) = (self.leading.as_ref()?, self.view()?);
        let deaf_ms = self.settings.deaf_ms;
        let was_named = leading.trigger() == super::candidate::HAND_OVER;
        if was_named && now.ms_since(leading.began_at) < PATIENCE_TIMES * deaf_ms {
            return None;
        }
        let in_sync = view.in_sync.iter().filter_map(|store| {
            let peer = leading.peers.get(&store.member)?;
            let is_long = peer.hears_alone_since.is_some_and(|since| now.ms_since(since) >= deaf_ms);
            let is_better = peer.is_ready || !self.is_ready;
            (is_long && is_better).then_some((peer.data_servers, store.member))
        });
        in_sync.max().map(|(_, member)| member)
    }

    /// The wait begins anew.
    fn forget_who_hears(&mut self, member: MemberId) {
        if let Some(peer) = self.leading.as_mut().and_then(|leading| leading.peers.get_mut(&member)) {
            peer.hears_alone_since = None;
        }
    }

    /// A sentence for people if no data server reaches the active while some reach other members.
    pub(super) fn is_deaf(&self) -> Option<String> {
        let leading = self.leading.as_ref()?;
        let hears = leading.peers.iter().filter(|(_, peer)| peer.hears_alone_since.is_some());
        let (member, peer) = hears.max_by_key(|(_, peer)| peer.data_servers)?;
        Some(format!(
            "no data server reaches this member, and {} reach member {member}: check the network between the data servers and \
             this member. After {} s it hands over to a member that is in sync and knows where the blocks are",
            peer.data_servers,
            self.settings.deaf_ms / 1_000
        ))
    }
}
