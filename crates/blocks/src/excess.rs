//! Replicas beyond the number wanted: chosen, ordered to be deleted, and not yet gone.

use crate::{broken::Broken, hints::Hint, map::BlockMap, newcomers::Trial, racks::Spread, words::BlockState};
use base::{BlockId, StoragePolicy};
use std::{collections::BTreeMap, sync::Arc};

#[derive(Default)]
pub struct Excess {
    blocks: BTreeMap<BlockId, Vec<u32>>,
}

impl Excess {
    pub fn of(&self, id: BlockId) -> &[u32] {
        self.blocks.get(&id).map_or(&[], Vec::as_slice)
    }

    pub fn contains(&self, id: BlockId, place: u32) -> bool {
        !self.blocks.is_empty() && self.of(id).contains(&place)
    }

    pub fn insert(&mut self, id: BlockId, place: u32) {
        self.blocks.entry(id).or_default().push(place);
    }

    pub fn remove(&mut self, id: BlockId, place: u32) {
        if let Some(places) = self.blocks.get_mut(&id) {
            places.retain(|held| *held != place);
            if places.is_empty() {
                self.blocks.remove(&id);
            }
        }
    }

    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    pub fn len(&self) -> usize {
        self.blocks.values().map(Vec::len).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (BlockId, &[u32])> {
        self.blocks.iter().map(|(id, places)| (*id, places.as_slice()))
    }
}

impl BlockMap {
    /// Chooses replicas that go until the wanted number is left, and orders their deletion. `hint` says whose
    /// replica should go, if media and racks allow. Without a `policy` all replicas must be on one medium.
    pub(crate) fn trim(
        &mut self,
        slot: u32,
        wanted: usize,
        hint: Option<Hint>,
        policy: Option<&StoragePolicy>,
    ) {
        let record = *self.arena.record(slot);
        assert_eq!(record.state(), BlockState::Complete, "only complete blocks lose superfluous replicas");
        let mut kept: Vec<u32> = self.places_in_service(slot);
        while kept.len() > wanted {
            let dubious = kept.iter().position(|place| self.is_dubious(slot, *place));
            let goes = dubious.unwrap_or_else(|| self.superfluous(&kept, wanted, hint, policy));
            let before = self.spread_of(&kept);
            let place = kept.swap_remove(goes);
            if wanted > 1 && before == Spread::Several && self.spread_of(&kept) != Spread::Several {
                // The newcomer's replica is the only one on its rack. Until it has shown that it stores blocks, none goes.
                self.redundancy.undecided.insert(record.id());
                return;
            }
            self.redundancy.excess.insert(record.id(), place);
            self.order_deletion(place, record.id(), record.stamp());
        }
    }

    /// A replica came for another reason than that it is wanted, and goes again.
    pub(crate) fn give_back(&mut self, slot: u32, place: u32) {
        let (id, stamp) = (self.arena.record(slot).id(), self.arena.record(slot).stamp());
        self.redundancy.excess.insert(id, place);
        self.order_deletion(place, id, stamp);
    }

    /// The storages of the replicas that are there, undamaged, and not superfluous.
    pub(crate) fn good_places(&self, slot: u32) -> Vec<u32> {
        let id = self.arena.record(slot).id();
        let good = |place: &u32| {
            self.storages.get(*place).is_known_to_hold(slot)
                && !self.redundancy.corrupt.contains(id, *place)
                && !self.redundancy.excess.contains(id, *place)
        };
        self.arena.places(slot).iter().filter(good).collect()
    }

    /// The storages of good replicas on servers in service. Only these replicas count, and only these may be superfluous.
    pub(crate) fn places_in_service(&self, slot: u32) -> Vec<u32> {
        let mut places = self.good_places(slot);
        if !self.config.rules.break_rule(Broken::LeavingCounts) {
            places.retain(|place| self.storages.get(*place).admin_state.is_in_service());
        }
        places
    }

