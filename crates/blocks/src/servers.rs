//! The table of data servers, and the ways to find one.

use crate::{
    need::Leaving,
    newcomers::{Claims, Trial},
    recovery::RecoveryOrder,
    server::{DataServer, Registration},
    unknown::Share,
    words::{ServerId, SessionKey},
};
use base::{AdminState, BlockId, GenerationStamp, Moment};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// A copy that was decided on and waits for the source's next heartbeat.
pub struct Order {
    pub block: BlockId,
    /// Indices of storages.
    pub targets: Vec<u32>,
}

/// A replica that is to be deleted.
#[derive(Clone, Copy, Debug)]
pub struct Deletion {
    pub stamp: GenerationStamp,
    /// The storage that was last known to hold the replica. `None` if that storage has failed after the order went out.
    pub place: Option<u32>,
    /// The number of orders that have gone out and of which no deletion was told.
    pub orders: u32,
    /// When the last order went out.
    pub ordered_at: Moment,
}

pub struct Server {
    pub face: Arc<DataServer>,
    /// The key that its latest registration was given.
    pub session: SessionKey,
    /// The latest connection on which it has reported in this session. See [`crate::late_words`].
    pub reports_on: u64,
    /// The number of its rack.
    pub rack: u32,
    /// Whether it is a newcomer, and what it claims as long as it is one.
    pub trial: Trial,
    pub claims: Claims,
    /// Indices of its storages that are not retired.
    pub storages: Vec<u32>,
    /// Replicas to delete, told to it with the next heartbeats. A report that still names them is no news.
    pub deletions: BTreeMap<BlockId, Deletion>,
    /// Replicas that it was told to delete, and may not have deleted yet. See [`crate::ordered`].
    pub ordered: BTreeMap<BlockId, Deletion>,
    pub orders: VecDeque<Order>,
    /// Unfinished blocks that it shall bring to an end.
    pub recoveries: Vec<RecoveryOrder>,
    /// How fast it may move blocks for balancing, in bytes per second, if it has still to be told.
    pub balancing_rate: Option<u64>,
    /// A permission to send a full report, and until when.
    pub lease: Option<(u64, Moment)>,
    /// The server was told to register, and has not done so. Until it has, it gets no orders.
    pub is_to_register: bool,
    /// A heartbeat of this session has named its storages.
    pub has_named_storages: bool,
    /// The names of storages that were lost in this session.
    pub lost_storages: Vec<Arc<str>>,
    /// Its last report contradicts an earlier one, so it is asked to report everything anew.
    pub contradicts: bool,
    /// When it was last asked to report anew for that reason.
    pub last_asked: Option<Moment>,
    /// The latest connection on which it was answered since this server began to command. A report that it begins there afterwards shows
    /// nothing that an older active may still have deleted: it has heard whom to obey. Of an answer on another connection it may not have
    /// heard, because answers are lost with their connection.
    pub heard_on: Option<u64>,
    /// The latest permission to send a full report that was given together with the claim of this reign; 0: none. A report
    /// that was sent with it shows nothing that an older active may still have deleted either, whatever other answers were
    /// under way.
    pub fenced_lease: u64,
    /// The search for blocks that need the server. `None` if the server is not to leave service.
    pub leaving: Option<Leaving>,
    /// The replicas that were deleted, or would be, because their blocks are unknown.
    pub share: Share,
    /// See [`crate::avoided`].
    pub is_avoided: bool,
}

/// Indices of servers on a rack.
type Rack = Vec<u32>;

#[derive(Default)]
pub struct Servers {
    slots: Vec<Option<Server>>,
    free: Vec<u32>,
    by_uuid: BTreeMap<Arc<str>, u32>,
    by_address: BTreeMap<(Arc<str>, u16), u32>,
    /// The servers by host name and by address. Several servers may share a host.
    by_host: BTreeMap<Arc<str>, Vec<u32>>,
    /// The living servers, in no meaningful order.
    live: Vec<u32>,
    /// The living servers that are in service. Only these get new replicas.
    in_service: Vec<u32>,
    in_service_by_rack: BTreeMap<Arc<str>, Rack>,
}

impl Servers {
    pub fn len(&self) -> usize {
        self.by_uuid.len()
    }

    pub fn get(&self, index: u32) -> &Server {
        self.slots[index as usize].as_ref().expect("a known index names a server")
    }

    pub fn get_mut(&mut self, index: u32) -> &mut Server {
        self.slots[index as usize].as_mut().expect("a known index names a server")
    }

    pub fn face_mut(&mut self, index: u32) -> &mut DataServer {
        Arc::make_mut(&mut self.get_mut(index).face)
    }

    pub fn find(&self, uuid: &str) -> Option<u32> {
        self.by_uuid.get(uuid).copied()
    }

    pub fn find_address(&self, ip: &Arc<str>, port: u16) -> Option<u32> {
        self.by_address.get(&(ip.clone(), port)).copied()
    }

    /// The servers on a host, which is named by its name or its address.
    pub fn on_host(&self, host: &str) -> &[u32] {
        self.by_host.get(host).map_or(&[], Vec::as_slice)
    }

