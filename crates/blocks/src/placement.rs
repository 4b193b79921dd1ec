//! The choice of storages for replicas: HDFS's default policy.
//!
//! The first replica goes to the writer's own host if that is a data server, else anywhere; the second to
//! another rack; the third to the second's rack; further ones anywhere, with no rack holding many more than
//! its share. Servers that are silent for a while, busier than most or slow ([`crate::avoided`]) are left out as long
//! as there are others. The file's storage policy says on which media the replicas go; where one is full or missing, the
//! policy's fallbacks serve.

use crate::{
    map::BlockMap,
    newcomers::Trial,
    server::{DataServer, StorageType},
    words::{Location, Reader},
};
use base::{BlockId, Moment, StoragePolicy, types_beyond};
use std::sync::Arc;

/// Draws at random before a search in order, in a cluster where most servers will do.
const DRAWS: usize = 16;

/// A request for places.
#[derive(Clone, Debug, Default)]
pub struct Placement<'a> {
    pub writer: Reader<'a>,
    /// How many more replicas are wanted.
    pub replication: usize,
    pub block_size: u64,
    /// `uuid`s of servers not to be used.
    pub excluded: &'a [&'a str],
    /// `host:port` or `ip:port` of servers to prefer.
    pub favoured: &'a [&'a str],
    /// Replicas that the block has already; their servers are not used again.
    pub existing: &'a [Location],
    /// The writer's own host is avoided, if there is another.
    pub avoid_writer: bool,
    /// The id of the file's storage policy; 0: none is set.
    pub storage_policy: u8,
}

/// A wish for targets, with servers and storages named by index.
pub struct Wish {
    /// Servers that are about to delete a replica of this block are left out.
    pub block: Option<BlockId>,
    pub count: usize,
    pub block_size: u64,
    /// Servers on the writer's host, and its rack.
    pub writer: Option<(Vec<u32>, Arc<str>)>,
    pub excluded: Vec<u32>,
    pub favoured: Vec<u32>,
    /// Places that the block has already.
    pub existing: Vec<u32>,
    pub policy: &'static StoragePolicy,
    /// The media on which replicas may go, one each, if not those of the policy. There are no fallbacks.
    pub only: Option<Vec<StorageType>>,
    /// The number of a rack that has enough replicas.
    pub avoided_rack: Option<u32>,
    /// A block that is being written, not a copy of one that is there.
    pub is_new_block: bool,
}

/// The data servers among which the next replica's place is looked for.
#[derive(Clone)]
enum Scope {
    Anywhere,
    On(Arc<str>),
    NotOn(Arc<str>),
}

/// Which servers a search takes. They are tried in this order, until there are enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choosiness {
    /// None that is stale, busy or slow.
    Strict,
    /// Busy ones as well, rather than slow ones.
    Busy,
    /// All.
    Lax,
}

/// The rules that hold for one search.
struct Limits {
    choosiness: Choosiness,
    /// Slow servers are taken as others are.
    takes_slow: bool,
    per_rack: usize,
    xceivers: f64,
    now: Moment,
    /// The media of the replicas that are still missing, in the order in which they are tried on a server.
    needed: Vec<StorageType>,
}

impl BlockMap {
    /// Up to `replication` places in the order of a good pipeline; fewer if there are not enough.
    pub fn choose_targets(&mut self, placement: &Placement, now: Moment) -> Vec<Location> {
        let place = |at: &Location| self.place_of(at.server.uuid(), &at.storage);
        let existing: Vec<u32> = placement.existing.iter().filter_map(place).collect();
        let mut excluded: Vec<u32> =
            placement.excluded.iter().filter_map(|uuid| self.servers.find(uuid)).collect();
        excluded.extend(placement.existing.iter().filter_map(|at| self.servers.find(at.server.uuid())));
        // Another server for a pipeline that has lost one takes the fallbacks of copies, as in HDFS.
        let is_new_block = existing.is_empty();
        let mut wish = Wish {
            block: None,
            // A server takes one replica: what is asked for beyond that must cost nothing, whatever the number.
            count: placement.replication.min(self.servers.in_service().len()),
            block_size: placement.block_size,
            writer: placement
                .writer
                .host
                .map(|host| (self.servers.on_host(host).to_vec(), self.rack_of_host(host))),
            excluded,
            favoured: placement.favoured.iter().filter_map(|name| self.server_named(name)).collect(),
            existing,
            policy: StoragePolicy::in_force(placement.storage_policy),
            only: None,
            avoided_rack: None,
            is_new_block,
        };
        if placement.avoid_writer
            && let Some((own, _)) = &mut wish.writer
        {
            let own = std::mem::take(own);
            let elsewhere =
                self.servers.in_service().iter().any(|at| !own.contains(at) && !wish.excluded.contains(at));
            wish.excluded.extend(if elsewhere { own } else { Vec::new() });
        }
        let origin = wish.writer.clone();
        let mut places = self.choose(wish, now);
        self.sort_as_pipeline(&mut places, origin);
        places.iter().map(|place| self.location_at(*place)).collect()
    }

