//! Replicas on more than one rack, so that a block outlives a rack.
//!
//! The rule is that of HDFS's default placement (`BlockPlacementPolicyDefault.verifyBlockPlacement`): a block of which
//! two replicas or more are wanted is to be on two racks, if two racks have servers in service. Where it is not, one
//! more copy goes to another rack. Then the block has a replica too many, and one of the crowded rack goes.

use crate::{map::BlockMap, newcomers::Trial, racks::Spread, redundancy::Count};

impl BlockMap {
    /// Whether all good replicas of a complete block, those on their way included, are on one rack although there is
    /// another one.
    pub(crate) fn is_misplaced(&self, slot: u32, count: &Count) -> bool {
        if !self.has_racks || self.wanted(slot) < 2 || count.spread == Spread::Nowhere {
            return false;
        }
        let mut spread = count.spread;
        let id = self.arena.record(slot).id();
        self.redundancy.pending.servers(id).iter().for_each(|at| spread.add(self.servers.get(*at).rack));
        spread != Spread::Several
    }

    /// The racks of replicas at these places. Replicas on doubted servers do not count.
    pub(crate) fn spread_of(&self, places: &[u32]) -> Spread {
        let mut spread = Spread::Nowhere;
        for place in places {
            let storage = self.storages.get(*place);
            if storage.trial != Trial::Doubted {
                spread.add(storage.rack);
            }
        }
        spread
    }

    /// The rack of a host was found out. The table of the configuration goes before it. Data servers there that have registered already
    /// are on this rack from now on.
    pub fn learn_rack(&mut self, host: &str, rack: &str) {
        self.racks.learn(host, rack);
        for index in self.servers.on_host(host).to_vec() {
            let registration = self.servers.get(index).face.registration.clone();
            let rack = self.racks.of(&[&registration.ip, &registration.host_name]);
            if self.servers.get(index).face.rack != rack {
                self.servers.rename(index, (*registration).clone(), rack);
                self.note_rack(index);
            }
        }
    }

    /// The server is on the rack that its registration has led to. Its replicas are looked at if it was on another one before.
    pub(crate) fn note_rack(&mut self, index: u32) {
        let rack = self.racks.number(&self.servers.get(index).face.rack);
        if std::mem::replace(&mut self.servers.get_mut(index).rack, rack) == rack {
            return;
        }
        let places = self.servers.get(index).storages.clone();
        if !places.is_empty() {
            self.sweeper.request_redundancy();
        }
        places.into_iter().for_each(|place| self.storages.get_mut(place).rack = rack);
    }

    /// Once there is a second rack with servers that may take copies, or none any more, it is looked at anew where each block is.
    pub(crate) fn mind_racks(&mut self) {
        // A doubted server takes no copy. A rack that has no others is as good as none.
        let able = self.servers.in_service().iter().map(|index| self.servers.get(*index));
        let mut racks = able.filter(|server| server.trial != Trial::Doubted).map(|server| server.rack);
        let first = racks.next();
        let has_racks = racks.any(|rack| Some(rack) != first);
        if has_racks != self.has_racks {
            self.has_racks = has_racks;
            self.sweeper.request_redundancy();
        }
    }
}
