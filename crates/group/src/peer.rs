//! Another member, as the active sees it.

use base::{LogPoint, MemberStore, Moment, Sn};
use std::collections::VecDeque;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peer {
    /// The life that was last heard of. Acknowledgements of another life are void.
    pub life: Option<(MemberStore, u64)>,
    /// Its address refuses: its process has ended.
    pub is_gone: bool,
    pub heard_at: Option<Moment>,
    /// Until when it makes no claim, by its last grant.
    pub lease_end: Option<Moment>,
    /// The beacon that this grant answers.
    lease_round: u64,
    pub has_promised: bool,
    pub is_suspect: bool,
    /// Its state machine could serve at once, as its last grant said.
    pub is_ready: bool,
    /// How many data servers reach it, as its last grant said.
    pub data_servers: u32,
    /// Since when some reach it and none reaches the active.
    pub hears_alone_since: Option<Moment>,
    pub end: Option<LogPoint>,
    pub committed: LogPoint,
    /// Durable there and verified against this log, in this epoch and that life.
    pub matched: Sn,
    /// The last entry that it was ever sent in this life, acknowledged or not.
    pub sent: Sn,
    /// When the first of what is in flight was sent.
    pub in_flight_since: Moment,
    /// When it last had nothing to acknowledge, or acknowledged something.
    pub kept_up_at: Moment,
    pub next: Next,
    /// The end of its log when a message last missed it.
    pub missed: Option<(LogPoint, Moment)>,
    /// The entries that it may lack are purged here, and the stream was begun with the first entry in memory.
    pub is_base_tried: bool,
    /// Sent and not acknowledged: the last sn and the bytes of each message.
    pub in_flight: VecDeque<(Sn, usize)>,
    /// When it was last asked to acknowledge what it holds, as it lacks nothing.
    pub asked_at: Moment,
    /// The last round before its connection broke or was made.
    asked_since: u64,
    /// The peer has answered a later round, so the process that is heard now is the one that was heard before.
    pub has_answered: bool,
    /// The coordinator has just refused to let this life in.
    pub let_in_after: Moment,
}

/// How the stream to a member goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Next {
    /// Nothing is sent before the peer has said how far its log goes.
    Unknown,
    At(Sn),
    /// Entries after this one were asked for on the disk.
    Reading(Sn),
    /// The entries that it lacks are gone from the log.
    NeedsImage,
    /// The peer holds other entries as committed than this log has, and nobody has given them up.
    Contradicts,
}

impl Peer {
    pub fn new(now: Moment) -> Self {
        Self {
            life: None,
            is_gone: false,
            heard_at: None,
            lease_end: None,
            lease_round: 0,
            has_promised: false,
            is_suspect: false,
            is_ready: false,
            data_servers: 0,
            hears_alone_since: None,
            end: None,
            committed: LogPoint::default(),
            matched: Sn(0),
            sent: Sn(0),
            in_flight_since: now,
            kept_up_at: now,
            next: Next::Unknown,
            missed: None,
            is_base_tried: false,
            in_flight: VecDeque::new(),
            asked_at: now,
            asked_since: 0,
            has_answered: false,
            let_in_after: Moment::default(),
        }
    }

    /// Takes note of a message. False: it comes from a life that has ended.
    pub fn hear(&mut self, now: Moment, store: MemberStore, boot: u64) -> bool {
        match self.life {
            Some((known, known_boot)) if (store.generation, boot) < (known.generation, known_boot) => {
                return false;
            }
            Some(life) if life == (store, boot) => {}
            _ => *self = Self { life: Some((store, boot)), asked_since: self.asked_since, ..Self::new(now) },
        }
        self.is_gone = false;
        self.heard_at = Some(now);
        true
    }

    /// How much of the log this very store is known to hold.
    pub fn matched_by(&self, store: MemberStore) -> Option<Sn> {
        self.life.is_some_and(|(life, _)| life == store).then_some(self.matched)
    }

    /// Notes that it has granted a lease for the beacon of this round.
    pub fn granted(&mut self, round: u64, until: Moment) {
        if self.lease_end < Some(until) {
            (self.lease_end, self.lease_round) = (Some(until), round);
        }
    }

    /// How long the grants of this very store may be counted on. A store that has taken its place has forgotten what that one promised,
    /// and grants a lease to an active against whom that one has claimed. The grant for a beacon of before its connection broke or was made
    /// counts no more: the peer may take this process for ended.
    pub fn granted_by(&self, store: MemberStore, counts_old: bool) -> Option<Moment> {
        let counts = counts_old || self.lease_round > self.asked_since;
        self.lease_end.filter(|_| counts && self.life.is_some_and(|(life, _)| life == store))
    }

    /// Whether the member owes an acknowledgement and has sent none for more than `ms`. A stream that was begun anew since does not
    /// count as an acknowledgement.
    pub fn is_slow(&self, now: Moment, ms: u64) -> bool {
        self.matched < self.sent && now.ms_since(self.kept_up_at) > ms
    }

    /// Whether the stream may begin after `base`, the entry before the first that the active has in memory: the member's log reaches
    /// beyond it, and no stream was begun there since the member's connection was made. What the member knows to have committed says
    /// too little: after a start it knows only what was written down.
    pub fn may_hold_base(&self, base: LogPoint) -> bool {
        !self.is_base_tried && self.end.is_some_and(|end| end.id.sn > base.id.sn)
    }

    pub fn in_flight_bytes(&self) -> usize {
        self.in_flight.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Its connection broke or was made. Messages from before this, and those still under way, do not show that its
    /// process is there, and no read rests on a grant among them.
    pub fn doubt(&mut self, round: u64) {
        self.asked_since = round;
        self.has_answered = false;
        self.is_base_tried = false;
        self.restart_stream();
    }

    /// Notes that the peer has answered the beacon of this round.
    pub fn answered(&mut self, round: u64) {
        self.has_answered |= round > self.asked_since;
    }

    /// Begins the stream anew, because messages may be lost. It goes on once the member has said where.
    pub fn restart_stream(&mut self) {
        self.next = Next::Unknown;
        self.in_flight.clear();
    }
}
