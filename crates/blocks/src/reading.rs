//! Questions about a block: where it can be read, and what is known of its replicas.

use crate::{
    map::BlockMap,
    newcomers::Trial,
    random::Random,
    server::DataServer,
    words::{BlockState, Facts, Located, Location, Reader},
};
use base::{AdminState, BlockId, InodeId, Moment};
use std::sync::Arc;

/// How far a replica is from who wants to read it; less is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    SameHost,
    SameRack,
    Elsewhere,
    /// Its server is slow.
    Slow,
    /// Its server has not shown yet that it stores anything.
    Newcomer,
    /// Its server has been silent for a while.
    Stale,
    /// Its server will be off for a while soon.
    EnteringMaintenance,
    /// Its server may be off at any moment, for good.
    Decommissioned,
}

impl BlockMap {
    /// The locations of a block, nearest first; equally near replicas are shuffled by `chance`. For a block being
    /// written, the locations are its pipeline. Damaged replicas are listed only if there is no other.
    pub fn locations(&self, id: BlockId, reader: Reader, chance: u64, now: Moment) -> Option<Located> {
        let slot = self.arena.find(id)?;
        let record = self.arena.record(slot);
        let (places, corrupt) = match record.state() {
            BlockState::Complete => self.readable_places(slot),
            _ => (self.constructed_places(slot), false),
        };
        let mut places: Vec<(Distance, u32)> = self.with_distances(places, reader, now);
        Random::new(chance ^ id.0).shuffle(&mut places);
        places.sort_by_key(|(distance, _)| *distance);
        let locations = places.into_iter().map(|(_, place)| self.location_at(place)).collect();
        Some(Located { block: record.block(), state: record.state(), corrupt, locations })
    }

    /// Whether [`BlockMap::locations`] would name a place.
    pub fn has_place(&self, id: BlockId) -> bool {
        let Some(slot) = self.arena.find(id) else { return false };
        match self.arena.record(slot).state() {
            BlockState::Complete => !self.readable_places(slot).0.is_empty(),
            _ => !self.constructed_places(slot).is_empty(),
        }
    }

    /// Live replicas, and whether all of them are damaged.
    fn readable_places(&self, slot: u32) -> (Vec<u32>, bool) {
        let id = self.arena.record(slot).id();
        let live: Vec<u32> =
            self.arena.places(slot).iter().filter(|place| self.storages.get(*place).is_readable()).collect();
        let good: Vec<u32> =
            live.iter().copied().filter(|place| !self.redundancy.corrupt.contains(id, *place)).collect();
        if !good.is_empty() {
            return (good, false);
        }
        // A server in maintenance is named only where no other has a good replica.
        let mut last: Vec<u32> = self.arena.places(slot).as_slice().to_vec();
        last.retain(|place| {
            self.storages.get(*place).is_present() && !self.redundancy.corrupt.contains(id, *place)
        });
        match last.is_empty() {
            true => (live.clone(), !live.is_empty()),
            false => (last, false),
        }
    }

    /// The storages of a block that is not complete, each server once: it may have chosen another of its storages
    /// than the one it was given, and then what it has reported counts.
    pub(crate) fn constructed_places(&self, slot: u32) -> Vec<u32> {
        let record = self.arena.record(slot);
        let construction = self.constructions.get(record.id());
        let mut places = construction.map_or(Vec::new(), |it| it.places(record.stamp()));
        for place in self.arena.places(slot).iter() {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places.retain(|place| {
            self.storages.get(*place).is_present() && !self.redundancy.corrupt.contains(record.id(), *place)
        });
        let is_reported = |place| {
            self.arena.places(slot).as_slice().contains(&place)
                || construction.is_some_and(|it| it.replicas.iter().any(|(held, _)| *held == place))
        };
        let mut of_servers: Vec<u32> = Vec::with_capacity(places.len());
        for place in places {
            let server = self.storages.get(place).server;
            match of_servers.iter_mut().find(|known| self.storages.get(**known).server == server) {
                None => of_servers.push(place),
                Some(known) if !is_reported(*known) && is_reported(place) => *known = place,
                Some(_) => {}
            }
        }
        self.prefer_readable(&mut of_servers);
        of_servers
    }

    /// Leaves out servers that are in maintenance, if there are others.
    pub(crate) fn prefer_readable(&self, places: &mut Vec<u32>) {
        if places.iter().any(|place| self.storages.get(*place).is_readable()) {
            places.retain(|place| self.storages.get(*place).is_readable());
        }
    }

    fn with_distances(&self, places: Vec<u32>, reader: Reader, now: Moment) -> Vec<(Distance, u32)> {
        let own = reader.host.map_or(&[][..], |host| self.servers.on_host(host));
        let rack = reader.host.map(|host| self.rack_of_host(host));
        let distance = |place: u32| {
            let server = self.storages.get(place).server;
            let face = &self.servers.get(server).face;
            if face.admin_state == AdminState::Decommissioned {
                Distance::Decommissioned
            } else if face.admin_state == AdminState::EnteringMaintenance {
                Distance::EnteringMaintenance
            } else if self.is_stale(face, now) {
                Distance::Stale
            } else if self.storages.get(place).trial != Trial::Passed {
                Distance::Newcomer
            } else if self.is_read_late(server) {
                Distance::Slow
            } else if own.contains(&server) {
                Distance::SameHost
            } else if rack.as_ref() == Some(&face.rack) {
                Distance::SameRack
            } else {
                Distance::Elsewhere
            }
        };
        places.into_iter().map(|place| (distance(place), place)).collect()
    }

    /// The facts that the data servers have reported about the block; `None` if there is no such block.
    pub fn facts(&self, id: BlockId) -> Option<Facts> {
        let slot = self.arena.find(id)?;
        let record = self.arena.record(slot);
        let live = self.count(slot).usable();
        let replicas = self.constructions.get(id).map_or(&[][..], |it| &it.replicas);
        Some(Facts {
            block: record.block(),
            inode: record.inode(),
            state: record.state(),
            replication: record.replication(),
            live,
            min_replication_reached: live >= self.min_replication(),
            replicas: replicas.iter().map(|(_, replica)| *replica).collect(),
        })
    }

    /// The file that the block belongs to.
    pub fn inode_of(&self, id: BlockId) -> Option<InodeId> {
        self.arena.find(id).map(|slot| self.arena.record(slot).inode())
    }

    /// A storage by its wire names, if it is live.
    pub fn location(&self, uuid: &str, storage: &str) -> Option<Location> {
        self.place_of(uuid, storage).map(|place| self.location_at(place))
    }

    pub fn server(&self, uuid: &str) -> Option<Arc<DataServer>> {
        self.servers.find(uuid).map(|index| self.servers.get(index).face.clone())
    }

    /// A registered data server transfers data at this address.
    pub fn is_registered_address(&self, ip: &str, transfer_port: u16) -> bool {
        let has_port =
            |index: &u32| self.servers.get(*index).face.registration.transfer_port == transfer_port;
        self.servers.on_host(ip).iter().any(has_port)
    }
}