    pub fn live(&self) -> &[u32] {
        &self.live
    }

    pub fn in_service(&self) -> &[u32] {
        &self.in_service
    }

    pub fn in_service_on_rack(&self, rack: &str) -> &[u32] {
        self.in_service_by_rack.get(rack).map_or(&[], Vec::as_slice)
    }

    /// Of the servers in service.
    pub fn mean_xceivers(&self) -> f64 {
        let sum: f64 = self.in_service.iter().map(|index| f64::from(self.get(*index).face.xceivers)).sum();
        sum / self.in_service.len().max(1) as f64
    }

    /// Racks with a server in service.
    pub fn rack_count(&self) -> usize {
        self.in_service_by_rack.len()
    }

    /// In order of uuid.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Server)> {
        self.by_uuid.values().map(|index| (*index, self.get(*index)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Server> {
        self.slots.iter_mut().flatten()
    }

    pub fn add(&mut self, face: DataServer, session: SessionKey) -> u32 {
        let server = Server {
            face: Arc::new(face),
            session,
            reports_on: 0,
            rack: 0,
            trial: Trial::default(),
            claims: Claims::default(),
            storages: Vec::new(),
            deletions: BTreeMap::new(),
            ordered: BTreeMap::new(),
            orders: VecDeque::new(),
            recoveries: Vec::new(),
            balancing_rate: None,
            lease: None,
            is_to_register: false,
            has_named_storages: false,
            lost_storages: Vec::new(),
            contradicts: false,
            last_asked: None,
            heard_on: None,
            fenced_lease: 0,
            leaving: None,
            share: Share::default(),
            is_avoided: false,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = Some(server);
                index
            }
            None => {
                self.slots.push(Some(server));
                self.slots.len() as u32 - 1
            }
        };
        self.enter(index);
        index
    }

    /// The server has a new address, name or rack.
    pub fn rename(&mut self, index: u32, registration: Registration, rack: Arc<str>) {
        let alive = self.get(index).face.alive;
        self.set_alive(index, false);
        self.leave(index);
        let face = self.face_mut(index);
        face.registration = Arc::new(registration);
        face.rack = rack;
        self.enter(index);
        self.set_alive(index, alive);
    }

    /// Forgets it. Nothing else may name the index any more.
    pub fn remove(&mut self, index: u32) {
        self.set_alive(index, false);
        self.leave(index);
        self.slots[index as usize] = None;
        self.free.push(index);
    }

    pub fn set_alive(&mut self, index: u32, alive: bool) {
        if self.get(index).face.alive == alive {
            return;
        }
        self.face_mut(index).alive = alive;
        if alive {
            self.live.push(index);
        } else {
            self.live.retain(|held| *held != index);
        }
        self.list_in_service(index);
    }

    pub fn set_admin_state(&mut self, index: u32, state: AdminState) {
        self.face_mut(index).admin_state = state;
        self.list_in_service(index);
    }

    /// Puts the server on the lists of those in service, or takes it from them.
    fn list_in_service(&mut self, index: u32) {
        let face = &self.get(index).face;
        let (rack, belongs) = (face.rack.clone(), face.alive && face.admin_state.is_in_service());
        if belongs == self.in_service.contains(&index) {
            return;
        }
        if belongs {
            self.in_service.push(index);
            self.in_service_by_rack.entry(rack).or_default().push(index);
            return;
        }
        self.in_service.retain(|held| *held != index);
        if let Some(members) = self.in_service_by_rack.get_mut(&rack) {
            members.retain(|held| *held != index);
            if members.is_empty() {
                self.in_service_by_rack.remove(&rack);
            }
        }
    }

    fn enter(&mut self, index: u32) {
        let registration = self.get(index).face.registration.clone();
        self.by_uuid.insert(registration.uuid.clone(), index);
        self.by_address.insert((registration.ip.clone(), registration.transfer_port), index);
        for host in hosts(&registration) {
            self.by_host.entry(host).or_default().push(index);
        }
    }

    fn leave(&mut self, index: u32) {
        let registration = self.get(index).face.registration.clone();
        self.by_uuid.remove(&registration.uuid);
        let address = (registration.ip.clone(), registration.transfer_port);
        if self.by_address.get(&address) == Some(&index) {
            self.by_address.remove(&address);
        }
        for host in hosts(&registration) {
            if let Some(held) = self.by_host.get_mut(&host) {
                held.retain(|held| *held != index);
                if held.is_empty() {
                    self.by_host.remove(&host);
                }
            }
        }
    }
}

fn hosts(registration: &Registration) -> Vec<Arc<str>> {
    let mut hosts = vec![registration.ip.clone()];
    if registration.host_name != registration.ip {
        hosts.push(registration.host_name.clone());
    }
    hosts
}

impl Server {
    /// Whether the speaker names the address from which this server registered.
    pub fn is_named_by(&self, id: ServerId) -> bool {
        let registration = &self.face.registration;
        &*registration.ip == id.ip && registration.transfer_port == id.transfer_port
    }

    /// Whether the speaker carries the key of the latest registration.
    pub fn is_in_session(&self, id: ServerId) -> bool {
        self.session.0 == id.session
    }
}