    pub(crate) fn rack_of_host(&self, host: &str) -> Arc<str> {
        match self.servers.on_host(host).first() {
            Some(server) => self.servers.get(*server).face.rack.clone(),
            None => self.racks.of(&[host]),
        }
    }

    /// `host:port` or `ip:port`. Without a port, or where no data server of the host has it, one of the host's is meant, as in HDFS.
    fn server_named(&self, name: &str) -> Option<u32> {
        let (host, port) = name.rsplit_once(':').unwrap_or((name, ""));
        let on_host = self.servers.on_host(host);
        let is_meant = |index: &&u32| {
            let its = self.servers.get(**index).face.registration.transfer_port;
            port.parse() == Ok(its)
        };
        on_host.iter().find(is_meant).or(on_host.first()).copied()
    }

    /// Indices of storages for new replicas, at most as many as wished for.
    pub(crate) fn choose(&mut self, wish: Wish, now: Moment) -> Vec<u32> {
        let mut chosen = Vec::new();
        let mut unavailable = Vec::new();
        loop {
            let mut needed = self.needed(&wish, &chosen, &unavailable);
            for choosiness in [Choosiness::Strict, Choosiness::Busy, Choosiness::Lax] {
                let is_of_use = choosiness != Choosiness::Busy || self.passes_any_over();
                if chosen.len() < wish.count && !needed.is_empty() && is_of_use {
                    let mut limits = self.limits(&wish, choosiness, now, needed);
                    self.choose_within(&wish, &mut limits, &mut chosen);
                    needed = limits.needed;
                }
            }
            // No server was left that has one of these: what the policy falls back on is next.
            needed.retain(|kind| !unavailable.contains(kind));
            if chosen.len() == wish.count || needed.is_empty() {
                break;
            }
            unavailable.extend(needed);
        }
        for place in &chosen {
            self.storages.get_mut(*place).promise();
        }
        chosen
    }

    /// The media of the replicas that are missing beside those chosen so far.
    fn needed(&self, wish: &Wish, chosen: &[u32], unavailable: &[StorageType]) -> Vec<StorageType> {
        if let Some(only) = &wish.only {
            let chosen = chosen.iter().map(|place| self.medium(*place)).collect();
            let mut needed = types_beyond(only, chosen);
            needed.retain(|kind| !unavailable.contains(kind));
            return needed;
        }
        let held: Vec<_> = wish.existing.iter().chain(chosen).map(|place| self.medium(*place)).collect();
        let total = wish.count + wish.existing.len();
        wish.policy.types_missing(total, &held, unavailable, wish.is_new_block)
    }

    fn limits(&self, wish: &Wish, choosiness: Choosiness, now: Moment, needed: Vec<StorageType>) -> Limits {
        let servers = self.servers.in_service();
        let total = (wish.count + wish.existing.len()).min(servers.len());
        let per_rack = match self.servers.rack_count() {
            0 | 1 => usize::MAX,
            racks => total.saturating_sub(1) / racks + 2,
        };
        let busiest = match self.config.consider_load {
            true => self.mean_xceivers * self.config.load_factor,
            false => f64::INFINITY,
        };
        Limits { choosiness, takes_slow: false, per_rack, xceivers: busiest, now, needed }
    }

