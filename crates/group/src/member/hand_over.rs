//! The graceful end of an epoch.
//!
//! The other member claims the next epoch at the coordinator. While that does not answer nobody could, and the group would stand
//! still until it is back: so the coordinator is asked first, and the epoch does not end before it has answered.

use super::Member;
use crate::{Effects, Message, Role};
use base::{MemberId, Moment};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HandOver {
    pub ticket: Option<u64>,
    to: MemberId,
    /// No turn is open: nothing more will be proposed.
    is_quiet: bool,
    /// This member has asked the coordinator for the view since the hand-over began.
    has_asked: bool,
    /// The coordinator has answered since then, so the successor can claim the next epoch.
    is_coordinator_there: bool,
    /// No read, append or commit in this epoch ever again, whether the other acts or not.
    pub is_sealed: bool,
    pub deadline: Moment,
}

/// How long the writers may take to finish, and then the other to follow.
const PATIENCE_MS: u64 = 1_000;

impl Member {
    pub(super) fn is_sealed(&self) -> bool {
        self.leading
            .as_ref()
            .and_then(|leading| leading.hand_over.as_ref())
            .is_some_and(|hand_over| hand_over.is_sealed)
    }

    pub(super) fn begin_hand_over(
        &mut self,
        now: Moment,
        ticket: Option<u64>,
        to: Option<MemberId>,
    ) -> Result<(), String> {
        let Role::Serving { epoch } = self.role else {
            return Err(format!("member {} does not lead", self.me.member));
        };
        if self.evidence.older.is_some() {
            return Err("the coordinator has gone back to an older state: nobody could follow".into());
        }
        let view = self.view().expect("whoever leads has a view");
        let leading = self.leading.as_ref().expect("this member leads");
        let candidate = view
            .in_sync
            .iter()
            .filter(|store| store.member != self.me.member)
            .filter(|store| to.is_none_or(|to| to == store.member))
            .filter_map(|store| {
                let peer = leading.peers.get(&store.member)?;
                let is_alive = peer.lease_end.is_some_and(|end| end > now) && !peer.is_gone;
                let hears = peer.data_servers > 0;
                is_alive.then_some((peer.is_ready, hears, peer.matched_by(*store)?, store.member))
            })
            .max();
        let Some((.., member)) = candidate else {
            return Err(match to {
                Some(to) => format!("member {to} is not in sync and answering"),
                None => "no other member is in sync and answering".into(),
            });
        };
        let deadline = now.plus_ms(PATIENCE_MS);
        let hand_over = HandOver {
            ticket,
            to: member,
            is_quiet: false,
            has_asked: false,
            is_coordinator_there: false,
            is_sealed: false,
            deadline,
        };
        self.leading.as_mut().expect("this member leads").hand_over = Some(hand_over);
        self.role = Role::HandingOver { epoch };
        Ok(())
    }

    pub(super) fn on_quiet(&mut self) {
        if let Some(leading) = &mut self.leading
            && let Some(hand_over) = &mut leading.hand_over
        {
            hand_over.is_quiet = true;
        }
    }

    /// Notes for a hand-over that is under way that the coordinator has answered.
    pub(super) fn coordinator_is_there(&mut self) {
        if let Some(leading) = &mut self.leading
            && let Some(hand_over) = &mut leading.hand_over
        {
            hand_over.is_coordinator_there = true;
        }
    }

    pub(super) fn go_on_handing_over(&mut self, now: Moment, effects: &mut Effects) {
        let Some(leading) = &mut self.leading else { return };
        let epoch = leading.epoch;
        let Some(hand_over) = &mut leading.hand_over else { return };
        if !hand_over.has_asked {
            hand_over.has_asked = true;
            effects.outgoing.read_view = true;
        }
        let may_follow = hand_over.is_coordinator_there && self.evidence.older.is_none();
        let is_over = self.committed == self.tail.end().id.sn && hand_over.is_quiet && self.pending.is_none();
        if is_over && may_follow {
            // Sealed by leaving the role in this very step.
            hand_over.is_sealed = true;
            let (to, ticket) = (hand_over.to, hand_over.ticket.take());
            let end = self.tail.end();
            effects.messages.push((to, Message::Append(self.last_news(epoch))));
            effects.messages.push((to, Message::HandOver { epoch, end }));
            self.step_down(now, "the epoch was handed over", effects);
            self.candidacy.no_claim_before = now.plus_ms(PATIENCE_MS);
            if let Some(ticket) = ticket {
                let text = format!("epoch {epoch} ended at {end}; member {to} goes on");
                effects.outgoing.answers.push((ticket, Ok(text)));
            }
            return;
        }
        if now >= hand_over.deadline {
            let (ticket, is_there) = (hand_over.ticket, hand_over.is_coordinator_there);
            leading.hand_over = None;
            self.role = Role::Serving { epoch };
            if let Some(ticket) = ticket {
                let text = match is_there {
                    true => "what is under way did not commit in time; the active stays",
                    false => "the coordinator has not answered, so nobody could follow; the active stays",
                };
                let text = text.to_owned();
                effects.outgoing.answers.push((ticket, Err(text)));
            }
        }
    }

    /// The last news of the commit watermark, for the member that goes on.
    fn last_news(&self, epoch: base::Epoch) -> crate::Append {
        crate::Append { epoch, previous: self.tail.end(), entries: Vec::new(), committed: self.committed }
    }
}
