//! The events that are news to a member: reasons to change the view, or to change it back.

use super::happening::Arrival;
use base::{Epoch, MemberId, Sn};
use group::Message::{Appended, Grant, Mismatch, Promised};
use std::collections::BTreeMap;

/// A member that was silent for longer is news when it is heard again: others give it up after 250 ms.
const SILENT_NS: u64 = 240_000_000;

/// An active counts these three apart when it judges who is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    /// The other one answers in the epoch.
    Answers,
    /// The other one has made durable what it had not acknowledged before.
    KeepsUp,
    /// The other one says anything else.
    Speaks,
}

#[derive(Default)]
pub struct Hearing {
    /// When a member last had this news of another one.
    heard_ns: BTreeMap<(usize, MemberId, News), u64>,
    /// The greatest entry that a member has acknowledged to another one, in the latest epoch in which it did.
    acknowledged: BTreeMap<(usize, MemberId), (Epoch, Sn)>,
}

impl Hearing {
    /// Whether this arrival may be a cause for a change. It is noted.
    pub fn is_news(&mut self, now_ns: u64, seat: usize, what: &Arrival) -> bool {
        let (from, message) = match what {
            Arrival::PeerGone(_) | Arrival::PeerEnded(_) | Arrival::PeerConnected(_) | Arrival::Order(_) => {
                return true;
            }
            Arrival::Packet { from, message } => (from.store.member, message),
            _ => return false,
        };
        let mut is_late = |news: News| {
            let heard_ns = self.heard_ns.insert((seat, from, news), now_ns);
            heard_ns.is_none_or(|at| now_ns - at > SILENT_NS)
        };
        let answers = matches!(message, Appended { .. } | Grant { .. } | Mismatch { .. } | Promised { .. });
        let is_heard = is_late(if answers { News::Answers } else { News::Speaks });
        let Appended { epoch, last } = message else { return is_heard };
        // An acknowledgement that comes again, or late, says nothing new.
        let before = self.acknowledged.entry((seat, from)).or_default();
        let is_more = (*epoch, *last) > *before;
        *before = (*epoch, *last).max(*before);
        is_heard || is_more && is_late(News::KeepsUp)
    }

    /// The clock of this member has jumped: by it all others were silent.
    pub fn forget(&mut self, seat: usize) {
        self.heard_ns.retain(|(one, ..), _| *one != seat);
    }
}