    fn choose_within(&mut self, wish: &Wish, limits: &mut Limits, chosen: &mut Vec<u32>) {
        let mut favoured = wish.favoured.iter();
        while chosen.len() < wish.count && !limits.needed.is_empty() {
            let place = match favoured.next() {
                Some(server) if self.will_do(*server, wish, limits, chosen) => {
                    self.storage_on(*server, wish, limits)
                }
                Some(_) => continue,
                None => self.choose_next(wish, limits, chosen),
            };
            let Some(place) = place else { return };
            let medium = self.medium(place);
            if let Some(at) = limits.needed.iter().position(|kind| *kind == medium) {
                limits.needed.remove(at);
            }
            chosen.push(place);
        }
    }

    fn choose_next(&mut self, wish: &Wish, limits: &Limits, chosen: &[u32]) -> Option<u32> {
        let held: Vec<u32> = wish.existing.iter().chain(chosen).copied().collect();
        let rack =
            |map: &Self, at: usize| map.servers.get(map.storages.get(held[at]).server).face.rack.clone();
        let scope = match held.len() {
            0 => {
                let local = wish.writer.as_ref().map_or(&[][..], |(own, _)| own);
                if let Some(place) = self.choose_among(local.to_vec(), wish, limits, chosen) {
                    return Some(place);
                }
                match &wish.writer {
                    Some((_, rack)) => Scope::On(rack.clone()),
                    None => Scope::Anywhere,
                }
            }
            1 => Scope::NotOn(rack(self, 0)),
            2 if rack(self, 0) == rack(self, 1) => Scope::NotOn(rack(self, 0)),
            2 => Scope::On(rack(self, 1)),
            _ => Scope::Anywhere,
        };
        let mut place = self.choose_in(scope.clone(), wish, limits, chosen);
        if place.is_none() && matches!(scope, Scope::NotOn(_)) {
            place = self.choose_slow_in(&scope, wish, limits, chosen);
        }
        place.or_else(|| self.choose_in(Scope::Anywhere, wish, limits, chosen))
    }

    /// All that is left in the scope is slow, or busy as well. Replicas on two racks are worth more than fast ones on one.
    fn choose_slow_in(&mut self, scope: &Scope, wish: &Wish, limits: &Limits, chosen: &[u32]) -> Option<u32> {
        if limits.choosiness == Choosiness::Lax || !self.passes_any_over() {
            return None;
        }
        let [busy, slow] =
            [(Choosiness::Busy, false), (limits.choosiness, true)].map(|(choosiness, takes_slow)| Limits {
                choosiness,
                takes_slow,
                needed: limits.needed.clone(),
                ..*limits
            });
        let place = self.choose_in(scope.clone(), wish, &busy, chosen);
        place.or_else(|| self.choose_in(scope.clone(), wish, &slow, chosen))
    }

    fn choose_in(&mut self, scope: Scope, wish: &Wish, limits: &Limits, chosen: &[u32]) -> Option<u32> {
        if let Scope::On(rack) = &scope {
            let candidates = self.servers.in_service_on_rack(rack).to_vec();
            return self.choose_among(candidates, wish, limits, chosen);
        }
        let is_in = |map: &Self, server: u32| match &scope {
            Scope::NotOn(rack) => map.servers.get(server).face.rack != *rack,
            _ => true,
        };
        let count = self.servers.in_service().len();
        if count == 0 || (matches!(scope, Scope::NotOn(_)) && self.servers.rack_count() < 2) {
            return None;
        }
        for _ in 0..DRAWS {
            let server = self.servers.in_service()[self.random.below(count)];
            if is_in(self, server) && self.will_do(server, wish, limits, chosen) {
                return self.storage_on(server, wish, limits);
            }
        }
        let candidates =
            self.servers.in_service().iter().copied().filter(|server| is_in(self, *server)).collect();
        self.choose_among(candidates, wish, limits, chosen)
    }

    /// Any of them, each that will do with the same chance.
    fn choose_among(
        &mut self,
        mut candidates: Vec<u32>,
        wish: &Wish,
        limits: &Limits,
        chosen: &[u32],
    ) -> Option<u32> {
        candidates.retain(|server| self.will_do(*server, wish, limits, chosen));
        if candidates.is_empty() {
            return None;
        }
        let server = candidates[self.random.below(candidates.len())];
        self.storage_on(server, wish, limits)
    }