    /// The replica of `kept` that should go. A doubted server's replica goes first, then a newcomer's. Of several, a replica goes that
    /// is on a medium which the file's policy does not want, if racks allow. Of these, a replica goes that
    /// shares its rack with another one, if there is one: the hinted replica, else the replica on the server with the least room. The
    /// hinted replica may also be the last on its rack, if the replica that has come gives a rack in return. Returns its index in `kept`.
    fn superfluous(
        &self,
        kept: &[u32],
        wanted: usize,
        hint: Option<Hint>,
        policy: Option<&StoragePolicy>,
    ) -> usize {
        let rack = |place: u32| -> &Arc<str> { &self.servers.get(self.storages.get(place).server).face.rack };
        let shares_rack = |at: usize| kept.iter().filter(|other| rack(**other) == rack(kept[at])).count() > 1;
        let standing = |at: usize| match self.storages.get(kept[at]).trial {
            Trial::Doubted => 0,
            Trial::Passed => 2,
            _ => 1,
        };
        let lowest = (0..kept.len()).map(standing).min();
        let mut goers: Vec<usize> = (0..kept.len()).filter(|at| Some(standing(*at)) == lowest).collect();
        let unwanted = self.on_unwanted_media(kept, wanted, policy);
        let racks_allow = |at: usize| wanted < 2 || shares_rack(at) || self.is_spread_without(kept, at);
        let may_go_first = |at: &usize| unwanted.contains(at) && racks_allow(*at);
        if goers.iter().any(may_go_first) {
            goers.retain(may_go_first);
        }
        let mut candidates: Vec<usize> = goers.iter().copied().filter(|at| shares_rack(*at)).collect();
        let server = |at: usize| self.storages.get(kept[at]).server;
        if let Some(hint) = hint
            && let Some(hinted) = goers.iter().find(|at| server(**at) == hint.from)
            && (candidates.contains(hinted)
                || candidates.is_empty()
                || self.gives_rack_for_rack(kept, *hinted, hint))
        {
            return *hinted;
        }
        if candidates.is_empty() {
            candidates = goers;
        }
        let room = |at: &usize| self.servers.get(server(*at)).face.remaining;
        candidates.into_iter().min_by_key(room).expect("there are more replicas than wanted")
    }

    /// Whether the replicas are on several racks without the one at this index.
    fn is_spread_without(&self, kept: &[u32], at: usize) -> bool {
        let mut others = kept.to_vec();
        others.swap_remove(at);
        self.spread_of(&others) == Spread::Several
    }

    /// Too few replicas are left while some were about to be deleted: those whose server has not been told
    /// yet are kept after all. A server whose order is queued once more has been told before, so its replica is not kept. True if
    /// any was kept.
    pub(crate) fn rescue_excess(&mut self, slot: u32) -> bool {
        let record = *self.arena.record(slot);
        let mut rescued = false;
        for place in self.redundancy.excess.of(record.id()).to_vec() {
            let server = self.storages.get(place).server;
            if self.storages.get(place).is_known_to_hold(slot)
                && !self.is_deletion_ordered(server, record.id(), record.stamp())
                && self.servers.get_mut(server).deletions.remove(&record.id()).is_some()
            {
                self.redundancy.excess.remove(record.id(), place);
                rescued = true;
            }
        }
        rescued
    }

    /// A replica was moved to a newcomer, whose word does not count yet. A decision now would delete the replica that
    /// was moved, because newcomers' replicas go first; and a balancer would move it again, for ever.
    pub(crate) fn awaits_proof(&self, id: BlockId) -> bool {
        let is_on_trial =
            |server: u32| matches!(self.servers.get(server).trial, Trial::Open | Trial::Unprovable);
        self.redundancy.hints.of(id).is_some_and(|hint| is_on_trial(hint.to))
    }

    /// Whether the replica at `kept[at]` may go as the hint says although no other is on its rack: the one that has come
    /// is on a rack of its own in return. So the block is on no fewer racks than before it was moved.
    pub(crate) fn gives_rack_for_rack(&self, kept: &[u32], at: usize, hint: Hint) -> bool {
        let server = |place: u32| self.storages.get(place).server;
        let racks_without = |left_out: usize| {
            let others = kept.iter().enumerate().filter(|(other, _)| *other != left_out);
            let mut racks: Vec<&Arc<str>> =
                others.map(|(_, place)| &self.servers.get(server(*place)).face.rack).collect();
            racks.sort_unstable();
            racks.dedup();
            racks.len()
        };
        server(kept[at]) == hint.from
            && kept
                .iter()
                .position(|place| server(*place) == hint.to)
                .is_some_and(|come| racks_without(at) >= racks_without(come))
    }
}
