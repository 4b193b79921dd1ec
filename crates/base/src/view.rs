//! The global view of one replica group: the value that the coordinator keeps and changes by compare-and-set.

use crate::{Epoch, Level, MemberId, TxId};

/// A member in one life of its store. The generation rises only when the store has become untrusted (wiped,
/// corrupt, a restored copy), so an entry of an older generation is void by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberStore {
    pub member: MemberId,
    pub generation: u64,
}

/// One life of a member's process on one life of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberLife {
    pub store: MemberStore,
    /// Starts of the store, this one included.
    pub boot: u64,
}

/// The active of a group, its members, and which of them hold every committed entry. Every change of the view keeps
/// this rule: `exiles` is empty unless `in_sync` is smaller than `in_sync_min`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupView {
    pub epoch: Epoch,
    pub active: Option<MemberId>,
    /// Members on which every committed entry is durable (ISR), sorted.
    pub in_sync: Vec<MemberStore>,
    /// Members that left the in-sync set when it was already at its minimum: still complete, since nothing
    /// was committed afterwards (ELR), sorted.
    pub exiles: Vec<MemberStore>,
    /// The size of the in-sync set below which nothing commits.
    pub in_sync_min: u32,
    /// All members of the group, sorted.
    pub members: Vec<MemberId>,
    /// Names the change that made this value, so that its author knows it again.
    pub change_id: u64,
    /// A committed entry; later ones may have committed as well. It never falls, except by an unclean election.
    pub commit_hint: TxId,
    /// The latest epoch that a member claimed by an operator's order although it may lack what had committed; 0 if
    /// there was none. A log whose last entry is of an older epoch does not tell of that claim yet.
    pub unclean_epoch: Epoch,
    /// No active that may still hold a lease holds a longer one; 0 where none has said so yet. A member that starts has
    /// forgotten what it granted, and waits for so long: its own settings may be shorter than they were.
    pub lease_ms: u64,
    /// The level that the group is known to be at; it never falls. A lower bound: the journal decides, and the view hears of it
    /// with its next change. A release that does not know the level refuses to read the view.
    pub level: Level,
}

impl GroupView {
    /// The view of a group that has never had an active.
    pub fn new(members: &[MemberStore], in_sync_min: u32) -> Self {
        let mut in_sync = members.to_vec();
        in_sync.sort();
        Self {
            epoch: Epoch(0),
            active: None,
            members: in_sync.iter().map(|store| store.member).collect(),
            in_sync,
            exiles: Vec::new(),
            in_sync_min,
            change_id: 0,
            commit_hint: TxId::default(),
            unclean_epoch: Epoch(0),
            lease_ms: 0,
            level: Level::FIRST,
        }
    }

    /// Whether this store holds every committed entry and may become active.
    pub fn is_eligible(&self, store: MemberStore) -> bool {
        self.in_sync.contains(&store) || self.exiles.contains(&store)
    }
}