    fn will_do(&self, server: u32, wish: &Wish, limits: &Limits, chosen: &[u32]) -> bool {
        let face = &self.servers.get(server).face;
        let server_of = |place: &u32| self.storages.get(*place).server;
        let held = || wish.existing.iter().chain(chosen).map(server_of);
        let is_to_delete = |id: BlockId| {
            let server = self.servers.get(server);
            server.deletions.contains_key(&id) || server.ordered.contains_key(&id)
        };
        if wish.block.is_some_and(is_to_delete) {
            return false;
        }
        if self.servers.get(server).trial == Trial::Doubted
            || wish.avoided_rack == Some(self.servers.get(server).rack)
        {
            return false;
        }
        let may_take = face.alive && face.admin_state.is_in_service();
        if !may_take || wish.excluded.contains(&server) || held().any(|holder| holder == server) {
            return false;
        }
        let is_passed_over = || self.is_passed_over(server) && !limits.takes_slow;
        let is_unfit = match limits.choosiness {
            Choosiness::Strict => {
                let is_busy = f64::from(face.xceivers) > limits.xceivers;
                is_busy || self.is_stale(face, limits.now) || is_passed_over()
            }
            Choosiness::Busy => self.is_stale(face, limits.now) || is_passed_over(),
            Choosiness::Lax => false,
        };
        if is_unfit {
            return false;
        }
        let on_rack = held().filter(|holder| self.servers.get(*holder).face.rack == face.rack).count();
        on_rack < limits.per_rack
            && self.servers.get(server).storages.iter().any(|at| self.fits(*at, wish, limits))
    }

    pub(crate) fn is_stale(&self, face: &DataServer, now: Moment) -> bool {
        now.ms_since(face.last_heartbeat) > self.config.stale_interval_ms
    }

    fn fits(&self, place: u32, wish: &Wish, limits: &Limits) -> bool {
        let medium = self.medium(place);
        limits.needed.contains(&medium) && self.may_take(place, medium, wish.block_size)
    }

    /// Whether the storage is of this medium and has room for a block of this many bytes. Nothing is written to RAM disks and provided
    /// storages, whatever a policy says.
    pub(crate) fn may_take(&self, place: u32, medium: StorageType, block_size: u64) -> bool {
        self.medium(place) == medium
            && !matches!(medium, StorageType::RamDisk | StorageType::Provided)
            && self.storages.get(place).can_take(block_size)
    }

    /// One of the server's storages with room, of the first medium needed that it has.
    fn storage_on(&mut self, server: u32, wish: &Wish, limits: &Limits) -> Option<u32> {
        let places: Vec<u32> = self.servers.get(server).storages.clone();
        let fitting = |kind: &StorageType| -> Vec<u32> {
            let is_one = |at: &u32| self.medium(*at) == *kind && self.fits(*at, wish, limits);
            places.iter().copied().filter(is_one).collect()
        };
        let places = limits.needed.iter().map(fitting).find(|places| !places.is_empty())?;
        Some(places[self.random.below(places.len())])
    }

    /// Each server as near as can be to the one before it, beginning at the writer.
    fn sort_as_pipeline(&self, places: &mut [u32], writer: Option<(Vec<u32>, Arc<str>)>) {
        let Some(first) = places.first() else { return };
        let server = |place: u32| self.storages.get(place).server;
        let (mut near, mut rack) = match writer {
            Some((own, rack)) => (own, rack),
            None => (vec![server(*first)], self.servers.get(server(*first)).face.rack.clone()),
        };
        for at in 0..places.len() {
            let distance = |place: &u32| match server(*place) {
                own if near.contains(&own) => 0,
                other if self.servers.get(other).face.rack == rack => 1,
                _ => 2,
            };
            let nearest =
                (at..places.len()).min_by_key(|index| distance(&places[*index])).expect("not empty");
            places[at..=nearest].rotate_right(1);
            near = vec![server(places[at])];
            rack = self.servers.get(near[0]).face.rack.clone();
        }
    }
}
